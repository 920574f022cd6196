"""TER as sacrebleu 2 and Tercom compute it: ``TER-SACREBLEU``.

Blocks of up to 10 words of the *hypothesis* move over up to 50 words. A round tries all such
shifts, up to 1,000 per sentence, and applies the one that saves most errors, as long as it saves
any. Statistics and scores equal those of sacrebleu's ``TER`` with ``normalized=False,
no_punct=False`` and ``case_sensitive=True``; words are separated by all whitespace of Unicode.
``moses.py`` lists the differences to Moses' TER.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.blanks import separate_words
from mosesplug.metrics.encoding import EncodedHypotheses
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.plain import split_hypotheses, split_words
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.ter.shifts_sacrebleu import count_edits
from mosesplug.metrics.tokenizers import Tokenization
from mosesplug.metrics.word_metric import WordMetric, WordReferences


@dataclass(frozen=True)
class TerSacrebleu(WordMetric):
    """1 - TER as sacrebleu computes it.

    Statistics: the edits to the closest reference times the number of references, and the number of
    words in all references. Their quotient equals edits divided by average reference length, which
    is not an integer. If all references are empty, the score is 1 for empty output and 0 otherwise.
    """

    name: ClassVar[str] = "TER-SACREBLEU"
    statistics_names: ClassVar[tuple[str, ...]] = ("edits_x_references", "reference_words")

    def _splitting(self) -> Tokenization:
        return Tokenization(self.tokenizer, self.lowercase, separate_words)

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        n_references = references.n_references
        edits = count_edits(references.words, n_references, hypotheses)
        lengths = np.diff(references.words.token_offsets[::n_references])
        words = lengths[hypotheses.sentence_ids]
        counts[:, 0], counts[:, 1] = edits * n_references, words

    _plain_allowance: ClassVar[float] = 800_000
    """Pairs of a word of the hypothesis and one of the reference, since that is what takes time."""

    def _count_few(
        self, references: WordReferences, hypotheses: HypothesisRanges
    ) -> NDArray[np.int32] | None:
        """Count with sacrebleu itself, unless compiling and running kernels is faster."""
        lines = references.lines
        lengths = np.array([[len(text) for text in reference] for reference in lines.references])
        sizes = lengths.max(axis=0, initial=0)[hypotheses.sentence_ids]
        # Words have some five bytes, with the blank.
        pairs = float(np.sum((hypotheses.ends - hypotheses.starts) * sizes)) / 25
        if not lines.allowance.take(pairs * references.n_references):
            return None
        from sacrebleu.metrics.lib_ter import translation_edit_rate

        rows = []
        for sentence, text in split_hypotheses(hypotheses):
            hypothesis = _letters(split_words(text, lines.fold))
            split = [_letters(words) for words in lines.split(sentence)]
            edits = min(translation_edit_rate(hypothesis, reference)[0] for reference in split)
            rows.append((edits * len(split), sum(map(len, split))))
        return np.reshape(rows, (len(rows), self.n_statistics)).astype(np.int32)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1.0 - divide(totals[..., 0], totals[..., 1], totals[..., 0] > 0))


def _letters(words: list[bytes]) -> list[str]:
    """Return different strings for different words."""
    return [word.decode("latin-1") for word in words]
