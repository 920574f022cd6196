"""MERT line search over all derivations of search graphs.

Along a line, a sentence's 1-best translation changes at the thresholds of its envelope
(``envelope.py``). The corpus score follows from the thresholds as it does with n-best lists
(Macherey et al. 2008, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mosesplug.arrays import FeatureMask, Floats, SentenceValues, Statistics, Weights
from mosesplug.candidates import Candidates, Question, Surface
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.forest.growing import double_length
from mosesplug.forest.line_search.envelope import explain_failure
from mosesplug.forest.line_search.envelope_search import (
    NO_DERIVATION,
    TOO_LARGE,
    LineGraph,
    find_winners,
)
from mosesplug.forest.search_graph import SentenceGraph, score_edges, sentence_graph
from mosesplug.forest.translations import Translations, append_words
from mosesplug.forest.union import unite_graphs
from mosesplug.forest.viterbi import MOST_EDGES, derivation_edges, inside_best
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel
from mosesplug.metrics.protocol import Metric, PreparedReferences

_MOST_TRANSLATIONS = 2_000_000
"""Maximum number of cached translations of all sentences together: half a gigabyte."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Sentence:
    """A sentence's graph and the cache of its translations."""

    number: int
    graph: SentenceGraph
    translations: Translations


@dataclass(frozen=True)
class GraphSource(Candidates):
    """The search graphs of a tuning set, whose lines can be searched.

    Attributes:
        sentences: the sentences that have graphs.
        n_features: number of columns of the feature space.
        metric: the metric of the corpus score.
        pool: thread pool over the sentences; None to run without threads.
        sentence_weights: see ``Candidates``.
    """

    sentences: tuple[_Sentence, ...]
    n_features: int
    metric: Metric
    pool: ThreadPoolExecutor | None = field(repr=False)
    sentence_weights: SentenceValues | None

    answers: ClassVar[frozenset[Question]] = frozenset({"lines"})

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.sentences)

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the sentences; without weights, their number."""
        if self.sentence_weights is None:
            return float(self.n_sentences)
        return float(self.sentence_weights.sum())

    def lines(self, active: FeatureMask, weights: Weights) -> GraphSpace:
        """Return the space of the active weights; the others keep ``weights``."""
        base = np.where(active, 0.0, weights)
        axes = np.flatnonzero(active)
        spreads = self.each(lambda sentence: _spread(sentence, axes))
        spread = np.average(spreads, axis=0, weights=self.sentence_weights)
        return GraphSpace(self, axes, base, spread)

    def score(self, weights: Weights) -> float:
        """Return the corpus score of the best derivations; ties as in ``forest.viterbi``."""
        return float(self.metric.score(self.first_best(weights)))

    def first_best(self, weights: Weights) -> Statistics:
        """Return the summed statistics of the best derivations."""
        rows = np.asarray(self.each(lambda sentence: _first_best(sentence, weights)))
        if self.sentence_weights is not None:
            rows = self.sentence_weights[:, None] * rows
        return np.asarray(rows.sum(axis=0, dtype=np.float64))

    def each(self, work: Callable[[_Sentence], Result]) -> list[Result]:
        """Return the results of ``work`` for all sentences, in order."""

        def named(sentence: _Sentence) -> Result:
            try:
                return work(sentence)
            except DataError as error:
                raise DataError(f"sentence {sentence.number}: {error}") from None

        return list((map if self.pool is None else self.pool.map)(named, self.sentences))


def graph_source(
    graphs: Sequence[Sequence[Hypergraph]],
    space: FeatureSpace,
    metric: Metric,
    references: PreparedReferences,
    threads: int,
    sentence_weights: SentenceValues | None = None,
) -> GraphSource:
    """Create a source of search graphs that replaces n-best lists.

    Args:
        graphs: the graphs of each sentence of the references. MERT searches the derivations of
            all graphs of a sentence; sentences without graphs are ignored.
        space: the features of the graphs' columns.
        metric: the metric of translations.
        references: the references as prepared by ``metric.prepare``.
        threads: number of threads over the sentences; results do not depend on it.
        sentence_weights: the weight of each sentence that has graphs; None: 1 each.

    Raises:
        DataError: there is no graph, or there are more sentences than in the references.
    """
    if len(graphs) > references.n_sentences:
        raise DataError(
            f"search graphs of {len(graphs)} sentences, but the references have "
            f"{references.n_sentences} lines"
        )
    filled = [(number, own) for number, own in enumerate(graphs) if len(own)]
    if not filled:
        raise DataError("there are no search graphs to tune on")
    most = max(1000, _MOST_TRANSLATIONS // len(filled))
    sentences = []
    for number, own in filled:
        graph = unite_graphs(own)
        translations = Translations(number, graph.words, metric, references, most)
        sentences.append(_Sentence(number, sentence_graph(graph), translations))
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    return GraphSource(tuple(sentences), len(space), metric, pool, sentence_weights)


@dataclass(frozen=True)
class GraphSpace:
    """The search space of the active weights; see ``candidates.SearchSpace``.

    Attributes:
        source: the graphs.
        axes: int64 ``[n_active]``; columns of the active features.
        base: the weights of inactive features, 0 for active ones.
        spread: float64 ``[n_active]``; see ``SearchSpace``.
    """

    source: GraphSource
    axes: NDArray[np.int64]
    base: Weights
    spread: Floats

    def at(self, weights: Floats) -> Floats:
        """Return all weights, float64 ``[n_features]``."""
        point = self.base.copy()
        point[self.axes] = weights
        return point

    def decode(self, point: Floats) -> float:
        """Return the corpus score of the best derivations."""
        return self.source.score(point)

    def along_axes(self, axes: NDArray[np.int64], point: Floats) -> Iterator[Surface]:
        """Yield the score along each of the axes."""
        return self.along(np.eye(len(self.axes))[axes], point)

    def along(self, directions: Floats, point: Floats) -> Iterator[Surface]:
        """Yield the score along ``directions``, float64 ``[n_directions, n_active]``."""
        source = self.source
        whole = np.zeros((len(directions), source.n_features))
        whole[:, self.axes] = directions
        envelopes = source.each(lambda sentence: _along(sentence, point, whole))
        for line in range(len(directions)):
            thresholds = np.concatenate([own.thresholds(line) for own in envelopes])
            statistics = [own.statistics(line) for own in envelopes]
            sum_dtype: DTypeLike = np.int64
            if (counts := source.sentence_weights) is not None:
                statistics = [
                    count * own for count, own in zip(counts.tolist(), statistics, strict=True)
                ]
                sum_dtype = np.float64
            changes = np.concatenate([np.diff(own, axis=0) for own in statistics])
            order = np.argsort(thresholds, kind="stable")
            start = np.sum([own[0] for own in statistics], axis=0)
            surface = np.empty((len(order) + 1, len(start)))
            surface[0] = start
            # Sums of whole numbers, also times whole weights, are exact.
            surface[1:] = start + np.cumsum(changes[order], axis=0, dtype=sum_dtype)
            yield thresholds[order], np.asarray(source.metric.score(surface))


class _Envelopes(NamedTuple):
    """A sentence's envelopes along several lines, concatenated.

    Attributes:
        starts: float64 ``[n]``; where each translation begins to win, minus infinity first.
        counts: int32 ``[n, n_statistics]``; the statistics of each translation.
        lines: int64 ``[n_lines + 1]``; offsets of the lines' translations.
    """

    starts: Floats
    counts: NDArray[np.int32]
    lines: NDArray[np.int64]

    def thresholds(self, line: int) -> Floats:
        return self.starts[self.lines[line] + 1 : self.lines[line + 1]]

    def statistics(self, line: int) -> NDArray[Any]:
        return self.counts[self.lines[line] : self.lines[line + 1]]


def _along(sentence: _Sentence, point: Floats, directions: Floats) -> _Envelopes:
    """Return a sentence's envelopes along several lines; arguments cover all features."""
    columns = sentence.graph.columns
    # Indexing returns another layout for one line than for several.
    own = np.ascontiguousarray(directions[:, columns])
    starts, lines, words, offsets = _translations_along(sentence.graph, point[columns], own)
    if lines[-1] < 0:
        raise DataError(explain_failure(int(lines[-1])))
    return _Envelopes(starts, sentence.translations.statistics(words, offsets), lines)


def _first_best(sentence: _Sentence, weights: Floats) -> NDArray[np.int32]:
    """Return the statistics of the best derivation, int32 ``[n_statistics]``."""
    words = _best_translation(sentence.graph, weights[sentence.graph.columns])
    if words[0] < 0:
        raise DataError(explain_failure(int(words[0])))
    ends = np.array([0, len(words) - 1])
    return np.asarray(sentence.translations.statistics(words[1:], ends)[0])


def _spread(sentence: _Sentence, axes: NDArray[np.int64]) -> Floats:
    """Return the maximum minus the minimum value of each feature over all derivations."""
    graph = sentence.graph
    spread = np.zeros(len(axes))
    for place, axis in enumerate(axes):
        column = np.flatnonzero(graph.columns == axis)
        if len(column):
            direction = np.zeros(len(graph.columns))
            direction[column] = 1.0
            spread[place] = _reach(graph, direction) + _reach(graph, -direction)
    return spread


@kernel
def _reach(graph: SentenceGraph, weights: NDArray[np.float64]) -> float:
    scores = score_edges(graph, weights)
    _, inside, _ = inside_best(graph.edge_offsets, graph.tail_offsets, graph.tails, scores)
    return float(inside[-1])


@kernel
def _best_translation(graph: SentenceGraph, weights: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return 0 and the words of the best derivation, or an error code.

    ``explain_failure`` explains the code.
    """
    scores = score_edges(graph, weights)
    best, _, sizes = inside_best(graph.edge_offsets, graph.tail_offsets, graph.tails, scores)
    words, top = np.zeros(64, dtype=np.int32), 1
    if best[-1] < 0:
        words[0] = NO_DERIVATION
    elif sizes[-1] > MOST_EDGES:
        words[0] = TOO_LARGE
    else:
        edges = derivation_edges(graph.tail_offsets, graph.tails, best, int(sizes[-1]))
        words, top = append_words(graph.target_offsets, graph.targets, edges, words, top)
    return words[:top]


@kernel
def _translations_along(
    graph: SentenceGraph, point: NDArray[np.float64], directions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the translations that win along several lines, line by line.

    Args:
        graph: the graph of the sentence.
        point: float64 ``[n_columns]``; weights where the lines start.
        directions: float64 ``[n_lines, n_columns]``.

    Returns:
        Where each translation begins to win, float64 ``[n]``; the offset of each line's first
        translation, int64 ``[n_lines + 1]``, whose last entry is negative if there is no envelope;
        all words, int32; and the offsets of the translations in them, int64 ``[n + 1]``.
    """
    intercepts = score_edges(graph, point)
    starts, size = np.empty(64), 0
    lines = np.zeros(len(directions) + 1, dtype=np.int64)
    words, top = np.empty(1024, dtype=np.int32), 0
    offsets = np.zeros(65, dtype=np.int64)
    for line in range(len(directions)):
        slopes = score_edges(graph, directions[line])
        winners = find_winners(
            LineGraph(graph.edge_offsets, graph.tail_offsets, graph.tails, intercepts, slopes)
        )
        if winners.size < 0:
            lines[-1] = winners.size
            break
        while size + winners.size > len(starts):
            larger = np.empty(2 * len(starts))
            larger[:size] = starts[:size]
            starts, offsets = larger, double_length(offsets)
        for number in range(winners.size):
            begin, end = winners.derivations[number, 0], winners.derivations[number, 1]
            words, top = append_words(
                graph.target_offsets, graph.targets, winners.edges[begin:end], words, top
            )
            starts[size] = winners.starts[number]
            size += 1
            offsets[size] = top
        lines[line + 1] = size
    return starts[:size], lines, words[:top], offsets[: size + 1]
