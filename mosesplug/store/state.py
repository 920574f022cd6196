"""The state of a store without hypotheses.

It has iterations, feature names and fingerprints.

Keys are fixed-width and big-endian, so that an iteration is one sorted range, appended once::

    meta        a name                          schema, fingerprints, kinds of statistics,
                                                sentence ids that are texts, weights of sentences,
                                                checksums of these
    iterations  iteration, part                 0 commit record, 1 caller's record, 2 its result,
                                                3 new sparse features;
                                                of an open iteration: 4 its sums, 5 progress,
                                                6 and first column: new names of a part,
                                                7 facts about its search graphs, before its lists;
                                                8 and a place: ``sums``
    kbest       iteration, sentence             ``records``
    statistics  kind, iteration, sentence       raw rows, one for each hypothesis of the record
    forest      iteration, sentence             ``graph_records``
    homes       level, number, sentence         ``hash_index``, after 16 iterations

An iteration is finished if it has a commit record. At most one, the newest, may be open: it has
some of its lists, or only search graphs.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import StoreError
from mosesplug.features import FeatureSpace
from mosesplug.store.encoding import decode_value, encode_value
from mosesplug.store.files.environment import Environment
from mosesplug.store.stored import (
    IterationRecord,
    OpenGraphs,
    OpenLists,
    StatisticsKind,
    Sums,
    convert,
)
from mosesplug.store.sums import OWN, decode_sums, parse_place

_SCHEMA = 4
"""Version of the format on disk; stores of newer versions are rejected.

Version 1 had no open iterations, version 2 no search graphs, version 3 no float64 statistics; they
are otherwise the same. A store has the lowest version that can read it. The first releases ignore
checksums and dates, which they did not write.
"""

_PLAIN, _WITH_GRAPHS, _WITH_DOUBLES = 2, 3, 4

COMMIT, RECORD, RESULT, SPARSE, GROWING, PROGRESS, NAMES, GRAPHS, CHECKSUMS = range(9)

_META_SUMS = "checksums"

OWN_NAMES = {
    COMMIT: "its commit record",
    RECORD: "its record of weights and settings",
    RESULT: "its record of the optimizer's result",
    SPARSE: "its record of sparse features",
}
"""The own records of a finished iteration, in words."""

iteration_key = struct.Struct(">IB").pack
names_key = struct.Struct(">IBI").pack
kbest_key = struct.Struct(">II").pack
statistics_key = struct.Struct(">III").pack


@dataclass(frozen=True)
class StoreState:
    """The contents of a store without its hypotheses, in one transaction.

    Attributes:
        iterations: finished iterations, in order.
        groups: dense groups, or None before the first hypothesis.
        sparse: sparse features in the order of their first appearance.
        kinds: the stored kinds of statistics.
        newest_kind: number of the kind of the newest iteration, or None.
        fingerprints: fingerprints of input, references and configuration.
        open_lists: the open iteration, if some of its lists are stored.
        open_graphs: the open iteration, if only search graphs are stored.
        sentence_ids: sentence ids that are texts, by their numbers; empty if ids are numbers.
        sentence_weights: float64, the weight of each sentence; None: 1 each.
    """

    iterations: tuple[IterationRecord, ...] = ()
    groups: tuple[tuple[str, int], ...] | None = None
    sparse: tuple[str, ...] = ()
    kinds: tuple[StatisticsKind, ...] = ()
    newest_kind: int | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    open_lists: OpenLists | None = None
    open_graphs: OpenGraphs | None = None
    sentence_ids: tuple[str, ...] = ()
    sentence_weights: NDArray[np.float64] | None = None

    @cached_property
    def space(self) -> FeatureSpace | None:
        """The columns, or None before the first hypothesis."""
        return None if self.groups is None else FeatureSpace(self.groups, self.sparse)

    @property
    def n_sentences(self) -> int:
        """Number of sentences of the input; 0 before the first iteration."""
        return self.iterations[-1].n_sentences if self.iterations else 0

    def find_kind(self, signature: str, references: str) -> StatisticsKind | None:
        """Return the kind with this signature and fingerprint, or None."""
        for kind in self.kinds:
            if (kind.signature, kind.references) == (signature, references):
                return kind
        return None

    def select(self, iterations: int | Iterable[int] | None, path: object) -> tuple[int, ...]:
        """Return the numbers of the given iterations, or of all, in ascending order.

        Raises:
            StoreError: an iteration is not in the store.
        """
        if iterations is None:
            return tuple(range(1, len(self.iterations) + 1))
        wanted = {iterations} if isinstance(iterations, int | np.integer) else set(iterations)
        missing = sorted(i for i in wanted if not 1 <= i <= len(self.iterations))
        if missing:
            held = f"1 to {len(self.iterations)}" if self.iterations else "none yet"
            raise StoreError(
                f"iteration {missing[0]} is not in the n-best store at {path}; it holds {held}"
            )
        return tuple(sorted(int(i) for i in wanted))


def load_state(
    transaction: Any,
    environment: Environment,
    known: StoreState | None = None,
    *,
    compare: bool = True,
) -> StoreState:
    """Read the state of a store.

    Args:
        known: an earlier state, of which at most the last finished iteration has changed since:
            those before it are not read again, which would take longer with every iteration.
        compare: whether to compare what it reads with checksums.

    Raises:
        StoreError: the store is damaged, or a newer version of the software wrote it.
    """
    meta = environment["meta"]
    schema = transaction.get(b"schema", db=meta)
    if schema is None:
        return StoreState()
    with _report_damage(environment, "its schema"):
        version = int(decode_value(schema))
    if version > _SCHEMA:
        raise StoreError(
            f"the n-best store at {environment.path} was written by a newer mosesplug (its schema "
            f"is {version}, this one reads up to {_SCHEMA}): use that version, or start in an "
            "empty directory"
        )
    with _report_damage(environment, "its list of statistics or its fingerprints"):
        stored = _read_meta(transaction, environment, compare=compare)
        kinds = convert(stored.get("statistics", []), tuple[StatisticsKind, ...])
        if any(kind.number != place for place, kind in enumerate(kinds)):
            raise ValueError("kinds of statistics are numbered differently")
        fingerprints = dict(stored.get("fingerprints", {}))
    with _report_damage(environment, "its sentence ids"):
        ids = convert(stored.get("sentence_ids", []), tuple[str, ...])
    with _report_damage(environment, "its weights of sentences"):
        sentence_weights = _read_sentence_weights(stored)
    known = known or StoreState()
    n_known = len(known.iterations)
    parts: dict[int, dict[int, Any]] = {}
    names: list[str] = []
    own = _OwnSums()
    cursor = transaction.cursor(environment["iterations"])
    if n_known:
        cursor.set_range(iteration_key(n_known, 0))
    else:
        cursor.first()  # a damaged key may stand before that of the first iteration
    for key, value in cursor:
        with _report_damage(environment, "a key of its iterations"):
            iteration, part = struct.unpack_from(">IB", key)
        with _report_damage(environment, f"a record of iteration {iteration}"):
            own.add(iteration, part, bytes(key)[5:], value)
            if part == NAMES:
                names += convert(decode_value(value), list[str])
            elif part not in (PROGRESS, CHECKSUMS):
                parts.setdefault(iteration, {})[part] = decode_value(value)
    groups, newest_kind = known.groups, known.newest_kind
    sparse = list(known.sparse)
    # The last known iteration is read again: it may have got its result.
    records = list(known.iterations[:-1])
    open_lists = open_graphs = None
    for iteration, values in parts.items():
        with _report_damage(environment, f"a record of iteration {iteration}"):
            if compare:
                own.compare(iteration)
            if iteration != len(records) + 1 or open_lists or open_graphs:
                raise ValueError(f"iteration {len(records) + 1} has no record")
            growing = {"iteration": iteration, "sparse": [*sparse, *names]}
            if GRAPHS in values:
                open_graphs = convert(values[GRAPHS] | growing, OpenGraphs)
                continue
            if GROWING in values:
                open_lists = convert(values[GROWING] | growing, OpenLists)
                kinds[open_lists.kind]  # raises IndexError if there is no such kind
                continue
            sums = convert(values[COMMIT], Sums)
            newest_kind = sums.kind
            groups = sums.groups if groups is None else groups
            own_names = convert(values[SPARSE], list[str])
            if iteration != n_known:
                sparse += own_names
            records.append(
                IterationRecord(
                    iteration=iteration,
                    record=dict(values[RECORD]),
                    result=dict(values[RESULT]) if RESULT in values else None,
                    n_sentences=sums.n_sentences,
                    n_lists=sums.n_lists,
                    hypotheses=sums.hypotheses,
                    new_hypotheses=sums.new_hypotheses,
                    first_best_score=sums.first_best_score,
                    signature=kinds[newest_kind].signature,
                    n_graphs=sums.n_graphs,
                    date=sums.date,
                )
            )
    return StoreState(
        iterations=tuple(records),
        groups=groups,
        sparse=tuple(sparse),
        kinds=kinds,
        newest_kind=newest_kind,
        fingerprints=fingerprints,
        open_lists=open_lists,
        open_graphs=open_graphs,
        sentence_ids=ids,
        sentence_weights=sentence_weights,
    )


def _read_sentence_weights(stored: Mapping[str, Any]) -> NDArray[np.float64] | None:
    weights = stored.get("sentence_weights")
    if weights is None:
        return None
    if weights.dtype != np.float64 or weights.ndim != 1:
        raise ValueError("they are not a row of numbers")
    return weights  # type: ignore[no-any-return]


def _read_meta(transaction: Any, environment: Environment, *, compare: bool) -> dict[str, Any]:
    """Return the values of ``meta`` by name.

    Raises:
        ValueError: one cannot be read, or its checksum differs.
    """
    items = {
        bytes(key).decode(): bytes(value) for key, value in transaction.cursor(environment["meta"])
    }
    for name, checksum in decode_value(items.pop(_META_SUMS, encode_value({}))).items():
        if compare and zlib.crc32(items.get(name, b"")) != checksum:
            raise ValueError(f"the checksum of {name} differs")
    return {name: decode_value(value) for name, value in items.items()}


@dataclass
class _OwnSums:
    """Stored and recomputed checksums of the iterations' own records.

    They are by iteration, then by kind (the first column of names, else 0) and part.
    """

    stored: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    recomputed: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)

    def add(self, iteration: int, part: int, rest: bytes, value: Any) -> None:
        """Add a record, or checksums; ``rest`` is the end of its key."""
        if part != CHECKSUMS:
            kind = int.from_bytes(rest)
            self.recomputed.setdefault(iteration, {})[kind, part] = zlib.crc32(value)
        elif (place := parse_place(rest)) is not None and place[0] == OWN:
            for number, checksum in (decode_sums(value) or {}).items():
                self.stored.setdefault(iteration, {})[place[1], number] = checksum

    def compare(self, iteration: int) -> None:
        """Raise ValueError if a record of an iteration is damaged or missing."""
        recomputed = self.recomputed.get(iteration, {})
        for (kind, part), checksum in self.stored.get(iteration, {}).items():
            if recomputed.get((kind, part)) != checksum:
                raise ValueError(f"{OWN_NAMES.get(part, 'a record')} has another checksum")


@contextmanager
def _report_damage(environment: Environment, what: str) -> Iterator[None]:
    """Errors of decoding what a store holds, as one message."""
    try:
        yield
    except (
        ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, struct.error
    ) as error:  # fmt: skip
        raise StoreError(
            f"the n-best store at {environment.path} is damaged: {what} cannot be read "
            f"({type(error).__name__}: {error}). Use a copy, or start in an empty directory"
        ) from None


def put_meta(
    transaction: Any,
    environment: Environment,
    *,
    graphs: bool = False,
    doubles: bool = False,
    **values: object,
) -> None:
    """Store values in ``meta``, and the schema version that the store now needs.

    Args:
        graphs: whether search graphs will be stored.
        doubles: whether statistics will be float64.
    """
    meta = environment["meta"]
    stored = decode_value(transaction.get(b"schema", encode_value(0), db=meta))
    needed = _WITH_DOUBLES if doubles else _WITH_GRAPHS if graphs else _PLAIN
    # Never lower: older versions must not read what this store once got.
    schema = max(stored, needed)
    sums = decode_value(transaction.get(_META_SUMS.encode(), encode_value({}), db=meta))
    for name, value in {"schema": schema, **values}.items():
        encoded = encode_value(value)
        sums[name] = zlib.crc32(encoded)
        transaction.put(name.encode(), encoded, db=meta)
    transaction.put(_META_SUMS.encode(), encode_value(sums), db=meta)


def put_sorted(transaction: Any, database: Any, items: Mapping[bytes, bytes]) -> None:
    """Store keys and values; append them if they come after all keys of the database."""
    if not items:
        return
    cursor = transaction.cursor(database)
    ordered = sorted(items.items())
    # Appended keys fill pages and need no search; keys before the last one would be rejected.
    append = not cursor.last() or bytes(cursor.key()) < ordered[0][0]
    cursor.putmulti(ordered, append=append)


def list_areas(iteration: int, n_kinds: int) -> list[tuple[str, int, bytes]]:
    """Return where the records of an iteration are.

    Returns:
        Database, kind of statistics (0 for the others), and the prefix of its keys there.
    """
    prefix = kbest_key(iteration, 0)[:4]
    areas = [(name, 0, prefix) for name in (OWN, "kbest", "forest")]
    return areas + [
        ("statistics", kind, statistics_key(kind, iteration, 0)[:8]) for kind in range(n_kinds)
    ]


def iterate_prefix(transaction: Any, database: Any, prefix: bytes) -> Iterator[tuple[bytes, Any]]:
    """Yield keys with a prefix, and their values, in order."""
    cursor = transaction.cursor(database)
    if not cursor.set_range(prefix):
        return
    for key, value in cursor:
        if not (name := bytes(key)).startswith(prefix):
            return
        yield name, value


def has_prefix(transaction: Any, database: Any, prefix: bytes) -> bool:
    """Return whether any key has a prefix."""
    return next(iterate_prefix(transaction, database, prefix), None) is not None
