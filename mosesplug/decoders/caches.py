"""Cached files, which are reused only if their sources have not changed.

``features.list.made-from.json`` beside ``features.list`` records its decoder, configuration and
command; if they changed, the cache is made again. The record is written last, so an interrupted
cache is never reused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from formats.moses.ini import list_model_files
from formats.text import write_atomic

_MODEL_PATH = re.compile(r"(?<!\S)path=(\S+)")


def is_fresh(cache: Path, made_from: Mapping[str, str]) -> bool:
    """Return whether a cached file or directory exists and was made from exactly this."""
    try:
        return cache.exists() and json.loads(_note(cache).read_bytes()) == dict(made_from)
    except (OSError, ValueError):
        return False


def remember(cache: Path, made_from: Mapping[str, str]) -> None:
    """Record what a cached file or directory was made from."""
    text = json.dumps(dict(made_from), indent=1, sort_keys=True) + "\n"
    write_atomic(_note(cache), text.encode())


def forget(cache: Path) -> None:
    """Remove the record of a cache, before it is made again."""
    _note(cache).unlink(missing_ok=True)


def share(cache: Path, other: Path) -> None:
    """Make ``other`` a link to a cached directory, with its record.

    A directory without a record is not finished, and is not shared.
    """
    if _note(cache).is_file():
        other.symlink_to(os.path.relpath(cache, other.parent), target_is_directory=True)
        write_atomic(_note(other), _note(cache).read_bytes())


def describe_content(path: Path) -> str:
    """Return a file's name and a digest of its bytes; for small files."""
    return f"{path} sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def describe_size_and_time(path: Path) -> str:
    """Return a file's name, size and time of change; for files too large to read."""
    status = path.stat()
    return f"{path} {status.st_size} bytes, changed at {status.st_mtime_ns}"


def describe_model_files(config: Path, directory: Path) -> str:
    """Return sizes and times of the model files that a ``moses.ini`` names, as lines.

    A ``path=`` may be a prefix of the real names; relative ones count from ``directory``, the
    decoder's current directory.
    """
    lines = []
    for name in _MODEL_PATH.findall(config.read_text("utf-8", "surrogateescape")):
        lines += [describe_size_and_time(path) for path in list_model_files(directory / name)]
    return "\n".join(lines)


def find_lost_models(config: Path, directory: Path) -> tuple[str, ...]:
    """Return relative model files that are beside ``config``, not in ``directory``."""
    names = _MODEL_PATH.findall(config.read_text("utf-8", "surrogateescape"))
    return tuple(
        name
        for name in names
        if not Path(name).is_absolute()
        and not list_model_files(directory / name)
        and list_model_files(config.parent / name)
    )


def _note(cache: Path) -> Path:
    return cache.with_name(cache.name + ".made-from.json")
