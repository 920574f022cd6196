"""n-best lists from search graphs, for any weights.

A decoder extracts its n-best list from a search graph. From a stored graph, the list for other
weights takes milliseconds. Several graphs of a sentence, decoded with different weights, count as
one: the list has the best translations of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.arrays import Bools, Floats, Floats32, Ints, Ints32
from mosesplug.features import FeatureSpace
from mosesplug.forest.growing import sort_ascending
from mosesplug.forest.k_best import Derivations, k_best, translations
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel

_BEGIN, _END = b"<s>", b"</s>"


@dataclass(frozen=True)
class GraphFeatures:
    """The features of search graphs, with those that are not tuned.

    Attributes:
        space: the columns of the graphs. Its dense groups are those of n-best lists; its tail has
            the sparse features and the features that are not tuned.
        fixed_weights: names and constant weights of the untuned features in the tail. They count in
            model scores, but n-best lists do not show them (for example ``UnknownWordPenalty0``).
    """

    space: FeatureSpace
    fixed_weights: Mapping[str, float] = field(default_factory=dict)

    def vector(self, dense: Sequence[float], sparse: Mapping[str, float]) -> Floats:
        """Return the weights of all columns, float64 ``[len(space)]``; missing ones are 0.

        Args:
            sparse: weights by feature name; names that are in no graph are ignored.
        """
        weights = np.zeros(len(self.space))
        weights[: self.space.n_dense] = dense
        columns = self._tail
        for name, weight in {**sparse, **self.fixed_weights}.items():
            if name in columns:
                weights[columns[name]] = weight
        return weights

    @cached_property
    def is_hidden(self) -> Bools:
        """Return a mask of the columns that n-best lists omit, bool ``[len(space)]``."""
        mask = np.zeros(len(self.space), dtype=np.bool_)
        mask[[self._tail[name] for name in self.fixed_weights if name in self._tail]] = True
        return mask

    @cached_property
    def _tail(self) -> Mapping[str, int]:
        return {name: k for k, name in enumerate(self.space.sparse, start=self.space.n_dense)}


def make_nbest_list(
    sentence: int,
    graphs: Sequence[Hypergraph],
    features: GraphFeatures,
    weights: Floats,
    k: int,
    *,
    source: str = "search graph",
) -> NBestList | None:
    """Return the ``k`` best distinct translations in the union of a sentence's graphs.

    Each translation has the features of its best derivation. If scores are equal, translations of
    earlier graphs come first.

    Args:
        weights: float64 ``[len(features.space)]``, from ``features.vector``.
        source: where the graphs come from, for error messages.

    Returns:
        The list, without ``<s>`` and ``</s>``; None if there is no graph.

    Raises:
        DataError: as ``k_best``.
    """
    derived = [
        _found(graph, k_best(graph, graph.edge_scores(weights), k, distinct=True), features)
        for graph in graphs
    ]
    if not derived:
        return None
    scores = np.concatenate([part.scores for part in derived])
    texts = [text for part in derived for text in part.texts]
    chosen: dict[bytes, int] = {}
    for row in np.argsort(-scores, kind="stable").tolist():
        if len(chosen) == k:
            break
        chosen.setdefault(texts[row], row)
    rows = np.array([*chosen.values()], dtype=np.int64)
    return _as_list(sentence, derived, rows, features, source)


def list_derivations(
    sentence: int,
    graph: Hypergraph,
    derivations: Derivations,
    features: GraphFeatures,
    *,
    source: str = "search graph",
) -> NBestList:
    """Return derivations as an n-best list in the same order."""
    derived = _found(graph, derivations, features)
    return _as_list(sentence, [derived], np.arange(len(derivations)), features, source)


def _as_list(
    sentence: int, derived: Sequence[_Found], rows: Ints, features: GraphFeatures, source: str
) -> NBestList:
    """Return the selected rows of all parts as an n-best list."""
    every = [text for part in derived for text in part.texts]
    texts = [every[row] for row in rows.tolist()]
    sparse = _sparse_of(derived, rows, features.space)
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    nowhere = np.zeros(len(rows), dtype=np.int64)
    return NBestList(
        path=source,
        sentence_ids=np.full(len(rows), sentence, dtype=np.int64),
        buffer=np.frombuffer(b"".join(texts), dtype=np.uint8),
        text_starts=ends[:-1],
        text_ends=ends[1:],
        groups=features.space.groups,
        dense=np.concatenate([part.dense for part in derived])[rows],
        sparse_names=sparse.names,
        sparse_indptr=sparse.indptr,
        sparse_indices=sparse.indices,
        sparse_data=sparse.data,
        scores=np.concatenate([part.scores for part in derived])[rows],
        extra_starts=nowhere,
        extra_ends=nowhere,
        lines=np.arange(1, len(rows) + 1),
    )


@dataclass(frozen=True)
class _Found:
    """Translations found in one graph.

    Attributes:
        scores: float64 ``[n]``.
        texts: the text of each translation.
        dense: float32 ``[n, n_dense]``; dense feature values.
        indptr: int64 ``[n + 1]``; row offsets into ``columns`` and ``values``.
        columns: int32; columns of the sparse features, ascending in each row.
        values: float32; their non-zero values.
    """

    scores: Floats
    texts: list[bytes]
    dense: Floats32
    indptr: Ints
    columns: Ints32
    values: Floats32


def _found(graph: Hypergraph, best: Derivations, features: GraphFeatures) -> _Found:
    sums = sum_features(
        best.offsets,
        best.edges,
        graph.feature_indptr,
        graph.feature_indices,
        graph.feature_values,
        features.space.n_dense,
        features.is_hidden,
    )
    return _Found(best.scores, [_plain(words) for words in translations(graph, best)], *sums)


def _plain(words: list[bytes]) -> bytes:
    begin = 1 if words and words[0] == _BEGIN else 0
    end = len(words) - 1 if len(words) > begin and words[-1] == _END else len(words)
    return b" ".join(words[begin:end])


@dataclass(frozen=True)
class _Sparse:
    """The sparse part of an ``NBestList``."""

    names: tuple[str, ...]
    indptr: Ints
    indices: Ints32
    data: Floats32


def _sparse_of(derived: Sequence[_Found], rows: Ints, space: FeatureSpace) -> _Sparse:
    """Return the sparse features of the selected rows of all parts."""
    starts = np.cumsum([0, *(len(part.values) for part in derived)])
    begins = np.concatenate(
        [part.indptr[:-1] + start for part, start in zip(derived, starts, strict=False)]
    )
    widths = np.concatenate([np.diff(part.indptr) for part in derived])[rows]
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(widths, out=indptr[1:])
    entries = np.repeat(begins[rows] - indptr[:-1], widths) + np.arange(indptr[-1])
    columns = np.concatenate([part.columns for part in derived])[entries]
    used, indices = np.unique(columns, return_inverse=True)
    return _Sparse(
        tuple(space.sparse[column - space.n_dense] for column in used.tolist()),
        indptr,
        indices.astype(np.int32),
        np.concatenate([part.values for part in derived])[entries],
    )


@kernel
def sum_features(
    offsets: Ints,
    edges: Ints,
    indptr: Ints,
    indices: Ints32,
    values: Floats32,
    n_dense: int,
    hidden: Bools,
) -> tuple[Floats32, Ints, Ints32, Floats32]:
    """Return dense features, row offsets, sparse columns and values of derivations.

    Values are summed in float64, in the order of the edges.
    """
    n = len(offsets) - 1
    dense = np.zeros((n, n_dense), dtype=np.float32)
    rows = np.zeros(n + 1, dtype=np.int64)
    columns = np.empty(64, dtype=np.int32)
    data = np.empty(64, dtype=np.float32)
    totals = np.zeros(len(hidden))
    is_touched = np.zeros(len(hidden), dtype=np.bool_)
    touched = np.empty(len(hidden), dtype=np.int32)
    used = 0
    for row in range(n):
        n_touched = 0
        for place in range(offsets[row], offsets[row + 1]):
            edge = edges[place]
            for entry in range(indptr[edge], indptr[edge + 1]):
                column = indices[entry]
                totals[column] += values[entry]
                if column >= n_dense and not is_touched[column]:
                    is_touched[column] = True
                    touched[n_touched] = column
                    n_touched += 1
        for column in range(n_dense):
            dense[row, column] = totals[column]
            totals[column] = 0.0
        if used + n_touched > len(columns):
            size = 2 * (used + n_touched)
            more_columns = np.empty(size, dtype=np.int32)
            more_data = np.empty(size, dtype=np.float32)
            for entry in range(used):
                more_columns[entry], more_data[entry] = columns[entry], data[entry]
            columns, data = more_columns, more_data
        sort_ascending(touched, n_touched)
        for column in touched[:n_touched]:
            value = np.float32(totals[column])
            if value != 0.0 and not hidden[column]:
                columns[used] = column
                data[used] = value
                used += 1
            totals[column] = 0.0
            is_touched[column] = False
        rows[row + 1] = used
    return dense, rows, columns[:used].copy(), data[:used].copy()
