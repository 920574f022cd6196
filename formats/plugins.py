"""Objects that installed packages register through entry points.

Entry points are in the metadata of all installed packages. Reading them takes milliseconds, so this
is repeated only after packages were installed or removed. Importing a plug-in runs foreign code.
Callers therefore ask for a plug-in only after their own names, and import only those that are used
or shown.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


class PluginError(ValueError):
    """A plug-in cannot be used; the message names its package and entry point."""


@dataclass(frozen=True)
class PluginEntry:
    """An entry point of an installed package, which is not imported yet.

    Attributes:
        group: the group of entry points, as ``mosesplug.formats``.
        name: the name that it registers.
        package: name and version of the package that registers it.
        value: the module and the object in it, as ``acme.lists:FORMAT``.
    """

    group: str
    name: str
    package: str
    value: str
    _entry: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name} of {self.package} (entry point {self.group}: {self.value})"

    @property
    def is_bundled(self) -> bool:
        """Whether mosesplug itself registers the object, not another package."""
        return self.package.partition(" ")[0] == "mosesplug"

    def load(self, kind: type[T]) -> T:
        """Import the object.

        Raises:
            PluginError: importing it fails, it is not a ``kind``, or it has another name.
        """
        try:
            loaded = self._entry.load()
        except (Exception, SystemExit) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise PluginError(
                f"the plug-in {self} cannot be imported: {why}. Repair or uninstall the package"
            ) from error
        if not isinstance(loaded, kind):
            raise PluginError(
                f"the plug-in {self} is a {type(loaded).__name__}, but must be a {kind.__name__}"
                f" of {kind.__module__}. Repair or uninstall the package"
            )
        own = getattr(loaded, "name", None)
        if own != self.name:
            raise PluginError(
                f"the plug-in {self} calls itself {own!r}: both names must be the same. Repair or"
                " uninstall the package"
            )
        return loaded


def list_plugins(group: str) -> tuple[PluginEntry, ...]:
    """Return the entry points of a group, sorted by name; none is imported."""
    return _read_entries(group, tuple((path, _read_mtime(path)) for path in sys.path))


def _read_mtime(path: str) -> int:
    """Return when a directory changed, in nanoseconds; 0 if it does not exist."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=8)
def _read_entries(group: str, path: tuple[tuple[str, int], ...]) -> tuple[PluginEntry, ...]:
    """Read the entry points of a group.

    Args:
        group: see ``list_plugins``.
        path: the directories of packages, and when each changed: a change is another key.
    """
    from importlib.metadata import entry_points  # takes longer than most commands' other imports

    entries = {
        (entry.name, entry.value): PluginEntry(
            group,
            entry.name,
            f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unnamed package",
            entry.value,
            entry,
        )
        for entry in entry_points(group=group)
    }
    return tuple(entries[key] for key in sorted(entries))


def find_plugin(group: str, name: str, kind: type[T]) -> T | None:
    """Return what a package registers under a name, or None.

    The names of bundled plug-ins cannot be taken by other packages.

    Raises:
        PluginError: it cannot be used, or several packages register the name.
    """
    entries = [entry for entry in list_plugins(group) if entry.name == name]
    entries = [entry for entry in entries if entry.is_bundled] or entries
    if len(entries) > 1:
        named = " and ".join(map(str, entries))
        raise PluginError(f"two plug-ins have the same name: {named}. Uninstall one of them")
    return entries[0].load(kind) if entries else None
