"""Oracles of a whole set of graphs: one derivation of each, for the highest corpus BLEU together.

What is best for one sentence depends on the choices for all others. Both ways begin somewhere and
improve all choices until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.graph_search import named
from mosesplug.forest.oracles.bleu import BEAM, BLEU_PLUS_ONE, Oracle, OracleGraph, judged, oracle
from mosesplug.forest.oracles.linear_bleu import linear_bleu, linear_oracle
from mosesplug.forest.viterbi import viterbi
from mosesplug.metrics.bleu import bleu_score_row

__all__ = [
    "CorpusOracle",
    "greedy_oracles",
    "linear_oracles",
    "model_oracles",
    "sentence_oracles",
]

PASSES = 20
"""A search that has not come to rest by then goes round among equals."""

Told = Callable[[int, int, str], None]
"""Told how many of how many sentences are done, and in what."""


@dataclass(frozen=True)
class CorpusOracle:
    """The choices for all sentences.

    Attributes:
        oracles: of each.
        score: corpus BLEU of them together, in 0 to 1.
    """

    oracles: tuple[Oracle, ...]
    score: float


def model_oracles(graphs: Sequence[OracleGraph]) -> CorpusOracle:
    """Return the derivations of the highest model score: what oracles are compared with.

    Raises:
        DataError: as ``viterbi``, with the number of the sentence.
    """
    chosen = []
    for graph in graphs:
        with named(graph.sentence):
            chosen.append(judged(graph, viterbi(graph.graph, graph.scores).edges))
    return _corpus(chosen)


def sentence_oracles(
    graphs: Sequence[OracleGraph],
    *,
    beam: int | None = BEAM,
    told: Told = lambda done, total, what: None,
) -> CorpusOracle:
    """Return the derivations of the highest BLEU+1, sentence by sentence.

    Args:
        graphs: at least one.
        beam: see ``bleu_oracle.oracle``.
        told: hears of progress.

    Raises:
        ValueError, DataError: as ``oracle``, with the number of the sentence.
    """
    chosen = []
    for graph in graphs:
        with named(graph.sentence):
            chosen.append(oracle(graph, beam=beam))
        told(len(chosen), len(graphs), "BLEU+1")
    return _corpus(chosen)


def greedy_oracles(
    graphs: Sequence[OracleGraph],
    rng: np.random.Generator,
    *,
    beam: int | None = BEAM,
    passes: int = PASSES,
    told: Told = lambda done, total, what: None,
) -> CorpusOracle:
    """Change one sentence's choice at a time where corpus BLEU rises (survey, Figure 2).

    It begins with the derivations of highest BLEU+1. Sentences are gone through in random order,
    and each is searched with the statistics of all other choices in the background, until a whole
    pass changes nothing.

    Args:
        graphs: at least one.
        rng: of the orders.
        beam: see ``bleu_oracle.oracle``.
        passes: no more than these.
        told: hears of progress.

    Raises:
        ValueError, DataError: as ``oracle``, with the number of the sentence.
    """
    chosen = [*sentence_oracles(graphs, beam=beam, told=told).oracles]
    totals = _summed(chosen)
    for turn in range(1, passes + 1):
        changed = False
        for done, number in enumerate(rng.permutation(len(graphs)).tolist(), start=1):
            others = totals - chosen[number].statistics
            # Where the others match too little, BLEU cannot tell anything from 0.
            background = others if (others[0:-1:2] > 0.0).all() else others + BLEU_PLUS_ONE
            with named(graphs[number].sentence):
                found = oracle(graphs[number], background, beam=beam)
            if _worth(others + found.statistics) > _worth(totals):
                chosen[number], totals, changed = found, others + found.statistics, True
            told(done, len(graphs), f"pass {turn}")
        if not changed:
            break
    return _corpus(chosen)


def linear_oracles(
    graphs: Sequence[OracleGraph],
    *,
    beam: int | None = None,
    passes: int = PASSES,
    told: Told = lambda done, total, what: None,
) -> CorpusOracle:
    """The derivations of highest linear BLEU, near the statistics of those of the pass before.

    It begins near the statistics of the model's choices, and ends when corpus BLEU rises no more.

    Args:
        graphs: at least one.
        beam: see ``linear_bleu.linear_oracle``.
        passes: no more than these.
        told: hears of progress.

    Raises:
        ValueError, DataError: as ``linear_oracle``, with the number of the sentence.
    """
    best = model_oracles(graphs)
    for turn in range(1, passes + 1):
        totals = _summed(best.oracles)
        # Where too little matches, a match more of each length gives a direction.
        gains = linear_bleu(totals if (totals[0:-1:2] > 0.0).all() else totals + 1.0)
        chosen = []
        for graph in graphs:
            with named(graph.sentence):
                chosen.append(linear_oracle(graph, gains, beam=beam))
            told(len(chosen), len(graphs), f"pass {turn}")
        found = _corpus(chosen)
        if _worth(_summed(chosen)) <= _worth(totals):
            break
        best = found
    return best


def _summed(chosen: Sequence[Oracle]) -> NDArray[np.float64]:
    """Return statistics of all choices, float64 ``[9]``."""
    totals: NDArray[np.float64] = np.array([choice.statistics for choice in chosen]).sum(axis=0)
    return totals


def _worth(totals: NDArray[np.float64]) -> tuple[float, float]:
    """Return BLEU, and what tells apart where it is 0."""
    smoothed = totals + BLEU_PLUS_ONE
    return float(bleu_score_row(totals)), float(bleu_score_row(smoothed))


def _corpus(chosen: Sequence[Oracle]) -> CorpusOracle:
    return CorpusOracle(tuple(chosen), float(bleu_score_row(_summed(chosen))))
