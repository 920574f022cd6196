"""Digests of the source of each module's compiled kernels.

That is the code of the functions whose decorators have "kernel" in their names, and of every
function and constant of the packages that they name, directly or not, in whatever module; without
docstrings and comments.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

__all__ = ["kernel_digests"]


def kernel_digests(root: Path) -> dict[str, str]:
    """Digests by the files' paths relative to ``root``."""
    names = {path: path.relative_to(root) for path in root.rglob("*.py")}
    modules = {_name(name): _Module(_name(name), path) for path, name in names.items()}
    return {
        names[module.path].as_posix(): _digest(module.name, modules) for module in modules.values()
    }


class _Module:
    """A module's definitions and imports."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree, parsed on first use."""
        return ast.parse(self.path.read_bytes())

    @cache  # noqa: B019 - modules live as long as the process
    def definition(self, name: str) -> tuple[str, list[tuple[str, str]]]:
        """What gives a name its meaning: code, and the modules and names that it refers to."""
        nodes = self._definitions.get(name, [])
        code = "".join(map(_code, nodes))
        used = {target for node in nodes for target in self._used(node)}
        if name in self._imports:
            used.add(self._imports[name])
        return code, sorted(used)

    def _used(self, node: ast.stmt) -> Iterator[tuple[str, str]]:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                yield self.name, part.id
            elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                yield ".".join(filter(None, self._imports.get(part.value.id, ()))), part.attr

    @cached_property
    def _definitions(self) -> dict[str, list[ast.stmt]]:
        """Statements at the top level by the name that they give a meaning."""
        found: dict[str, list[ast.stmt]] = {}
        for node in self.tree.body:
            for name in _defined(node):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def _imports(self) -> dict[str, tuple[str, str]]:
        """Imported module and name (empty for the module itself) by local name."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found[alias.asname or alias.name] = (node.module, alias.name)
        return found

    def kernels(self) -> list[str]:
        """Names of the functions that are compiled."""
        if b"kernel" not in self.path.read_bytes():
            return []
        return [
            node.name
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef)
            and any("kernel" in ast.unparse(each) for each in node.decorator_list)
        ]


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _defined(node: ast.stmt) -> Iterator[str]:
    """Names that a statement gives a meaning."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _digest(name: str, modules: dict[str, _Module]) -> str:
    """The digest of one module."""
    digest = hashlib.sha256()
    waiting = [(name, each) for each in modules[name].kernels()]
    seen = set(waiting)
    while waiting:
        place, wanted = waiting.pop()
        code, used = modules[place].definition(wanted)
        digest.update(f"{place} {wanted} {code}".encode())
        for target in used:
            if target[0] in modules and target not in seen:
                seen.add(target)
                waiting.append(target)
    return digest.hexdigest()[:16]


def _code(node: ast.stmt) -> str:
    """A statement's code without docstrings and places."""
    for part in ast.walk(node):
        body = getattr(part, "body", None)
        if isinstance(body, list):
            part.body = [each for each in body if not _is_text(each)]
    return ast.dump(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
