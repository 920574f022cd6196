"""Checksums of records, which detect damage that still parses.

Damaged bytes may be valid numbers or text.

They are stored beside the commit record of their iteration, not in the records: stores without
checksums remain usable, older software reads stores that have them, and dropping an iteration drops
its checksums. A value holds the checksums of records that were written together, as
``(number, CRC-32)`` pairs of uint32 followed by a CRC-32 of these pairs, under the key::

    iteration, CHECKSUMS, kind of record, kind of statistics, first number

The number is the sentence of a record, or the part of an iteration's own record. CRC-32 detects
every burst of up to 32 changed bits, at the speed of memory.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import StoreError
from mosesplug.store.environment import Environment
from mosesplug.store.records import decode_value, encode_value
from mosesplug.store.state import (
    CHECKSUMS,
    COMMIT,
    RECORD,
    RESULT,
    SPARSE,
    iteration_key,
    kbest_key,
    statistics_key,
)

__all__ = [
    "OWN",
    "ChecksumReport",
    "Known",
    "check_iteration",
    "keep_checksums",
    "load_checksums",
    "put_checksums",
]

OWN = "iterations"
_AREAS = (OWN, "kbest", "statistics", "forest")
_NAMES = {
    "kbest": "the record of its list",
    "statistics": "the record of its statistics",
    "forest": "the record of its search graph",
}
_OWN_NAMES = {
    COMMIT: "its commit record",
    RECORD: "its record of weights and settings",
    RESULT: "its record of the optimizer's result",
    SPARSE: "its record of sparse features",
}
_place = struct.Struct(">BII")
_CHECKSUM = struct.Struct("<I")

Known = dict[tuple[str, int], dict[int, int]]
"""Checksums by number, for each database and kind of statistics (0 for the others)."""


@dataclass(frozen=True)
class ChecksumReport:
    """The result of checking the checksums of one iteration.

    Attributes:
        faults: sentence (None: the iteration as a whole) and description of each error.
        records: number of records with a checksum.
        without: number of records without one.
    """

    faults: tuple[tuple[int | None, str], ...]
    records: int
    without: int


def put_checksums(
    transaction: Any,
    environment: Environment,
    iteration: int,
    area: str,
    records: Mapping[bytes, bytes],
) -> None:
    """Store checksums of an iteration's records in the transaction that writes them.

    Args:
        transaction: the write transaction.
        environment: the store's environment.
        iteration: the iteration of the records.
        area: their database; statistics must be of one kind.
        records: keys and values.
    """
    kind = int.from_bytes(next(iter(records), b"")[:4]) if area == "statistics" else 0
    sums = {_number(area, key): zlib.crc32(value) for key, value in records.items()}
    keep_checksums(transaction, environment, iteration, {(area, kind): sums})


def _number(area: str, key: bytes) -> int:
    """Return the sentence of a record, or the part of an iteration's own record."""
    return key[4] if area == OWN else int.from_bytes(key[-4:])


def keep_checksums(
    transaction: Any, environment: Environment, iteration: int, known: Known
) -> None:
    """Store known checksums, one value for each database and kind of statistics."""
    for (area, kind), sums in known.items():
        if not sums:
            continue
        pairs = np.array(sorted(sums.items()), dtype="<u4").tobytes()
        place = _place.pack(_AREAS.index(area), kind, min(sums))
        value = encode_value(_CHECKSUM.pack(zlib.crc32(pairs)) + pairs)
        key = iteration_key(iteration, CHECKSUMS) + place
        transaction.put(key, value, db=environment["iterations"])


def load_checksums(transaction: Any, environment: Environment, iteration: int) -> Known:
    """Return the checksums of an iteration.

    Raises:
        StoreError: the checksums are damaged.
    """
    known: Known = {}
    prefix = iteration_key(iteration, CHECKSUMS)
    cursor = transaction.cursor(environment["iterations"])
    if not cursor.set_range(prefix):
        return known
    for key, value in itertools.takewhile(lambda item: bytes(item[0]).startswith(prefix), cursor):
        place = _parse_key(bytes(key)[len(prefix) :])
        pairs = _decode(value)
        if place is None or pairs is None:
            raise StoreError(
                f"the n-best store at {environment.path} is damaged: the checksums of iteration "
                f"{iteration} cannot be read. Use a copy, or start in an empty directory"
            )
        for number, checksum in pairs:
            known.setdefault(place, {})[number] = checksum
    return known


def _parse_key(key: bytes) -> tuple[str, int] | None:
    """Return database and kind of statistics, or None if the key is damaged."""
    if len(key) != _place.size:
        return None
    area, kind, _ = _place.unpack(key)
    return (_AREAS[area], kind) if area < len(_AREAS) else None


def _decode(value: Any) -> list[tuple[int, int]] | None:
    """Return numbers and checksums, or None if they are damaged."""
    try:
        data = decode_value(value)
    except (ValueError, TypeError, KeyError):
        return None
    if not isinstance(data, bytes) or len(data) % 8 != _CHECKSUM.size:
        return None
    pairs = data[_CHECKSUM.size :]
    if _CHECKSUM.pack(zlib.crc32(pairs)) != data[: _CHECKSUM.size]:
        return None
    found: NDArray[np.uint32] = np.frombuffer(pairs, "<u4").reshape(-1, 2)
    return [(number, checksum) for number, checksum in found.tolist()]


def check_iteration(
    transaction: Any, environment: Environment, iteration: int, n_kinds: int
) -> ChecksumReport:
    """Compare every record of an iteration with its checksum.

    Args:
        transaction: the read transaction.
        environment: the store's environment.
        iteration: the iteration to check.
        n_kinds: number of kinds of statistics in the store.
    """
    try:
        known = load_checksums(transaction, environment, iteration)
    except StoreError:
        return ChecksumReport(((None, "its checksums are damaged"),), 0, 0)
    faults: list[tuple[int | None, str]] = []
    records = without = 0
    for place, items in _records(transaction, environment, iteration, n_kinds):
        left = known.pop(place, {})
        for number, value in items:
            checksum = left.pop(number, None)
            records += checksum is not None
            without += checksum is None
            if checksum is not None and zlib.crc32(value) != checksum:
                faults.append(_describe_fault(place, number, "is damaged: its checksum differs"))
        faults += [_describe_fault(place, number, "is missing") for number in left]
    for place, left in known.items():
        # These belong to a kind of statistics that the store does not list.
        faults += [_describe_fault(place, number, "is missing") for number in left]
    faults.sort(key=lambda fault: -1 if fault[0] is None else fault[0])
    return ChecksumReport(tuple(faults), records, without)


def _describe_fault(place: tuple[str, int], number: int, what: str) -> tuple[int | None, str]:
    area, _ = place
    if area == OWN:
        return None, f"{_OWN_NAMES.get(number, 'a record')} {what}"
    return number, f"{_NAMES[area]} {what}"


def _records(
    transaction: Any, environment: Environment, iteration: int, n_kinds: int
) -> Iterator[tuple[tuple[str, int], Iterator[tuple[int, Any]]]]:
    """Yield every record of an iteration with its number, by place."""
    own = iteration_key(iteration, COMMIT)[:4]
    yield (
        (OWN, 0),
        (
            (number, value)
            for number, value in _iterate_keys(transaction, environment[OWN], own, OWN)
            if number in _OWN_NAMES
        ),
    )
    for area in ("kbest", "forest"):
        prefix = kbest_key(iteration, 0)[:4]
        yield (area, 0), _iterate_keys(transaction, environment[area], prefix, area)
    for kind in range(n_kinds):
        prefix = statistics_key(kind, iteration, 0)[:8]
        area = "statistics"
        yield (area, kind), _iterate_keys(transaction, environment[area], prefix, area)


def _iterate_keys(
    transaction: Any, database: Any, prefix: bytes, area: str
) -> Iterator[tuple[int, Any]]:
    cursor = transaction.cursor(database)
    if not cursor.set_range(prefix):
        return
    for key, value in cursor:
        if not bytes(key).startswith(prefix):
            return
        yield _number(area, bytes(key)), value
