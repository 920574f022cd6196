"""Tables of the gains of learning and of cross-validations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from mosesplug.api.tables.records import Records, Tabular, tabulate_records
from mosesplug.api.tables.table import Column, ColumnType, Table
from mosesplug.errors import count_noun
from mosesplug.learning.cross_validation import CrossValidation, Fold
from mosesplug.results.report.gains import render_gain, tabulate_gain
from mosesplug.results.scores.gains import Gain, MetricGain

_METRICS = "metric is_objective start end difference p_bootstrap p_randomization interval"


class Gains(Records[Gain]):
    """The gains of learning on each kind of sentences."""

    def of_data(self, data: str) -> Gains:
        """Return those on one kind of sentences, such as ``held out``."""
        return self._of([gain for gain in self if gain.data == data])

    @property
    def table(self) -> Table:
        """One row for each kind of sentences (``data``) and metric.

        ``low`` and ``high`` are the ends of the 95 % interval of ``difference``; ``is_objective``
        is 1 for the metric that was optimized.
        """
        pairs = [(gain, metric) for gain in self for metric in gain.metrics]
        sentences = np.array([gain.sentences for gain, _ in pairs], dtype=np.int64)
        data = [gain.data for gain, _ in pairs]
        front: dict[str, tuple[ColumnType, Column]] = {
            "data": ("text", data),
            "sentences": ("int64", sentences),
        }
        return tabulate_records(MetricGain, [metric for _, metric in pairs], _METRICS, front)

    def __repr__(self) -> str:
        lines = ["\n".join(tabulate_gain(gain)) for gain in self]
        return "\n\n".join(lines) or "no gains: hold out sentences, or report other metrics"

    def _repr_html_(self) -> str:
        return "".join(map(render_gain, self)) or f"<p>{escape(repr(self))}</p>"


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
        numbers = np.arange(1, len(self.folds) + 1)
        columns = "sentences learning held_out"
        return tabulate_records(Fold, self.folds, columns, {"fold": ("int64", numbers)})

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
