"""The search graphs of a tuning set as candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from mosesplug.arrays import (
    Bools,
    Floats,
    Floats32,
    Ints,
    Ints32,
    SentenceValues,
    Statistics,
    Weights,
)
from mosesplug.candidates import Objective, Question
from mosesplug.errors import DataError, OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.forest.inside_outside import best_outside
from mosesplug.forest.intersection import ReferenceGraph, intersect_references
from mosesplug.forest.k_best import Derivations, concatenate_words, k_best
from mosesplug.forest.line_search.graph_space import GraphSource, graph_source
from mosesplug.forest.n_best import sum_features
from mosesplug.forest.ngrams.reference_ngrams import ORDER, ReferenceNgramTree
from mosesplug.forest.objectives import ScoredGraph, risk, softmax_margin, xbleu
from mosesplug.forest.oracles.bleu import OracleGraph, find_candidates, oracle_graph
from mosesplug.forest.pruning import score_through_edges
from mosesplug.forest.union import unite_graphs
from mosesplug.forest.viterbi import inside_best, viterbi
from mosesplug.hypergraph import Hypergraph
from mosesplug.metrics.bleu.linear import HALF_SLOPE, LinearBleu, linear_bleu
from mosesplug.metrics.protocol import Metric, PreparedReferences
from mosesplug.tuning_set import SparseRows, TuningSet

Result = TypeVar("Result")

_MOST_ALIKE = 5
"""Derivations examined for each translation of a list. Most graphs have many derivations of each
translation, and longer searches take more time than all else."""

_ROUNDING = 1e-9
"""Edges whose best derivation is worse than allowed by less than this are kept."""


@dataclass(frozen=True, eq=False)
class GraphDerivations(GraphSource):
    """The derivations of each sentence's graph.

    Attributes:
        graphs: one graph per sentence.
        references: the words of each reference of each sentence.
        space: the features of the graphs' columns.
        threads: number of threads; results do not depend on it.
    """

    graphs: tuple[Hypergraph, ...]
    references: tuple[Sequence[Sequence[bytes]], ...]
    space: FeatureSpace
    threads: int = 1

    answers: ClassVar[frozenset[Question]] = frozenset({"lines", "expectations", "batches"})

    @classmethod
    def of(
        cls,
        graphs: Sequence[Sequence[Hypergraph]],
        references: Sequence[Sequence[Sequence[bytes]]],
        space: FeatureSpace,
        metric: Metric,
        prepared: PreparedReferences,
        threads: int = 1,
        sentence_weights: SentenceValues | None = None,
    ) -> GraphDerivations:
        """Return the derivations of all graphs of each sentence.

        Args:
            graphs: the graphs of each sentence; sentences without graphs are ignored.
            references: ``[sentence][reference][word]``.
            space: the features of the graphs' columns.
            metric: the metric of translations.
            prepared: the references, compiled for the metric.
            threads: number of threads over the sentences; results do not depend on it.
            sentence_weights: the weight of each sentence that has graphs; None: 1 each.

        Raises:
            DataError: see ``graph_source``.
        """
        united = [[unite_graphs(own)] if own else [] for own in graphs]
        lines = graph_source(united, space, metric, prepared, threads, sentence_weights)
        return cls(
            **vars(lines),
            graphs=tuple(own[0] for own in united if own),
            references=tuple(words for own, words in zip(united, references, strict=True) if own),
            space=space,
            threads=threads,
        )

    def best_lists(self, weights: Floats, k: int) -> TuningSet:
        """Return lists of the best distinct translations."""

        def find(place: int) -> Derivations:
            graph = self.graphs[place]
            scores = graph.edge_scores(weights)
            return k_best(graph, scores, k, distinct=True, most_alike=_MOST_ALIKE)

        return self._lists(np.arange(self.n_sentences), find)

    def hopes_and_fears(
        self,
        sentences: Ints,
        weights: Callable[[], Weights],
        k: int,
        beam: int,
        *,
        bold: bool = False,
    ) -> TuningSet:
        """Return lists of the best translations, hopes and fears of some sentences."""
        vector = weights()
        graphs = self._oracle_graphs  # made here: threads of the pool must not wait for it
        references = self._reference_graphs if bold else (None,) * self.n_sentences
        oracles = np.full(self.n_sentences, -1, dtype=np.int64)

        def find(place: int) -> Derivations:
            best, oracles[place] = find_candidates(
                graphs[place], vector, k, beam, references[place]
            )
            return best

        lists = self._lists(sentences, find)
        if not bold:
            return lists
        own = oracles[sentences]
        return replace(lists, oracles=np.where(own >= 0, lists.offsets[:-1] + own, -1))

    def choose_sentences(self, oracles: str) -> tuple[Ints, tuple[str, ...]]:
        """Return the sentences to learn from, and how many get bold updates, as a note."""
        everything = np.arange(self.n_sentences)
        if oracles not in ("bold", "hybrid"):
            return everything, ()
        yielding = np.flatnonzero([own is not None for own in self._reference_graphs])
        if not len(yielding):
            raise OptimizerError(
                f"oracles={oracles}: no search graph yields a reference of its sentence. References"
                " must be tokenized and cased as the decoder's output is. Prune graphs less, decode"
                " with a larger beam, or learn with local updates."
            )
        other = {"bold": "left out", "hybrid": "local updates"}[oracles]
        note = (
            f"oracles={oracles}: {len(yielding)} of {self.n_sentences} sentences have a derivation"
            f" of a reference; the others: {other}"
        )
        return yielding if oracles == "bold" else everything, (note,)

    def matches(self) -> Bools:
        """Return whether some translation has a match of each n-gram length, bool ``[4]``."""
        has_match = np.zeros(ORDER + 1, dtype=np.bool_)
        for graph in self._scored:
            has_match[graph.split.orders[graph.split.ngrams]] = True
        return has_match[1:]

    def expansion_point(self, weights: Weights) -> Statistics:
        """Return the statistics of the 1-best derivations at which BLEU is linearized.

        If some n-gram length has no match, one more of each gives a direction.
        """
        totals = self.first_best(weights)
        return totals if (totals[0:-1:2] > 0.0).all() else totals + 1.0

    def gains(
        self, kind: str, option: str, rng: np.random.Generator
    ) -> Callable[[Weights], LinearBleu]:
        """Return linear BLEU at the 1-best of the weights."""
        _require_linear(kind, option)
        return lambda weights: linear_bleu(self.expansion_point(weights), brevity=HALF_SLOPE)

    def expected_error(self, gains: LinearBleu, temperature: float) -> Objective:
        """Return the mean expected error of a sentence minus entropy."""
        scaled = gains.scale(self.total_weight)
        return lambda weights: risk(
            self._scored, weights, scaled, temperature=temperature, threads=self.threads
        )

    def expected_bleu(self, temperature: float) -> Objective:
        """Return minus BLEU of expected statistics, minus entropy."""

        def objective(weights: Weights) -> tuple[float, Weights]:
            value, gradient = xbleu(
                self._scored, weights, temperature=temperature, threads=self.threads
            )
            return -value, -gradient

        return objective

    def oracle_loss(
        self,
        weights: Weights,
        rng: np.random.Generator,
        *,
        gain: str,
        oracles: str,
        tolerance: float,
        margin: float,
    ) -> Objective:
        """Return minus the mean log-probability of the oracles.

        The gain is linear BLEU at the 1-best of the initial weights, times the weight of all
        sentences and BLEU, which gives it the unit of a sentence's BLEU. Oracles use only edges of
        derivations within the tolerance, or are the best derivation of each sentence.
        """
        _require_linear(gain, "oracle_gain")
        if not self.metric.has_bleu_statistics:
            raise UsageError(
                f"softmax on search graphs requires the metric BLEU, not {self.metric.name}; choose"
                " BLEU, or the algorithm risk"
            )
        totals = self.expansion_point(weights)
        gains = linear_bleu(totals, brevity=HALF_SLOPE)
        unit = self.total_weight * float(self.metric.score(totals))
        sentences, _ = self.choose_sentences(oracles)
        return self.softmax(
            gains.scale(unit),
            None if oracles == "single" else tolerance,
            margin,
            sentences,
            bold=oracles in ("bold", "hybrid"),
        )

    def softmax(
        self,
        gains: LinearBleu,
        tolerance: float | None,
        margin: float,
        sentences: Ints,
        *,
        bold: bool = False,
    ) -> Objective:
        """Return minus the mean log-probability of the oracles of some sentences.

        Args:
            gains: gain of a derivation; its cost is the highest gain of its sentence minus its own.
            tolerance: oracles use only edges of derivations with at most this cost; None: the best
                derivation of each sentence is its oracle.
            margin: factor of the costs, which are added to the model scores of other derivations.
            sentences: int64, positions of the sentences, from 0.
            bold: the oracles of a sentence whose graph yields a reference are all derivations that
                yield one, instead.
        """
        graphs, oracles, costs = [], [], []
        for place in sentences.tolist():
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
            weight = 1.0 if self.sentence_weights is None else float(self.sentence_weights[place])
            return ScoredGraph.of(self.graphs[place], references, weight)

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
            graph, number = self.graphs[place], self.sentences[place].number
            zeros = np.zeros(graph.n_edges)
            return oracle_graph(graph, self.references[place], zeros, sentence=number)

        return tuple(self._each(range(self.n_sentences), prepare))

    def _lists(self, sentences: Ints, find: Callable[[int], Derivations]) -> TuningSet:
        """Return the derivations that ``find`` returns for each sentence as lists."""
        space, n_dense = self.space, self.space.n_dense
        hidden = np.zeros(len(space), dtype=np.bool_)

        def make(place: int) -> _Rows:
            graph, sentence = self.graphs[place], self.sentences[place]
            best = find(place)
            words, ends = concatenate_words(
                sentence.graph.target_offsets, sentence.graph.targets, best.offsets, best.edges
            )
            dense, indptr, columns, values = sum_features(
                best.offsets,
                best.edges,
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
            widths = np.concatenate([part.widths for part in parts])
            sparse = SparseRows(
                np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
                np.concatenate([part.columns for part in parts]).astype(np.int32),
                np.concatenate([part.values for part in parts]),
            )
        return TuningSet(
            space,
            sentences.astype(np.int64),
            np.cumsum([0, *(len(part.stats) for part in parts)], dtype=np.int64),
            np.concatenate([part.dense for part in parts]),
            sparse,
            np.concatenate([part.stats for part in parts]),
            np.concatenate([part.lengths for part in parts]).astype(np.int32),
        ).weigh(None if self.sentence_weights is None else self.sentence_weights[sentences])

    def _each(self, places: Iterable[int], work: Callable[[int], Result]) -> list[Result]:
        """Return the results of ``work`` for the given sentences, in order."""

        def named(place: int) -> Result:
            try:
                return work(place)
            except DataError as error:
                number = self.sentences[place].number
                raise DataError(f"sentence {number}: {error}") from None

        pool = self.pool
        return list((map if pool is None else pool.map)(named, places))


@dataclass(frozen=True)
class _Rows:
    """The translations of a sentence (see ``TuningSet``); sparse rows have ``widths``."""

    dense: Floats32
    widths: Ints
    columns: Ints32
    values: Floats32
    stats: Ints32
    lengths: Ints


def choose_oracles(
    graph: ScoredGraph, gains: Floats, tolerance: float | None
) -> tuple[Bools, float]:
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


def _require_linear(kind: str, option: str) -> None:
    """Check that an option has its default, the only gain on search graphs."""
    if kind != "lin-och":
        raise UsageError(
            f"{option}={kind} needs n-best lists; search graphs have linear BLEU only: leave out "
            f"{option}"
        )
