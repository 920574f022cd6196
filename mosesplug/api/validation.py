"""The scores of a cross-validation, as a table that prints."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from mosesplug.api.table import Table
from mosesplug.learning.cross_validation import CrossValidation

__all__ = ["ValidationTable"]


@dataclass(frozen=True, repr=False)
class ValidationTable(CrossValidation):
    """The result of a cross-validation, which prints as a table; ``cross_validate`` returns it."""

    @classmethod
    def of_result(cls, result: CrossValidation) -> ValidationTable:
        """Return a result that prints."""
        return cls(result.folds, result.start, result.held_out)

    @property
    def table(self) -> Table:
        """The scores of the folds: ``fold``, ``sentences``, ``learning`` and ``held_out``."""
        sentences = np.array([fold.sentences for fold in self.folds], dtype=np.int64)
        return Table.of_columns(
            {
                "fold": ("int64", np.arange(1, len(self.folds) + 1)),
                "sentences": ("int64", sentences),
                "learning": ("float64", np.array([fold.learning for fold in self.folds])),
                "held_out": ("float64", np.array([fold.held_out for fold in self.folds])),
            }
        )

    def __repr__(self) -> str:
        return f"{self._summary()}\n{self.table!r}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._summary())}</p>{self.table._repr_html_()}"

    def _summary(self) -> str:
        sentences = sum(fold.sentences for fold in self.folds)
        return (
            f"{len(self.folds)}-fold cross-validation of {sentences} sentences: "
            f"{self.held_out:.4f} held out, {self.start:.4f} with the starting weights"
        )
