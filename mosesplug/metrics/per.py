"""PER, position-independent error rate (Tillmann et al. 1997).

Statistics of a hypothesis, in Moses' order: words in common with the reference (counts clipped to
those of the reference), words of the hypothesis, words of the reference. The score of their sum is

    1 - PER = (correct - max(0, length - reference length)) / reference length

where the subtraction counts surplus words as errors. If the reference length is 0, PER is the
number of errors, as in ``divide_errors``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.kernels import kernel
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords


@kernel
def _count_common_words(
    words: ReferenceWords, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
) -> None:
    """Write common words, length and reference length to ``counts``, int32 ``[n, 3]``."""
    longest = 0
    for sentence in range(len(words.token_offsets) - 1):
        longest = max(longest, words.token_offsets[sentence + 1] - words.token_offsets[sentence])
    left = np.zeros(longest, dtype=np.int32)
    for row in range(len(hypotheses.sentence_ids)):
        sentence = hypotheses.sentence_ids[row]
        reference = words.ids[words.token_offsets[sentence] : words.token_offsets[sentence + 1]]
        hypothesis = hypotheses.ids[hypotheses.offsets[row] : hypotheses.offsets[row + 1]]
        for word in reference:
            left[word] += 1
        common = 0
        for word in hypothesis:
            if word >= 0 and left[word] > 0:
                left[word] -= 1
                common += 1
        for word in reference:
            left[word] = 0
        counts[row, 0] = common
        counts[row, 1] = len(hypothesis)
        counts[row, 2] = len(reference)


@dataclass(frozen=True)
class Per(WordMetric):
    """1 - PER against one reference; several are rejected, as in Moses.

    Empty references score 0, as in Moses.
    """

    name: ClassVar[str] = "PER"
    statistics_names: ClassVar[tuple[str, ...]] = ("correct", "length", "reference_length")
    statistics_limits: ClassVar[tuple[tuple[str, str], ...]] = (
        ("correct", "length"),
        ("correct", "reference_length"),
    )

    def prepare(self, references: Sequence[Sequence[bytes]]) -> WordReferences:
        """Compile ``references[0]``; see ``Metric.prepare``.

        Raises:
            DataError: there is more than one reference, or none.
        """
        if len(references) > 1:
            raise DataError(
                f"PER supports one reference, but there are {len(references)}: give one, or "
                "use a metric that supports several, such as TER"
            )
        return super().prepare(references)

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        _count_common_words(references.words, hypotheses, counts)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        correct, length, reference_length = np.moveaxis(totals, -1, 0)
        right = correct - np.maximum(0.0, length - reference_length)
        # Each word of a hypothesis of an empty reference is an error.
        return divide(right, reference_length, 1.0 + right)
