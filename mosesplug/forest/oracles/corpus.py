"""Corpus oracles: one derivation per graph, chosen for the highest corpus BLEU.

The best derivation of a sentence depends on the choices for all other sentences. Both searches
start from an initial choice and improve it until it no longer changes.

Linear BLEU (``metrics.bleu.linear``) does not clip matches, as in Tromble et al. (2008). Given the
states of ``ngrams.states``, the gain of a derivation is then a sum over its edges, and the search
for the best one is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARY
from mosesplug.forest.ngrams.search import find_best_with_ngrams
from mosesplug.forest.ngrams.states import TextGraph
from mosesplug.forest.oracles.bleu import (
    BEAM,
    BLEU_PLUS_ONE,
    Oracle,
    OracleGraph,
    judge_derivation,
    oracle,
)
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.forest.viterbi import viterbi
from mosesplug.kernels import kernel
from mosesplug.metrics.bleu.corpus import bleu_score_row
from mosesplug.metrics.bleu.linear import LinearBleu, linear_bleu

PASSES = 20
"""Maximum number of passes; a search that has not converged by then cycles among ties."""

OnProgress = Callable[[int, int, str], None]
"""Progress callback: sentences done, number of sentences, name of the pass."""


@dataclass(frozen=True)
class CorpusOracle:
    """The choices for all sentences.

    Attributes:
        oracles: the oracle of each sentence.
        score: their corpus BLEU, from 0 to 1.
    """

    oracles: tuple[Oracle, ...]
    score: float


def model_oracles(graphs: Sequence[OracleGraph]) -> CorpusOracle:
    """Return the derivations with the highest model scores, a baseline for oracles.

    Raises:
        DataError: as ``viterbi``, with the sentence id.
    """
    chosen = []
    for graph in graphs:
        with name_sentence(graph.sentence):
            chosen.append(judge_derivation(graph, viterbi(graph.graph, graph.scores).edges))
    return _corpus(chosen)


def sentence_oracles(
    graphs: Sequence[OracleGraph],
    *,
    beam: int | None = BEAM,
    on_progress: OnProgress = lambda done, total, what: None,
) -> CorpusOracle:
    """Return the derivations with the highest BLEU+1, sentence by sentence.

    Args:
        beam: see ``oracles.bleu.oracle``.

    Raises:
        ValueError, DataError: as ``oracle``, with the sentence id.
    """
    chosen = []
    for graph in graphs:
        with name_sentence(graph.sentence):
            chosen.append(oracle(graph, beam=beam))
        on_progress(len(chosen), len(graphs), "BLEU+1")
    return _corpus(chosen)


def greedy_oracles(
    graphs: Sequence[OracleGraph],
    rng: np.random.Generator,
    *,
    beam: int | None = BEAM,
    on_progress: OnProgress = lambda done, total, what: None,
) -> CorpusOracle:
    """Improve one sentence's choice at a time if corpus BLEU rises (survey, Figure 2).

    The search starts from the derivations with the highest BLEU+1. Each pass visits the sentences
    in random order and searches each with the statistics of all other choices as background. The
    search ends when a whole pass changes nothing.

    Args:
        beam: see ``oracles.bleu.oracle``.

    Raises:
        ValueError, DataError: as ``oracle``, with the sentence id.
    """
    chosen = [*sentence_oracles(graphs, beam=beam, on_progress=on_progress).oracles]
    totals = _sum_statistics(chosen)
    for turn in range(1, PASSES + 1):
        changed = False
        for done, number in enumerate(rng.permutation(len(graphs)).tolist(), start=1):
            others = totals - chosen[number].statistics
            # If the others lack matches, BLEU is 0 for every choice.
            background = others if (others[0:-1:2] > 0.0).all() else others + BLEU_PLUS_ONE
            with name_sentence(graphs[number].sentence):
                choice = oracle(graphs[number], background, beam=beam)
            if _rank(others + choice.statistics) > _rank(totals):
                chosen[number], totals, changed = choice, others + choice.statistics, True
            on_progress(done, len(graphs), f"pass {turn}")
        if not changed:
            break
    return _corpus(chosen)


def linear_oracles(
    graphs: Sequence[OracleGraph],
    *,
    beam: int | None = None,
    on_progress: OnProgress = lambda done, total, what: None,
) -> CorpusOracle:
    """Return the derivations with the highest linear BLEU, linearized in each pass.

    Each pass linearizes BLEU at the statistics of the previous choices; the first one uses the
    model's choices. The search ends when corpus BLEU no longer rises.

    Args:
        beam: see ``linear_oracle``.

    Raises:
        ValueError, DataError: as ``linear_oracle``, with the sentence id.
    """
    best = model_oracles(graphs)
    for turn in range(1, PASSES + 1):
        totals = _sum_statistics(best.oracles)
        # If some order has no match, one more match of each order gives a direction.
        gains = linear_bleu(totals if (totals[0:-1:2] > 0.0).all() else totals + 1.0)
        chosen = []
        for graph in graphs:
            with name_sentence(graph.sentence):
                chosen.append(linear_oracle(graph, gains, beam=beam))
            on_progress(len(chosen), len(graphs), f"pass {turn}")
        improved = _corpus(chosen)
        if _rank(_sum_statistics(chosen)) <= _rank(totals):
            break
        best = improved
    return best


def _sum_statistics(chosen: Sequence[Oracle]) -> Floats:
    """Return the summed statistics of all choices, float64 ``[9]``."""
    totals: Floats = np.array([choice.statistics for choice in chosen]).sum(axis=0)
    return totals


def _rank(totals: Floats) -> tuple[float, float]:
    """Return BLEU, and a second score that orders choices whose BLEU is 0."""
    smoothed = totals + BLEU_PLUS_ONE
    return float(bleu_score_row(totals)), float(bleu_score_row(smoothed))


def _corpus(chosen: Sequence[Oracle]) -> CorpusOracle:
    return CorpusOracle(tuple(chosen), float(bleu_score_row(_sum_statistics(chosen))))


def linear_oracle(graph: OracleGraph, gains: LinearBleu, *, beam: int | None = None) -> Oracle:
    """Return the derivation with the highest linear BLEU, exact without a beam.

    Args:
        graph: the graph of the sentence with its references.
        beam: number of partial derivations to keep per node; None keeps all that are needed.

    Raises:
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    usable = graph.scores > -np.inf
    scores = np.full(len(usable), -np.inf)
    scores[usable] = gains.word * _words(graph.text)[usable]
    values = np.concatenate([[0.0], gains.ngrams])[graph.states.depths]
    best = find_best_with_ngrams(graph.text, scores, graph.states, values, beam=beam)
    return judge_derivation(graph, best.edges)


@kernel
def _words(graph: TextGraph) -> Floats:
    """Return each edge's number of own words, float64 ``[n_edges]``."""
    words = np.zeros(len(graph.tail_offsets) - 1)
    for edge in range(len(words)):
        for place in range(graph.target_offsets[edge], graph.target_offsets[edge + 1]):
            word = graph.targets[place]
            words[edge] += word != -1 and word != BOUNDARY
    return words
