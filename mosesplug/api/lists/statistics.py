"""Scores and statistics of hypotheses and sentences, as a caller has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from mosesplug.api.numbers import check_column, convert_numbers
from mosesplug.errors import DataError, UsageError
from mosesplug.learning.lists.outside import make_outside_metrics
from mosesplug.learning.lists.steps import ScoreStep
from mosesplug.metrics.outside import OutsideMetric, divide_sums
from mosesplug.metrics.protocol import PreparedReferences, UnsmoothedMetric
from mosesplug.results.scores.comparison import System
from mosesplug.results.scores.outside import attach_arrays, read_sentence_scores
from mosesplug.results.scores.scores import Translation
from mosesplug.settings.scores.files import ScoreSource, split_marks

_LARGEST_COUNT = 1 << 30
"""Counts up to this size are int32; differences of two of them must fit."""


@dataclass(frozen=True)
class StatisticsMetric(UnsmoothedMetric):
    """A metric that is a function of summed statistics, which are given as an array.

    Give ``optimize`` the statistics of each hypothesis, ``statistics=``. The corpus score of a
    choice of hypotheses is ``score_function(sum of their statistics)``, and the score of a single
    sentence ``score_function(its statistics)``.

    Args:
        score_function: ``[..., n_statistics]``, float64, to ``[...]``. It must return a finite
            number for every sum, and be larger for better output unless ``is_error_rate``.
        name: the name in signatures and messages.
        is_error_rate: whether less is better. Scores are 1 minus the rate, then.
        columns: names of the statistics.

    Example:
        >>> import mosesplug
        >>> accuracy = mosesplug.StatisticsMetric(lambda totals: totals[..., 0] / totals[..., 1])
        >>> fit = mosesplug.optimize(
        ...     features=[[1.0, 0.2], [0.5, 0.9], [0.3, 0.1], [0.1, 0.8]],
        ...     sentence_ids=["first", "first", "second", "second"],
        ...     statistics=[[1, 4], [3, 4], [0, 2], [2, 2]],
        ...     metric=accuracy,
        ... )
        >>> fit.choose([[0.5, 0.6], [0.6, 0.5]], ["third", "third"]).tolist()
        [0]
        >>> round(fit.score, 4)
        0.8333
    """

    score_function: Callable[[NDArray[np.float64]], Any]
    name: str = "STATISTICS"
    is_error_rate: bool = False
    columns: tuple[str, ...] = ()

    @property
    def n_statistics(self) -> int:
        """Number of statistics of one hypothesis."""
        return len(self.columns)

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Name of each statistic."""
        return self.columns

    def signature(self) -> str:
        """Name and statistics."""
        rate = "|rate:yes" if self.is_error_rate else ""
        return f"{self.name}|statistics:{'+'.join(self.columns)}{rate}"

    def prepare(self, references: Sequence[Sequence[bytes]]) -> PreparedReferences:
        """Refuse references.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"the metric {self.name} has no references: give statistics= for each hypothesis"
        )

    def statistics(
        self,
        prepared: PreparedReferences,
        sentence_ids: NDArray[np.int64],
        buffer: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        threads: int = 1,
    ) -> NDArray[np.int32]:
        """Refuse texts.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"the metric {self.name} scores no texts: give statistics=")

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of summed statistics.

        Totals ``[..., n_statistics]`` give scores float64 ``[...]``.

        Raises:
            UsageError: the score function returns another shape.
            DataError: it returns a number that is not finite.
        """
        totals = np.asarray(totals, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.asarray(self._apply(totals), dtype=np.float64)
        if scores.shape != totals.shape[:-1]:
            raise UsageError(
                f"the score function of {self.name} returned the shape {scores.shape} for totals "
                f"{totals.shape}: use their last axis, as totals[..., 0]"
            )
        if not np.isfinite(scores).all():
            place = np.unravel_index(np.argmin(np.isfinite(scores)), scores.shape)
            raise DataError(
                f"the score function of {self.name} returned {scores[place]} for the totals "
                f"{totals[place].tolist()}: return a finite number for every sum"
            )
        return 1.0 - scores if self.is_error_rate else scores

    def _apply(self, totals: NDArray[np.float64]) -> Any:
        try:
            return self.score_function(totals)
        except Exception as error:
            raise UsageError(
                f"the score function of {self.name} failed on totals {totals.shape} "
                f"({type(error).__name__}: {error}): it gets many sums at once, use their last "
                "axis, as totals[..., 0]"
            ) from error


def convert_scores(scores: Any, count: int) -> tuple[StatisticsMetric, NDArray[np.float64]]:
    """Return scores as statistics, with a metric that is their mean.

    The mean is that of the chosen hypotheses.

    Args:
        scores: ``[count]``, one number for each hypothesis; larger is better.
        count: number of hypotheses.

    Raises:
        UsageError: a wrong shape.
        DataError: a score is not finite.
    """
    column = check_column(scores, "scores", count)
    metric = StatisticsMetric(divide_sums, "MEAN-SCORE", columns=("score", "hypotheses"))
    return metric, np.column_stack([column, np.ones(count)])


def convert_named_scores(
    scores: Mapping[str, Any], what: str = "scores", count: int | None = None
) -> tuple[ScoreSource, ...]:
    """Return scores by name as the sources of metrics.

    Args:
        scores: the scores by name, or ``NAME:error`` and ``NAME:ratio``: ``[n]`` or ``[n, k]``
            numbers, or a file or a tuple of files.
        what: the argument, for messages.
        count: number of hypotheses; None if it is not known yet.

    Raises:
        UsageError: a wrong shape or type.
        DataError: a value is not finite.
    """
    sources = []
    for key, values in scores.items():
        if not isinstance(key, str):
            raise UsageError(f"{what} has the key {key!r}: give the name of a metric, as 'COMET'")
        name, source = split_marks(key)
        source = replace(source, name=name)
        if isinstance(values, str | PathLike):
            values = (values,)
        if (
            isinstance(values, tuple)
            and values
            and all(isinstance(value, str | PathLike) for value in values)
        ):
            sources.append(replace(source, paths=tuple(map(Path, values))))
            continue
        array = convert_numbers(values, f"{what}[{key!r}]")
        rows = array.astype(np.float64).reshape(len(array), -1) if array.ndim in (1, 2) else None
        if rows is None or not rows.shape[1] or (count is not None and len(rows) != count):
            wanted = "hypothesis" if count is None else f"of {count} hypotheses"
            raise UsageError(
                f"{what}[{key!r}] has the shape {array.shape}: give a number for each {wanted}"
            )
        if not np.isfinite(rows).all():
            place = int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise DataError(f"{what}[{key!r}][{place}] is {array[place]}: give finite numbers")
        sources.append(replace(source, values=rows))
    if not sources:
        raise UsageError(f"{what} is empty: give an array for each metric")
    return tuple(sources)


def convert_statistics(statistics: Any, count: int) -> NDArray[np.int32] | NDArray[np.float64]:
    """Return the statistics as an array ``[count, n_statistics]``.

    Counts become int32, other numbers float64.

    Raises:
        UsageError: a wrong shape or type.
        DataError: a value is not finite.
    """
    values = convert_numbers(statistics, "statistics")
    if values.ndim != 2 or len(values) != count or not values.shape[1]:
        raise UsageError(
            f"statistics has the shape {values.shape}: give [n_hyps, n_statistics] for {count} "
            "hypotheses"
        )
    if values.dtype.kind != "f" and (np.abs(values.astype(np.float64)) <= _LARGEST_COUNT).all():
        return values.astype(np.int32)
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        row, column = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise DataError(
            f"statistics[{row}, {column}] is {numbers[row, column]}: give finite numbers"
        )
    return numbers


def attach_named_scores(
    systems: Sequence[System], scores: Mapping[str, Mapping[str, Any]]
) -> tuple[list[System], tuple[OutsideMetric, ...]]:
    """Return systems with their scores, and the metrics of these.

    Args:
        systems: the systems.
        scores: see ``compare``.

    Raises:
        UsageError: a system has no scores, or they have another shape.
        DataError: a value is not finite, or the numbers of sentences differ.
        FormatError: a file cannot be read.
    """
    sources: list[ScoreSource] = []
    columns = []
    for key, of_systems in scores.items():
        what = f"scores[{key!r}]"
        if not isinstance(of_systems, Mapping):
            raise UsageError(f"{what} is not a mapping: give the scores of each system by its name")
        names = [system.name for system in systems]
        for name in of_systems:
            if name not in names:
                raise UsageError(f"{what} names {name!r}; the systems are {', '.join(names)}")
        column = []
        for system in systems:
            if system.name not in of_systems:
                raise UsageError(f"{what} has no scores of the system {system.name}")
            place = f"{what}[{system.name!r}]"
            column.append(_convert_runs(of_systems[system.name], system, key, place))
        sources += convert_named_scores({key: column[0][0]}, "scores")
        columns.append(column)
    return attach_arrays(systems, columns), make_outside_metrics(sources)


def attach_to_block(block: NBestList, sources: Sequence[ScoreSource]) -> NBestList:
    """Return n-best lists with scores of their hypotheses.

    Raises:
        FormatError: the number of scores differs, or a file cannot be read.
    """
    if not sources:
        return block
    step = ScoreStep(sources, SentenceIds())
    attached = step.apply(block)
    step.finish()
    return attached


def read_columns(sources: Sequence[ScoreSource], translation: Translation) -> NDArray[np.float64]:
    """Return scores of the sentences of a translation, float64 ``[n_sentences, k]``.

    Raises:
        UsageError: another number of scores.
        FormatError: a file cannot be read.
    """
    columns = [
        np.asarray(source.values, dtype=np.float64)
        if source.values is not None
        else np.concatenate([read_sentence_scores(path, translation) for path in source.paths])
        for source in sources
    ]
    count = len(columns[0])
    if not isinstance(translation, str | PathLike):
        count = len(translation)
    for source, column in zip(sources, columns, strict=True):
        if len(column) != count:
            raise UsageError(f"{source.place} has {len(column)} numbers for {count} sentences")
    return np.concatenate(columns, axis=1)


def _convert_runs(values: Any, system: System, key: str, what: str) -> list[NDArray[np.float64]]:
    """Return the scores of each run of a system."""
    runs = system.translations
    of_runs = [values] if len(runs) == 1 and not _holds_runs(values) else values
    if isinstance(of_runs, str | PathLike) or len(of_runs) != len(runs):
        raise UsageError(f"{what} must be a list with the scores of each of {len(runs)} runs")
    return [_convert_run(name, run, key, what) for name, run in zip(of_runs, runs, strict=True)]


def _holds_runs(values: Any) -> bool:
    """Return whether values are a list of one file or array, rather than numbers."""
    if not isinstance(values, list | tuple) or len(values) != 1:
        return False
    return isinstance(values[0], str | PathLike | np.ndarray)


def _convert_run(values: Any, translation: Translation, key: str, what: str) -> NDArray[np.float64]:
    if isinstance(values, str | PathLike):
        return read_sentence_scores(values, translation)
    count = None
    if not isinstance(translation, str | PathLike):
        count = len(translation)
    (source,) = convert_named_scores({key: values}, what, count)
    return np.asarray(source.values, dtype=np.float64)
