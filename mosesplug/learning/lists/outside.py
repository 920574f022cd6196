"""Attach scores from outside to hypotheses, and make the metrics of these scores.

The scores of all lists of a command are one sequence: those of the first list in the order of its
lines, then those of the second. ``ScoreStep`` takes as many as each block has hypotheses, checks
ids and texts that the files repeat, and at the end that none is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.scores import ScoreRows, read_score_width
from mosesplug.errors import UsageError
from mosesplug.learning.lists.value_columns import ValueColumn
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.outside import WIDTHS, Formula, OutsideMetric, combine_fingerprints
from mosesplug.settings.scores import ScoreSource
from mosesplug.store import fingerprint_files

_FORMULA_OF_WIDTH: dict[int, Formula] = {1: "mean", 2: "ratio"}


def make_outside_metrics(
    sources: Sequence[ScoreSource], *, fingerprints: bool = False
) -> tuple[OutsideMetric, ...]:
    """Return the metric of each source; its columns are those of ``ScoreStep``.

    Args:
        sources: the scores, in the order of their columns.
        fingerprints: whether to read the files for their fingerprints, which a store needs that is
            kept.

    Raises:
        UsageError: a formula does not take that number of columns.
        FormatError: a file cannot be read.
    """
    metrics = []
    first = 0
    for source, width in zip(sources, _find_widths(sources), strict=True):
        formula = source.formula or _FORMULA_OF_WIDTH.get(width)
        if formula is None or WIDTHS[formula] != width:
            raise UsageError(
                f"{source.place}: {width} number(s) for each hypothesis, but mean takes 1 and "
                "ratio 2"
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


def find_metric_of(
    name: str | None, settings: str, sources: Sequence[ScoreSource], *, fingerprints: bool = False
) -> Metric:
    """Return the metric of a name, which may be that of scores from outside.

    Args:
        name: a name or weighted sum, as for ``mosesplug.metrics.metric``; None for the first of the
            scores, and without any for BLEU.
        settings: the metric's settings.
        sources: the scores, in the order of their columns.
        fingerprints: see ``make_outside_metrics``.

    Raises:
        UsageError: an unknown metric or setting.
        FormatError: a file of scores cannot be read.
    """
    outside = make_outside_metrics(sources, fingerprints=fingerprints)
    return find_metric(name or (outside[0].name if outside else "BLEU"), settings, outside)


def arrange_held_out(
    sources: Sequence[ScoreSource], held_out: Sequence[ScoreSource]
) -> tuple[ScoreSource, ...]:
    """Return the scores of held-out lists in the order of those to learn from.

    Raises:
        UsageError: the names or the numbers of columns differ.
        FormatError: a file cannot be read.
    """
    known = {each.name: each for each in held_out}
    names = [each.name for each in sources]
    if unknown := [name for name in known if name not in names]:
        raise UsageError(
            f"--heldout-scores names {unknown[0]}, which --scores does not: give the scores of "
            "both lists"
        )
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"the held-out lists have no scores of {missing[0]}: add --heldout-scores "
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
    """Return the number of columns of each source.

    Raises:
        FormatError: a file cannot be read.
    """
    return [
        read_score_width(source.paths[0]) if source.values is None else source.values.shape[1]
        for source in sources
    ]


class ScoreStep:
    """Attaches the columns of several sources to blocks, in their order."""

    def __init__(
        self, sources: Sequence[ScoreSource], ids: SentenceIds, option: str = "--scores"
    ) -> None:
        self._columns = [
            ValueColumn(
                source.paths,
                source.values,
                ids,
                place=source.place,
                what="score",
                option=f"{option} {source.name}",
                check=_check_divisors,
            )
            for source in sources
        ]

    def apply(self, block: NBestList) -> NBestList:
        """Return the block with its scores, after those that it has.

        Raises:
            FormatError: there are too few scores, or they belong to another list.
        """
        parts = [] if block.outside is None else [block.outside]
        parts += [column.take(block) for column in self._columns]
        return replace(block, outside=np.concatenate(parts, axis=1))

    def finish(self) -> None:
        """Check that no score is left.

        Raises:
            FormatError: there are more scores than hypotheses.
        """
        for column in self._columns:
            column.finish()


def _check_divisors(rows: ScoreRows) -> None:
    """Check that the second of two numbers can divide the first."""
    if rows.values.shape[1] == 2 and (rows.values[:, 1] < 0).any():
        place = int(np.argmax(rows.values[:, 1] < 0))
        raise FormatError(
            f"the second number is {rows.values[place, 1]:g}, but it divides the first",
            path=rows.path,
            line=rows.first + place,
            remedy="Give numbers from 0, such as numbers of words",
        )
