"""Measure which features matter: by their influence, and by the loss without them.

The influence of a feature on the model score is its absolute weight times its spread, the standard
deviation of its values within a list. A feature with a large influence may still be replaceable by
others, and one with a small influence may decide often. So the score of the merged lists is also
computed without each feature: with the weights of the others kept, and with those of the dense ones
learned again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics.error_rates import label_metric
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.results.render.record import Measure, Score, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block
from mosesplug.results.views.list_statistics import measure_features
from mosesplug.results.views.run import StoredRun
from mosesplug.settings.algorithm_options import make_options
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import TuningSet

ALGORITHM = "mert"
"""Learns again: it searches for the weights with the best score itself, from given ones."""

_OPTIONS = {"restarts": 0}
_SEED = 1


@dataclass(frozen=True)
class FeatureImportance:
    """The importance of one feature.

    Attributes:
        feature: its name, printable; or how many sparse features are meant.
        weight: its weight, with an L1 norm of the dense ones of 1; None for several features.
        spread: mean over the lists of the standard deviation of its values; of several features,
            of the sum of weight times value.
        influence: absolute weight times spread.
        kept_loss: the score that is lost without it, if the other weights are kept.
        learned_loss: the score that is lost without it, if the dense weights are learned again
            with and without it; None before that was done.
    """

    feature: Text
    weight: Score | None
    spread: Measure
    influence: Annotated[float, Shown(".4f", "weight x spread")]
    kept_loss: Annotated[float, Shown("+.4f", "loss, kept")]
    learned_loss: Annotated[float | None, Shown("+.4f", "loss, learned")] = None


@dataclass(frozen=True)
class Importance:
    """The importance of all features of a run.

    Attributes:
        metric: name of the metric of all scores.
        score: the score of the merged lists at the weights.
        learned_score: the best score at weights learned again, with and without features.
        features: the features, the largest influence first.
        untried: number of sparse features that are only part of their group.
        weights: the name that the user gave, of a file or a run.
        weights_are: which weights of a run they are.
    """

    JSON_KEYS: ClassVar = (
        "weights weights_are metric signature score learned_score features untried"
    )

    metric: str
    signature: str
    score: float
    learned_score: float
    features: tuple[FeatureImportance, ...]
    untried: int = 0
    weights: str = ""
    weights_are: str = ""

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield both scores, the features, and what the losses are."""
        label = label_metric(self.metric, self.signature)
        yield (
            f"{label} of the merged lists: {self.score:.4f} at the weights "
            f"({self.weights_are}), {self.learned_score:.4f} with dense weights learned again "
            "(mert)"
        )
        yield tabulate(FeatureImportance, self.features)
        if self.untried:
            yield f"({self.untried} more sparse features: --top 0 shows all)"
        yield (
            f"loss: {label} that is lost without the feature, with the weights of the "
            "others kept, and with those of the dense ones learned again"
        )


def measure_importance(
    run: StoredRun, weights: Weights | None = None, *, top: int = 0, threads: int = 1
) -> Iterator[Importance]:
    """Yield the importance of features, after each one that is learned without.

    Args:
        weights: the weights; None for the run's result.
        top: number of sparse features, those with the largest influence, that are measured one by
            one, too.

    Raises:
        DataError: the store has no lists, or its weights are unknown.
        StoreError: it cannot be read.
    """
    merged = run.merged
    vector = (run.weights if weights is None else weights).normalize().vector(run.space)
    if not vector.any():
        raise DataError(
            f"the weights of {run.path} are unknown: its lists were imported without any"
        )
    problem = Problem(merged, run.metric, threads=threads)
    score = corpus_score(problem, vector)
    candidates = [*_list_dense(run, merged, vector), *_list_sparse(run, merged, vector, top)]
    rows: list[FeatureImportance] = []
    for columns, feature in candidates:
        kept = vector.copy()
        kept[columns] = 0.0
        rows.append(replace(feature, kept_loss=score - corpus_score(problem, kept)))
    order = sorted(range(len(rows)), key=lambda place: -rows[place].influence)
    scores = [_learn(problem, vector, np.zeros(0, np.int64))]
    n_active = int(np.count_nonzero(vector[run.space.n_dense :]))
    importance = Importance(
        metric=run.metric_name,
        signature=run.signature,
        score=score,
        learned_score=scores[0],
        features=tuple(rows[place] for place in order),
        untried=max(0, n_active - top),
    )
    yield importance
    for place in order:
        scores.append(_learn(problem, vector, candidates[place][0]))
        # Weights without a feature are weights of all, and the search may have missed them there.
        best = max(scores)
        losses = [best - score for score in scores[1:]]
        done = [
            replace(rows[row], learned_loss=loss) for row, loss in zip(order, losses, strict=False)
        ]
        others = [rows[row] for row in order[len(losses) :]]
        importance = replace(importance, learned_score=best, features=(*done, *others))
        yield importance


def _learn(problem: Problem, vector: NDArray[np.float64], dropped: NDArray[np.int64]) -> float:
    """Return the score that a search from the weights finds without features."""
    n_dense = problem.tuning_set.space.n_dense
    start, active = vector.copy(), np.arange(len(vector)) < n_dense
    start[dropped], active[dropped] = 0.0, False
    if not active.any() or not start.any():
        return corpus_score(problem, start)
    algorithm = find_algorithm(ALGORITHM)
    optimizer = algorithm.bind(make_options(algorithm, _OPTIONS))
    rng = np.random.default_rng(_SEED)
    return optimizer.optimize(replace(problem, active=active), start, rng).score


def _list_dense(
    run: StoredRun, merged: TuningSet, vector: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], FeatureImportance]]:
    """Yield the column of each dense feature, and its influence."""
    for column, facts in enumerate(measure_features([merged], run.metric, vector, run.names)):
        influence = abs(facts.weight) * facts.spread
        yield (
            np.array([column]),
            FeatureImportance(facts.name, facts.weight, facts.spread, influence, 0.0),
        )


def _list_sparse(
    run: StoredRun, merged: TuningSet, vector: NDArray[np.float64], top: int
) -> Iterator[tuple[NDArray[np.int64], FeatureImportance]]:
    """Yield the same of all sparse features together, and of the largest ones."""
    n_dense, sparse = run.space.n_dense, merged.sparse
    weights = vector[n_dense:]
    active = np.flatnonzero(weights)
    if sparse is None or not len(active):
        return
    widths = np.diff(merged.offsets)
    rows = np.repeat(np.arange(merged.n_hyps), np.diff(sparse.indptr))
    owners = np.repeat(np.arange(merged.n_sentences), widths)
    values = weights[sparse.indices] * sparse.data
    sums = np.bincount(rows, values, minlength=merged.n_hyps).astype(np.float64)
    zeros = np.zeros(merged.n_hyps, dtype=np.int64)
    spread = float(_mean_deviations(owners, zeros, sums, widths, 1)[0])
    group = f"({len(active)} sparse features)"
    yield n_dense + active, FeatureImportance(group, None, spread, spread, 0.0)
    spreads = _mean_deviations(
        owners[rows], sparse.indices.astype(np.int64), sparse.data, widths, len(weights)
    )
    influences = np.abs(weights) * spreads
    largest = active[np.argsort(-influences[active], kind="stable")][:top]
    for column in largest.tolist():
        name = mark_invalid_utf8(run.space.sparse[column])
        yield (
            np.array([n_dense + column]),
            FeatureImportance(
                name,
                float(weights[column]),
                float(spreads[column]),
                float(influences[column]),
                0.0,
            ),
        )


def _mean_deviations(
    owners: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.floating[Any]],
    widths: NDArray[np.int64],
    n_columns: int,
) -> NDArray[np.float64]:
    """Return mean standard deviations within lists, float64 ``[n_columns]``.

    Args:
        owners: int64, the sentence of each value.
        columns: int64, the column of each value.
        values: the values; those that are missing are 0.
        widths: int64 ``[n_sentences]``, hypotheses of each list.
    """
    keys, inverse = np.unique(owners * n_columns + columns, return_inverse=True)
    counts = widths[keys // n_columns]
    exact = values.astype(np.float64)
    means = np.bincount(inverse, exact, minlength=len(keys)) / counts
    squares = np.bincount(inverse, exact**2, minlength=len(keys)) / counts
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    totals = np.bincount(keys % n_columns, deviations, minlength=n_columns)
    return totals / max(1, int(np.count_nonzero(widths)))
