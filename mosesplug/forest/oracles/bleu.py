"""Oracles of graphs: the derivations whose translations have the highest BLEU.

The oracle bounds the score that any weights can reach (survey, section 4). BLEU is a corpus score,
so the statistics of other sentences are added as a background, or one match of each order (BLEU+1).

The hope has the maximum of model score plus gain, the fear that of model score minus gain. For
learners that choose in lists, the gain is sentence BLEU (BLEU+1). A search with a beam keeps
several partial derivations per node, and lists the ``k`` best of the goal. A learner with other
gains chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.intersection import ReferenceGraph
from mosesplug.forest.k_best import Derivations, concatenate_words, k_best
from mosesplug.forest.ngrams.reference_ngrams import (
    BOUNDARIES,
    ORDER,
    OTHER,
    NgramTree,
    ReferenceNgramTree,
)
from mosesplug.forest.ngrams.states import NgramStates, TextGraph, ngram_states, renumber_words
from mosesplug.forest.oracles.search import Judge, rank_rows, search_partials
from mosesplug.forest.partial_derivations import extract_derivation
from mosesplug.forest.viterbi import Derivation
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel

BLEU_PLUS_ONE = (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)
"""The background that turns BLEU into the BLEU+1 of Lin & Och (2004)."""

BEAM = 10
"""Default number of partial derivations to keep per node."""


@dataclass(frozen=True)
class BleuGraph:
    """A graph with the n-grams of its references, as searches for BLEU need it.

    Attributes:
        text: the graph, with the numbers of the references' words.
        shares: float64 ``[n_nodes]``; the fraction of source words that each node covers.
        states: the automaton of the references' n-grams.
        limits: int32 ``[n_states]``; clipping limit of each n-gram.
        lengths: float64 ``[n_references]``, ascending; length of each reference in words.
    """

    text: TextGraph
    shares: Floats
    states: NgramStates
    limits: Ints32
    lengths: Floats


def bleu_graph(
    text: TextGraph, covered: Ints32, tree: NgramTree, lengths: Sequence[float]
) -> BleuGraph:
    """Combine a graph with the n-grams and the lengths of its references."""
    # Without source coverage, every node counts as the whole sentence.
    whole = int(covered[-1])
    shares = np.minimum(covered / whole, 1.0) if whole > 0 else np.ones(len(covered))
    return BleuGraph(
        text,
        shares,
        ngram_states(tree.children, ORDER),
        tree.largest,
        np.sort(np.array(lengths, dtype=np.float64)),
    )


@dataclass(frozen=True)
class OracleGraph(BleuGraph):
    """A graph with the references of its sentence.

    Attributes:
        words: the numbers of the references' words.
        scores: float64 ``[n_edges]``; model scores, which break ties.
        sentence: the sentence id, for messages.
    """

    graph: Hypergraph
    words: Mapping[bytes, int]
    scores: Floats
    sentence: int = 0

    def read_words(self, edges: Ints) -> list[bytes]:
        """Return the words of a derivation, without ``<s>`` and ``</s>``."""
        return [word for word in self.graph.translation(edges) if word not in BOUNDARIES]


@dataclass(frozen=True)
class Oracle:
    """A derivation with the BLEU statistics of its translation.

    Attributes:
        derivation: the derivation, with its model score.
        statistics: float64 ``[9]``; ``metrics.Bleu`` statistics with the closest reference length.
    """

    derivation: Derivation
    statistics: Floats


def oracle_graph(
    graph: Hypergraph, references: Sequence[Sequence[bytes]], scores: Floats, *, sentence: int = 0
) -> OracleGraph:
    """Prepare a graph for oracle searches.

    Args:
        references: the words of each reference of the sentence, at least one reference.
        scores: float64 ``[n_edges]``; model scores. Edges with score -inf or NaN are ignored.
    """
    known = ReferenceNgramTree.of(references)
    lengths = [float(len(reference)) for reference in references]
    text = renumber_words(graph, known.words)
    bleu = bleu_graph(text, graph.covered, known.tree, lengths)
    return OracleGraph(
        **vars(bleu), graph=graph, words=known.words, scores=np.array(scores), sentence=sentence
    )


def oracle(
    graph: OracleGraph,
    background: Floats | Sequence[float] = BLEU_PLUS_ONE,
    *,
    beam: int | None = BEAM,
) -> Oracle:
    """Return the derivation whose translation has the highest BLEU with a background.

    As in ``metrics.Bleu``, matches are clipped by the maximum count in one reference, and the
    reference length is the closest one. The higher model score wins ties.

    Args:
        graph: the graph of the sentence with its references.
        background: float64 ``[9]``; statistics of ``metrics.Bleu`` that are added.
        beam: number of partial derivations to keep per node; None keeps all, which is exact but
            feasible only for small graphs.

    Raises:
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    if beam is not None and beam < 1:
        raise ValueError(f"beam must be positive: {beam}")
    added = np.array(background, dtype=np.float64)
    judge = Judge(graph.limits, graph.lengths, graph.shares, added)
    partials, known, begin, end = search_partials(
        graph.text, graph.scores, graph.states, judge, beam or 0
    )
    row = int(rank_rows(partials, known, begin, end, 1)[0]) if end > begin else -1
    derivation = extract_derivation(
        graph.text.tail_offsets, partials, row, float(partials.scores[row])
    )
    return Oracle(derivation, _statistics(known.matches[row], int(known.words[row]), graph))


def judge_derivation(graph: OracleGraph, edges: Ints) -> Oracle:
    """Return a given derivation with the statistics of its translation."""
    words = graph.read_words(edges)
    numbers = np.array([graph.words.get(word, OTHER) for word in words], dtype=np.int32)
    matches = _matches(graph.states, graph.limits, numbers)
    derivation = Derivation(float(graph.scores[edges].sum()), edges)
    return Oracle(derivation, _statistics(matches, len(words), graph))


def _statistics(matches: Ints32, words: int, graph: OracleGraph) -> Floats:
    """Return the ``metrics.Bleu`` statistics, float64 ``[9]``."""
    statistics = np.empty(2 * ORDER + 1)
    statistics[0:-1:2] = matches
    statistics[1:-1:2] = np.maximum(0, words - np.arange(ORDER))
    # Lengths ascend, and argmin takes the first of equals: the shorter.
    statistics[-1] = graph.lengths[np.argmin(np.abs(graph.lengths - words))]
    return statistics


@kernel
def _matches(states: NgramStates, limits: Ints32, words: Ints32) -> Ints32:
    """Return the clipped matches of each order of a translation, int32 ``[4]``."""
    counts = np.zeros(len(limits), dtype=np.int32)
    matches = np.zeros(ORDER, dtype=np.int32)
    state = 0
    for word in words:
        state = states.step[state, word] if word >= 0 else 0
        ngram = state
        while ngram > 0:
            counts[ngram] += 1
            if counts[ngram] <= limits[ngram]:
                matches[states.depths[ngram] - 1] += 1
            ngram = states.shorter[ngram]
    return matches


def find_candidates(
    graph: OracleGraph, weights: Floats, k: int, beam: int, references: ReferenceGraph | None = None
) -> tuple[Derivations, int]:
    """Return the ``k`` best by model score, by hope and by fear, without repetitions.

    With ``references``, the best derivation of a reference follows those by model score.

    Args:
        graph: the graph of the sentence with its references.
        k: number of derivations of each kind, with distinct translations.
        beam: number of partial derivations to keep per node; at least ``k`` are kept.
        references: the derivations that yield a reference; None: do not list one.

    Returns:
        The derivations, and the number of the one that yields the reference, or -1.
    """
    scores = graph.graph.edge_scores(weights)
    best = k_best(graph.graph, scores, k, distinct=True)
    parts = [best.derivation(number) for number in range(len(best))]
    place = len(parts)
    if references is not None:
        parts.append(references.best(scores))
    for gain in (1.0, -1.0):
        parts += list_by_value(graph, scores, k, max(beam, k), gain=gain, model=1.0)
    candidates = Derivations.of(np.array([scores[edges].sum() for edges in parts]), parts)
    words, ends = concatenate_words(
        graph.graph.target_offsets, graph.graph.targets, candidates.offsets, candidates.edges
    )
    texts = [words[ends[number] : ends[number + 1]].tobytes() for number in range(len(parts))]
    first: dict[bytes, int] = {}
    for number, text in enumerate(texts):
        first.setdefault(text, number)
    oracle = -1 if references is None else [*first].index(texts[place])
    return candidates.some(np.array([*first.values()], dtype=np.int64)), oracle


def list_by_value(
    graph: BleuGraph,
    scores: Floats,
    k: int,
    beam: int,
    *,
    gain: float,
    model: float,
    background: Floats | Sequence[float] = BLEU_PLUS_ONE,
    per_word: bool = False,
) -> list[Ints]:
    """Return derivations of highest ``model * score + gain * BLEU``, the best first.

    Args:
        graph: the graph of the sentence with its references.
        scores: float64 ``[n_edges]``; model scores.
        k: number of derivations; those of the same length and matches count as one.
        beam: number of partial derivations to keep per node; 0 keeps all, which is exact but
            feasible only for small graphs.
        model: factor of the model score, 0 or more.
        background: float64 ``[9]``; statistics of ``metrics.Bleu`` that are added.
        per_word: multiply BLEU by the reference length, with that of the background.

    Returns:
        The edges of each, int64, each edge before those of its tails.

    Raises:
        DataError: no derivation builds the goal, or one has more than ten million edges.
    """
    added = np.array(background, dtype=np.float64)
    judge = Judge(graph.limits, graph.lengths, graph.shares, added, gain, per_word, model)
    partials, known, begin, end = search_partials(graph.text, scores, graph.states, judge, beam)
    if end == begin:
        raise DataError("no derivation of the search graph builds its goal")
    offsets = graph.text.tail_offsets
    return [
        extract_derivation(offsets, partials, row, float(partials.scores[row])).edges
        for row in rank_rows(partials, known, begin, end, k).tolist()
    ]
