"""Batch MIRA as an optimizer, on lists or on a search for hope and fear."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.mira.epochs import BatchMiraLearner, MiraEpoch, run_epochs
from mosesplug.optimizers.batch.mira.graphs import SearchMiraLearner
from mosesplug.optimizers.batch.mira.kbmira import KbmiraOptions
from mosesplug.optimizers.batch.mira.shards import ShardedMiraLearner
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    no_progress,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm

__all__ = ["ALGORITHMS", "kbmira"]


def kbmira(
    problem: Problem,
    initial: NDArray[np.float64],
    rng: np.random.Generator,
    options: KbmiraOptions,
    progress: Progress = no_progress,
) -> Solution:
    """Tune the active weights, sparse ones too, by k-best MIRA.

    See ``problem`` for the arguments; its box and further starts are not used. Weights are in
    single precision, and each shard learns on one thread (see ``mira.shards``). The result is the
    averaged weights of the epoch with the best score, the first in a tie.

    Raises:
        OptimizerError: the problem cannot be tuned (see ``check_weights``), a search with a metric
            other than BLEU, or the weights overflow or become all zero.
    """
    problem = activate_sparse(problem)
    if problem.bounds is not None:
        initial = check_weights(problem, initial)  # which moves them into the bounds
    learner = _learner(problem, initial, options)
    numbers = np.arange(learner.n_sentences)

    def ordering() -> NDArray[np.int64]:
        return rng.permutation(numbers) if options.shuffle else numbers

    best: MiraEpoch | None = None
    history: list[Mapping[str, object]] = []
    for epoch in run_epochs(learner, ordering, options.epochs):
        history.append({"updates": epoch.updates, "loss": epoch.loss, "score": epoch.score})
        progress(len(history), options.epochs, "epochs")
        if best is None or epoch.score > best.score:
            best = epoch
    if best is None:
        raise OptimizerError("epochs must be at least 1")
    weights = np.array(initial, dtype=np.float64)
    active = learner.settings.active
    weights[active] = best.average[active]
    if not weights.any():
        raise OptimizerError("the weights became all zero; start from other weights")
    return score_solution(problem, weights, tuple(history))


def _learner(
    problem: Problem, initial: NDArray[np.float64], options: KbmiraOptions
) -> BatchMiraLearner:
    if problem.search is None:
        return ShardedMiraLearner(problem, initial, options)
    if not problem.metric.has_bleu_statistics:
        raise OptimizerError(
            f"hope and fear are searched for by BLEU only, not by {problem.metric.name}: learn "
            "from lists"
        )
    weights = check_weights(problem, initial)
    n_dense = problem.tuning_set.space.n_dense
    search = problem.search
    if options.graph_beam > 1:
        search = search.widen(options.graph_beam)
    return SearchMiraLearner(search, n_dense, weights, options, problem.active_mask, problem.bounds)


ALGORITHMS = (
    Algorithm(
        name="kbmira",
        summary="Learn a margin between hope and fear (batch MIRA).",
        source="Cherry & Foster 2012",
        family="Moses",
        options=KbmiraOptions,
        optimize=kbmira,
        graphs="search",
        order_matters=True,
        keeps_bounds=True,
        maps_shards=True,
    ),
)
