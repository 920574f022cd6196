"""CER, character error rate: edits of characters per character of the reference.

A character is a Unicode code point in UTF-8, or a byte that is not part of valid UTF-8. Blanks
count, as in jiwer: each of them, but none at the ends of a sentence. Where ``normalize:punct``
deletes punctuation marks between blanks, several blanks count as one. ``blanks:remove`` takes them
out, for languages that write none and for lists whose words were separated by a tokenizer.

Statistics of a hypothesis: errors, and characters of the reference. The score of their sum is 1
minus their quotient; see ``divide_errors`` for an empty reference. With several references, the one
with the lowest error rate of a hypothesis counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics.characters import BlankTreatment, space_out, space_out_lines
from mosesplug.metrics.edit.distance import count_errors
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.reference_metric import divide_errors
from mosesplug.metrics.tokenizers import Tokenization
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses

Blanks = Literal["keep", "remove"]


@dataclass(frozen=True)
class _Characters(Tokenization):
    """Characters as words.

    Attributes:
        blanks: whether blanks are characters.
        merges_blanks: whether several blanks are one character.
    """

    blanks: Blanks = "keep"
    merges_blanks: bool = False

    @property
    def _treatment(self) -> BlankTreatment:
        return "merge" if self.merges_blanks and self.blanks == "keep" else self.blanks

    def signature(self) -> str:
        return f"case:{'lc-ascii' if self.fold else 'mixed'}|blanks:{self.blanks}"

    def references(self, references: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes]]:
        return [space_out_lines(lines, blanks=self._treatment) for lines in references]

    def hypotheses(self, hypotheses: HypothesisRanges) -> HypothesisRanges:
        return space_out(hypotheses, blanks=self._treatment)


@dataclass(frozen=True)
class Cer(WordMetric):
    """1 - CER.

    Attributes:
        blanks: whether the blanks between words count as characters.
    """

    blanks: Blanks = field(default="keep", kw_only=True)

    name: ClassVar[str] = "CER"
    statistics_names: ClassVar[tuple[str, ...]] = ("errors", "reference_length")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.blanks not in get_args(Blanks):
            raise UsageError(f"blanks of CER must be keep or remove, not {self.blanks!r}")
        if self.tokenizer != "none":
            raise UsageError("CER compares characters: it has no tokenizer")

    def _splitting(self) -> Tokenization:
        # Deleted punctuation marks leave the blanks on both sides behind.
        merges = "punct" in self.normalization.steps
        return _Characters("none", self.lowercase, blanks=self.blanks, merges_blanks=merges)

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        count_errors(references.words, references.n_references, hypotheses, counts)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1.0 - divide_errors(totals[..., 0], totals[..., 1]))
