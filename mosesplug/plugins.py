"""Find the objects that installed packages register through entry points.

The bundled plug-ins are in ``mosesplug.extras`` and ``formats.extras``. Each group of entry points
has one kind of object. One that does not work is an error of the commands that use it only.
Commands that list names leave it out, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from formats.plugins import PluginEntry, PluginError, find_plugin, list_plugins
from mosesplug.errors import UsageError

__all__ = [
    "ALGORITHMS",
    "DECODERS",
    "FORMATS",
    "GRAPHS",
    "METRICS",
    "TOOLKITS",
    "load_plugin",
    "load_plugins",
    "plugin_names",
]

METRICS = "mosesplug.metrics"
FORMATS = "mosesplug.formats"
DECODERS = "mosesplug.decoders"
ALGORITHMS = "mosesplug.algorithms"
GRAPHS = "mosesplug.graphs"
TOOLKITS = "mosesplug.toolkits"

T = TypeVar("T")

_warned: set[str] = set()


def load_plugin(group: str, name: str, kind: type[T]) -> T | None:
    """Return what a package registers under a name, or None.

    Raises:
        UsageError: it cannot be used.
    """
    try:
        return find_plugin(group, name, kind)
    except PluginError as error:
        raise UsageError(str(error)) from error


def plugin_names(group: str, built_in: Collection[str] = ()) -> list[str]:
    """Return the sorted names that packages register, without those of mosesplug."""
    return sorted({entry.name for entry in list_plugins(group)} - set(built_in))


def bundled_names(group: str) -> list[str]:
    """Return the sorted names that mosesplug's own extras register."""
    return [entry.name for entry in list_plugins(group) if entry.is_bundled]


def load_plugins(
    group: str,
    kind: type[T],
    built_in: Collection[str] = (),
    check: Callable[[T], None] | None = None,
) -> Iterator[tuple[PluginEntry, T | None, str]]:
    """Yield each plug-in of a group, its object, and why it cannot be used.

    The object is None and the reason a sentence, or the reason is empty. Reasons are also logged as
    warnings, once each.

    Args:
        group: the group of entry points.
        kind: the type of the objects.
        built_in: names that plug-ins cannot take.
        check: raises ``UsageError`` for an object that cannot be used.
    """
    entries = list_plugins(group)
    bundled = {entry.name for entry in entries if entry.is_bundled}
    for entry in entries:
        problem, plugin = "", None
        if not entry.is_bundled and entry.name in {*built_in, *bundled}:
            problem = (
                f"the plug-in {entry} is ignored: mosesplug has {entry.name} itself. Rename the"
                " plug-in or uninstall the package"
            )
        else:
            try:
                plugin = find_plugin(group, entry.name, kind)
                if check is not None and plugin is not None:
                    check(plugin)
            except (PluginError, UsageError) as error:
                problem, plugin = str(error), None
        if problem and problem not in _warned:
            _warned.add(problem)
            logging.getLogger(__name__).warning("warning: %s", problem)
        yield entry, plugin, problem
