"""The metrics of scores from outside, whose columns ``steps.ScoreStep`` attaches to lists."""

from __future__ import annotations

from collections.abc import Sequence

from formats.scores import read_score_width
from mosesplug.errors import UsageError
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

    ``fingerprints`` says whether to read the files for their fingerprints, which a store needs that
    is kept.
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
    """Return the metric of a name or weighted sum, which may be that of scores from outside.

    None stands for the first of the scores, and without any for BLEU.
    """
    outside = make_outside_metrics(sources, fingerprints=fingerprints)
    return find_metric(name or (outside[0].name if outside else "BLEU"), settings, outside)


def arrange_held_out(
    sources: Sequence[ScoreSource], held_out: Sequence[ScoreSource]
) -> tuple[ScoreSource, ...]:
    """Return the scores of held-out lists in the order of those to learn from."""
    known = {source.name: source for source in held_out}
    names = [source.name for source in sources]
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
    """Return the number of columns of each source."""
    return [
        read_score_width(source.paths[0]) if source.values is None else source.values.shape[1]
        for source in sources
    ]
