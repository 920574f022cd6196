"""Maintain a store: measure and check its records, copy and compact it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from mosesplug.errors import StoreError, StoreFull, StoreInUse
from mosesplug.features import FeatureSpace
from mosesplug.store.files.environment import Environment
from mosesplug.store.files.opening import DATABASES
from mosesplug.store.files.replacement import DRAFT, make_store
from mosesplug.store.merge import Reader
from mosesplug.store.records import KbestRecord
from mosesplug.store.state import StoreState, iterate_prefix, list_areas


def count_stored_bytes(
    transaction: Any, environment: Environment, state: StoreState, iteration: int
) -> int:
    """Return the bytes of all records of an iteration.

    They are lists, graphs, statistics and others.
    """
    return sum(
        len(key) + len(value)
        for area, _, prefix in list_areas(iteration, len(state.kinds))
        for key, value in iterate_prefix(transaction, environment[area], prefix)
    )


def list_faults(reader: Reader, state: StoreState, iteration: int, sentence: int) -> list[str]:
    """Return the errors of a list and its search graph, in words, empty if valid.

    The record is decoded. Features, scores and statistics must be finite numbers for every
    hypothesis, and every earlier hypothesis that the list refers to must exist. The nodes of the
    graph must be in topological order.
    """
    try:
        faults = _faults(reader, state, iteration, sentence)
    except (StoreError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        faults = [f"it cannot be read: {error}"]
    buffer = reader.graph(iteration, sentence)
    if buffer is not None:
        from mosesplug.store.graph_records import list_graph_faults  # Numba comes with it

        faults += list_graph_faults(buffer, len(state.space or ()))
    return faults


def _faults(reader: Reader, state: StoreState, iteration: int, sentence: int) -> list[str]:
    buffer = reader.list_bytes(iteration, sentence)
    if buffer is None:
        return []
    try:
        record = KbestRecord(buffer)
    except ValueError as error:
        return [str(error)]
    record.text_bounds(), record.list_extras()  # which raise ValueError if they are invalid
    space = state.space or FeatureSpace(())
    sparse = record.sparse()
    checks = {
        "it has other dense features than the store": record.n_dense == space.n_dense,
        "a hypothesis has a line break": bool((record.text != ord("\n")).all()),
        "a feature is not a finite number": bool(np.isfinite(record.flat_dense).all()),
        "a sparse feature is not a finite number, or has no name": bool(
            np.isfinite(sparse.data).all()
            and ((sparse.indices >= 0) & (sparse.indices < space.n_sparse)).all()
        ),
        "a model score is infinite": not np.isinf(record.scores).any(),
    }
    faults = [fault for fault, is_sound in checks.items() if not is_sound]
    faults += _faults_of_statistics(reader, state, iteration, sentence, record.n_new)
    return faults + _faults_of_references(reader, iteration, sentence, record)


def _faults_of_statistics(
    reader: Reader, state: StoreState, iteration: int, sentence: int, n_new: int
) -> list[str]:
    """Return the errors of statistics; an earlier metric may lack new iterations."""
    faults = []
    for kind in state.kinds:
        try:
            statistics = reader.statistics(kind, iteration, sentence)
        except StoreError:
            if kind.number == state.newest_kind:
                faults.append(f"statistics of {kind.signature} are missing")
            continue
        if len(statistics) != n_new:
            faults.append(f"{n_new} hypotheses have {len(statistics)} statistics")
        if not np.isfinite(statistics).all():
            faults.append(f"statistics of {kind.signature} are not finite numbers")
    return faults


def _faults_of_references(
    reader: Reader, iteration: int, sentence: int, record: KbestRecord
) -> list[str]:
    """Return what is wrong with the references to hypotheses of earlier iterations."""
    homes, rows = record.home_iterations, record.home_rows
    if (homes > iteration).any() or (homes < 1).any() or (rows < 0).any():
        return ["it refers to hypotheses of a later iteration"]
    for home in np.unique(homes).tolist():
        held = reader.record(home, sentence)
        if held is None or rows[homes == home].max() >= held.n_new:
            return [f"it refers to missing hypotheses of iteration {home}"]
    return []


_DATA = "data.mdb"
_MAP_SIZE = 1 << 30


def copy(path: str | PathLike[str], target: str | PathLike[str]) -> int:
    """Write a compact copy of a store into a new directory; return its bytes.

    Raises:
        StoreError: there is no store, or the target exists.
        StoreFull: the disk is full; no part of the copy is left.
    """
    environment = Environment(path, writable=False, map_size=_MAP_SIZE)
    try:
        with make_store(Path(target)) as draft:
            draft.mkdir()
            _write(environment, draft)
    finally:
        environment.close()
    return (Path(target) / _DATA).stat().st_size


def compact(path: str | PathLike[str]) -> tuple[int, int]:
    """Replace a store by a compact copy, and return the bytes before and after.

    Other processes may open the store while it is copied. When the copy has been compared with it,
    it takes the store's place, if no process has the store open then. If this process is killed,
    either the old or the new file is in place.

    Raises:
        StoreError: there is no store, or another process has it open.
        StoreFull: the disk has no room for both; the store is unchanged.
    """
    path = Path(path)
    data = path / _DATA
    if not data.is_file():
        raise StoreError(f"there is no n-best store at {path}")
    environment = Environment(path, writable=True, map_size=_MAP_SIZE)
    try:
        if readers := environment.other_readers():
            raise StoreInUse(
                f"the n-best store at {path} is being read by process "
                f"{', '.join(map(str, readers))}: wait until it ends"
            )
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=path))
        try:
            before = data.stat().st_size
            _write(environment, draft)
            _compare(environment, draft)
            environment.replace_data(draft / _DATA)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return before, data.stat().st_size
    finally:
        environment.close()


def _compare(environment: Environment, directory: Path) -> None:
    """Compare a copy with its store, which nobody else writes.

    Raises:
        StoreError: they differ.
    """
    copied = Environment(directory, writable=False, map_size=_MAP_SIZE)
    try:
        pairs = zip_longest(_iterate_records(environment), _iterate_records(copied))
        if any(one != other for one, other in pairs):
            raise StoreError(
                f"the copy of the n-best store at {environment.path} differs from it, so the store "
                "was not replaced. Check its disk, and its records (mosesplug nbest verify)"
            )
    finally:
        copied.close()


def _iterate_records(environment: Environment) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield database, key and value of every record."""
    with environment.reading() as transaction:
        for name in DATABASES:
            for key, value in transaction.cursor(environment[name]):
                yield name, bytes(key), bytes(value)


def _write(environment: Environment, directory: Path) -> None:
    """Write a compact copy and sync it."""
    environment.check_pages(large=True)
    try:
        environment.copy_to(directory)
        with (directory / _DATA).open("rb+") as file:
            os.fsync(file.fileno())
    except (OSError, lmdb.Error) as error:
        if "No space" in str(error):
            raise StoreFull(f"no room for a copy of the store in {directory}: {error}") from None
        raise StoreError(f"cannot copy the store into {directory}: {error}") from None
