"""Everything that a report shows, read from a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mosesplug.inspection.features import feature_facts
from mosesplug.inspection.lattice import lattice_facts
from mosesplug.inspection.lists import coverage_by_rank, error_surfaces, growth
from mosesplug.inspection.run import Run
from mosesplug.inspection.sentences import worst_and_best
from mosesplug.inspection.texts import Texts, mark_invalid_utf8
from mosesplug.report.data import IterationFacts, ReportData
from mosesplug.store import IterationRecord
from mosesplug.tuning.workdir.records import result_of, start_of

__all__ = ["STEPS", "report_data", "report_steps"]

STEPS = ("iterations", "lists", "oracles", "features", "surfaces", "sentences", "search graphs")
"""What is gathered, in order."""

_SPARSE = 40


def report_data(
    run: Run, texts: Texts, sentences: int = 5, lattice: int | None = None
) -> ReportData:
    """A run as a report shows it; see ``report_steps``."""
    *_, data = report_steps(run, texts, sentences, lattice)
    return data


def report_steps(
    run: Run, texts: Texts, sentences: int = 5, lattice: int | None = None
) -> Iterator[ReportData]:
    """A run as a report shows it, more of it at each of ``STEPS``.

    Args:
        run: the run.
        texts: what is known beside the store.
        sentences: how many of the worst and of the best.
        lattice: the sentence whose search graph is shown; None: a clear one.

    Raises:
        DataError: ``texts`` are not the run's, or sentence ``lattice`` has no graph.
        StoreError: the store cannot be read.
    """
    texts.check(run.n_sentences)
    data = ReportData(
        store=str(run.path),
        metric=run.metric.name,
        signature=run.records[-1].signature,
        facts=_facts(run),
        iterations=tuple(map(_iteration, run.records)),
        names=run.names,
    )
    sparse = sorted(run.weights.normalised().sparse.items(), key=lambda item: -abs(item[1]))
    active = [(mark_invalid_utf8(name), weight) for name, weight in sparse if weight != 0.0]
    data = replace(data, sparse=tuple(active[:_SPARSE]), n_sparse=len(active))
    yield data
    if not run.has_lists:
        return
    merged = run.store.tuning_set()
    yield data
    oracles = growth(run, merged)
    data = replace(
        data,
        iterations=tuple(
            replace(facts, oracle=oracle)
            for facts, oracle in zip(data.iterations, oracles, strict=True)
        ),
        coverage=coverage_by_rank(run, run.records[-1].iteration),
    )
    yield data
    data = replace(data, features=feature_facts(run, [merged]))
    yield data
    data = replace(data, surfaces=error_surfaces(run, merged))
    yield data
    worst, best = worst_and_best(run, merged, texts, sentences)
    data = replace(data, worst=worst, best=best)
    yield data
    yield replace(data, lattice=lattice_facts(run, merged, lattice))


def _iteration(record: IterationRecord) -> IterationFacts:
    start = start_of(record)
    result = None if record.result is None else result_of(record)
    shards = None if result is None else result.shards
    held_out = () if result is None else result.heldout
    return IterationFacts(
        number=record.iteration,
        score=shards.first_best_score if shards else record.first_best_score,
        optimum=None if result is None else result.optimum,
        oracle=None,
        held_out=max((evaluation.score for evaluation in held_out), default=None),
        hypotheses=shards.hypotheses if shards else record.hypotheses,
        new_hypotheses=shards.new_hypotheses if shards else record.new_hypotheses,
        seconds_decoding=start.seconds_decoding,
        seconds_optimising=0.0 if result is None else result.seconds_optimising,
        weights=start.weights.normalised().dense,
    )


def _facts(run: Run) -> dict[str, str]:
    """The configuration in words."""
    start = start_of(run.records[-1])
    return {
        "sentences": str(run.n_sentences),
        "iterations": str(len(run.records)),
        "weights": run.where,
        "seed": str(start.seed),
        **start.settings,
        "decoder": " ".join(start.command) or "none",
    }
