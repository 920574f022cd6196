"""Several metrics at a time: Pareto-optimal hypotheses (Duh et al. 2012).

Pareto-optimal hypotheses should have higher model scores than dominated ones. A weighted sum of
metrics says how much of one may be paid for the other, and never prefers what lies in a dent
between two extremes. Here a hypothesis is good if no other one of its list is better by all metrics
(``fronts``), and pairs of a good one and one that is not are learned from as PRO learns from pairs
(PMO-PRO). With one metric, the good hypotheses are the best ones.

The algorithm finds several weights, one for each draw of pairs. Those that the weighted sum of
``--metric BLEU,TER`` likes best are the result; the history has all of them, and says which are
Pareto-optimal on the corpus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from mosesplug.arrays import Bools, Floats, Ints
from mosesplug.errors import OptimizerError
from mosesplug.kernels import kernel
from mosesplug.metrics.interpolated import InterpolatedMetric, slice_columns
from mosesplug.metrics.protocol import Metric, Smoothing
from mosesplug.optimizers.batch.ranking.classifiers import (
    ClassifierOptions,
    describe_fit,
    fit_pairs,
)
from mosesplug.optimizers.batch.ranking.pairs import PairSampling, sample_pairs
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    normalize,
    sentence_scores,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt


@dataclass(frozen=True)
class ParetoOptions(ClassifierOptions):
    """Settings of Pareto-optimal ranking."""

    draws: Annotated[
        int,
        Opt(
            "number of samples of pairs",
            details="Each gives weights; the metric selects the best.",
            source="mosesplug's, after the set of solutions of Duh et al. 2012",
            minimum=1,
        ),
    ] = 3
    candidate_pairs: Annotated[
        int,
        Opt(
            "number of hypothesis pairs sampled per sentence",
            source="Hopkins & May 2011, Gamma",
            minimum=1,
        ),
    ] = 5000
    kept_pairs: Annotated[
        int,
        Opt(
            "number of pairs kept, with one Pareto-optimal hypothesis each",
            source="Hopkins & May 2011, Xi",
            minimum=1,
        ),
    ] = 50
    acceptance: Annotated[
        Literal["largest", "random"],
        Opt(
            "pairs to keep: largest score differences, or a random sample",
            details="The score is the weighted sum of the metrics.",
            source="mosesplug's, after Hopkins & May 2011 and Nakov et al. 2013",
        ),
    ] = "largest"
    sentence_bleu: Annotated[
        Smoothing,
        Opt(
            "smoothing of sentence BLEU, if a metric is BLEU",
            details="nakov makes output longer.",
            source="Nakov et al. 2012; Moses pro; Lin & Och 2004",
        ),
    ] = "nakov"


def pareto(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: ParetoOptions,
    progress: Progress,
) -> Solution:
    """Tune the weights so that Pareto-optimal hypotheses score above dominated ones.

    See ``problem`` for the arguments; its metric may have several parts (``BLEU,TER``). With a
    single metric, the front is its best hypotheses. ``rng`` draws the pairs; the result depends on
    the initial weights only where they are inactive.

    Returns:
        The history's first step has the number of hypotheses, of Pareto-optimal ones, and their
        share; then one step for each draw, with the score of every metric on the corpus, and
        whether no other draw dominates it.

    Raises:
        OptimizerError: no list has a dominated
            hypothesis, or the fitted weights are all zero.
    """
    tuning_set, parts = problem.tuning_set, _parts(problem)
    scores = [sentence_scores(part, options.sentence_bleu) for part in parts]
    fronts = pareto_fronts(tuning_set.offsets, np.column_stack(scores))
    ranks = _rank_by_front(
        tuning_set.offsets, fronts, sentence_scores(problem, options.sentence_bleu)
    )
    sampling = PairSampling(
        options.candidate_pairs, options.kept_pairs, largest=options.acceptance == "largest"
    )
    solutions: list[Floats] = []
    steps: list[Mapping[str, Any]] = []
    for drawn in range(options.draws):
        pairs = sample_pairs(
            tuning_set.offsets,
            ranks,
            lambda top, count: rng.integers(0, top, count),
            sampling,
            lambda sentence, first, second: fronts[first] != fronts[second],
        )
        if not len(pairs):
            raise OptimizerError(
                "no hypothesis is worse than another of its sentence by all metrics; use longer "
                "n-best lists, or fewer metrics"
            )
        weights, fit = fit_pairs(problem, initial, pairs, options, rng)
        weights = normalize(problem, weights)
        solutions.append(weights if problem.bounds is None else problem.bounds.project(weights))
        steps.append(describe_fit(pairs, fit, options))
        progress(drawn + 1, options.draws, "draws")
    judged = np.array([[corpus_score(part, weights) for part in parts] for weights in solutions])
    optimal = pareto_fronts(np.array([0, len(solutions)]), judged)
    totals = [corpus_score(problem, weights) for weights in solutions]
    best = int(np.argmax(totals))
    names = [part.metric.name for part in parts]
    history = (
        {
            "hypotheses": tuning_set.n_hyps,
            "pareto_optimal": int(fronts.sum()),
            "share": float(fronts.mean()),
        },
        *(
            {
                **step,
                **dict(zip(names, own.tolist(), strict=True)),
                "score": total,
                "on_front": bool(is_optimal),
            }
            for step, own, total, is_optimal in zip(steps, judged, totals, optimal, strict=True)
        ),
    )
    return Solution(solutions[best], totals[best], history)


def _rank_by_front(offsets: Ints, fronts: Bools, gains: Floats) -> Floats:
    """Return numbers that rank Pareto-optimal hypotheses of a list above the others.

    In pairs of one of each, their difference grows with that of the gains.
    """
    widths = np.diff(offsets)
    starts, widths = offsets[:-1][widths > 0], widths[widths > 0]
    least = np.repeat(np.minimum.reduceat(gains, starts), widths)
    most = np.repeat(np.maximum.reduceat(gains, starts), widths)
    reach = np.where(most > least, most - least, 1.0)
    return np.asarray(2.0 * fronts + (gains - least) / reach)


def _parts(problem: Problem) -> list[Problem]:
    """Return the problem with each metric alone, and its statistics."""
    metric: Metric = problem.metric
    if not isinstance(metric, InterpolatedMetric):
        return [problem]
    stats = problem.tuning_set.stats
    return [
        replace(
            problem,
            metric=part,
            tuning_set=replace(problem.tuning_set, stats=stats[:, columns]),
        )
        for part, columns in zip(metric.metrics, slice_columns(metric.metrics), strict=True)
    ]


def pareto_fronts(offsets: Ints, scores: Floats) -> Bools:
    """Return the hypotheses on the Pareto front of their list, bool ``[n_hyps]``.

    A hypothesis *dominates* another if no metric scores it lower and some metric scores it higher;
    the front is what nothing dominates (Duh et al. 2012). Hypotheses with equal scores by all
    metrics are all on the front, or none is; the survey's equation 79 is the same without ties.

    It takes ``O(n log n)`` a list, the time of sorting, for one or two metrics, and ``O(n f)`` for
    more, with ``f`` the size of the front.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        scores: float64 ``[n_hyps, n_metrics]``, of each hypothesis; larger is better.
    """
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    # Best first, by the first metric, then the second, ...: none is dominated by one after it.
    keys = [-scores[:, metric] for metric in reversed(range(scores.shape[1]))]
    order = np.lexsort((*keys, owners))
    on_front = np.zeros(len(scores), dtype=np.bool_)
    _mark(np.array(offsets, dtype=np.int64), order, np.array(scores, order="C"), on_front)
    return on_front


@kernel
def _mark(offsets: Ints, order: Ints, scores: Floats, on_front: Bools) -> None:
    """Visit each list, best first, and mark what no marked one dominates.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        order: int64 ``[n_hyps]``, rows of each list from the best on.
        scores: float64 ``[n_hyps, n_metrics]``.
        on_front: output, bool ``[n_hyps]``, initially False.
    """
    n_metrics = scores.shape[1]
    front = np.empty(len(order), dtype=np.int64)
    for sentence in range(len(offsets) - 1):
        size = 0
        for row in order[offsets[sentence] : offsets[sentence + 1]]:
            # With one or two metrics only the last marked one, which has the best last score so
            # far, can dominate.
            dominated = False
            for kept in range(max(0, size - 1) if n_metrics <= 2 else 0, size):
                other = front[kept]
                lower = higher = False
                for metric in range(n_metrics):
                    lower |= scores[other, metric] < scores[row, metric]
                    higher |= scores[other, metric] > scores[row, metric]
                if higher and not lower:
                    dominated = True
                    break
            if not dominated:
                on_front[row] = True
                front[size] = row
                size += 1


PARETO = Algorithm(
    name="pareto",
    summary="Rank hypotheses that are best by any of several metrics.",
    source="Duh et al. 2012",
    family="ranking",
    options=ParetoOptions,
    optimize=pareto,
    keeps_bounds=True,
    order_matters=True,
    weighs_sentences=True,
)
