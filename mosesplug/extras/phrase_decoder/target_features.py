"""Scores of sparse features of earlier target words: n-grams, target contexts.

Two hypotheses are recombined only if the same words end them, as many as these features can see.
These words are a *history*; a search numbers its histories. An *extension* is a phrase pair behind
a history, at the end of the sentence or not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.extras.phrase_decoder.model_file import ModelFeatures
from mosesplug.templates.derivation import Phrase, PhrasePair, Words
from mosesplug.templates.template import BOS, Counts, NgramTemplate


class TargetFeatures:
    """The features of extensions, and a table of scores that is filled on demand.

    History 0 is the beginning of the sentence.

    Args:
        options: the phrase pairs that apply to a sentence.
    """

    def __init__(self, features: ModelFeatures, options: Sequence[Phrase]) -> None:
        self.features = features
        self.templates = features.target_templates
        self.width = max(template.reach or 0 for template in self.templates)
        # n-grams do not tell phrase pairs with the same target words apart.
        only_words = all(isinstance(template, NgramTemplate) for template in self.templates)
        pairs: dict[PhrasePair, int] = {}
        self.pair = np.array(
            [
                pairs.setdefault(PhrasePair((), pair.target) if only_words else pair, len(pairs))
                for pair in (option.pair for option in options)
            ],
            dtype=np.int64,
        )
        self.pairs = list(pairs)
        self.histories: list[Words] = []
        self.numbers: dict[Words, int] = {}
        self._number_history((BOS,))
        self.cells: dict[int, tuple[float, int]] = {}

    def number(self, history: Ints32, option: Ints, final: Bools) -> Ints:
        """Return the numbers of extensions, int64 ``[m]``.

        Args:
            history: int32 ``[m]``.
            option: int64 ``[m]``; positions in ``options``.
            final: bool ``[m]``; whether the sentence ends after the option.
        """
        numbers: Ints = (history * np.int64(len(self.pairs)) + self.pair[option]) * 2 + final
        return numbers

    def extend(self, extensions: Ints) -> tuple[Floats, Ints32]:
        """Return scores, float64 ``[m]``, and the next histories, int32 ``[m]``."""
        distinct, inverse = np.unique(extensions, return_inverse=True)
        cells = [self._cell(number) for number in distinct.tolist()]
        scores = np.array([score for score, _ in cells])
        return scores[inverse], np.array([after for _, after in cells], dtype=np.int32)[inverse]

    def count(self, extension: int) -> Counts:
        """Return the values of the features that an extension adds, by name."""
        history, pair, is_final = self._split(extension)
        counts: Counts = {}
        for template in self.templates:
            counts.update(template.count_extension(history, pair, is_final=is_final))
        return counts

    def _cell(self, extension: int) -> tuple[float, int]:
        cell = self.cells.get(extension)
        if cell is None:
            history, pair, _ = self._split(extension)
            score = self.features.weigh(self.count(extension))
            cell = self.cells[extension] = (score, self._number_history(history + pair.target))
        return cell

    def _split(self, extension: int) -> tuple[Words, PhrasePair, bool]:
        """Return the history, the pair, and whether the sentence ends."""
        place, is_final = divmod(extension, 2)
        history, pair = divmod(place, len(self.pairs))
        return self.histories[history], self.pairs[pair], bool(is_final)

    def _number_history(self, words: Words) -> int:
        """Return the number of the history that these words end with."""
        history = words[max(0, len(words) - self.width) :]
        number = self.numbers.setdefault(history, len(self.histories))
        if number == len(self.histories):
            self.histories.append(history)
        return number
