"""Write and delete the records of an iteration, whole or in parts.

A part stores its lists, the sums of its iteration so far, and the caller's progress. Finishing an
iteration replaces the sums by a commit record. An iteration that is stored as a whole is one part,
finished in the same transaction. If its lists are large, they are stored in earlier transactions,
like search graphs: LMDB keeps in memory what an open transaction has written. Without a commit
record they are invisible. They are removed after an error, or if the process was killed, before
the next lists are added.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from formats.nbest.block import NBestList
from mosesplug.errors import DataError, StoreError, StoreMismatch
from mosesplug.store.checksums import (
    delete_checksums,
    keep_checksums,
    load_checksums,
    put_checksums,
)
from mosesplug.store.encoding import decode_value, encode_value
from mosesplug.store.files.environment import Environment
from mosesplug.store.files.handles import delete_prefix
from mosesplug.store.merge import Reader
from mosesplug.store.state import (
    CHECKSUMS,
    COMMIT,
    GRAPHS,
    GROWING,
    NAMES,
    PROGRESS,
    RECORD,
    RESULT,
    SPARSE,
    StoreState,
    iteration_key,
    kbest_key,
    list_areas,
    names_key,
    put_meta,
    put_sorted,
)
from mosesplug.store.stored import MOST_SENTENCES, OpenLists, StatisticsKind
from mosesplug.store.sums import OWN, Known

if TYPE_CHECKING:
    # Loads Numba, which reading a store does not need.
    from mosesplug.metrics.protocol import Metric, PreparedReferences
    from mosesplug.store.ingest import Ingest


TRANSACTION_BYTES = 32 << 20
"""Bytes of records to hold in memory before they are stored."""

AHEAD_BYTES = 64 << 20
"""Bytes of text to read and check before anything else is done with lists in files."""


def check_next(
    environment: Environment,
    state: StoreState,
    iteration: int,
    n_sentences: int | None,
    references: PreparedReferences,
) -> None:
    """Check that lists of an iteration can be added.

    ``n_sentences`` is None if it is unknown.

    Raises:
        StoreError: it is neither the open nor the next iteration, or the store is read-only.
        StoreMismatch: the number of sentences differs from the store's.
        DataError: the references have another number of sentences.
    """
    path, open_lists = environment.path, state.open_lists
    if not environment.writable:
        raise StoreError(f"the n-best store at {path} is open read-only")
    if iteration != len(state.iterations) + 1:
        which = "the next one" if open_lists is None else "the open one"
        raise StoreError(
            f"iteration {iteration} cannot be added to the n-best store at {path}: {which} is "
            f"{len(state.iterations) + 1}"
        )
    if n_sentences is None:
        return
    if state.open_graphs and n_sentences <= state.open_graphs.last_sentence:
        raise StoreMismatch(
            f"the input has {n_sentences} sentences, but iteration {iteration} of the n-best store "
            f"at {path} has a search graph of sentence {state.open_graphs.last_sentence}"
        )
    stored = open_lists.n_sentences if open_lists else state.n_sentences
    if (open_lists or state.iterations) and n_sentences != stored:
        raise StoreMismatch(
            f"the input has {n_sentences} sentences, but that of the n-best store at {path} "
            f"has {stored}. Use the same input, or start in an empty directory"
        )
    if n_sentences > MOST_SENTENCES:
        raise DataError(f"a store holds at most {MOST_SENTENCES} sentences, not {n_sentences}")
    if references.n_references and references.n_sentences != n_sentences:
        raise DataError(
            f"the references have {references.n_sentences} sentences, "
            f"but the input has {n_sentences}"
        )


def read_kind_of_parts(
    environment: Environment,
    state: StoreState,
    open_lists: OpenLists,
    references: PreparedReferences,
) -> StatisticsKind:
    """Return the kind of statistics of the open iteration.

    Raises:
        StoreMismatch: it differs from that of these references.
    """
    kind = state.kinds[open_lists.kind]
    if (kind.signature, kind.references) != (references.signature, references.fingerprint):
        raise StoreMismatch(
            f"iteration {open_lists.iteration} of the n-best store at {environment.path} was "
            f"started with {kind.signature}, but continues with {references.signature} or other "
            "references. Use the same metric and references, or drop the open iteration"
        )
    return kind


def reject_open_iteration(environment: Environment, state: StoreState, action: str) -> None:
    """Reject an action on a store with an open iteration.

    The action is worded as in ``drop iteration 2 of``.

    Raises:
        StoreError: an iteration is open.
    """
    if (open_lists := state.open_lists) is not None:
        raise StoreError(
            f"cannot {action} the n-best store at {environment.path}: iteration "
            f"{open_lists.iteration} is open, with lists of {open_lists.n_lists} of its "
            f"{open_lists.n_sentences} sentences. Finish it, or drop it"
        )


def enlarge(state: StoreState, ingest: Ingest, metric: Metric) -> OpenLists:
    """Return the open iteration, or a new one, with the lists of ``ingest``.

    ``state`` holds the open iteration.
    """
    before = state.open_lists
    opened = before or state.open_graphs
    names = (opened or state).sparse
    if len(ingest.sparse) > len(names):
        names = tuple(ingest.sparse)
    totals = ingest.totals if before is None else before.totals + ingest.totals
    return OpenLists(
        iteration=ingest.iteration,
        kind=ingest.kind.number,
        groups=ingest.groups,
        sparse=names,
        n_sentences=ingest.count_sentences(state.n_sentences),
        n_lists=ingest.n_lists + (before.n_lists if before else 0),
        hypotheses=ingest.hypotheses + (before.hypotheses if before else 0),
        new_hypotheses=ingest.new_hypotheses + (before.new_hypotheses if before else 0),
        totals=totals,
        first_best_score=float(metric.score(totals)),
        n_graphs=opened.n_graphs if opened else 0,
    )


def _put_records(transaction: Any, environment: Environment, ingest: Ingest) -> None:
    """Store the records of lists and their statistics that ``ingest`` holds."""
    put_sorted(transaction, environment["kbest"], ingest.kbest)
    put_sorted(transaction, environment["statistics"], ingest.statistics)


def put_lists(transaction: Any, environment: Environment, ingest: Ingest) -> None:
    """Store the records that ``ingest`` holds, and the checksums of all of its lists."""
    _put_records(transaction, environment, ingest)
    keep_checksums(transaction, environment, ingest.iteration, collect_checksums(ingest))


def collect_checksums(ingest: Ingest) -> Known:
    """Return the checksums of the records of all lists of ``ingest``."""
    return {
        ("kbest", 0): ingest.checksums,
        ("statistics", ingest.kind.number): ingest.checksums_of_statistics,
    }


def put_part(
    transaction: Any, environment: Environment, state: StoreState, grown: OpenLists, progress: bytes
) -> None:
    """Store sums, new names and progress of a part; ``state`` precedes it."""
    # Sets the schema, so that versions without parts reject the store.
    put_meta(transaction, environment)
    if state.open_graphs:
        key = iteration_key(grown.iteration, GRAPHS)
        transaction.delete(key, db=environment["iterations"])
        delete_checksums(transaction, environment, grown.iteration, GRAPHS)
    n_before = len((state.open_lists or state.open_graphs or state).sparse)
    values = {
        iteration_key(grown.iteration, GROWING): encode_value(
            grown.as_record() | {"totals": grown.totals}
        ),
        iteration_key(grown.iteration, PROGRESS): progress,
    }
    put_sorted(transaction, environment["iterations"], values)
    put_checksums(transaction, environment, grown.iteration, OWN, values)
    put_names(transaction, environment, grown.iteration, n_before, grown.sparse)


def put_names(
    transaction: Any, environment: Environment, iteration: int, n_before: int, names: Sequence[str]
) -> None:
    """Store the names of sparse features after the first ``n_before``."""
    if len(names) > n_before:
        value = encode_value(list(names[n_before:]))
        key = names_key(iteration, NAMES, n_before)
        transaction.put(key, value, db=environment["iterations"])
        sums: Known = {(OWN, n_before): {NAMES: zlib.crc32(value)}}
        keep_checksums(transaction, environment, iteration, sums)


def put_finished(
    transaction: Any, environment: Environment, state: StoreState, grown: OpenLists, record: bytes
) -> None:
    """Store the commit record of an iteration whose lists are stored."""
    # Checksums of lists and graphs outlive the sums and progress of the parts, which go now.
    checksums = load_checksums(transaction, environment, grown.iteration)
    delete_prefix(
        transaction, environment["iterations"], iteration_key(grown.iteration, COMMIT)[:4]
    )
    if not grown.n_graphs:
        # Graphs of an interrupted run.
        delete_prefix(transaction, environment["forest"], kbest_key(grown.iteration, 0)[:4])
        checksums.pop(("forest", 0), None)
    checksums = {place: sums for place, sums in checksums.items() if place[0] != OWN}
    parts = {
        COMMIT: encode_value(grown.as_record() | {"date": _now()}),
        RECORD: record,
        SPARSE: encode_value(list(grown.sparse[len(state.sparse) :])),
    }
    # All in the caller's transaction: an iteration is there as a whole, or not.
    values = {iteration_key(grown.iteration, part): value for part, value in parts.items()}
    put_sorted(transaction, environment["iterations"], values)
    put_checksums(transaction, environment, grown.iteration, OWN, values)
    keep_checksums(transaction, environment, grown.iteration, checksums)


def _now() -> str:
    """Return the UTC date and time in ISO 8601, for information only."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def put_result(transaction: Any, environment: Environment, iteration: int, result: bytes) -> None:
    """Store the optimizer's result of a finished iteration."""
    key = iteration_key(iteration, RESULT)
    transaction.put(key, result, db=environment["iterations"])
    put_checksums(transaction, environment, iteration, OWN, {key: result})


def delete_iteration(
    transaction: Any, environment: Environment, iteration: int, n_kinds: int
) -> None:
    """Remove everything of one iteration, finished or not."""
    for area, _, prefix in list_areas(iteration, n_kinds):
        delete_prefix(transaction, environment[area], prefix)


def delete_lists(transaction: Any, environment: Environment, iteration: int, n_kinds: int) -> None:
    """Remove the lists of a finished iteration and their statistics."""
    database = environment["iterations"]
    # The sums of all its records are read before they are removed.
    checksums = load_checksums(transaction, environment, iteration)
    for area, _, prefix in list_areas(iteration, n_kinds):
        if area in ("kbest", "statistics"):
            delete_prefix(transaction, environment[area], prefix)
    delete_prefix(transaction, database, iteration_key(iteration, CHECKSUMS))
    key = iteration_key(iteration, COMMIT)
    without = {"n_lists": 0, "hypotheses": 0, "new_hypotheses": 0}
    value = encode_value(decode_value(transaction.get(key, db=database)) | without)
    transaction.put(key, value, db=database)
    kept = {place: sums for place, sums in checksums.items() if place[0] in (OWN, "forest")}
    kept[OWN, 0] = {**kept.get((OWN, 0), {}), COMMIT: zlib.crc32(value)}
    keep_checksums(transaction, environment, iteration, kept)


def _delete_unfinished_lists(
    transaction: Any, environment: Environment, iteration: int, n_kinds: int
) -> None:
    """Remove the lists of an iteration and their statistics, unless it is finished."""
    if transaction.get(iteration_key(iteration, COMMIT), db=environment["iterations"]) is None:
        for area, _, prefix in list_areas(iteration, n_kinds):
            if area in ("kbest", "statistics"):
                delete_prefix(transaction, environment[area], prefix)


def ingest_blocks(
    environment: Environment,
    ingest: Ingest,
    blocks: Iterator[NBestList],
    most_bytes: int | None,
) -> None:
    """Ingest all blocks.

    Args:
        ingest: the iteration.
        blocks: its lists.
        most_bytes: records are stored whenever they have so many bytes; None: not here.

    Raises:
        StoreError, FormatError: as ``NBestStore.add_iteration``; no list of the iteration is kept.
    """
    try:
        # Records without a commit record are invisible: a killed process leaves nothing that is
        # read.
        while _ingest_until(environment, ingest, blocks, most_bytes):
            environment.write(lambda transaction: _put_records(transaction, environment, ingest))
            ingest.forget_records()
    except BaseException:
        remove_lists(environment, ingest)
        raise


def _ingest_until(
    environment: Environment,
    ingest: Ingest,
    blocks: Iterator[NBestList],
    most_bytes: int | None,
) -> bool:
    """Ingest blocks until their records have so many bytes; return whether they have."""
    # The map cannot grow while this transaction is open.
    with environment.reading() as transaction:
        reader = Reader(transaction, environment)
        for block in blocks:
            ingest.add(block, reader)
            if most_bytes is not None and ingest.bytes_held >= most_bytes:
                return True
    return False


def remove_lists(environment: Environment, ingest: Ingest) -> None:
    """Remove what was stored of an iteration that failed, if the disk allows it."""
    if ingest.has_stored:
        with suppress(StoreError):
            _remove(environment, ingest.iteration, ingest.kind.number + 1)


def remove_interrupted_lists(environment: Environment, iteration: int, n_kinds: int) -> None:
    """Remove lists of an unfinished iteration that a killed process left."""
    with environment.reading() as transaction:
        is_left = Reader(transaction, environment).has_lists(iteration)
    if is_left:
        _remove(environment, iteration, n_kinds)


def _remove(environment: Environment, iteration: int, n_kinds: int) -> None:
    environment.write(
        lambda transaction: _delete_unfinished_lists(transaction, environment, iteration, n_kinds)
    )
