"""The iterations of a run, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mosesplug.inspection.run import Run
from mosesplug.store import IterationRecord
from mosesplug.tuning.workdir.records import result_of

__all__ = ["IterationLine", "overview"]


@dataclass(frozen=True)
class IterationLine:
    """One iteration.

    Attributes:
        number: from 1.
        sentences: that have a list, in this store or in those of the run's shards.
        hypotheses, new_hypotheses: of its lists, and those that no earlier iteration had.
        graphs: sentences that have a search graph.
        stored_bytes: what its records take.
        change: largest difference of a weight between those found in the iteration and those that
            it was decoded with, as the stopping rule takes it; None where there is no result.
        score: the metric of the decoder's own translations.
        oracle: the metric of the best choice in its lists, by greedy search; None if not asked for.
        optimum: what the optimizer reached; None where it has not run.
        date: when its lists were stored, in UTC (ISO 8601); None in stores of version 0.1.
    """

    number: int
    sentences: int
    hypotheses: int
    new_hypotheses: int
    graphs: int
    stored_bytes: int
    change: float | None
    score: float
    oracle: float | None
    optimum: float | None
    date: str | None


def overview(run: Run, *, oracles: bool = True) -> Iterator[IterationLine]:
    """The iterations, the first one first.

    Args:
        run: the run.
        oracles: whether to look for the best choice in each iteration's lists: the one thing that
            reads all hypotheses.
    """
    for record in run.records:
        result = None if record.result is None else result_of(record)
        shards = None if result is None else result.shards
        yield IterationLine(
            number=record.iteration,
            sentences=shards.sentences if shards else record.n_lists,
            hypotheses=shards.hypotheses if shards else record.hypotheses,
            new_hypotheses=shards.new_hypotheses if shards else record.new_hypotheses,
            graphs=record.n_graphs,
            stored_bytes=run.store.stored_bytes(record.iteration),
            change=None if result is None else result.largest_change,
            score=shards.first_best_score if shards else record.first_best_score,
            oracle=_oracle(run, record) if oracles and record.n_lists else None,
            optimum=None if result is None else result.optimum,
            date=record.date,
        )


def _oracle(run: Run, record: IterationRecord) -> float:
    from mosesplug.optimizers.oracles import corpus_oracles

    lists = run.store.iteration_set(record.iteration).tuning_set
    return corpus_oracles(lists, run.metric, np.random.default_rng(1)).score
