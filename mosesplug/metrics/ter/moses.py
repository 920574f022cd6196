"""TER, translation edit rate (Snover et al. 2006), as Moses computes it.

TER is the minimum number of insertions, deletions, substitutions and block shifts that turn one
sentence into the other, divided by the average number of reference words. The exact minimum is
too expensive, so programs search greedily for shifts, with different limits and results. Moses'
search (its ``TER`` scorer is tercpp):

- It shifts blocks of the *reference*, not of the hypothesis.
- A block has up to 10 words and moves over up to 25 words. A round tries only the first 10 shifts,
  in the order of the first word of the block.
- A round applies the shift that saves most errors, longer blocks first, even if it saves only its
  own cost. The search ends when no shift saves its cost.
- The edit distance ignores paths with over 10 errors more than the best one.

``TER-SACREBLEU`` (``sacrebleu.py``) shifts blocks of the hypothesis over up to 50 words, and tries
up to 1,000 shifts per sentence. It usually finds fewer errors, so its scores are slightly higher.

Statistics of a hypothesis, in Moses' order and units: 100 times the errors to the closest
reference, 100 times the average length of the references, and 100 times their quotient, which is
for information only. Each is truncated to an integer as in Moses (average lengths lose up to 0.01
words). The score of their sum is 1 minus the first divided by the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.encoding import EncodedHypotheses
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.ter.shifts_moses import count_edits
from mosesplug.metrics.word_metric import WordMetric, WordReferences


def _as_moses_writes(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """Round ``values`` to six significant digits, then truncate them to integers."""
    distinct, places = np.unique(values, return_inverse=True)
    cut = np.array([int(float(f"{value:.6g}")) for value in distinct.tolist()], dtype=np.int32)
    return cut[places.reshape(values.shape)]


@dataclass(frozen=True)
class Ter(WordMetric):
    """1 - TER as Moses computes it; the module lists differences to sacrebleu."""

    name: ClassVar[str] = "TER"
    statistics_names: ClassVar[tuple[str, ...]] = (
        "edits_x100",
        "reference_length_x100",
        "rate_x100",
    )

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        n_references = references.n_references
        edits = count_edits(references.words, n_references, hypotheses).astype(np.float64)
        ends = references.words.token_offsets[::n_references]
        average = np.diff(ends)[hypotheses.sentence_ids] / n_references
        rates = divide(edits, average, edits > 0)
        counts[:] = _as_moses_writes(np.stack([edits, average, rates], axis=1) * 100.0)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        # Without words in the references, the rate is that of one hypothesis: 1 for any edits.
        return np.asarray(1.0 - divide(totals[..., 0], totals[..., 1], totals[..., 0] > 0))
