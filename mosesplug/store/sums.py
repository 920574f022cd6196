"""Checksums of an iteration's records, and which were compared.

A value holds the checksums of records that were written together, as ``(number, CRC-32)`` pairs of
uint32 followed by a CRC-32 of these pairs. The number is the sentence of a record, or the part of
an iteration's own record. The end of its key is the database, the kind of statistics (0 for other
records), and the first number.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.store.encoding import decode_value, encode_value
from mosesplug.store.stored import MOST_SENTENCES

OWN = "iterations"
AREAS = (OWN, "kbest", "statistics", "forest")
_PLACE = struct.Struct(">BII")
_CHECKSUM = struct.Struct("<I")

Known = dict[tuple[str, int], dict[int, int]]
"""Checksums by number, for each database and kind of statistics (0 for the others)."""


def encode_place(area: str, kind: int, first: int) -> bytes:
    """Return the end of a key."""
    return _PLACE.pack(AREAS.index(area), kind, first)


def parse_place(key: bytes) -> tuple[str, int] | None:
    """Return database and kind of statistics; None if the key's end is damaged."""
    if len(key) != _PLACE.size:
        return None
    area, kind, _ = _PLACE.unpack(key)
    return (AREAS[area], kind) if area < len(AREAS) else None


def encode_sums(sums: Mapping[int, int]) -> bytes:
    """Return the value of some checksums by number."""
    pairs = np.array(sorted(sums.items()), dtype="<u4").tobytes()
    return encode_value(_CHECKSUM.pack(zlib.crc32(pairs)) + pairs)


def decode_sums(value: Any) -> dict[int, int] | None:
    """Return checksums by number, or None if they are damaged."""
    try:
        data = decode_value(value)
    except (ValueError, TypeError, KeyError):
        return None
    if not isinstance(data, bytes) or len(data) % 8 != _CHECKSUM.size:
        return None
    pairs = data[_CHECKSUM.size :]
    if _CHECKSUM.pack(zlib.crc32(pairs)) != data[: _CHECKSUM.size]:
        return None
    rows: NDArray[np.uint32] = np.frombuffer(pairs, "<u4").reshape(-1, 2)
    return dict(rows.tolist()) if not len(rows) or rows[:, 0].max() < MOST_SENTENCES else None


@dataclass
class _Area:
    """Checksums of the records of one database, by number.

    Attributes:
        sums: the checksums.
        states: whether there is one (1), and whether its record was compared with it (2).
    """

    sums: array[int] = field(default_factory=lambda: array("I"))
    states: bytearray = field(default_factory=bytearray)

    def add(self, sums: Mapping[int, int], state: int) -> None:
        missing = max(sums, default=-1) + 1 - len(self.states)
        if missing > 0:
            self.sums.extend([0] * missing)
            self.states.extend(bytes(missing))
        for number, value in sums.items():
            self.sums[number] = value
            self.states[number] = state


@dataclass
class ComparedSums:
    """Checksums of an iteration as of some transaction.

    A record is compared once: what is damaged in memory afterwards is not looked for.

    Attributes:
        transaction: the transaction, in which all of them were read.
    """

    transaction: int
    _areas: dict[tuple[str, int], _Area] = field(default_factory=dict)

    def add(self, known: Known, *, compared: bool = False) -> None:
        """Add checksums, or those of records that this process has just written."""
        for place, sums in known.items():
            self._areas.setdefault(place, _Area()).add(sums, 2 if compared else 1)

    def compare(self, place: tuple[str, int], number: int, value: Any) -> bool | None:
        """Compare a record (or None) with its checksum, unless that was done.

        Returns:
            Whether they agree; None if there is no checksum.
        """
        area = self._areas.get(place)
        if area is None or number >= len(area.states) or not area.states[number]:
            return None
        if value is None:
            return False
        if area.states[number] == 1:
            if zlib.crc32(value) != area.sums[number]:
                return False
            area.states[number] = 2
        return True
