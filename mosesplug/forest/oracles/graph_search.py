"""Search graphs as candidates of batch MIRA: 1-best, hope and fear.

Moses keeps one derivation per node (``forest.oracles.hope_fear``), which finds the exact hope of
about half of all tiny graphs. A wider beam keeps the values that Moses maximizes: the model score
plus or minus BLEU with the background, times the reference length of both. Matches are clipped by
the maximum count in one reference from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats32, SentenceValues, Statistics
from mosesplug.candidates import Candidates, HopeFear, Question, ScoredDerivation
from mosesplug.forest.ngrams.states import TextGraph
from mosesplug.forest.oracles.bleu import BleuGraph, bleu_graph, list_by_value
from mosesplug.forest.oracles.hope_fear import (
    MODEL_SHARE,
    describe_derivation,
    find,
    hope_and_fear,
    name_sentence,
    weigh,
)
from mosesplug.forest.pruning import score_in_single_precision
from mosesplug.forest.search_graph import SearchGraph
from mosesplug.forest.viterbi import inside_best
from mosesplug.kernels import read_only
from mosesplug.metrics.bleu.sentence import single_bleu


@dataclass(frozen=True, eq=False)
class GraphSearch(Candidates):
    """Finds hypotheses in search graphs, in single precision as Moses does.

    Attributes:
        graphs: one search graph per sentence.
        beam: number of partial derivations to keep per node; None: one, chosen as Moses does; 0
            keeps all, which is exact but feasible only for small graphs.
        sentence_weights: see ``Candidates``.
    """

    graphs: Sequence[SearchGraph]
    beam: int | None = None
    sentence_weights: SentenceValues | None = None

    answers: ClassVar[frozenset[Question]] = frozenset({"updates"})

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.graphs)

    def score(self, weights: NDArray[np.floating]) -> float:
        """Return BLEU of the 1-best hypotheses."""
        return float(single_bleu(self.first_best(weights).astype(np.float32)))

    def first_best(self, weights: NDArray[np.floating]) -> Statistics:
        """Return the summed statistics of the 1-best hypotheses."""
        totals = np.zeros(9, dtype=np.float32)
        single, counts = weights.astype(np.float32), self.sentence_weights
        for sentence in range(self.n_sentences):
            rows = self.model_best(sentence, single).statistics
            totals += rows if counts is None else np.float32(counts[sentence]) * rows
        return totals.astype(np.float64)

    def widen(self, beam: int) -> GraphSearch:
        """See ``Candidates``; 0 keeps all."""
        return replace(self, beam=beam)

    def model_best(self, sentence: int, weights: Floats32) -> ScoredDerivation:
        """Return the derivation with the highest model score; the last one wins ties."""
        with name_sentence(sentence):
            return find(self.graphs[sentence], weights, np.ones(9, dtype=np.float32))

    def lowest_score(self, sentence: int, weights: Floats32) -> float:
        """See ``Candidates``."""
        graph = self.graphs[sentence]
        scores = score_in_single_precision(graph.indptr, graph.columns, graph.values, weights)
        # Not viterbi: the derivation itself may be too long to list, and is not needed.
        edge_offsets, tail_offsets = read_only(graph.edge_offsets), read_only(graph.tail_offsets)
        negated = -scores.astype(np.float64)
        _, inside, _ = inside_best(edge_offsets, tail_offsets, read_only(graph.tails), negated)
        return -float(inside[-1])

    def hope_and_fear(
        self, sentence: int, weights: Floats32, background: Floats32, *, safe_hope: bool
    ) -> HopeFear:
        """See ``forest.oracles.hope_fear.hope_and_fear``."""
        graph = self.graphs[sentence]
        with name_sentence(sentence):
            if self.beam is None:
                return hope_and_fear(graph, weights, background, safe_hope=safe_hope)
            return self._hope_and_fear_in_beam(sentence, weights, background, safe_hope)

    def _hope_and_fear_in_beam(
        self, sentence: int, weights: Floats32, background: Floats32, safe_hope: bool
    ) -> HopeFear:
        graph, bleu = self.graphs[sentence], self._bleu_graphs[sentence]
        scores = score_in_single_precision(graph.indptr, graph.columns, graph.values, weights)

        def search(gain: float, model: float = 1.0) -> ScoredDerivation:
            (edges,) = list_by_value(
                bleu,
                scores.astype(np.float64),
                1,
                self.beam or 0,
                gain=gain,
                model=model,
                background=background.astype(np.float64),
                per_word=True,
            )
            return describe_derivation(graph, edges, np.float32(scores[edges].sum()))

        hope = search(1.0)
        gain = weigh(hope.statistics, background)
        if safe_hope and abs(hope.score) > np.float32(1e-8):
            scale = float(abs(gain * MODEL_SHARE) / abs(hope.score))
            if scale < 1.0:
                hope = search(1.0, scale)
                gain = weigh(hope.statistics, background)
        fear = search(-1.0)
        return HopeFear(hope, fear, gain, weigh(fear.statistics, background))

    @cached_property
    def _bleu_graphs(self) -> tuple[BleuGraph, ...]:
        return tuple(
            bleu_graph(
                TextGraph(
                    graph.edge_offsets,
                    graph.tail_offsets,
                    graph.tails,
                    graph.target_offsets,
                    graph.targets,
                ),
                graph.covered,
                graph.tree,
                [float(graph.tree.length)],
            )
            for graph in self.graphs
        )
