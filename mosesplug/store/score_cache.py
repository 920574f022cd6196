"""Scores that a command computed, by text, in a file that only grows.

Scores of a learned metric take hours, so each batch is appended as soon as it is there: a process
that is killed loses none. Runs and commands share a directory. Each metric, in each version, has a
file of its own: a line of JSON, then blocks of ``n``, a checksum, ``n`` keys and ``n`` rows of
numbers. A writer locks the file, so that several may append; the incomplete block of a killed one
is cut off by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import StoreError, StoreFull
from mosesplug.store.files.writer import is_full

_BLOCK = struct.Struct("<II")
"""Number of rows, and the checksum of their keys and numbers."""
_KEY_BYTES = 16
_FORMAT = 1


def make_text_key(texts: Sequence[bytes | None]) -> bytes:
    """Return the key of texts, 16 bytes; None stands for a text that is unknown."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for text in texts:
        # Lengths precede the bytes, so different texts never give the same stream.
        digest.update(b"-" if text is None else b"%d " % len(text))
        digest.update(text or b"")
    return digest.digest()


class ScoreCache:
    """The scores of one metric in one version.

    Args:
        directory: holds the files; it is made when the first scores are added.
        name, version: of the metric. Scores of different versions never mix.
        width: the numbers of each hypothesis.

    Attributes:
        path: the file.
        n_known: number of distinct texts that were looked up, and whose scores another process,
            or an earlier one, has added.
    """

    def __init__(self, directory: Path, name: str, version: str, width: int) -> None:
        self._identity = {"scores": name, "version": version, "numbers": width, "format": _FORMAT}
        header = json.dumps(self._identity)
        digest = hashlib.blake2b(header.encode(), digest_size=8).hexdigest()
        self.path = directory / f"{name}.{digest}.scores"
        self._header = header.encode() + b"\n"
        self._width = width
        self._end = 0
        self._keys = np.zeros((0, 2), dtype=np.uint64)
        self._values = np.zeros((0, width))
        self._is_counted = np.zeros(0, dtype=bool)
        self._unsorted: list[tuple[NDArray[np.uint64], NDArray[np.float64], bool]] = []
        self.n_known = 0

    def find(self, keys: Sequence[bytes]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Look up keys.

        Returns:
            Which keys have scores, bool ``[n]``; and their numbers, float64 ``[n, width]``, 0 for
            the others.

        Raises:
            StoreError: the file cannot be read.
        """
        self._refresh()
        self._sort()
        wanted = np.frombuffer(b"".join(keys), dtype="<u8").reshape(-1, 2)
        is_known = np.zeros(len(wanted), dtype=bool)
        values = np.zeros((len(wanted), self._width))
        if len(self._keys) and len(wanted):
            places = np.searchsorted(self._keys[:, 0], wanted[:, 0])
            places = np.minimum(places, len(self._keys) - 1)
            # Keys that share their first half with another one count as unknown: they are scored.
            is_known = (self._keys[places] == wanted).all(axis=1)
            rows = places[is_known]
            values[is_known] = self._values[rows]
            self.n_known += len(np.unique(rows[~self._is_counted[rows]]))
            self._is_counted[rows] = True
        return is_known, values

    def add(self, keys: Sequence[bytes], values: NDArray[np.float64]) -> None:
        """Append scores, float64 ``[n, width]``.

        Raises:
            StoreFull: the disk is full.
            StoreError: the file cannot be written.
        """
        rows = np.ascontiguousarray(values, dtype="<f8")
        names = b"".join(keys)
        payload = names + rows.tobytes()
        block = _BLOCK.pack(len(keys), zlib.crc32(payload)) + payload
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                # Nobody else writes now: what is not a whole block was left by a killed process.
                self._read_from(file.fileno())
                file.truncate(self._end)
                data = block if self._end else self._header + block
                file.write(data)
        except OSError as error:
            kind = StoreFull if is_full(error) else StoreError
            raise kind(f"scores cannot be kept in {self.path}: {error.strerror}") from None
        self._end += len(data)
        # These were not known before.
        self._unsorted.append((np.frombuffer(names, dtype="<u8").reshape(-1, 2), rows, True))

    def _refresh(self) -> None:
        """Read what was appended since the last time, by this process or another."""
        try:
            with self.path.open("rb") as file:
                with contextlib.suppress(OSError):
                    os.utime(file.fileno())  # the least recently used are removed first
                self._read_from(file.fileno())
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(
                f"the scores in {self.path} cannot be read: {error.strerror}"
            ) from None

    def _read_from(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        if size < self._end:
            raise StoreError(
                f"{self.path} has become shorter while it was in use. Run the same command again"
            )
        data = memoryview(os.pread(descriptor, size - self._end, self._end))
        place = 0
        if not self._end:
            if len(data) < len(self._header):
                return
            if data[: len(self._header)] != self._header:
                raise StoreError(
                    f"{self.path} is damaged, or no file of scores: delete it, and they are "
                    "computed again"
                )
            place = len(self._header)
        row_bytes = _KEY_BYTES + 8 * self._width
        while place + _BLOCK.size <= len(data):
            count, checksum = _BLOCK.unpack_from(data, place)
            begin, end = place + _BLOCK.size, place + _BLOCK.size + count * row_bytes
            if end > len(data):
                break
            payload = data[begin:end]
            if zlib.crc32(payload) != checksum:
                raise StoreError(
                    f"{self.path} is damaged at byte {self._end + begin}: delete it, and the "
                    "scores are computed again"
                )
            split = count * _KEY_BYTES
            keys = np.frombuffer(payload[:split], dtype="<u8").reshape(-1, 2)
            values = np.frombuffer(payload[split:], dtype="<f8").reshape(-1, self._width)
            self._unsorted.append((keys, values, False))
            place = end
        self._end += place

    def _sort(self) -> None:
        """Sort what was read, once for all blocks: a batch adds one."""
        if not self._unsorted:
            return
        blocks, self._unsorted = self._unsorted, []
        keys = np.concatenate([self._keys, *(keys for keys, _, _ in blocks)])
        values = np.concatenate([self._values, *(values for _, values, _ in blocks)])
        own = (np.full(len(keys), is_own) for keys, _, is_own in blocks)
        is_counted = np.concatenate([self._is_counted, *own])
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        self._keys, self._values = keys[order], values[order]
        self._is_counted = is_counted[order]
