"""The result of a cross-validation, which prints as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from mosesplug.api.gains import Gains
from mosesplug.api.table import Table, Tabular
from mosesplug.errors import count_noun
from mosesplug.learning.cross_validation import CrossValidation
from mosesplug.results.scores.gains import Gain

__all__ = ["ValidationTable"]


@dataclass(frozen=True, repr=False)
class ValidationTable(CrossValidation, Tabular):
    """The result of a cross-validation, which prints as a table.

    ``cross_validate`` returns it.

    Attributes:
        gains: what learning has gained on all sentences, each decided with weights of the other
            folds, by the objective and by ``report_metrics``; empty for search graphs.
    """

    gains: Gains = field(default_factory=Gains)

    @classmethod
    def of_result(cls, result: CrossValidation, gains: Sequence[Gain] = ()) -> ValidationTable:
        """Return a result that prints."""
        return cls(result.folds, result.start, result.held_out, Gains(gains))

    @property
    def table(self) -> Table:
        """The scores of the folds: ``fold``, ``sentences``, ``learning`` and ``held_out``."""
        return Table.of_columns(
            {
                "fold": ("int64", np.arange(1, len(self.folds) + 1)),
                "sentences": ("int64", np.array([fold.sentences for fold in self.folds])),
                "learning": ("float64", np.array([fold.learning for fold in self.folds])),
                "held_out": ("float64", np.array([fold.held_out for fold in self.folds])),
            }
        )

    def __repr__(self) -> str:
        gains = f"\n\n{self.gains!r}" if self.gains else ""
        return f"{self._summary()}\n{self.table!r}{gains}"

    def _repr_html_(self) -> str:
        gains = self.gains._repr_html_() if self.gains else ""
        return f"<p>{escape(self._summary())}</p>{self.table._repr_html_()}{gains}"

    def _summary(self) -> str:
        sentences = sum(fold.sentences for fold in self.folds)
        return (
            f"{len(self.folds)}-fold cross-validation of {count_noun(sentences, 'sentence')}: "
            f"{self.held_out:.4f} held out, {self.start:.4f} with the starting weights"
        )
