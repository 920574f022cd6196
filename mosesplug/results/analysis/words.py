"""Word accuracy: which words systems translate well, by the frequency of the word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from mosesplug.results.analysis.buckets import FREQUENCIES, Buckets
from mosesplug.results.analysis.corpus import (
    NumberedCorpus,
    NumberedText,
    count_items,
    match_counts,
)
from mosesplug.results.render.record import MeanCount, Score, Shown, Text

ALL = "all"
"""Label of the record over all buckets."""


@dataclass(frozen=True)
class WordAccuracy:
    """How well a system translates the words of a bucket.

    Counts are means over the runs of the system; the ratios are those of the sums.

    Attributes:
        bucket: the label of the bucket: the frequency of its words, or ``all``.
        correct: words of the translations that the reference of the sentence has, too. A word
            counts as often as the reference has it.
        precision: correct words of the produced ones; NaN if there are none.
        recall: correct words of the expected ones; NaN if there are none.
        f1: harmonic mean of precision and recall: twice the correct words, of the expected and
            produced ones together; NaN if there are none.
    """

    bucket: Annotated[str, Shown(label="frequency", is_text=True)]
    system: Text
    expected: MeanCount
    produced: MeanCount
    correct: MeanCount
    precision: Annotated[float, Shown(".4f", "prec.")]
    recall: Score
    f1: Annotated[float, Shown(".4f", "F1")]


def measure_words(
    corpus: NumberedCorpus,
    frequencies: Mapping[bytes, int] | None = None,
    buckets: Buckets = FREQUENCIES,
) -> tuple[WordAccuracy, ...]:
    """Return precision and recall of words by their frequency, as in compare-mt.

    See Neubig et al. (2019). A translation is compared with the reference of its sentence that
    shares most words with it, by F1; the first of several equal ones.

    Args:
        frequencies: frequency of words, 0 for others; None: in the references, the mean if there
            are several, rounded up.

    Returns:
        Records of all systems for each bucket that has words, then those of all words.
    """
    occurrences = _count_occurrences(corpus, frequencies)
    bucket_of = buckets.assign(occurrences)
    # [system, kind, bucket] with the kinds expected, produced, correct
    counts = np.array(
        [
            np.mean([_count_run(corpus, run, bucket_of, len(buckets)) for run in runs], axis=0)
            for runs in corpus.systems.values()
        ]
    )
    counts = np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2)
    return tuple(
        _describe(label, system, *counts[number, :, place].tolist())
        for place, label in enumerate((*buckets.labels, ALL))
        if counts[:, :, place].any() or label == ALL
        for number, system in enumerate(corpus.systems)
    )


def _describe(
    bucket: str, system: str, expected: float, produced: float, correct: float
) -> WordAccuracy:
    return WordAccuracy(
        bucket=bucket,
        system=system,
        expected=expected,
        produced=produced,
        correct=correct,
        precision=_divide(correct, produced),
        recall=_divide(correct, expected),
        f1=_divide(2.0 * correct, produced + expected),
    )


def _divide(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _count_occurrences(
    corpus: NumberedCorpus, frequencies: Mapping[bytes, int] | None
) -> NDArray[np.int64]:
    """Return the frequency of each word of the vocabulary, int64."""
    if frequencies is not None:
        known = (frequencies.get(word, 0) for word in corpus.vocabulary)
        return np.fromiter(known, dtype=np.int64, count=len(corpus.vocabulary))
    words = np.concatenate([reference.words for reference in corpus.references])
    counts = np.bincount(words, minlength=len(corpus.vocabulary))
    return -(-counts // len(corpus.references))  # rounded up


def _count_run(
    corpus: NumberedCorpus, run: NumberedText, bucket_of: NDArray[np.int64], n_buckets: int
) -> NDArray[np.float64]:
    """Return expected, produced and correct words of each bucket, ``[3, n_buckets]``."""
    n_words = max(1, len(corpus.vocabulary))
    own = count_items(run.sentences, run.words, n_words)
    sentences, words = np.divmod(own.keys, n_words)
    matches = np.array(
        [
            match_counts(own, count_items(reference.sentences, reference.words, n_words))
            for reference in corpus.references
        ]
    )
    closest = _find_closest(corpus, run, sentences, matches)
    expected = np.zeros(n_buckets)
    for number, reference in enumerate(corpus.references):
        compared = reference.words[closest[reference.sentences] == number]
        expected += np.bincount(bucket_of[compared], minlength=n_buckets)
    correct = matches[closest[sentences], np.arange(len(words))]
    return np.stack(
        [
            expected,
            np.bincount(bucket_of[run.words], minlength=n_buckets),
            np.bincount(bucket_of[words], weights=correct, minlength=n_buckets),
        ]
    )


def _find_closest(
    corpus: NumberedCorpus,
    run: NumberedText,
    sentences: NDArray[np.int64],
    matches: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the reference of each sentence with the highest F1 of words, int64."""
    scores = []
    for reference, matched in zip(corpus.references, matches, strict=True):
        shared = np.bincount(sentences, weights=matched, minlength=corpus.n_sentences)
        total = np.maximum(run.lengths + reference.lengths, 1)
        scores.append(shared / total)
    closest: NDArray[np.int64] = np.argmax(scores, axis=0)
    return closest
