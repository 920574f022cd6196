"""The gains of learning, a sequence that prints as tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import overload

import numpy as np

from mosesplug.api.table import ColumnType, Table, Tabular
from mosesplug.results.report.gains import render_gain, tabulate_gain
from mosesplug.results.scores.gains import Gain

__all__ = ["Gains"]

_COLUMNS: dict[str, ColumnType] = {
    "metric": "text",
    "is_objective": "int64",
    "start": "float64",
    "end": "float64",
    "difference": "float64",
    "p_bootstrap": "float64",
    "p_randomization": "float64",
}


class Gains(Sequence[Gain], Tabular):
    """The gains of learning on each kind of sentences.

    Args:
        records: the gains.
    """

    def __init__(self, records: Sequence[Gain] = ()) -> None:
        self._records = tuple(records)

    @overload
    def __getitem__(self, place: int) -> Gain: ...

    @overload
    def __getitem__(self, place: slice) -> Gains: ...

    def __getitem__(self, place: int | slice) -> Gain | Gains:
        if isinstance(place, slice):
            return Gains(self._records[place])
        return self._records[place]

    def __len__(self) -> int:
        return len(self._records)

    def __eq__(self, other: object) -> bool:
        return self._records == (other._records if isinstance(other, Gains) else other)

    def __hash__(self) -> int:
        return hash(self._records)

    def of_data(self, data: str) -> Gains:
        """Return those on one kind of sentences, such as ``held out``."""
        return Gains([gain for gain in self if gain.data == data])

    @property
    def table(self) -> Table:
        """One row for each kind of sentences (``data``) and metric.

        ``low`` and ``high`` are the ends of the 95 % interval of ``difference``; ``is_objective``
        is 1 for the metric that was optimized.
        """
        pairs = [(gain, metric) for gain in self for metric in gain.metrics]
        own = Table.of_records([metric for _, metric in pairs], _COLUMNS)
        intervals = np.array([metric.interval for _, metric in pairs]).reshape(-1, 2)
        return Table.of_columns(
            {
                "data": ("text", [gain.data for gain, _ in pairs]),
                "sentences": ("int64", np.array([g.sentences for g, _ in pairs], dtype=np.int64)),
                **{
                    name: (kind, list(own[name]) if kind == "text" else own[name])
                    for name, kind in _COLUMNS.items()
                },
                "low": ("float64", intervals[:, 0]),
                "high": ("float64", intervals[:, 1]),
            }
        )

    def __repr__(self) -> str:
        lines = ["\n".join(tabulate_gain(gain)) for gain in self]
        return "\n\n".join(lines) or "no gains: hold out sentences, or report other metrics"

    def _repr_html_(self) -> str:
        return "".join(map(render_gain, self)) or f"<p>{escape(repr(self))}</p>"
