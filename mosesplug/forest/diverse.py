"""Lists of translations that differ: the next one pays for what it shares with those before.

Neighbours in a k-best list differ in a word here and there. Gimpel et al. (2013) find the
translations one after the other, each by the model's score less ``penalty`` times its overlap with
each earlier one, the number of pairs of equal n-grams of both (their dissimilarity function, for
n-grams of one length). So every occurrence of an n-gram costs ``penalty`` times as much as it
occurs in all translations so far: the sum of an n-gram's values over the translation, which
``ngram_search`` maximises exactly over the whole graph, for n-grams of any length. Choosing from a
k-best list that is there is cheaper, and bounded by what the list has.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.k_best import Derivations, translations
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, BOUNDARY, OTHER, ngram_tree
from mosesplug.forest.ngrams.search import best_with_ngrams
from mosesplug.forest.ngrams.states import NgramStates, TextGraph, ngram_states, text_graph
from mosesplug.forest.translations import append_words
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel

__all__ = ["diverse", "diverse_of"]

ORDER = 2
"""Words of the n-grams that are compared."""

MOST_ALIKE = 10
"""Translations looked for for each one wanted, where those that are listed already are left out."""


def diverse(
    graph: Hypergraph,
    scores: NDArray[np.float64],
    k: int,
    penalty: float,
    *,
    order: int = ORDER,
    beam: int | None = None,
    most_alike: int = MOST_ALIKE,
) -> Derivations:
    """Up to ``k`` translations that differ, in the order in which they were found.

    Where the best one is listed already, it pays once more for its n-grams, and the search goes
    on: a small penalty takes several searches to a new translation.

    Args:
        graph: a graph whose goal can be built.
        scores: float64 ``[n_edges]``; an edge whose score is -inf or NaN is left out.
        k: how many.
        penalty: of each pair of equal n-grams, positive, in units of the model's score.
        order: words of the n-grams.
        beam: partial derivations that are kept of a node; None for an exact search.
        most_alike: search no more than ``k`` times as often.

    Returns:
        The derivations with the model's scores: the penalties are no part of them.

    Raises:
        ValueError: ``k``, ``penalty``, ``order`` or ``beam`` is not positive.
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    _check(k, penalty, order)
    own = text_graph(graph, {word: number for number, word in enumerate(graph.words)})
    texts: list[NDArray[np.int32]] = []
    found: dict[bytes, NDArray[np.int64]] = {}
    for _ in range(k * most_alike):
        text, states, values = _priced(own, len(graph.words), texts, penalty, order)
        edges = best_with_ngrams(text, scores, states, values, beam=beam).edges
        said = _words(own, edges)
        found.setdefault(said.tobytes(), edges)
        texts.append(said)
        if len(found) == k:
            break
    sums = np.array([scores[edges].sum() for edges in found.values()])
    return Derivations.of(sums, [*found.values()])


def diverse_of(
    graph: Hypergraph, pool: Derivations, k: int, penalty: float, *, order: int = ORDER
) -> Derivations:
    """Up to ``k`` of some derivations, chosen as ``diverse`` does, none of them twice.

    Args:
        graph: of the derivations.
        pool: from which to choose, as a list of the best distinct ones.
        k: how many.
        penalty: of each pair of equal n-grams, positive.
        order: words of the n-grams.

    Raises:
        ValueError: ``k``, ``penalty`` or ``order`` is not positive.
    """
    _check(k, penalty, order)
    said = [[w for w in words if w not in BOUNDARIES] for words in translations(graph, pool)]
    known: dict[bytes, int] = {}
    numbers = [known.setdefault(word, len(known)) for word in chain.from_iterable(said)]
    chosen = _chosen(
        np.array(numbers, dtype=np.int32),
        np.cumsum([0, *map(len, said)], dtype=np.int64),
        len(known),
        pool.scores,
        min(k, len(pool)),
        penalty,
        order,
    )
    return pool.some(chosen)


def _check(k: int, penalty: float, order: int) -> None:
    if k < 1:
        raise ValueError(f"{k} translations are wanted")
    if not 0.0 < penalty < np.inf:
        raise ValueError(f"a penalty of {penalty}")
    if order < 1:
        raise ValueError(f"n-grams of {order} words")


def _priced(
    own: TextGraph, n_words: int, texts: list[NDArray[np.int32]], penalty: float, order: int
) -> tuple[TextGraph, NgramStates, NDArray[np.float64]]:
    """The graph with numbers for the words said so far, their n-grams, and what these cost."""
    joined = np.concatenate([np.empty(0, dtype=np.int32), *texts])
    words, numbers = np.unique(joined, return_inverse=True)
    # Behind the words stand OTHER and what is no word, which negative numbers reach.
    renumbered = np.full(n_words + 3, OTHER, dtype=np.int32)
    renumbered[-1], renumbered[BOUNDARY] = -1, BOUNDARY
    renumbered[words] = np.arange(len(words), dtype=np.int32)
    children, summed, _ = ngram_tree(
        numbers.astype(np.int32),
        np.cumsum([0, *map(len, texts)], dtype=np.int64),
        order,
        len(words),
    )
    states = ngram_states(children, order)
    values = np.where(states.depths == order, -penalty * summed, 0.0)
    return own._replace(targets=renumbered[own.targets]), states, values


def _words(graph: TextGraph, edges: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the words of a derivation's translation, int32."""
    words, top = append_words(
        graph.target_offsets, graph.targets, edges, np.empty(64, dtype=np.int64), 0
    )
    said: NDArray[np.int32] = words[:top].astype(np.int32)
    return np.asarray(said[said != BOUNDARY])


@kernel
def _chosen(
    words: NDArray[np.int32],
    offsets: NDArray[np.int64],
    n_words: int,
    scores: NDArray[np.float64],
    k: int,
    penalty: float,
    order: int,
) -> NDArray[np.int64]:
    """Numbers of the translations chosen, in the order of the choice; of equals the first."""
    children, summed, _ = ngram_tree(words, offsets, order, n_words)
    # The n-gram that begins at each word, -1 where too few words follow.
    ngrams = np.full(len(words), -1, dtype=np.int64)
    for text in range(len(scores)):
        for start in range(offsets[text], offsets[text + 1] - order + 1):
            ngrams[start] = 0
            for word in words[start : start + order]:
                ngrams[start] = children[ngrams[start], word]
    said = np.zeros(len(summed))
    free = np.ones(len(scores), dtype=np.bool_)
    chosen = np.empty(k, dtype=np.int64)
    for place in range(k):
        best, highest = -1, -np.inf
        for text in range(len(scores)):
            if not free[text]:
                continue
            value = scores[text]
            for ngram in ngrams[offsets[text] : offsets[text + 1]]:
                if ngram >= 0:
                    value -= penalty * said[ngram]
            if best < 0 or value > highest:
                best, highest = text, value
        chosen[place] = best
        free[best] = False
        for ngram in ngrams[offsets[best] : offsets[best + 1]]:
            if ngram >= 0:
                said[ngram] += 1
    return chosen
