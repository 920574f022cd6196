"""WER and CDER: word edit distance without and with jumps (Leusch et al. 2006).

WER counts the insertions, deletions and substitutions that turn the hypothesis into the
reference. CDER also allows jumps to any position of the hypothesis, each for the cost of one error.
Moving a block of words is therefore one error, and words of the hypothesis may be used twice or not
at all (section 3 of the paper).

Statistics of a hypothesis, as in Moses: errors, and words of the reference. The score of their
sum is 1 minus their quotient; see ``divide_errors`` for an empty reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.kernels import kernel
from mosesplug.metrics.edit.distance import count_errors, is_closer
from mosesplug.metrics.reference_metric import divide_errors
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords

ReferenceChoice = Literal["moses", "best"]


@kernel
def _errors(
    hypothesis: NDArray[np.int32],
    reference: NDArray[np.int32],
    jumps: bool,
    row: NDArray[np.int32],
) -> int:
    """Return the minimum number of errors.

    ``row`` is memory for ``len(hypothesis) + 1`` values. ``row[i]`` is the cost after ``i`` words
    of the hypothesis; each turn of the outer loop adds one word of the reference.
    """
    length = len(hypothesis)
    for i in range(length + 1):
        row[i] = min(i, 1) if jumps else i
    for word in reference:
        diagonal = row[0]
        row[0] += 1
        least = row[0]
        for i in range(length):
            best = diagonal if hypothesis[i] == word else diagonal + 1
            diagonal = row[i + 1]
            best = min(best, diagonal + 1, row[i] + 1)
            row[i + 1] = best
            least = min(least, best)
        if jumps:
            for i in range(length + 1):
                row[i] = min(row[i], least + 1)
    return int(row[length])


@kernel
def _truncated_score(errors: int, length: int) -> int:
    """Return 1 minus the error rate, truncated to an integer as in Moses."""
    if length == 0:
        return 1
    if errors <= length:
        return (length - errors) // length
    return -((errors - length) // length)


@kernel
def _count_errors(
    words: ReferenceWords,
    n_references: int,
    jumps: bool,
    best_reference: bool,
    hypotheses: EncodedHypotheses,
    counts: NDArray[np.int32],
) -> None:
    """Write errors and reference length to ``counts``, int32 ``[n, 2]``."""
    room = 1
    for index in range(len(hypotheses.sentence_ids)):
        room = max(room, hypotheses.offsets[index + 1] - hypotheses.offsets[index] + 1)
    row = np.empty(room, dtype=np.int32)
    for index in range(len(hypotheses.sentence_ids)):
        hypothesis = hypotheses.ids[hypotheses.offsets[index] : hypotheses.offsets[index + 1]]
        first_line = hypotheses.sentence_ids[index] * n_references
        for line in range(first_line, first_line + n_references):
            reference = words.ids[words.token_offsets[line] : words.token_offsets[line + 1]]
            length = len(reference)
            errors = _errors(hypothesis, reference, jumps, row)
            if line == first_line:
                better = True
            elif best_reference:
                better = is_closer(errors, length, counts[index, 0], counts[index, 1])
            else:
                better = _truncated_score(errors, length) > _truncated_score(
                    counts[index, 0], counts[index, 1]
                )
            if better:
                counts[index, 0] = errors
                counts[index, 1] = length


@dataclass(frozen=True)
class Wer(WordMetric):
    """1 - WER.

    Attributes:
        reference_choice: the reference for each hypothesis if there are several. ``best`` is the
            one with the lowest error rate. ``moses`` is the first one, unless another matches
            exactly or the first has two errors per word: Moses truncates sentence scores to
            integers before it compares them. With several references, only ``moses`` gives
            scores comparable to those of Moses.
    """

    reference_choice: ReferenceChoice = "moses"

    name: ClassVar[str] = "WER"
    statistics_names: ClassVar[tuple[str, ...]] = ("errors", "reference_length")
    jumps: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        known = get_args(ReferenceChoice)
        if self.reference_choice not in known:
            raise UsageError(
                f"unknown reference choice {self.reference_choice!r} for {self.name}: "
                f"use one of {', '.join(known)}"
            )

    def _extra_settings(self) -> str:
        return f"refs:{self.reference_choice}|"

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        best = self.reference_choice == "best"
        n_references = references.n_references
        if not self.jumps and (best or n_references == 1):
            count_errors(references.words, n_references, hypotheses, counts)
        else:
            _count_errors(references.words, n_references, self.jumps, best, hypotheses, counts)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1.0 - divide_errors(totals[..., 0], totals[..., 1]))


@dataclass(frozen=True)
class Cder(Wer):
    """1 - CDER; the settings are those of ``Wer``."""

    name: ClassVar[str] = "CDER"
    jumps: ClassVar[bool] = True
