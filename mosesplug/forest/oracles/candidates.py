"""Hopes, fears and best derivations of a graph, for learners that choose in lists.

The hope has the maximum of model score plus gain, the fear that of model score minus gain. Here the
gain is sentence BLEU (BLEU+1). A search with a beam keeps several partial derivations per node, and
lists the ``k`` best of the goal. A learner with other gains chooses among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mosesplug.arrays import Floats, Ints
from mosesplug.errors import DataError
from mosesplug.forest.intersection import ReferenceGraph
from mosesplug.forest.k_best import Derivations, concatenate_words, k_best
from mosesplug.forest.oracles.bleu import BLEU_PLUS_ONE, BleuGraph, OracleGraph
from mosesplug.forest.oracles.search import Judge, rank_rows, search_partials
from mosesplug.forest.partial_derivations import extract_derivation


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
