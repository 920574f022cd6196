"""Statistics of stored hypotheses.

There is one complete set for each metric signature and references. New hypotheses are scored when
they are added. Each combination of metric, settings and references is a kind of statistics. Missing
statistics of a kind are computed once, from the stored text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, StoreError
from mosesplug.store.checksums import put_checksums
from mosesplug.store.files.environment import Environment
from mosesplug.store.merge import Reader
from mosesplug.store.records import report_damage
from mosesplug.store.state import (
    StoreState,
    has_prefix,
    load_state,
    put_meta,
    put_sorted,
    statistics_key,
)
from mosesplug.store.stored import NumberType, StatisticsKind

if TYPE_CHECKING:
    # Loads Numba, which reading a store does not need.
    from mosesplug.metrics.protocol import Metric, PreparedReferences


def find_newest_kind(state: StoreState, environment: Environment) -> StatisticsKind:
    """Return the kind of the newest iteration, which is complete for all iterations.

    Adding an iteration completes its kind for all earlier ones, so the kind of any iteration that
    becomes the newest is complete.

    Raises:
        StoreError: the store has no iteration.
    """
    if state.newest_kind is None:
        raise StoreError(f"the n-best store at {environment.path} has no iteration yet")
    return state.kinds[state.newest_kind]


def ensure_statistics(
    environment: Environment,
    state: StoreState,
    metric: Metric,
    references: PreparedReferences,
    iterations: tuple[int, ...],
    threads: int,
) -> StatisticsKind:
    """Return the kind of a metric and references, complete for these iterations.

    Raises:
        StoreError: statistics are missing and the store is open read-only; or the stored number of
            statistics is not the metric's.
        DataError: references and input have different numbers of sentences.
    """
    kind = state.find_kind(references.signature, references.fingerprint)
    if kind is not None and kind.width != metric.n_statistics:
        raise StoreError(
            f"the n-best store at {environment.path} is damaged: {kind.signature} has "
            f"{metric.n_statistics} statistics, but the store has {kind.width}. Use a copy, or "
            "start in an empty directory"
        )
    with environment.reading() as transaction:
        missing = [
            iteration
            for iteration in iterations
            if state.iterations[iteration - 1].n_lists
            and (kind is None or not _has(transaction, environment, kind, iteration))
        ]
    if kind is not None and not missing:
        return kind
    if missing and getattr(metric, "needs_outside", False):
        raise StoreError(
            f"the n-best store at {environment.path} has no {references.signature} of iteration "
            f"{missing[0]}, and it holds texts only, not these scores from outside. Import the "
            "lists with {--scores} into a new store"
        )
    if not environment.writable:
        raise StoreError(
            f"the n-best store at {environment.path} has no statistics of {references.signature} "
            "for these references: open it for writing to compute them"
        )
    has_references = references.n_references > 0
    if state.iterations and has_references and references.n_sentences != state.n_sentences:
        raise DataError(
            f"the references have {references.n_sentences} sentences, but the input of the n-best "
            f"store at {environment.path} has {state.n_sentences}"
        )
    if kind is None:
        kind = _add_kind(environment, metric, references)
    for iteration in missing:
        _compute(environment, kind, iteration, state.n_sentences, metric, references, threads)
    return kind


def _has(transaction: Any, environment: Environment, kind: StatisticsKind, iteration: int) -> bool:
    """Return whether an iteration has statistics of that kind (all of them, or none)."""
    prefix = statistics_key(kind.number, iteration, 0)[:8]
    return has_prefix(transaction, environment["statistics"], prefix)


def _add_kind(
    environment: Environment, metric: Metric, references: PreparedReferences
) -> StatisticsKind:
    """Add a new kind of statistics."""
    dtype = _find_dtype(metric, references)

    def write(transaction: Any) -> StatisticsKind:
        kinds = load_state(transaction, environment).kinds
        kind = StatisticsKind(
            number=len(kinds),
            signature=references.signature,
            references=references.fingerprint,
            width=metric.n_statistics,
            dtype=dtype,
        )
        put_meta(transaction, environment, doubles=dtype == "<f8", statistics=[*kinds, kind])
        return kind

    return environment.write(write)


def _find_dtype(metric: Metric, references: PreparedReferences) -> NumberType:
    """Return the stored dtype of a metric's statistics."""
    if getattr(metric, "has_doubles", False):
        return "<f8"
    # The statistics of an empty list show the dtype.
    nothing = np.zeros(0, dtype=np.int64)
    sample = metric.statistics(references, nothing, np.zeros(0, dtype=np.uint8), nothing, nothing)
    return "<i4" if sample.dtype.kind in "iu" else "<f4"


def _compute(
    environment: Environment,
    kind: StatisticsKind,
    iteration: int,
    n_sentences: int,
    metric: Metric,
    references: PreparedReferences,
    threads: int,
) -> None:
    """Compute and store the statistics of the hypotheses in one iteration's records."""
    sentences, counts, starts, ends, texts = [], [], [], [], []
    size = 0
    with environment.reading() as transaction:
        reader = Reader(transaction, environment)
        for sentence in range(n_sentences):
            record = reader.record(iteration, sentence)
            if record is None:
                continue
            sentences.append(sentence)
            counts.append(record.n_new)
            with report_damage(iteration, sentence):
                bounds = record.text_bounds() + size
            starts.append(bounds[:-1])
            ends.append(bounds[1:])
            texts.append(record.text.copy())
            size += len(record.text)
    scored = check_statistics(
        metric.statistics(
            references,
            np.repeat(sentences, counts),
            np.concatenate(texts),
            np.concatenate(starts),
            np.concatenate(ends),
            threads=threads,
        ),
        kind,
        metric,
    )
    of_records = np.concatenate([[0], np.cumsum(counts)]).tolist()
    rows = {
        statistics_key(kind.number, iteration, sentence): scored[begin:end].tobytes()
        for sentence, begin, end in zip(sentences, of_records[:-1], of_records[1:], strict=True)
    }

    def write(transaction: Any) -> None:
        put_sorted(transaction, environment["statistics"], rows)
        put_checksums(transaction, environment, iteration, "statistics", rows)

    environment.write(write)


def check_statistics(
    statistics: NDArray[Any], kind: StatisticsKind, metric: Metric
) -> NDArray[Any]:
    """Convert statistics, ``[n, n_statistics]``, to the stored dtype.

    Raises:
        DataError: a value is not finite.
    """
    if not np.isfinite(statistics).all():
        raise DataError(f"{metric.name} returned statistics that are not finite")
    return np.ascontiguousarray(statistics, dtype=kind.dtype)
