"""Checksums of records, which detect damage that still parses.

Damaged bytes may be valid numbers or text.

They are stored beside the commit record of their iteration, not in the records: stores without
checksums remain usable, older software reads stores that have them, and dropping an iteration drops
its checksums. Their keys begin with the iteration and ``CHECKSUMS``; ``sums`` describes the rest.
CRC-32 detects every burst of up to 32 changed bits, at the speed of memory, so a record is compared
when a process first reads it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mosesplug.errors import StoreError
from mosesplug.store.files.environment import Environment
from mosesplug.store.records import corruption_error
from mosesplug.store.state import CHECKSUMS, OWN_NAMES, iterate_prefix, iteration_key, list_areas
from mosesplug.store.sums import (
    OWN,
    ComparedSums,
    Known,
    decode_sums,
    encode_place,
    encode_sums,
    parse_place,
)

_NAMES = {
    "kbest": "the record of its list",
    "statistics": "the record of its statistics",
    "forest": "the record of its search graph",
}
_WHAT = {"kbest": "the list", "statistics": "the statistics", "forest": "the search graph"}


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
        area: their database; statistics must be of one kind.
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
        key = iteration_key(iteration, CHECKSUMS) + encode_place(area, kind, min(sums))
        transaction.put(key, encode_sums(sums), db=environment["iterations"])


def delete_checksums(transaction: Any, environment: Environment, iteration: int, part: int) -> None:
    """Remove the checksum of one of an open iteration's own records, if it has one."""
    key = iteration_key(iteration, CHECKSUMS) + encode_place(OWN, 0, part)
    transaction.delete(key, db=environment["iterations"])


def load_checksums(transaction: Any, environment: Environment, iteration: int) -> Known:
    """Return the checksums of an iteration.

    Raises:
        StoreError: the checksums are damaged.
    """
    known: Known = {}
    prefix = iteration_key(iteration, CHECKSUMS)
    for key, value in iterate_prefix(transaction, environment[OWN], prefix):
        place = parse_place(key[len(prefix) :])
        sums = decode_sums(value)
        if place is None or sums is None:
            raise StoreError(
                f"the n-best store at {environment.path} is damaged: the checksums of iteration "
                f"{iteration} cannot be read. Use a copy, or start in an empty directory"
            )
        known.setdefault(place, {}).update(sums)
    return known


def compare_record(
    transaction: Any,
    environment: Environment,
    place: tuple[str, int],
    iteration: int,
    sentence: int,
    value: Any,
) -> None:
    """Compare a record with its checksum, if it has one and this was not done before.

    Args:
        place: database and kind of statistics of the record.
        value: its bytes, or None if there is none.

    Raises:
        StoreError: the record is damaged or missing.
    """
    compared = environment.compared.get(iteration)
    if compared is not None:
        agrees = compared.compare(place, sentence, value)
        if agrees or (agrees is None and value is None):
            return
    # The record may be younger than the checksums that are known, or of an iteration that was
    # dropped and added again.
    if compared is None or compared.transaction != transaction.id():
        compared = ComparedSums(transaction.id())
        compared.add(load_checksums(transaction, environment, iteration))
        environment.compared[iteration] = compared
        agrees = compared.compare(place, sentence, value)
    if agrees is False:
        why = "its record is missing" if value is None else "its checksum differs"
        raise corruption_error(iteration, sentence, why, _WHAT[place[0]])


def note_written(environment: Environment, iteration: int, known: Known) -> None:
    """Note the checksums of records that this process has just written.

    Else all those of an iteration that grows would be read again after each of its parts.
    """
    environment.compared.setdefault(iteration, ComparedSums(-1)).add(known, compared=True)


def check_iteration(
    transaction: Any, environment: Environment, iteration: int, n_kinds: int
) -> ChecksumReport:
    """Compare every record of an iteration with its checksum.

    Args:
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
        return None, f"{OWN_NAMES.get(number, 'a record')} {what}"
    return number, f"{_NAMES[area]} {what}"


def _records(
    transaction: Any, environment: Environment, iteration: int, n_kinds: int
) -> Iterator[tuple[tuple[str, int], Iterator[tuple[int, Any]]]]:
    """Yield every record of an iteration with its number, by place."""
    for area, kind, prefix in list_areas(iteration, n_kinds):
        records = (
            (_number(area, key), value)
            for key, value in iterate_prefix(transaction, environment[area], prefix)
        )
        if area == OWN:
            # Checksums, and what an open iteration has instead of these, have none themselves.
            records = ((number, value) for number, value in records if number in OWN_NAMES)
        yield (area, kind), records
