"""Lists of diverse translations, penalized for n-grams of the earlier ones.

Neighbors in a k-best list differ by only a few words. Gimpel et al. (2013) find the translations
one after the other. Each maximizes the model score minus ``penalty`` times its overlap with the
earlier translations. The overlap with one translation is the number of pairs of equal n-grams
(their dissimilarity function, for n-grams of one length). An occurrence of an n-gram therefore
costs ``penalty`` times the number of its occurrences in all earlier translations. The penalty is a
sum of n-gram values over the translation, so ``ngram_search`` finds the exact maximum over the
whole graph, for n-grams of any length. Choosing from an existing k-best list is cheaper, but finds
only translations of that list.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.forest.k_best import Derivations, translations
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, BOUNDARY, OTHER, ngram_tree
from mosesplug.forest.ngrams.search import find_best_with_ngrams
from mosesplug.forest.ngrams.states import NgramStates, TextGraph, ngram_states, renumber_words
from mosesplug.forest.translations import append_words
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel, read_only

ORDER = 2
"""Length in words of the n-grams that are compared."""

MOST_ALIKE = 10
"""Maximum number of searches per requested translation; repeated translations are skipped."""


def find_diverse(
    graph: Hypergraph,
    scores: Floats,
    k: int,
    penalty: float,
    *,
    order: int = ORDER,
    most_alike: int = MOST_ALIKE,
) -> Derivations:
    """Return up to ``k`` different translations in the order of their discovery.

    If a search finds a translation that is in the list already, its n-grams are penalized once
    more and the search is repeated. With a small penalty, a new translation may need several
    searches.

    Args:
        scores: float64 ``[n_edges]``; edges whose score is -inf or NaN are ignored.
        penalty: cost of each pair of equal n-grams, positive, in units of the model score.
        most_alike: run at most ``k`` times this many searches.

    Returns:
        The derivations with their model scores, without the penalties.

    Raises:
        DataError: no derivation builds the goal, or the best one has more than ten million edges.
    """
    _check(k, penalty, order)
    own = renumber_words(graph, {word: number for number, word in enumerate(graph.words)})
    texts: list[Ints32] = []
    derivations: dict[bytes, Ints] = {}
    for _ in range(k * most_alike):
        text, states, values = _price_ngrams(own, len(graph.words), texts, penalty, order)
        edges = find_best_with_ngrams(text, scores, states, values).edges
        said = _words(own, edges)
        derivations.setdefault(said.tobytes(), edges)
        texts.append(said)
        if len(derivations) == k:
            break
    sums = np.array([scores[edges].sum() for edges in derivations.values()])
    return Derivations.of(sums, [*derivations.values()])


def choose_diverse(
    graph: Hypergraph, pool: Derivations, k: int, penalty: float, *, order: int = ORDER
) -> Derivations:
    """Choose up to ``k`` distinct derivations by the criterion of ``find_diverse``.

    Args:
        pool: the derivations to choose from, such as a list of the best distinct ones.
        penalty: cost of each pair of equal n-grams, positive.

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
        raise ValueError(f"number of translations must be positive: {k}")
    if not 0.0 < penalty < np.inf:
        raise ValueError(f"penalty must be positive and finite: {penalty}")
    if order < 1:
        raise ValueError(f"n-gram order must be positive: {order}")


def _price_ngrams(
    own: TextGraph, n_words: int, texts: list[Ints32], penalty: float, order: int
) -> tuple[TextGraph, NgramStates, Floats]:
    """Return the graph with word numbers, the n-grams found so far, and their costs."""
    joined = np.concatenate([np.empty(0, dtype=np.int32), *texts])
    words, numbers = np.unique(joined, return_inverse=True)
    # Negative indices reach the two last entries: OTHER and the marker of a tail.
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


def _words(graph: TextGraph, edges: Ints) -> Ints32:
    """Return the words of a derivation's translation, int32."""
    words, top = append_words(
        read_only(graph.target_offsets),
        read_only(graph.targets),
        edges,
        np.empty(64, dtype=np.int32),
        0,
    )
    translation = words[:top]
    return np.asarray(translation[translation != BOUNDARY])


@kernel
def _chosen(
    words: Ints32, offsets: Ints, n_words: int, scores: Floats, k: int, penalty: float, order: int
) -> Ints:
    """Return the chosen translations' numbers in order of choice; the first win ties."""
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
