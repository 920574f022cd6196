"""Keep parsed search graphs as arrays, found again by the content of their files.

The arrays of a graph are in one file that is named by a digest of the bytes of the graph's file, so
they never outlive a change. The directory may be removed at any time. Nothing is kept, and no error
is raised, where it cannot be written. What others than the owner of the graphs could write there is
not read: an array is not checked as a parsed file is.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
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

from formats.graphs.hypergraph_columns import HypergraphFile

__all__ = ["ParsedGraphs"]

_MAGIC = b"graph-1\n"
_ENDING = ".graph"
_KEPT = re.compile(r"[0-9a-f]{32}(\.graph|(\.[0-9]+){2})")  # complete, or left by a kill
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
        directory: the directory of the files; created when it is needed.
        since: time of the first use, in seconds.
    """

    directory: Path
    since: float

    @classmethod
    def beside(cls, graphs: str | PathLike[str]) -> ParsedGraphs:
        """Return those beside a directory of graphs: ``DIR.parsed``."""
        return cls(Path(f"{Path(graphs).resolve()}.parsed"), time.time())

    def read(
        self, path: str | PathLike[str], parse: Callable[[], HypergraphFile]
    ) -> HypergraphFile:
        """Return the graph of a file, parsed only if its arrays are not there.

        Args:
            path: the file.
            parse: reads it; its errors are raised.
        """
        try:
            with Path(path).open("rb") as file:
                before = os.fstat(file.fileno())
                digest = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
        except OSError:
            return parse()
        if not self._is_safe(before.st_uid):
            return parse()
        place = self.directory / f"{digest}{_ENDING}"
        if (found := _load(place, fspath(path))) is not None:
            with contextlib.suppress(OSError):
                os.utime(place)  # for forget_unused
            return found
        graph = parse()
        with contextlib.suppress(OSError):
            if _state(Path(path).stat()) == _state(before):  # else it was written meanwhile
                self._keep(place, [*_dump(graph)])
        return graph

    def _is_safe(self, owner: int) -> bool:
        """Return whether only this user or the graphs' owner can write the directory."""
        try:
            status = self.directory.stat()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        is_ours = status.st_uid in (os.geteuid(), owner)
        return is_ours and not status.st_mode & stat.S_IWOTH

    def _keep(self, place: Path, parts: Sequence[bytes | memoryview]) -> None:
        """Write a file at once; its checksum tells if a crash of the machine spoils it."""
        self.directory.mkdir(exist_ok=True)
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

    @classmethod
    def remove(cls, graphs: str | PathLike[str]) -> None:
        """Remove what is kept beside a directory of graphs."""
        found = cls.beside(graphs).directory
        cls(found, math.inf).forget_unused()
        with contextlib.suppress(OSError):
            found.rmdir()

    def forget_unused(self) -> None:
        """Remove the arrays of graphs that were not read since the first use."""
        with contextlib.suppress(OSError):
            for place in self.directory.iterdir():
                # File systems may round times down to seconds.
                if _KEPT.fullmatch(place.name) and place.stat().st_mtime < self.since - 2.0:
                    place.unlink()


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


def _is_tiled(indices: NDArray[np.int32], width: int) -> bool:
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
