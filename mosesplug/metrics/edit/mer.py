"""MER, match error rate (Morris et al. 2004): errors per aligned pair of words.

    MER = (S + D + I) / (H + S + D + I)

of an alignment with the fewest errors, which has ``H`` hits, ``S`` substitutions, ``D`` deletions
(words of the reference that are missing) and ``I`` insertions (surplus words). Unlike WER it is at
most 1. Several alignments can have the fewest errors and different numbers of hits; the one that
counts is that of jiwer 3 and 4, so that numbers are equal: from the end of both sentences, after
words in common at the beginning and at the end are aligned, a deletion is preferred to an insertion
and both to a pair of words. Words are separated as in jiwer, too: by ASCII blanks, or by two blanks
of any kind.

Statistics of a hypothesis: hits, substitutions, deletions, insertions. The score of their sum is 1
minus MER; 1 if there are no words at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.metrics.edit.distance import is_closer
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.tokenizers import Tokenization, join_single_blanks
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords


@kernel
def _align(
    hypothesis: NDArray[np.int32],
    reference: NDArray[np.int32],
    errors: NDArray[np.int32],
    hits: NDArray[np.int32],
) -> tuple[int, int]:
    """Return the fewest errors, and the hits of the alignment that the module defines.

    ``errors`` and ``hits`` are memory for ``len(hypothesis) + 1`` values: of the best alignment of
    the first ``j`` words of the hypothesis with the words of the reference so far.
    """
    first, last_ours, last_theirs = 0, len(hypothesis), len(reference)
    while first < min(last_ours, last_theirs) and hypothesis[first] == reference[first]:
        first += 1
    while first < min(last_ours, last_theirs) and (
        hypothesis[last_ours - 1] == reference[last_theirs - 1]
    ):
        last_ours -= 1
        last_theirs -= 1
    common = first + len(hypothesis) - last_ours
    length = last_ours - first
    for j in range(length + 1):
        errors[j] = j
        hits[j] = 0
    for i in range(first, last_theirs):
        word = reference[i]
        diagonal, diagonal_hits = errors[0], hits[0]
        errors[0] += 1
        for j in range(1, length + 1):
            same = hypothesis[first + j - 1] == word
            above, above_hits = errors[j], hits[j]
            best = min(above + 1, errors[j - 1] + 1, diagonal + (0 if same else 1))
            errors[j] = best
            if best != above + 1:  # else a deletion, which keeps its hits
                if errors[j - 1] + 1 == diagonal:
                    hits[j] = hits[j - 1]
                else:
                    hits[j] = diagonal_hits + (1 if same else 0)
            diagonal, diagonal_hits = above, above_hits
    return int(errors[length]), common + int(hits[length])


@kernel
def _count_edits(
    words: ReferenceWords,
    n_references: int,
    hypotheses: EncodedHypotheses,
    counts: NDArray[np.int32],
) -> None:
    """Write hits, substitutions, deletions and insertions to ``counts [n, 4]``.

    With several references, those of the lowest rate count; the first of several equal ones.
    """
    room = 1
    for index in range(len(hypotheses.sentence_ids)):
        room = max(room, hypotheses.offsets[index + 1] - hypotheses.offsets[index] + 1)
    errors, hits = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    for index in range(len(hypotheses.sentence_ids)):
        hypothesis = hypotheses.ids[hypotheses.offsets[index] : hypotheses.offsets[index + 1]]
        first_line = hypotheses.sentence_ids[index] * n_references
        least, least_of = 0, 0
        for line in range(first_line, first_line + n_references):
            reference = words.ids[words.token_offsets[line] : words.token_offsets[line + 1]]
            wrong, right = _align(hypothesis, reference, errors, hits)
            if line == first_line or is_closer(wrong, wrong + right, least, least_of):
                least, least_of = wrong, wrong + right
                substitutions = len(reference) + len(hypothesis) - 2 * right - wrong
                counts[index, 0] = right
                counts[index, 1] = substitutions
                counts[index, 2] = len(reference) - right - substitutions
                counts[index, 3] = len(hypothesis) - right - substitutions


@dataclass(frozen=True)
class Mer(WordMetric):
    """1 - MER; the reference with the lowest rate of a hypothesis counts."""

    name: ClassVar[str] = "MER"
    statistics_names: ClassVar[tuple[str, ...]] = (
        "hits",
        "substitutions",
        "deletions",
        "insertions",
    )

    def _splitting(self) -> Tokenization:
        return Tokenization(self.tokenizer, self.lowercase, join_single_blanks)

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        _count_edits(references.words, references.n_references, hypotheses, counts)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = totals.sum(axis=-1)
        return np.asarray(1.0 - divide(pairs - totals[..., 0], pairs, 0.0))
