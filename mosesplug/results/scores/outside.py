"""Attach scores from outside to translations.

Scores are numbers for each sentence of each run of a system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError, quote
from formats.references import read_reference
from formats.scores import read_score_blocks
from formats.text import StrPath
from mosesplug.errors import DataError, UsageError
from mosesplug.results.scores.comparison import System
from mosesplug.results.scores.scores import Translation
from mosesplug.settings.scores.files import ScoreSource


def attach_scores(systems: Sequence[System], sources: Sequence[ScoreSource]) -> list[System]:
    """Return systems with scores of files, in columns of ``make_outside_metrics``.

    Args:
        sources: scores; each has one file for each run of each system, in their order.

    Raises:
        UsageError: another number of files.
        FormatError: a file cannot be read, or belongs to another translation.
        DataError: files have different numbers of sentences.
    """
    runs = sum(len(system.translations) for system in systems)
    columns = []
    for source in sources:
        if len(source.paths) != runs:
            raise UsageError(
                f"{{--scores}} {source.name} names {len(source.paths)} files: give "
                f"{source.name}=FILE,... with a file for each of the {runs} translations of the "
                f"systems {', '.join(system.name for system in systems)}, in their order"
            )
        paths = iter(source.paths)
        columns.append(
            [
                [
                    read_sentence_scores(next(paths), translation)
                    for translation in named.translations
                ]
                for named in systems
            ]
        )
    return attach_arrays(systems, columns)


def attach_arrays(
    systems: Sequence[System], columns: Sequence[Sequence[Sequence[NDArray[np.float64]]]]
) -> list[System]:
    """Return systems with scores ``columns[metric][system][run]``, each ``[n, k]``.

    Raises:
        DataError: arrays have different numbers of sentences.
    """
    if not columns:
        return list(systems)
    length = len(columns[0][0][0])
    for column in columns:
        width = column[0][0].shape[1]
        for system, runs in zip(systems, column, strict=True):
            for run in runs:
                if run.shape[1] != width:
                    raise DataError(
                        f"{run.shape[1]} numbers for each sentence of the system {system.name}, "
                        f"but {width} of {systems[0].name}: give the same columns"
                    )
                if len(run) != length:
                    raise DataError(
                        f"{len(run)} scores of the system {system.name}, but {length} of "
                        f"{systems[0].name}: give one for each sentence"
                    )
    return [
        replace(
            system,
            outside=tuple(
                np.concatenate([column[place][run] for column in columns], axis=1)
                for run in range(len(system.translations))
            ),
        )
        for place, system in enumerate(systems)
    ]


def read_sentence_scores(path: StrPath, translation: Translation) -> NDArray[np.float64]:
    """Return the scores of the sentences of a translation, float64 ``[n, k]``.

    Raises:
        FormatError: the file cannot be read, or has other sentences than the translation.
    """
    lines = (
        translation
        if isinstance(translation, Sequence) and not isinstance(translation, str)
        else read_reference(translation)
    )
    parts: list[NDArray[np.float64]] = []
    remedy = "Give the scores of this translation, a line for each sentence"
    count = 0
    for rows in read_score_blocks(path):
        for place in range(len(rows)):
            number = count + place
            if number >= len(lines):
                raise FormatError(
                    f"a score without a sentence: the translation has {len(lines)} lines",
                    path=rows.path, line=rows.first + place, remedy=remedy,
                )  # fmt: skip
            if rows.ids is not None and rows.ids[place] != b"%d" % number:
                raise FormatError(
                    f"the sentence is {quote(rows.ids[place])}, not '{number}'",
                    path=rows.path, line=rows.first + place, remedy=remedy,
                )  # fmt: skip
            if rows.texts is not None and rows.texts[place] != lines[number].strip():
                raise FormatError(
                    f"the text is {quote(rows.texts[place])}, but the translation has "
                    f"{quote(lines[number].strip())}",
                    path=rows.path, line=rows.first + place, remedy=remedy,
                )  # fmt: skip
        count += len(rows)
        parts.append(rows.values)
    if count != len(lines):
        raise FormatError(
            f"{count} scores, but the translation has {len(lines)} lines", path=path, remedy=remedy
        )
    return np.concatenate(parts)
