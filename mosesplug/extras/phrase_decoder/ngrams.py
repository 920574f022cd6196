"""Scores of sparse n-gram features across phrase boundaries.

Two hypotheses are recombined only if the same words end them, as many as n-grams can reach back to.
These words are a *history*; a search numbers its histories.
"""

from __future__ import annotations

import numpy as np

from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.extras.phrase_decoder.model import Model, weigh_sparse
from mosesplug.templates.derivation import Words
from mosesplug.templates.reading import split_words
from mosesplug.templates.template import BOS, EOS


class Ngrams:
    """A table of phrase scores by history, filled on demand.

    History 0 is the beginning of the sentence.

    Args:
        pairs: int64 ``[n_options]``; the phrase pairs of a sentence.
    """

    def __init__(self, model: Model, pairs: Ints) -> None:
        self.features = model.features
        self.orders = [(template, template.order) for template in model.features.ngrams]
        self.width = max(order for _, order in self.orders) - 1
        phrases: dict[Words, int] = {}
        self.phrase = np.array(
            [
                phrases.setdefault(split_words(b" ".join(model.target(pair))), len(phrases))
                for pair in pairs.tolist()
            ],
            dtype=np.int64,
        )
        self.phrases = list(phrases)
        self.histories: list[Words] = []
        self.numbers: dict[Words, int] = {}
        self._number((BOS,))
        self.cells: dict[int, tuple[float, int]] = {}

    def extend(self, history: Ints32, option: Ints, final: Bools) -> tuple[Floats, Ints32]:
        """Return the score of the n-grams that an option completes, and the next history.

        Args:
            history: int32 ``[m]``.
            option: int64 ``[m]``; positions in ``pairs``.
            final: bool ``[m]``; whether the sentence ends after the option.

        Returns:
            Weighted sums, float64 ``[m]``, and histories, int32 ``[m]``.
        """
        keys = (history * np.int64(len(self.phrases)) + self.phrase[option]) * 2 + final
        distinct, inverse = np.unique(keys, return_inverse=True)
        cells = [self._cell(key) for key in distinct.tolist()]
        scores = np.array([score for score, _ in cells])
        return scores[inverse], np.array([after for _, after in cells], dtype=np.int32)[inverse]

    def _cell(self, key: int) -> tuple[float, int]:
        cell = self.cells.get(key)
        if cell is None:
            place, is_final = divmod(key, 2)
            history, phrase = divmod(place, len(self.phrases))
            words = self.histories[history] + self.phrases[phrase]
            after = self._number(words)
            n_known = len(self.histories[history])
            score = self._score(words + (EOS,) * is_final, n_known)
            cell = self.cells[key] = (score, after)
        return cell

    def _score(self, words: Words, n_known: int) -> float:
        """Return the score of the n-grams that end behind the known words."""
        return sum(
            weigh_sparse(self.features, template.count_window(words[max(0, end - order) : end]))
            for template, order in self.orders
            for end in range(n_known + 1, len(words) + 1)
        )

    def _number(self, words: Words) -> int:
        """Return the number of the history that these words end with."""
        history = words[max(0, len(words) - self.width) :]
        number = self.numbers.setdefault(history, len(self.histories))
        if number == len(self.histories):
            self.histories.append(history)
        return number
