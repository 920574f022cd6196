"""Keep parsed search graphs as arrays, found again by the content of their files.

The arrays of a graph are in one file that is named by a digest of the bytes of the graph's file,
so they never outlive a change. The files lie in sixteen folders by the first digit of their names,
each of which holds a sixteenth of the bytes that are allowed: so every file that is added is
within the bound, without a look at all others. The directory may be removed at any time. Nothing
is kept, and no error is raised, where it cannot be written. What others could write there is not
read: an array is not checked as a parsed file is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import HypergraphFile
from formats.words import Ints32

_MAGIC = b"graph-1\n"
_ENDING = ".graph"
_KEPT = re.compile(r"[0-9a-f]{32}(\.graph|(\.[0-9]+){2})")  # complete, or left by a kill
_FOLDERS = "0123456789abcdef"
_LIMIT = 4 << 30
_ROUNDING = 2.0
"""Seconds: file systems may round times down to whole ones."""
_TYPES = {
    "edge_offsets": np.int64,
    "tail_offsets": np.int64,
    "tails": np.int32,
    "target_offsets": np.int64,
    "targets": np.int32,
    "feature_indptr": np.int64,
    "feature_indices": np.int32,
    "feature_values": np.float32,
    "covered": np.int32,
}
"""The arrays of a graph, in the order of their bytes."""
_HEADER = np.dtype("<i8")
_WORD = 8


@dataclass(frozen=True)
class ParsedGraphs:
    """Parsed graphs in a directory.

    Attributes:
        directory: the directory of the folders; created when it is needed. None: nothing is kept.
        since: time of the first use, in seconds. What was used since then is not removed.
    """

    directory: Path | None
    since: float
    limit: int = _LIMIT

    @classmethod
    def open(cls, directory: Path | None) -> ParsedGraphs:
        """Return those in a directory, used from now on."""
        return cls(directory, time.time())

    def read(
        self, path: str | PathLike[str], parse: Callable[[], HypergraphFile]
    ) -> HypergraphFile:
        """Return the graph of a file, parsed only if its arrays are not there."""
        if self.directory is None:
            return parse()
        try:
            with Path(path).open("rb") as file:
                before = os.fstat(file.fileno())
                digest = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
            folder = self.directory / digest[0]
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if not (_is_private(self.directory) and _is_private(folder)):
                return parse()
        except OSError:
            return parse()
        place = folder / f"{digest}{_ENDING}"
        if (graph := _load(place, fspath(path))) is not None:
            with contextlib.suppress(OSError):
                os.utime(place)  # the least recently used are removed first
            return graph
        graph = parse()
        with contextlib.suppress(OSError):
            if _state(Path(path).stat()) == _state(before):  # else it was written meanwhile
                self._keep(place, [*_dump(graph)])
        return graph

    def _keep(self, place: Path, parts: Sequence[bytes | memoryview]) -> None:
        """Write a file at once; its checksum tells if a crash of the machine spoils it."""
        size = len(_MAGIC) + _WORD + sum(len(part) for part in parts)
        if not self._make_room(place.parent, size):
            return
        checksum = reduce(lambda before, part: zlib.crc32(part, before), parts, 0)
        unfinished = place.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        try:
            with unfinished.open("xb") as file:  # which follows no link
                file.write(_MAGIC + checksum.to_bytes(_WORD, "little"))
                file.writelines(parts)
            unfinished.replace(place)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

    def _make_room(self, folder: Path, size: int) -> bool:
        """Remove unused files of a folder until so many bytes fit; return whether they do."""
        room = self.limit // len(_FOLDERS) - size
        files = [(path.stat(), path) for path in _list_kept(folder)]
        room -= sum(status.st_size for status, _ in files)
        if room >= 0:
            return True
        for status, path in sorted(files, key=lambda entry: (entry[0].st_mtime, entry[1])):
            if status.st_mtime >= self.since - _ROUNDING:
                return False
            path.unlink(missing_ok=True)
            room += status.st_size
            if room >= 0:
                return True
        return False

    def list_files(self) -> Iterator[Path]:
        """Yield the files that are kept, and those that a killed process left."""
        if self.directory is not None:
            for name in _FOLDERS:
                yield from _list_kept(self.directory / name)


def _list_kept(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if _KEPT.fullmatch(path.name)]
    return []


def _is_private(directory: Path) -> bool:
    """Return whether a directory is this user's, and nobody else can write to it."""
    status = directory.lstat()
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _dump(graph: HypergraphFile) -> Iterator[bytes | memoryview]:
    """Yield the contents of a file behind its checksum."""
    names = "\n".join(graph.names).encode("utf-8", "surrogateescape")
    words = b"\n".join(graph.words)
    # Moses writes all features of every edge: their columns need not be kept.
    n_alike = len(graph.names)
    if not _is_tiled(graph.feature_indices, n_alike):
        n_alike = 0
    arrays = {name: np.ascontiguousarray(getattr(graph, name), _TYPES[name]) for name in _TYPES}
    if n_alike:
        arrays["feature_indices"] = np.zeros(0, dtype=np.int32)
    sizes = [len(graph.names), len(names), len(graph.words), len(words), n_alike]
    sizes += [len(array) for array in arrays.values()]
    yield np.array(sizes, dtype=_HEADER).tobytes()
    blobs: list[bytes | memoryview] = [names, words]
    blobs += [array.view(np.uint8).data for array in arrays.values()]
    for blob in blobs:
        yield blob
        yield bytes(-len(blob) % _WORD)


def _is_tiled(indices: Ints32, width: int) -> bool:
    if not width or len(indices) % width:
        return False
    return bool((indices.reshape(-1, width) == np.arange(width)).all())


def _load(place: Path, path: str) -> HypergraphFile | None:
    """Return a graph from its arrays; None if they are missing or damaged."""
    try:
        data = place.read_bytes()
    except OSError:
        return None
    first = len(_MAGIC) + _WORD
    checksum = zlib.crc32(memoryview(data)[first:]).to_bytes(_WORD, "little")
    if data[:first] != _MAGIC + checksum:
        return None
    n_sizes = 5 + len(_TYPES)
    sizes = np.frombuffer(data, _HEADER, n_sizes, first).tolist()
    lengths = [sizes[1], sizes[3]]
    lengths += [
        size * np.dtype(kind).itemsize
        for size, kind in zip(sizes[5:], _TYPES.values(), strict=True)
    ]
    at = first + n_sizes * _HEADER.itemsize
    starts = []
    for length in lengths:
        starts.append(at)
        at += length + -length % _WORD
    names, words = (
        data[start : start + size] for start, size in zip(starts, lengths[:2], strict=False)
    )
    arrays: dict[str, NDArray[Any]] = {
        name: np.frombuffer(data, kind, size, start)
        for (name, kind), size, start in zip(_TYPES.items(), sizes[5:], starts[2:], strict=True)
    }
    if width := sizes[4]:
        repeats = len(arrays["feature_values"]) // width
        arrays["feature_indices"] = np.tile(np.arange(width, dtype=np.int32), repeats)
    return HypergraphFile(
        path,
        tuple(names.decode("utf-8", "surrogateescape").split("\n")) if sizes[0] else (),
        tuple(words.split(b"\n")) if sizes[2] else (),
        **arrays,
    )
