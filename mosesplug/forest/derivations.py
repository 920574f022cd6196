"""Search graphs of a tuning set for optimizers: lists, distributions, searches.

``GraphDerivations`` is an ``optimizers.derivations.DerivationSource``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.forest.inside_outside import best_outside
from mosesplug.forest.intersection import ReferenceGraph, intersect_references
from mosesplug.forest.k_best import Derivations, concatenate_words, k_best
from mosesplug.forest.line_search.graph_space import GraphSource
from mosesplug.forest.n_best import sum_features
from mosesplug.forest.ngrams.reference_ngrams import ORDER, ReferenceNgramTree
from mosesplug.forest.objectives import ScoredGraph, risk, softmax_margin, xbleu
from mosesplug.forest.oracles.bleu import OracleGraph, oracle_graph
from mosesplug.forest.oracles.candidates import find_candidates
from mosesplug.forest.pruning import score_through_edges
from mosesplug.forest.viterbi import inside_best, viterbi
from mosesplug.hypergraph import Hypergraph
from mosesplug.metrics.linear_bleu import LinearBleu
from mosesplug.tuning_set import SparseRows, TuningSet

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]
Result = TypeVar("Result")

_MOST_ALIKE = 5
"""Derivations examined for each translation of a list. Most graphs have many derivations of each
translation, and longer searches take more time than all else."""

_ROUNDING = 1e-9
"""Edges whose best derivation is worse than allowed by less than this are kept."""


@dataclass(frozen=True, eq=False)
class GraphDerivations:
    """The derivations of each sentence's graph.

    Attributes:
        graphs: one graph per sentence.
        references: the words of each reference of each sentence.
        source: the same graphs for line search, with the statistics of translations.
        space: the features of the graphs' columns.
        threads: number of threads; results do not depend on it.
    """

    graphs: tuple[Hypergraph, ...]
    references: tuple[Sequence[Sequence[bytes]], ...]
    source: GraphSource
    space: FeatureSpace
    threads: int = 1

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.graphs)

    def best_lists(self, weights: Floats, k: int) -> TuningSet:
        """See ``optimizers.derivations.DerivationSource``."""

        def find(place: int) -> Derivations:
            graph = self.graphs[place]
            scores = graph.edge_scores(weights)
            return k_best(graph, scores, k, distinct=True, most_alike=_MOST_ALIKE)

        return self._lists(np.arange(self.n_sentences), find)

    def hopes_and_fears(
        self,
        sentences: NDArray[np.int64],
        weights: Floats,
        k: int,
        beam: int,
        *,
        bold: bool = False,
    ) -> TuningSet:
        """See ``optimizers.derivations.DerivationSource``."""
        graphs = self._oracle_graphs  # made here: threads of the pool must not wait for it
        references = self._reference_graphs if bold else (None,) * self.n_sentences
        oracles = np.full(self.n_sentences, -1, dtype=np.int64)

        def find(place: int) -> Derivations:
            found, oracles[place] = find_candidates(
                graphs[place], weights, k, beam, references[place]
            )
            return found

        lists = self._lists(sentences, find)
        if not bold:
            return lists
        own = oracles[sentences]
        return replace(lists, oracles=np.where(own >= 0, lists.offsets[:-1] + own, -1))

    def reachable(self) -> NDArray[np.bool_]:
        """See ``optimizers.derivations.DerivationSource``."""
        return np.array([each is not None for each in self._reference_graphs], dtype=np.bool_)

    def matches(self) -> NDArray[np.bool_]:
        """Return whether some translation has a match of each n-gram length, bool ``[4]``."""
        found = np.zeros(ORDER + 1, dtype=np.bool_)
        for each in self._scored:
            found[each.split.orders[each.split.ngrams]] = True
        return found[1:]

    def risk(self, gains: LinearBleu, temperature: float) -> Objective:
        """See ``optimizers.derivations.DerivationSource``."""
        return lambda weights: risk(
            self._scored, weights, gains, temperature=temperature, threads=self.threads
        )

    def xbleu(self, temperature: float) -> Objective:
        """See ``optimizers.derivations.DerivationSource``."""

        def objective(weights: Floats) -> tuple[float, Floats]:
            value, gradient = xbleu(
                self._scored, weights, temperature=temperature, threads=self.threads
            )
            return -value, -gradient

        return objective

    def softmax(
        self,
        gains: LinearBleu,
        tolerance: float | None,
        margin: float,
        sentences: NDArray[np.int64] | None = None,
        *,
        bold: bool = False,
    ) -> Objective:
        """See ``optimizers.derivations.DerivationSource``."""
        graphs, oracles, costs = [], [], []
        chosen = range(self.n_sentences) if sentences is None else sentences.tolist()
        for place in chosen:
            graph = self._scored[place]
            edge_gains = graph.gains(gains)
            kept, best = choose_oracles(graph, edge_gains, tolerance)
            yielding = self._split_reference_graphs[place] if bold else None
            graphs.append(graph)
            oracles.append(kept if yielding is None else yielding)
            # Of a derivation, the sum of these is the cost: its first edge leads to the goal.
            cost = -margin * edge_gains
            cost[graph.split.edge_offsets[-2] :] += margin * best
            costs.append(cost)
        margins = costs if margin > 0.0 else None
        return lambda weights: softmax_margin(
            graphs, oracles, margins, weights, threads=self.threads
        )

    @cached_property
    def _scored(self) -> tuple[ScoredGraph, ...]:
        def score(place: int) -> ScoredGraph:
            references = ReferenceNgramTree.of(self.references[place])
            return ScoredGraph.of(self.graphs[place], references)

        return tuple(self._each(range(self.n_sentences), score))

    @cached_property
    def _reference_graphs(self) -> tuple[ReferenceGraph | None, ...]:
        def intersect(place: int) -> ReferenceGraph | None:
            return intersect_references(self.graphs[place], self.references[place])

        return tuple(self._each(range(self.n_sentences), intersect))

    @cached_property
    def _split_reference_graphs(self) -> tuple[ReferenceGraph | None, ...]:
        scored = self._scored

        def intersect(place: int) -> ReferenceGraph | None:
            split = scored[place].split
            return intersect_references(self.graphs[place], self.references[place], split)

        return tuple(self._each(range(self.n_sentences), intersect))

    @cached_property
    def _oracle_graphs(self) -> tuple[OracleGraph, ...]:
        def prepare(place: int) -> OracleGraph:
            graph, number = self.graphs[place], self.source.sentences[place].number
            zeros = np.zeros(graph.n_edges)
            return oracle_graph(graph, self.references[place], zeros, sentence=number)

        return tuple(self._each(range(self.n_sentences), prepare))

    def _lists(self, sentences: NDArray[np.int64], find: Callable[[int], Derivations]) -> TuningSet:
        """Return the derivations that ``find`` returns for each sentence as lists."""
        space, n_dense = self.space, self.space.n_dense
        hidden = np.zeros(len(space), dtype=np.bool_)

        def make(place: int) -> _Rows:
            graph, sentence = self.graphs[place], self.source.sentences[place]
            found = find(place)
            words, ends = concatenate_words(
                sentence.graph.target_offsets, sentence.graph.targets, found.offsets, found.edges
            )
            dense, indptr, columns, values = sum_features(
                found.offsets,
                found.edges,
                graph.feature_indptr,
                graph.feature_indices,
                graph.feature_values,
                n_dense,
                hidden,
            )
            stats = sentence.translations.statistics(words, ends)
            return _Rows(dense, np.diff(indptr), columns - n_dense, values, stats, np.diff(ends))

        parts = self._each(sentences.tolist(), make)
        sparse = None
        if space.n_sparse:
            widths = np.concatenate([each.widths for each in parts])
            sparse = SparseRows(
                np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
                np.concatenate([each.columns for each in parts]).astype(np.int32),
                np.concatenate([each.values for each in parts]),
            )
        return TuningSet(
            space,
            sentences.astype(np.int64),
            np.cumsum([0, *(len(each.stats) for each in parts)], dtype=np.int64),
            np.concatenate([each.dense for each in parts]),
            sparse,
            np.concatenate([each.stats for each in parts]),
            np.concatenate([each.lengths for each in parts]).astype(np.int32),
        )

    def _each(self, places: Iterable[int], work: Callable[[int], Result]) -> list[Result]:
        """Return the results of ``work`` for the given sentences, in order."""

        def named(place: int) -> Result:
            try:
                return work(place)
            except DataError as error:
                number = self.source.sentences[place].number
                raise DataError(f"sentence {number}: {error}") from None

        pool = self.source.pool
        return list((map if pool is None else pool.map)(named, places))


@dataclass(frozen=True)
class _Rows:
    """The translations of a sentence (see ``TuningSet``); sparse rows have ``widths``."""

    dense: NDArray[np.float32]
    widths: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    stats: NDArray[np.int32]
    lengths: NDArray[np.int64]


def choose_oracles(
    graph: ScoredGraph, gains: Floats, tolerance: float | None
) -> tuple[NDArray[np.bool_], float]:
    """Return the edges of oracle derivations, and the highest gain.

    The edges are bool ``[n_split_edges]``.

    Args:
        graph: the graph of the sentence.
        gains: float64 ``[n_split_edges]``.
        tolerance: keep edges of derivations whose gain is at most this much below the highest;
            None: those of one derivation with the highest gain.

    Raises:
        DataError: no derivation builds the goal.
    """
    split = graph.split
    best = viterbi(split, gains)
    kept = np.zeros(split.n_edges, dtype=np.bool_)
    kept[best.edges] = True
    if tolerance is not None:
        arrays = split.edge_offsets, split.tail_offsets, split.tails
        _, inside, _ = inside_best(*arrays, gains)
        outside, _ = best_outside(*arrays, gains, inside)
        through = score_through_edges(*arrays, gains, inside, outside)
        kept |= through >= best.score - tolerance - _ROUNDING
    return kept, best.score
