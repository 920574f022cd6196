"""N-grams that one system gets right, or wrong, more often than another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.results.analysis.corpus import (
    NumberedCorpus,
    NumberedText,
    count_items,
    find_limits,
    match_counts,
)
from mosesplug.results.render.record import MeanCount, Score, Shown
from mosesplug.results.views.texts import decode_text

NgramKind = Literal["right", "wrong"]


@dataclass(frozen=True)
class NgramDifference:
    """An n-gram that one system has right, or wrong, more often than another.

    Attributes:
        kind: ``right`` counts the n-grams of translations that a reference of the sentence has,
            too, at most as often as any one reference has them; ``wrong`` counts the others.
        more: the one of them that has it more often.
        ngram: the words, separated by blanks.
        baseline_count, system_count: how often they have it, means over the runs.
        ratio: the share of the system that has it more often, smoothed as in compare-mt:
            ``(more + 1) / (more + less + 2)``.
    """

    kind: NgramKind
    baseline: str
    system: str
    more: str
    ngram: Annotated[bytes, Shown(decode_text, "n-gram", is_text=True)]
    baseline_count: MeanCount
    system_count: MeanCount
    ratio: Score


class NgramCounts(NamedTuple):
    """How often systems have each n-gram right and wrong.

    The n-grams of order ``n`` are in the order of their first appearance in ``words``.

    Attributes:
        words: int64; the words of all texts.
        places: int64 ``[n_ngrams]``; where each n-gram first appears in ``words``.
        orders: int64 ``[n_ngrams]``; number of its words.
        right, wrong: float64 ``[n_systems, n_ngrams]``; means over the runs.
    """

    words: NDArray[np.int64]
    places: NDArray[np.int64]
    orders: NDArray[np.int64]
    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


def count_ngrams(corpus: NumberedCorpus, longest: int = 4) -> NgramCounts:
    """Count n-grams of up to ``longest`` words that each system has right and wrong."""
    texts = [*corpus.references, *(run for runs in corpus.systems.values() for run in runs)]
    words = np.concatenate([text.words for text in texts])
    parts = list(_count_orders(corpus, texts, words, longest))
    places, orders, right, wrong = zip(*parts, strict=True)
    return NgramCounts(
        words,
        np.concatenate(places),
        np.concatenate(orders),
        np.concatenate(right, axis=1),
        np.concatenate(wrong, axis=1),
    )


_Part = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def _count_orders(
    corpus: NumberedCorpus, texts: list[NumberedText], words: NDArray[np.int64], longest: int
) -> Iterator[_Part]:
    """Yield places, orders, right and wrong counts of the n-grams of each order."""
    n_sentences = corpus.n_sentences
    # Sentences of all texts, numbered through.
    sentences = np.concatenate(
        [text.sentences + number * n_sentences for number, text in enumerate(texts)]
    )
    starts, items, n_items = np.arange(len(words)), words, len(corpus.vocabulary)
    for order in range(1, longest + 1):
        if order > 1:
            # An n-gram is the one of its first words, followed by one more in the same sentence.
            ends = starts + order - 1
            inside = ends < len(words)
            inside[inside] = sentences[starts[inside]] == sentences[ends[inside]]
            starts, ends = starts[inside], ends[inside]
            codes = items[inside] * len(corpus.vocabulary) + words[ends]
        else:
            codes = items
        distinct, first, items = np.unique(codes, return_index=True, return_inverse=True)
        appearance = np.argsort(first, kind="stable")
        rank = np.empty(len(distinct), dtype=np.int64)
        rank[appearance] = np.arange(len(distinct))
        items, n_items = rank[items], len(distinct)
        right, wrong = _count_matches(corpus, sentences[starts], items, n_items)
        yield starts[first[appearance]], np.full(n_items, order), right, wrong


def _count_matches(
    corpus: NumberedCorpus, sentences: NDArray[np.int64], items: NDArray[np.int64], n_items: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return right and wrong counts of items, ``[n_systems, n_items]`` each.

    Args:
        sentences: int64, ascending; the sentence of each item, numbered through all texts.
        items: int64; the n-gram at each place.
    """
    n_sentences, n_references = corpus.n_sentences, len(corpus.references)
    n_texts = n_references + sum(map(len, corpus.systems.values()))
    bounds = np.searchsorted(sentences, np.arange(n_texts + 1) * n_sentences)
    counts = [
        count_items(sentences[low:high] - number * n_sentences, items[low:high], max(1, n_items))
        for number, (low, high) in enumerate(pairwise(bounds.tolist()))
    ]
    limits = find_limits(counts[:n_references])
    right = np.zeros((len(corpus.systems), n_items))
    total = np.zeros((len(corpus.systems), n_items))
    text = n_references
    for system, runs in enumerate(corpus.systems.values()):
        for own in counts[text : text + len(runs)]:
            matched = match_counts(own, limits)
            ngrams = own.keys % max(1, n_items)
            right[system] += np.bincount(ngrams, weights=matched, minlength=n_items)
            total[system] += np.bincount(ngrams, weights=own.counts, minlength=n_items)
        right[system] /= len(runs)
        total[system] /= len(runs)
        text += len(runs)
    return right, total - right


def compare_ngrams(
    corpus: NumberedCorpus, counts: NgramCounts, most: int = 10
) -> tuple[NgramDifference, ...]:
    """Return the n-grams that differ most between the baseline and each other system.

    They are ordered by their ratio, then by the difference of their counts; longer ones first.

    Args:
        most: number of n-grams of each pair of systems, kind, and system that has more.
    """
    names = list(corpus.systems)
    kinds: tuple[tuple[NgramKind, NDArray[np.float64]], ...] = (
        ("right", counts.right),
        ("wrong", counts.wrong),
    )
    differences = []
    for other in range(1, len(names)):
        for kind, table in kinds:
            for more, less in ((other, 0), (0, other)):
                ratios = (table[more] + 1.0) / (table[more] + table[less] + 2.0)
                for place in _rank(counts, ratios, table[more] - table[less], most):
                    start, order = counts.places[place], counts.orders[place]
                    words = counts.words[start : start + order].tolist()
                    differences.append(
                        NgramDifference(
                            kind=kind,
                            baseline=names[0],
                            system=names[other],
                            more=names[more],
                            ngram=b" ".join(corpus.vocabulary[word] for word in words),
                            baseline_count=float(table[0, place]),
                            system_count=float(table[other, place]),
                            ratio=float(ratios[place]),
                        )
                    )
    return tuple(differences)


def _rank(
    counts: NgramCounts,
    ratios: NDArray[np.float64],
    differences: NDArray[np.float64],
    most: int,
) -> list[int]:
    """Return the n-grams with the highest ratios, of those with a positive difference."""
    candidates = np.flatnonzero(differences > 0.0)
    keys = (-counts.orders[candidates], -differences[candidates], -ratios[candidates])
    order = np.lexsort(keys)
    return [int(candidate) for candidate in candidates[order[:most]]]
