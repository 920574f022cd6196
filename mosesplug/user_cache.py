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

__all__ = [
    "CacheContents",
    "clear_cache",
    "find_cache",
    "list_cache",
    "open_parsed_graphs",
    "open_score_directory",
]

_VARIABLE = "MOSESPLUG_CACHE_DIR"
_SCORE_LIMIT = 4 << 30
"""Bytes of scores. A score takes 24."""


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


def open_score_directory() -> Path | None:
    """Return the directory of scores computed for no run; None to keep nothing.

    If they have become too many, those that were used least recently are removed.
    """
    cache = find_cache()
    if cache is None:
        return None
    files = [(path.stat(), path) for path in _list_scores(cache)]
    size = sum(status.st_size for status, _ in files)
    for status, path in sorted(files, key=lambda entry: (entry[0].st_mtime, entry[1])):
        if size <= _SCORE_LIMIT:
            break
        size -= status.st_size
        path.unlink(missing_ok=True)
    return cache / "scores"


def _list_scores(cache: Path) -> list[Path]:
    return [*(cache / "scores").glob("*.scores")]


def list_cache() -> list[CacheContents]:
    """Return the cached files, kind by kind."""
    cache, graphs = find_cache(), open_parsed_graphs()
    if cache is None or graphs.directory is None:
        return []
    return [
        _measure("parsed graphs", graphs.directory, [*graphs.list_files()], graphs.limit),
        _measure("scores of commands", cache / "scores", _list_scores(cache), _SCORE_LIMIT),
    ]


def _measure(kind: str, directory: Path, files: list[Path], limit: int) -> CacheContents:
    sizes = [path.stat().st_size for path in files]
    return CacheContents(kind, directory, len(sizes), sum(sizes), limit)


def clear_cache() -> None:
    """Remove all that is kept, and nothing else."""
    cache = find_cache()
    files = [] if cache is None else [*_list_scores(cache), *(cache / "scores").glob("*.err")]
    for path in (*open_parsed_graphs().list_files(), *files):
        path.unlink(missing_ok=True)
