"""Language model scores at phrase boundaries, each computed once per sentence.

Thousands of hypotheses share a few language model states, and many phrases begin with the same
words; only the first words of a phrase depend on the words before it.
"""

from __future__ import annotations

import numpy as np

from mosesplug.arrays import Bools, Floats, Ints, Ints32
from mosesplug.extras.phrase_decoder.model import Model


class Boundary:
    """A table of phrase scores by language model state, filled on demand.

    Args:
        pairs: int64 ``[n_options]``; the phrase pairs of a sentence.
    """

    def __init__(self, model: Model, pairs: Ints) -> None:
        self.language_model = model.language_model
        self.own_state = model.end_state[pairs]
        self.beginnings, beginning = np.unique(
            model.first_words[pairs], axis=0, return_inverse=True
        )
        self.beginning = beginning.reshape(-1)
        self.rows: dict[int, int] = {}
        self.score = np.zeros((0, len(self.beginnings)))
        self.after = np.zeros((0, len(self.beginnings)), dtype=np.int32)

    def extend(
        self, states: Ints32, hypothesis: Ints, option: Ints, final: Bools
    ) -> tuple[Floats, Ints32]:
        """Score each option's first words after a state, and return the next state.

        Args:
            states: int32 ``[n_hypotheses]``.
            hypothesis: int64 ``[m]``; positions in ``states``.
            option: int64 ``[m]``; positions in ``pairs``.
            final: bool ``[m]``; whether the sentence ends after the option, so that ``</s>`` is
                scored too.

        Returns:
            log probabilities, float64 ``[m]``, and states, int32 ``[m]``.
        """
        row = self._rows(states)[hypothesis]
        column = self.beginning[option]
        score = self.score[row, column]
        missing = np.isnan(score)
        if missing.any():
            self._fill(row[missing], column[missing])
            score = self.score[row, column]
        own = self.own_state[option]
        state = np.where(own >= 0, own, self.after[row, column])
        ends = np.flatnonzero(final)
        if len(ends):
            last, inverse = np.unique(state[ends], return_inverse=True)
            end_words = np.full(len(last), self.language_model.end_word, dtype=np.int32)
            more, after = self.language_model.advance(last, end_words)
            score[ends] += more[inverse]
            state[ends] = after[inverse]
        return score, state

    def _rows(self, states: Ints32) -> Ints:
        """Return the table row of each state; rows of new states are empty (NaN)."""
        rows = [self.rows.setdefault(state, len(self.rows)) for state in states.tolist()]
        lacking = len(self.rows) - len(self.score)
        if lacking > 0:
            # Grow by half, so that copies stay rare.
            new = np.full((lacking + len(self.rows) // 2, self.score.shape[1]), np.nan)
            self.score = np.concatenate([self.score, new])
            self.after = np.concatenate([self.after, np.zeros(new.shape, dtype=np.int32)])
        return np.array(rows, dtype=np.int64)

    def _fill(self, row: Ints, column: Ints) -> None:
        """Compute cells of the table; a cell may be listed more than once."""
        wanted = np.zeros(self.score.shape, dtype=np.bool_)
        wanted[row, column] = True
        row, column = np.nonzero(wanted)
        state = np.array(list(self.rows), dtype=np.int32)[row]
        score = np.zeros(len(row))
        for words in self.beginnings[column].T:
            longer = np.flatnonzero(words >= 0)
            more, after = self.language_model.advance(state[longer], words[longer])
            score[longer] += more
            state[longer] = after
        self.score[row, column] = score
        self.after[row, column] = state
