"""Metrics of scores from outside, and their values for the hypotheses of a store.

``steps.ScoreStep`` attaches the columns to lists that are read from files. The lists of a store
have no lines, and the order in which they are exported depends on weights that may change. So each
line of a file of scores names its hypothesis there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError, quote
from formats.scores import read_score_blocks, read_score_width
from mosesplug.errors import DataError, UsageError, count_noun
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.outside import (
    OutsideMetric,
    combine_fingerprints,
    find_formula_of_width,
)
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.scores.files import ScoreSource
from mosesplug.store import fingerprint_files


def make_outside_metrics(
    sources: Sequence[ScoreSource], *, fingerprints: bool = False
) -> tuple[OutsideMetric, ...]:
    """Return the metric of each source; its columns are those of ``ScoreStep``.

    ``fingerprints`` says whether to read the files for their fingerprints, which a store needs that
    is kept.
    """
    metrics = []
    first = 0
    for source, width in zip(sources, _find_widths(sources), strict=True):
        formula = source.formula or find_formula_of_width(width)
        if formula is None or formula.width != width:
            raise UsageError(
                f"{source.place}: {count_noun(width, 'number')} for each hypothesis, but "
                + (
                    "mean takes 1 and ratio 2. If they are the statistics of a metric, name it, as "
                    f"in {source.name}=FILE:BLEU"
                    if formula is None or formula.metric is None
                    else f"{formula.name} takes {formula.describe()}"
                )
            )
        fingerprint = ""
        if fingerprints:
            fingerprint = (
                fingerprint_files(source.paths)
                if source.values is None
                else combine_fingerprints([source.values.tobytes().hex()])
            )
        metrics.append(
            OutsideMetric(
                source.name,
                formula,
                source.is_error_rate,
                tuple(range(first, first + width)),
                fingerprint,
            )
        )
        first += width
    return tuple(metrics)


def make_named_metrics(
    lists: ListSettings, *, fingerprints: bool = False, cache: Path | None = None
) -> tuple[OutsideMetric, ...]:
    """Return the metrics of scores in files, and of commands that score.

    Args:
        fingerprints: as for ``make_outside_metrics``.
        cache: as for ``ScoreCommands.make_metrics``.

    Raises:
        UsageError: a name occurs twice.
        DataError: a command does not start, or announces nothing that can be used.
    """
    names = lists.score_names
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"both {{--scores}} and {{--score-command}} name {name}")
    return (
        *make_outside_metrics(lists.scores, fingerprints=fingerprints),
        *lists.score_commands.make_metrics(lists.source, cache),
    )


def find_metric_of(name: str | None, settings: str, outside: Sequence[OutsideMetric]) -> Metric:
    """Return the metric of a name or weighted sum, with scores from outside.

    None stands for the first of the scores, and without any for BLEU.
    """
    return find_metric(name or (outside[0].name if outside else "BLEU"), settings, outside)


def arrange_held_out(
    sources: Sequence[ScoreSource], held_out: Sequence[ScoreSource]
) -> tuple[ScoreSource, ...]:
    """Return the scores of held-out lists in the order of those to learn from."""
    known = {source.name: source for source in held_out}
    names = [source.name for source in sources]
    if unknown := [name for name in known if name not in names]:
        raise UsageError(
            f"{{--heldout-scores}} names {unknown[0]}, which {{--scores}} does not: give the "
            "scores of both lists"
        )
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"the held-out lists have no scores of {missing[0]}: add {{--heldout-scores}} "
            f"{missing[0]}=FILE"
        )
    arranged = tuple(known[name] for name in names)
    for source, other in zip(sources, arranged, strict=True):
        ours, theirs = _find_widths([source, other])
        if ours != theirs:
            raise UsageError(
                f"{other.place} has {theirs} numbers for each hypothesis, but {source.place} has "
                f"{ours}"
            )
    return arranged


def _find_widths(sources: Sequence[ScoreSource]) -> list[int]:
    """Return the number of columns of each source."""
    return [
        read_score_width(source.paths[0]) if source.values is None else source.values.shape[1]
        for source in sources
    ]


def find_scores(
    sources: Sequence[ScoreSource],
    owners: NDArray[np.int64],
    texts: Sequence[bytes],
    ids: Sequence[str] = (),
) -> NDArray[np.float64]:
    """Return the scores of stored hypotheses by sentence and text, float64 ``[n, k]``.

    Lines may come in any order, and there may be more of them.

    Args:
        sources: files of ``ID ||| TEXT ||| NUMBERS`` lines.
        owners: int64 ``[n]``, the sentence of each hypothesis.
        ids: sentence ids that are texts, by their numbers; empty if ids are numbers.

    Raises:
        FormatError: a file cannot be read or names no texts, or has two scores of one text.
    """
    columns = []
    for source in sources:
        known = _read_by_text(source, ids)
        keys = zip(owners.tolist(), texts, strict=True)
        rows = [known.get((number, text.strip())) for number, text in keys]
        if None in rows:
            place = rows.index(None)
            sentence = quote(ids[owners[place]]) if ids else owners[place]
            raise DataError(
                f"{source.place} has no score of {quote(texts[place])}, a hypothesis of sentence "
                f"{sentence}: score all lists that mosesplug nbest export writes"
            )
        columns.append(np.array([row for row in rows if row is not None], dtype=np.float64))
    return np.concatenate(columns, axis=1)


def _explain_ids(ids: Sequence[str]) -> str:
    if not ids:
        return "Count the sentences from 0"
    return f"Its ids are {', '.join(map(quote, ids[:3]))}, ..."


def _read_by_text(
    source: ScoreSource, ids: Sequence[str]
) -> dict[tuple[int, bytes], tuple[float, ...]]:
    """Return the scores of a source by sentence and text."""
    if source.values is not None:
        raise UsageError(
            f"{source.place}: the lists of a store have no order to follow; give a file with lines "
            "'ID ||| TEXT ||| NUMBERS'"
        )
    known: dict[tuple[int, bytes], tuple[float, ...]] = {}
    numbers = {name.encode("utf-8", "surrogateescape"): n for n, name in enumerate(ids)}
    for rows in (rows for path in source.paths for rows in read_score_blocks(path)):
        if rows.ids is None or rows.texts is None:
            raise FormatError(
                "the scores of stored lists need sentence ids and texts",
                path=rows.path,
                line=rows.first,
                remedy="Write each line as 'ID ||| TEXT ||| NUMBERS', in any order",
            )
        for place, values in enumerate(map(tuple, rows.values.tolist())):
            spelled = rows.ids[place]
            number = numbers.get(spelled, int(spelled) if spelled.isdigit() else None)
            if number is None:
                raise FormatError(
                    f"{quote(spelled)} is not a sentence id of a store",
                    path=rows.path,
                    line=rows.first + place,
                    remedy=_explain_ids(ids),
                )
            key = number, rows.texts[place]
            if known.setdefault(key, values) != values:
                raise FormatError(
                    f"another score of {quote(key[1])} in sentence {key[0]} than before",
                    path=rows.path,
                    line=rows.first + place,
                    remedy="Give each text one score",
                )
    return known
