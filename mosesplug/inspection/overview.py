"""Summaries of the iterations of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mosesplug.inspection.run import StoredRun
from mosesplug.tuning.workdir.records import read_result

__all__ = ["IterationSummary", "summarize_iterations"]


@dataclass(frozen=True)
class IterationSummary:
    """One iteration.

    Attributes:
        number: the iteration, from 1.
        sentences: number of sentences that have a list, here or in the stores of shards.
        hypotheses: number of hypotheses in its lists.
        new_hypotheses: those that no earlier iteration had.
        graphs: number of sentences that have a search graph.
        stored_bytes: size of its records.
        change: largest difference between the weights that it was decoded with and those that it
            found, as the stopping rule computes it; None without a result.
        score: score of the decoder's translations.
        oracle: score of the greedy corpus oracle of its lists; None if it was not computed.
        optimum: score that the optimizer reached; None if it has not run.
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


def summarize_iterations(run: StoredRun, *, oracles: bool = True) -> Iterator[IterationSummary]:
    """Summarize the iterations in order.

    Args:
        run: the run.
        oracles: compute the oracle of each iteration, which reads all hypotheses.
    """
    for record in run.records:
        result = None if record.result is None else read_result(record)
        shards = None if result is None else result.shards
        yield IterationSummary(
            number=record.iteration,
            sentences=shards.sentences if shards else record.n_lists,
            hypotheses=shards.hypotheses if shards else record.hypotheses,
            new_hypotheses=shards.new_hypotheses if shards else record.new_hypotheses,
            graphs=record.n_graphs,
            stored_bytes=run.store.stored_bytes(record.iteration),
            change=None if result is None else result.largest_change,
            score=shards.first_best_score if shards else record.first_best_score,
            oracle=_score_oracle(run, record.iteration) if oracles and record.n_lists else None,
            optimum=None if result is None else result.optimum,
            date=record.date,
        )


def _score_oracle(run: StoredRun, iteration: int) -> float:
    # Importing it loads Numba, which listing iterations without oracles does not need.
    from mosesplug.inspection.lists import score_oracle

    return score_oracle(run.store.iteration_set(iteration).tuning_set, run.metric)
