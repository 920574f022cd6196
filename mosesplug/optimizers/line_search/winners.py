"""The hypotheses that can win: those that are a 1-best near some weights.

The report page has no room for all hypotheses of a run, and a score budget has no time for all.
Both choose hypotheses in this order: first those that the caller needs; then those that are a
1-best somewhere along an axis through the weights, or on a line between two of them; then the
others, by their rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.line_search.lists import Lines, LineSpace, line_space
from mosesplug.tuning_set import TuningSet

_AXIS_POINTS = 8
"""Largest number of weight vectors whose axes are searched: evenly spread over them, from the first
to the last."""


class Choice(NamedTuple):
    """Hypotheses that are chosen within a budget.

    Attributes:
        rows: bool ``[n_hyps]``, the chosen hypotheses, free ones included.
        wins: bool ``[n_hyps]``, those on upper envelopes; see ``find_winners``.
    """

    rows: NDArray[np.bool_]
    wins: NDArray[np.bool_]


def rank_hypotheses(
    needed: NDArray[np.bool_], wins: NDArray[np.bool_], ranks: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return all rows in the order in which they are taken, int64 ``[n_hyps]``.

    Args:
        needed: bool ``[n_hyps]``, rows that come first.
        wins: bool ``[n_hyps]``, rows on upper envelopes; see ``find_winners``.
        ranks: int64 ``[n_hyps]``, the rank of each hypothesis in a list.
    """
    return np.lexsort((ranks, ~wins, ~needed)).astype(np.int64)


def choose_within_budget(
    lists: TuningSet,
    metric: Metric,
    vectors: Sequence[NDArray[np.float64]],
    *,
    needed: NDArray[np.bool_],
    ranks: NDArray[np.int64],
    texts: NDArray[np.int64],
    is_free: NDArray[np.bool_],
    budgets: NDArray[np.int64],
) -> Choice:
    """Return the hypotheses that come first, up to a number of texts per sentence.

    Hypotheses with the same text are chosen together.

    Args:
        lists: n-best lists, whose statistics are not read.
        vectors: float64 ``[n_features]`` each, the weights that the run visited, in order.
        needed: as for ``rank_hypotheses``.
        ranks: as for ``rank_hypotheses``.
        texts: int64 ``[n_hyps]``, the number of each text; another one in another sentence.
        is_free: bool ``[n_hyps]``, hypotheses that are chosen anyway and do not count
            in the budget; all of a text or none.
        budgets: int64 ``[n_sentences]``, most texts of each sentence that are not free.
    """
    wins = find_winners(lists, metric, vectors)
    order = rank_hypotheses(needed, wins, ranks)
    order = order[~is_free[order]]
    # The best place of each text, then sentence by sentence.
    _, places = np.unique(texts[order], return_index=True)
    order = order[np.sort(places)]
    owners = np.repeat(np.arange(lists.n_sentences), np.diff(lists.offsets))
    order = order[np.argsort(owners[order], kind="stable")]
    numbers = np.arange(len(order)) - np.searchsorted(owners[order], owners[order])
    chosen = order[numbers < budgets[owners[order]]]
    return Choice(is_free | np.isin(texts, texts[chosen]), wins)


def number_texts(owners: NDArray[np.int64], texts: Sequence[bytes]) -> NDArray[np.int64]:
    """Return a number for each text, int64 ``[n_hyps]``.

    Equal texts of a sentence have the same one.

    Args:
        owners: int64 ``[n_hyps]``, the sentence of each hypothesis.
    """
    numbers: dict[tuple[int, bytes], int] = {}
    keys = zip(owners.tolist(), texts, strict=True)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


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
