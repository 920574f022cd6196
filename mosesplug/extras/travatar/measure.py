"""The interface of all evaluation measures of Travatar.

A measure has statistics, their text form, and a score. A measure is a metric of mosesplug whose
statistics have Travatar's columns, so that files of statistics can be exchanged. There is one
reference. Settings are spelled as Travatar spells them: ``bleu:order=4,smooth=1``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.protocol import Metric, PreparedReferences, UnsmoothedMetric

_COLUMN_SEPARATOR = b" |COL| "
"""Separates the factors of a sentence, such as words and part-of-speech tags."""


@dataclass(frozen=True)
class Texts:
    """Hypotheses and the references that they are compared with.

    Attributes:
        sentence_ids: int64 ``[n]``; the line of the reference of each hypothesis.
        references: one for each line of the file of references.
    """

    sentence_ids: Ints
    hypotheses: Sequence[bytes]
    references: Sequence[bytes]

    def __post_init__(self) -> None:
        beyond = self.sentence_ids >= len(self.references)
        if beyond.any():
            raise DataError(
                f"sentence {int(self.sentence_ids[np.argmax(beyond)])} has no reference: the "
                f"references have {len(self.references)} lines, for sentences counted from 0. "
                "Check that n-best list and references belong together"
            )

    @property
    def ranges(self) -> HypothesisRanges:
        """The hypotheses as ranges of one text."""
        return HypothesisRanges.of_lines(self.hypotheses, self.sentence_ids)

    def factor(self, number: int) -> Texts:
        """Return the texts of one factor."""
        if number == 0 and not any(_COLUMN_SEPARATOR in text for text in self.references):
            return self

        def pick(texts: Sequence[bytes], what: str) -> list[bytes]:
            found = []
            for place, text in enumerate(texts):
                factors = text.split(_COLUMN_SEPARATOR)
                if number >= len(factors):
                    raise DataError(
                        f"factor={number} in -eval, but {what} {place} has {len(factors)} factors: "
                        "factors are counted from 0 and separated by ' |COL| '"
                    )
                found.append(factors[number])
            return found

        return Texts(
            self.sentence_ids,
            pick(self.hypotheses, "hypothesis"),
            pick(self.references, "reference"),
        )


class Measure(UnsmoothedMetric):
    """An evaluation measure of Travatar.

    It is a metric whose statistics have Travatar's columns.
    """

    @property
    @abstractmethod
    def spelling(self) -> str:
        """The measure with its settings as in ``-eval``."""

    @property
    @abstractmethod
    def statistics_names(self) -> tuple[str, ...]:
        """Name of each statistic."""

    @property
    def n_statistics(self) -> int:
        """Number of statistics of one hypothesis."""
        return len(self.statistics_names)

    @abstractmethod
    def count(self, texts: Texts, threads: int = 1) -> Floats:
        """Return the statistics of each hypothesis, float64 ``[n, n_statistics]``."""

    @property
    def minimizing_spelling(self) -> str | None:
        """The reversed measure of an error rate that would be maximized, or None."""
        return None

    def convert(self, stats: Floats) -> tuple[Metric, NDArray[Any]]:
        """Return the metric of mosesplug with the same score, and its statistics.

        Some algorithms know more of mosesplug's own metrics: smoothed sentence scores, expected
        counts. A measure without such a metric returns itself.

        Args:
            stats: float64 ``[n, n_statistics]``.
        """
        return self, stats

    def parse(self, line: bytes, path: str, number: int) -> list[float]:
        """Parse one line of a file of statistics."""
        values = [parse_number(word) for word in line.split()]
        if len(values) == self.n_statistics and np.isfinite(values).all():
            return values
        raise FormatError(
            f"{quote(line.strip())} is not {self.n_statistics} finite numbers",
            path=path,
            line=number,
            remedy=f"Statistics of -eval {self.spelling} are: {' '.join(self.statistics_names)}",
        )

    def format(self, row: Sequence[float]) -> str:
        """Format the statistics of one hypothesis as Travatar does: 6 significant digits."""
        return " ".join(f"{value:g}" for value in row)

    def signature(self) -> str:
        """The measure with its settings."""
        return self.spelling

    def prepare(self, references: Sequence[Sequence[bytes]]) -> PreparedReferences:
        """Refuse references: ``count`` takes texts."""
        self._refuse()

    def statistics(
        self,
        prepared: PreparedReferences,
        sentence_ids: Ints,
        buffer: NDArray[np.uint8],
        starts: Ints,
        ends: Ints,
        *,
        threads: int = 1,
    ) -> Ints32:
        """Refuse hypotheses: ``count`` takes texts."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(
            f"{self.spelling} is computed from texts and a single reference: use count"
        )


@dataclass(frozen=True)
class Average(Measure):
    """A measure whose score is the sum of one statistic divided by the sum of another.

    Attributes:
        measure: the name and settings, as in ``-eval``.
        counter: ``(texts, threads) -> float64 [n, 2]``.
        columns: names of the two statistics.
        is_rate: whether the quotient is an error rate.
        is_reversed: whether the score is 1 minus the quotient.
        reverse_setting: the setting that reverses it, as ``reverse=true``.
    """

    measure: str
    counter: Callable[[Texts, int], Floats]
    columns: tuple[str, str] = ("value", "count")
    is_rate: bool = False
    is_reversed: bool = False
    reverse_setting: str = ""

    @property
    def name(self) -> str:
        """The measure's name."""
        return self.measure.partition(":")[0]

    @property
    def spelling(self) -> str:
        """The measure with its settings as in ``-eval``."""
        return self.measure

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Name of each statistic."""
        return self.columns

    @property
    def minimizing_spelling(self) -> str | None:
        """The reversed measure, if this one is an error rate that would be maximized."""
        if not self.is_rate or self.is_reversed:
            return None
        return f"{self.name}:{self.reverse_setting}"

    def count(self, texts: Texts, threads: int = 1) -> Floats:
        """Return the statistics of each hypothesis, float64 ``[n, 2]``."""
        return self.counter(texts, threads)

    def score(self, totals: NDArray[Any]) -> Floats:
        """Return the quotient of the sums, 0 if the divisor is 0; float64 ``[...]``."""
        values, counts = np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)
        found = np.zeros(values.shape)
        np.divide(values, counts, out=found, where=counts != 0.0)
        return 1.0 - found if self.is_reversed else found

    def linear(self, stats: Floats) -> tuple[Average, Floats]:
        """Return a sentence measure whose mean is the score, and its statistics.

        The score of a corpus is the sum of the values by the sum of the counts. So the share of a
        sentence is its value by the mean count, if counts do not depend on the choice of hypotheses
        (and else approximately).
        """
        mean = float(stats[:, 1].mean()) or 1.0
        return self, np.column_stack([stats[:, 0] / mean, np.ones(len(stats))])


def parse_settings(measure: str, text: str) -> dict[str, str]:
    """Parse ``order=4,smooth=1``.

    Raises:
        UsageError: a piece is not ``name=value``.
    """
    parsed = {}
    for piece in text.split(",") if text else ():
        fields = piece.split("=")
        if len(fields) != 2 or not all(fields):
            raise UsageError(f"-eval {measure}: {piece!r} is not of the form name=value")
        parsed[fields[0]] = fields[1]
    return parsed


def refuse_settings(measure: str, settings: Mapping[str, str], known: Sequence[str]) -> None:
    """Raise UsageError for a setting that the measure does not have."""
    for name in settings:
        if name not in known:
            raise UsageError(f"-eval {measure} has no setting {name}: it has {', '.join(known)}")


def parse_choice(settings: Mapping[str, str], name: str, values: Sequence[str]) -> str:
    """Return the value of a setting, by default the first."""
    value = settings.get(name, values[0])
    if value not in values:
        raise UsageError(f"-eval: {name}={value} must be one of {', '.join(values)}")
    return value


def parse_integer(settings: Mapping[str, str], name: str, default: int, least: int) -> int:
    """Return an integer setting.

    Raises:
        UsageError: no integer, or too small.
    """
    value = settings.get(name, str(default))
    if not (value.isascii() and value.isdigit() and int(value) >= least):
        raise UsageError(f"-eval: {name}={value} must be an integer, at least {least}")
    return int(value)


def parse_real(settings: Mapping[str, str], name: str, default: float) -> float:
    """Return a setting that is a number.

    Raises:
        UsageError: not a finite number.
    """
    value = parse_number(settings.get(name, repr(default)).encode())
    if not np.isfinite(value):
        raise UsageError(f"-eval: {name}={settings[name]} must be a number")
    return value
