"""What the lists of a run tell: oracles as lists grow, coverage by rank, error surfaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.inspection.run import Run
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.line_search.lists import search_space
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.optimizers.problem import Problem
from mosesplug.report.data import Coverage, ErrorSurface
from mosesplug.tuning_set import TuningSet

__all__ = [
    "coverage_by_rank",
    "error_surfaces",
    "first_rows",
    "growth",
    "oracle_score",
    "sentence_scores",
]

_SEED = 1
_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def sentence_scores(metric: Metric, stats: NDArray[np.number]) -> NDArray[np.float64]:
    """What each hypothesis is worth by itself, float64 ``[n_hyps]``; larger is better.

    BLEU of a sentence is BLEU+1 (Lin & Och 2004): without smoothing it is mostly 0. All other
    metrics score the sentence as a corpus of one.
    """
    counts = stats.astype(np.float64)
    if metric.has_bleu_statistics:
        return metric.sentence_scores(counts)
    return np.asarray(metric.score(counts), dtype=np.float64)


def first_rows(tuning_set: TuningSet, widths: NDArray[np.int64]) -> TuningSet:
    """The first hypotheses of each list.

    Args:
        tuning_set: the lists.
        widths: int64 ``[n_sentences]``; how many of each; of a shorter list all.
    """
    taken = np.minimum(widths, np.diff(tuning_set.offsets))
    offsets = np.concatenate([[0], np.cumsum(taken)]).astype(np.int64)
    rows = np.repeat(tuning_set.offsets[:-1] - offsets[:-1], taken) + np.arange(offsets[-1])
    return TuningSet(
        space=tuning_set.space,
        sentence_ids=tuning_set.sentence_ids,
        offsets=offsets,
        dense=tuning_set.dense[rows],
        sparse=None if tuning_set.sparse is None else tuning_set.sparse.take(rows),
        stats=tuning_set.stats[rows],
        lengths=tuning_set.lengths[rows],
    )


def oracle_score(tuning_set: TuningSet, metric: Metric) -> float:
    """The corpus score of the best choice that a greedy search finds (``optimizers.oracles``)."""
    return corpus_oracles(tuning_set, metric, np.random.default_rng(_SEED)).score


def growth(run: Run, merged: TuningSet) -> list[float]:
    """The oracle's score among all hypotheses up to each iteration.

    Args:
        run: the run.
        merged: its lists, merged; hypotheses stand in the order of their first appearance.
    """
    known = np.zeros(run.n_sentences, dtype=np.int64)
    scores = []
    for record in run.records:
        lists = run.store.iteration_set(record.iteration)
        new = lists.home_iterations == record.iteration
        owners = np.repeat(np.arange(run.n_sentences), np.diff(lists.tuning_set.offsets))
        rows = np.stack([owners[new], lists.home_rows[new]], axis=1)
        known += np.bincount(np.unique(rows, axis=0)[:, 0], minlength=run.n_sentences)
        scores.append(oracle_score(first_rows(merged, known), run.metric))
    return scores


def coverage_by_rank(run: Run, iteration: int) -> Coverage:
    """The oracle's score among the first hypotheses of an iteration's lists."""
    lists = run.store.iteration_set(iteration).tuning_set
    longest = int(np.diff(lists.offsets).max(initial=1))
    ranks = [*(rank for rank in _RANKS if rank < longest), longest]
    scores = []
    for rank in ranks:
        part = first_rows(lists, np.full(lists.n_sentences, rank, dtype=np.int64))
        scores.append(oracle_score(part, run.metric))
    return Coverage(tuple(ranks), tuple(scores), run.records[iteration - 1].first_best_score)


def error_surfaces(run: Run, merged: TuningSet) -> tuple[ErrorSurface, ...]:
    """The corpus score of the merged lists as each dense weight changes, all others staying."""
    weights = run.vector
    n_dense = merged.space.n_dense
    active = np.arange(len(merged.space)) < n_dense
    problem = Problem(merged, run.metric, active=active)
    space = search_space(problem, weights)
    found = space.searcher(n_dense).along_axes(
        np.arange(n_dense, dtype=np.int64), space.at(weights[:n_dense])
    )
    return tuple(
        _shown(name, float(weight), np.array(thresholds), np.array(scores))
        for name, weight, (thresholds, scores) in zip(
            run.names, weights[:n_dense], found, strict=True
        )
    )


def _shown(
    name: str, weight: float, thresholds: NDArray[np.float64], scores: NDArray[np.float64]
) -> ErrorSurface:
    """The part around the result: as wide on either side as weights are at most."""
    reach = max(2.0 * abs(weight), 0.2)
    inside = (thresholds > -reach) & (thresholds < reach)
    places = np.flatnonzero(inside)
    first = int(places[0]) if len(places) else int(np.searchsorted(thresholds, 0.0))
    last = int(places[-1]) + 1 if len(places) else first
    ends = np.concatenate([[-reach], thresholds[inside], [reach]]) + weight
    # Between thresholds that coincide there are no weights, whatever the score there.
    kept = np.flatnonzero(np.diff(ends) > 1e-12)
    return ErrorSurface(name, weight, ends[[*kept, -1]], scores[first : last + 1][kept])
