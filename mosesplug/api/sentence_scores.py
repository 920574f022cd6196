"""Scores from outside of the sentences of systems, as a caller has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from mosesplug.api.statistics import convert_named_scores
from mosesplug.errors import UsageError
from mosesplug.learning.lists.outside import ScoreStep, make_outside_metrics
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.results.scores.comparison import System
from mosesplug.results.scores.outside import attach_arrays, read_sentence_scores
from mosesplug.results.scores.scores import Translation
from mosesplug.settings.scores import ScoreSource

__all__ = ["attach_named_scores", "attach_to_block", "read_columns"]


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
    given = [values] if len(runs) == 1 and not _holds_runs(values) else values
    if isinstance(given, str | PathLike) or len(given) != len(runs):
        raise UsageError(f"{what} must be a list with the scores of each of {len(runs)} runs")
    return [_convert_run(each, run, key, what) for each, run in zip(given, runs, strict=True)]


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
