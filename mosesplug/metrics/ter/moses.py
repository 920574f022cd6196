"""TER, translation edit rate (Snover et al. 2006), as Moses counts it.

TER is the least number of insertions, deletions, substitutions and shifts of a block of words
that turn one sentence into the other, over the average number of words of the references. The
least number is too costly to find, so every program searches greedily for shifts, each with its
own limits, and counts differ between programs. Moses' search (its ``TER`` scorer is tercpp):

- It shifts the *reference* to look like the hypothesis, not the other way round.
- A block has up to 10 words and moves over up to 25. Of each round's shifts only the first 10 are
  tried, blocks in order of their first word.
- A round takes the shift that saves most, longer blocks first, and also one that saves nothing
  but its own cost. The search ends when no shift pays for itself.
- The edit distance leaves out paths that fall more than 10 errors behind the best one.

``TER-SACREBLEU`` (``ter_sacrebleu.py``) shifts the hypothesis, up to 50 words far, and tries all
shifts up to 1,000 a sentence: usually fewer errors are found, so scores are a little higher.

Statistics of a hypothesis, in Moses' order and units: 100 times the errors to the closest
reference, 100 times the average length of the references, and 100 times their quotient, which
serves people only; each cut to an integer as Moses cuts it (average lengths lose up to 0.01
words). The score of their sum is 1 minus the first by the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.encoding import EncodedHypotheses
from mosesplug.metrics.ter.shifts_moses import count_edits
from mosesplug.metrics.word_metric import WordMetric, WordReferences, checked_totals

__all__ = ["Ter"]


def _as_moses_writes(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """``values`` as integers: written with six significant digits, then cut at the point."""
    distinct, places = np.unique(values, return_inverse=True)
    cut = np.array([int(float(f"{value:.6g}")) for value in distinct.tolist()], dtype=np.int32)
    return cut[places.reshape(values.shape)]


@dataclass(frozen=True)
class Ter(WordMetric):
    """1 - TER as Moses counts it; see the module for how that differs from sacrebleu's."""

    name: ClassVar[str] = "TER"
    n_statistics: ClassVar[int] = 3
    statistics_names: ClassVar[tuple[str, ...]] = (
        "edits_x100",
        "reference_length_x100",
        "rate_x100",
    )

    def _count(
        self, references: WordReferences, hypotheses: EncodedHypotheses
    ) -> NDArray[np.int32]:
        n_references = references.n_references
        edits = count_edits(references.words, n_references, hypotheses).astype(np.float64)
        ends = references.words.token_offsets[::n_references]
        average = np.diff(ends)[hypotheses.sentence_ids] / n_references
        rates = (edits > 0).astype(np.float64)
        np.divide(edits, average, out=rates, where=average > 0)
        return _as_moses_writes(np.stack([edits, average, rates], axis=1) * 100.0)

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """1 - TER of ``totals`` ``[..., 3]``: float64 ``[...]``, at most 1; 1 without words."""
        totals = checked_totals(self.name, self.n_statistics, totals)
        rates = np.zeros(totals.shape[:-1])
        np.divide(totals[..., 0], totals[..., 1], out=rates, where=totals[..., 1] > 0)
        return np.asarray(1.0 - rates)
