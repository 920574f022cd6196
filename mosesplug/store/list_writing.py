"""Ingest the lists of an iteration in bounded memory.

LMDB keeps in memory what an open transaction has written. Large lists are therefore stored in
several transactions, like search graphs: without a commit record, they are invisible. They are
removed after an error, or if the process was killed, before the next lists are added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from formats.nbest.files import NBestList
from mosesplug.errors import StoreError
from mosesplug.store.environment import Environment
from mosesplug.store.merge import Reader
from mosesplug.store.writing import delete_unfinished_lists, put_records

if TYPE_CHECKING:
    # Loads Numba, which reading a store does not need.
    from mosesplug.store.ingest import Ingest

__all__ = [
    "AHEAD_BYTES",
    "TRANSACTION_BYTES",
    "ingest_blocks",
    "remove_interrupted_lists",
    "remove_lists",
]

TRANSACTION_BYTES = 32 << 20
"""Bytes of records to hold in memory before they are stored."""

AHEAD_BYTES = 64 << 20
"""Bytes of text to read and check before anything else is done with lists in files."""


def ingest_blocks(
    environment: Environment,
    ingest: Ingest,
    blocks: Iterator[NBestList],
    most_bytes: int | None,
) -> float:
    """Ingest all blocks, and return the seconds it took without waiting for them.

    Args:
        environment: the store's environment.
        ingest: the iteration.
        blocks: its lists.
        most_bytes: records are stored whenever they have so many bytes; None: not here.

    Raises:
        StoreError, FormatError: as ``NBestStore.add_iteration``; no list of the iteration is kept.
    """
    seconds, is_full = 0.0, True
    try:
        while is_full:
            is_full, seconds_adding = _ingest_until(environment, ingest, blocks, most_bytes)
            seconds += seconds_adding
            if is_full:
                _store_records(environment, ingest)
    except BaseException:
        remove_lists(environment, ingest)
        raise
    return seconds + ingest.seconds_writing


def _ingest_until(
    environment: Environment,
    ingest: Ingest,
    blocks: Iterator[NBestList],
    most_bytes: int | None,
) -> tuple[bool, float]:
    """Ingest blocks until their records have so many bytes or no block is left.

    Returns:
        Whether they have as many, and the seconds without waiting.
    """
    seconds = 0.0
    # The map cannot grow while this transaction is open.
    with environment.reading() as transaction:
        reader = Reader(transaction, environment)
        for block in blocks:
            started = time.perf_counter()
            ingest.add(block, reader)
            seconds += time.perf_counter() - started
            if most_bytes is not None and ingest.bytes_held >= most_bytes:
                return True, seconds
    return False, seconds


def _store_records(environment: Environment, ingest: Ingest) -> None:
    """Store the records that ``ingest`` holds, in a transaction of their own."""
    started = time.perf_counter()
    environment.write(lambda transaction: put_records(transaction, environment, ingest))
    ingest.forget_records()
    ingest.seconds_writing += time.perf_counter() - started


def remove_lists(environment: Environment, ingest: Ingest) -> None:
    """Remove what was stored of an iteration that failed, if the disk allows it."""
    if ingest.has_stored:
        with suppress(StoreError):
            _delete(environment, ingest.iteration, ingest.kind.number + 1)


def remove_interrupted_lists(environment: Environment, iteration: int, n_kinds: int) -> None:
    """Remove lists of an unfinished iteration that a killed process left."""
    with environment.reading() as transaction:
        is_left = Reader(transaction, environment).has_lists(iteration)
    if is_left:
        _delete(environment, iteration, n_kinds)


def _delete(environment: Environment, iteration: int, n_kinds: int) -> None:
    environment.write(
        lambda transaction: delete_unfinished_lists(transaction, environment, iteration, n_kinds)
    )
