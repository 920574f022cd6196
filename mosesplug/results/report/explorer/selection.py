"""Choose the hypotheses that a page holds if it has no room for all.

First come the 1-best hypotheses at the weights that the run visited, and the oracles. Then come
those that are a 1-best somewhere along an axis through these weights, or on a line between two of
them. The others follow by their best rank in a list.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.metrics.protocol import Metric, score_sentences
from mosesplug.optimizers.line_search.lists import Lines, LineSpace, line_space
from mosesplug.tuning_set import TuningSet

_AXIS_POINTS = 8
"""Largest number of weight vectors whose axes are searched: evenly spread over the run, from the
first to the result."""


def find_needed(
    merged: TuningSet, metric: Metric, vectors: Sequence[NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Return the hypotheses without which scores would change, bool ``[n_hyps]``.

    These are the 1-best at the weight vectors, the oracle of each sentence, and hope and fear at
    the last vector.
    """
    needed = np.zeros(merged.n_hyps, dtype=np.bool_)
    for vector in vectors:
        needed[merged.first_best(vector)] = True
    scores = score_sentences(metric, merged.stats)
    model = merged.model_scores(vectors[-1])
    for value in (scores, model + scores, model - scores):
        needed[_find_highest(merged.offsets, value, model)] = True
    return needed


def rank_hypotheses(
    merged: TuningSet,
    metric: Metric,
    vectors: Sequence[NDArray[np.float64]],
    needed: NDArray[np.bool_],
    ranks: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return all rows in the order in which a page takes them, int64 ``[n_hyps]``.

    Args:
        merged: the merged lists.
        metric: the metric of the run.
        vectors: float64 ``[n_features]`` each, the weights that the run visited, in order.
        needed: bool ``[n_hyps]``, rows that come first.
        ranks: int64 ``[n_hyps]``, the best rank of each hypothesis in a list.
    """
    wins = find_winners(merged, metric, vectors)
    return np.lexsort((ranks, ~wins, ~needed)).astype(np.int64)


def find_winners(
    merged: TuningSet, metric: Metric, vectors: Sequence[NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Return the hypotheses on upper envelopes, bool ``[n_hyps]``.

    Envelopes are those along the axes through the weight vectors, where the sparse features
    together are one axis, and along the lines between vectors that follow each other.
    """
    columns, points = _add_sparse_shares(merged, vectors)
    space = line_space(columns, metric, np.ones(columns.dense.shape[1], np.bool_), points[0])
    marked = np.zeros(merged.n_hyps, dtype=np.bool_)
    places = np.linspace(0, len(points) - 1, min(len(points), _AXIS_POINTS)).round()
    for place in places.astype(np.int64).tolist():
        space.mark_winners(space.axes, space.at(points[place]), marked)
    for earlier, later in itertools.pairwise(points):
        if not np.array_equal(earlier, later):
            _mark_between(space, earlier, later, marked)
    return marked


def _mark_between(
    space: LineSpace,
    earlier: NDArray[np.float64],
    later: NDArray[np.float64],
    marked: NDArray[np.bool_],
) -> None:
    lines = space.lines((later - earlier)[None])
    # In single precision, as the axes: the kernel is compiled once.
    slopes = lines.slopes.astype(np.float32)
    space.mark_winners(Lines(slopes, lines.n_directions), space.at(earlier), marked)


def _add_sparse_shares(
    merged: TuningSet, vectors: Sequence[NDArray[np.float64]]
) -> tuple[TuningSet, list[NDArray[np.float64]]]:
    """Return lists and weights with dense columns for the sparse shares of vectors."""
    n_dense = merged.space.n_dense
    dense, points = merged.dense, [vector[:n_dense] for vector in vectors]
    if merged.sparse is not None and any(vector[n_dense:].any() for vector in vectors):
        shares = [merged.sparse.scores(0, merged.n_hyps, vector[n_dense:]) for vector in vectors]
        dense = np.column_stack([dense, *shares]).astype(np.float32)
        chosen = np.eye(len(vectors))
        points = [np.append(point, row) for point, row in zip(points, chosen, strict=True)]
    space = FeatureSpace(tuple((str(column), 1) for column in range(dense.shape[1])))
    columns = TuningSet(
        space, merged.sentence_ids, merged.offsets, dense, None, merged.stats, merged.lengths
    )
    return columns, points


def _find_highest(
    offsets: NDArray[np.int64], values: NDArray[np.float64], model: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the row of each sentence's highest value.

    The higher model score wins ties.
    """
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-model, -values, owners))
    return order[offsets[:-1][np.diff(offsets) > 0]].astype(np.int64)
