"""``mosesplug optimize --from``: the lists that a tuning run stored, which stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.cli.learn.optimize_input import Given
from mosesplug.errors import DataError, UsageError
from mosesplug.inspection.run import Run, opened
from mosesplug.learning.weights import StartingWeights, read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.moses_tools.scoring import Hypotheses
from mosesplug.optimizers import Progress
from mosesplug.tuning.workdir.records import start_of
from mosesplug.tuning_set import TuningSet

__all__ = ["given_store", "window_of"]


def given_store(
    store: Path,
    window: str | None,
    *,
    metric: str | None,
    settings: str,
    references: Path | None,
    init: Path | None,
    sparse_init: Path | None,
    threads: int,
    told: Progress,
) -> Given:
    """The merged lists of some iterations, with the weights that the first was decoded with.

    Args:
        store: a working directory, or the store in it.
        window: the iterations, as ``window_of`` reads them; None: all.
        metric: what to optimise, and ``settings``; None and nothing: what the store has statistics
            of.
        references: where they are given, statistics are computed anew, and not stored.
        init, sparse_init: other starting weights, or None.
        threads: of scoring and optimising.
        told: how far it is.

    Raises:
        UsageError: another metric than the store's, without references; no such iterations.
        DataError: it has no lists, or the references are not as many as its sentences.
        StoreError: there is no store, or it cannot be read.
    """
    with opened(store, with_lists=True) as run:
        selected = window_of(window, len(run.records))
        measure = run.metric
        if metric is not None or settings:
            measure = find_metric(metric or run.metric.name, settings)
        signature = run.signature
        if references is None and measure != run.metric:
            raise UsageError(
                f"the store has statistics of {signature}: to optimise {measure.signature()}, give "
                "--refs, and they are computed"
            )
        lists = run.store.tuning_set(selected)
        if references is not None:
            lists, signature = _rescored(run, selected, lists, measure, references, threads, told)
        records = [run.records[number - 1] for number in selected]
        start = _start(run, selected[0], init, sparse_init)
    hypotheses = sum(record.hypotheses for record in records)
    return Given.of_lists(lists, measure, start, signature, hypotheses, threads)


def window_of(text: str | None, count: int) -> list[int]:
    """Iterations, ascending: ``2:5``, ``2:``, ``:5``, ``3``, or ``-5`` for the newest five.

    Args:
        text: as given; None: all.
        count: how many there are.

    Raises:
        UsageError: it is none of these, or there are no such iterations.
    """
    if text is None:
        return list(range(1, count + 1))
    match = re.fullmatch(r"(?P<newest>-[0-9]+)|(?P<one>[0-9]+)|(?P<a>[0-9]*):(?P<b>[0-9]*)", text)
    if match is None:
        raise UsageError(f"--iterations is A:B, N, or -N for the newest N, not {text!r}")
    if match["newest"]:
        first, last = max(1, count + 1 + int(match["newest"])), count
    elif match["one"]:
        first = last = int(match["one"])
    else:
        first, last = int(match["a"] or 1), int(match["b"] or count)
    if not 1 <= first <= last <= count:
        raise UsageError(f"--iterations {text}: the store has iterations 1 to {count}")
    return list(range(first, last + 1))


def _rescored(
    run: Run,
    selected: Sequence[int],
    lists: TuningSet,
    metric: Metric,
    references: Path,
    threads: int,
    told: Progress,
) -> tuple[TuningSet, str]:
    """The lists with statistics of a metric and of references, computed from their texts."""
    from formats.references import read_references

    prepared = metric.prepare(read_references(references))
    if prepared.n_sentences != run.n_sentences:
        raise DataError(
            f"{references} has {prepared.n_sentences} lines, the store at {run.path} has "
            f"{run.n_sentences} sentences"
        )
    texts: list[bytes] = []
    for sentence in range(run.n_sentences):
        texts += run.store.hypotheses(sentence, selected)
        told(sentence + 1, run.n_sentences, "sentences")
    owners: NDArray[np.int64] = np.repeat(lists.sentence_ids, np.diff(lists.offsets))
    said = Hypotheses.of_lines(texts, owners)
    statistics = metric.statistics(
        prepared, said.sentence_ids, said.buffer, said.starts, said.ends, threads=threads
    )
    return replace(lists, stats=statistics), prepared.signature


def _start(
    run: Run, iteration: int, init: Path | None, sparse_init: Path | None
) -> StartingWeights:
    """Read the starting weights; by default those that decoded the iteration, or equal ones."""
    decoded = start_of(run.records[iteration - 1]).weights
    default = decoded.vector(run.space) if any(decoded.dense) else None
    return read_starting_weights(run.space, init, sparse_init, default=default)
