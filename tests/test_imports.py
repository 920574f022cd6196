"""Imports between modules, those inside functions and for type checkers included."""

from __future__ import annotations

import grimp

_PUBLIC_NAMES = "mosesplug"
"""The package names what is public, for type checkers; the rooms import its version only."""


def find_circles(imports: dict[str, set[str]]) -> set[str]:
    """Return the modules in circles, and those between two circles.

    Take away the modules that import none of the others, and those that none of them imports.
    """
    imports = {module: set(imported) for module, imported in imports.items()}
    while True:
        wanted = set().union(*imports.values())
        kept = {module for module, imported in imports.items() if imported and module in wanted}
        if len(kept) == len(imports):
            return kept
        imports = {module: imports[module] & kept for module in kept}


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph("mosesplug", "formats", cache_dir=None)
    modules = graph.modules - {_PUBLIC_NAMES}
    imports = {
        module: graph.find_modules_directly_imported_by(module) & modules for module in modules
    }
    assert len(imports) > 500
    assert find_circles(imports) == set()


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"e"}, "e": set()}
    assert find_circles(imports) == {"b", "c"}
    assert find_circles(imports | {"c": set()}) == set()
