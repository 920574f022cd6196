"""Files that only save time: one bounded directory of the user.

Nothing is written beside the files that a command reads. The directory is the one that
``MOSESPLUG_CACHE_DIR`` names (empty: nothing is kept), or ``mosesplug`` in the user's cache
directory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from formats.graphs.parsed import ParsedGraphs

__all__ = ["CacheContents", "clear_cache", "find_cache", "list_cache", "open_parsed_graphs"]

_VARIABLE = "MOSESPLUG_CACHE_DIR"


@dataclass(frozen=True)
class CacheContents:
    """The cached files of one kind.

    Attributes:
        kind: what the files hold.
        directory: where they are.
        n_files: their number.
        n_bytes: their size.
        limit: the largest size, in bytes.
    """

    kind: str
    directory: Path
    n_files: int
    n_bytes: int
    limit: int


def find_cache() -> Path | None:
    """Return the cache directory, which may be missing; None to keep nothing."""
    if (named := os.environ.get(_VARIABLE)) is not None:
        return Path(named).absolute() if named else None
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without home
        return None
    return base / "mosesplug" if base.is_absolute() else None


def open_parsed_graphs() -> ParsedGraphs:
    """Return the parsed search graphs of the user."""
    directory = find_cache()
    return ParsedGraphs.open(None if directory is None else directory / "graphs")


def list_cache() -> list[CacheContents]:
    """Return the cached files, kind by kind."""
    graphs = open_parsed_graphs()
    if graphs.directory is None:
        return []
    sizes = [path.stat().st_size for path in graphs.list_files()]
    return [CacheContents("parsed graphs", graphs.directory, len(sizes), sum(sizes), graphs.limit)]


def clear_cache() -> None:
    """Remove all that is kept, and nothing else."""
    for path in open_parsed_graphs().list_files():
        path.unlink(missing_ok=True)
