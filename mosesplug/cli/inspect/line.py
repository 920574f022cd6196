"""``mosesplug line``: why a weight moved."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.inspect.inspecting import WeightsFile, iteration_of, weights_of
from mosesplug.cli.shared.parameters import IterationOption, Json, Store
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.inspection.line import Line

__all__ = ["line"]

_ROWS = 20
_BAR = 30


def line(
    store: Store,
    direction: Annotated[
        str,
        typer.Option(
            metavar="FEATURE|N:M",
            help="A feature whose weight changes, all others staying; or from the weights that "
            "iteration N was decoded with to those of M.",
        ),
    ],
    iteration: IterationOption = "all",
    weights: WeightsFile = None,
    low: Annotated[
        float | None, typer.Option("--from", help="Least weight or step [around the start].")
    ] = None,
    high: Annotated[float | None, typer.Option("--to", help="Greatest weight or step.")] = None,
    at: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Show what changes on the way to this weight or step [the best one]."
        ),
    ] = None,
    sentences: Annotated[int, typer.Option(min=0, help="How many of these to show.")] = 10,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it; needs mosesplug[report].")
    ] = None,
    json: Json = False,
) -> None:
    """The score of the lists along one line, and the sentences whose first-best changes.

    Scores are exact: of every interval between the weights at which some first-best changes; a row
    shows the best of its part. Weights have an L1 norm of 1.

    Example: mosesplug line tuning --direction LM0
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.inspection.line import line_of, moved_sentences
    from mosesplug.inspection.run import opened

    for option, number in (("--from", low), ("--to", high), ("--at", at)):
        if number is not None and not math.isfinite(number):
            raise UsageError(f"{option} is a finite number, not {number}")
    with opened(store, with_lists=True) as run:
        merged = run.store.tuning_set(iteration_of(iteration))
        found = line_of(run, merged, direction, weights_of(run, weights))
        first, last = _part(found, low, high)
        start, end, best = found.best(first, last)
        target = 0.5 * (start + end) if at is None else at - found.shift
        moved = moved_sentences(run, merged, found, target)
        metric = run.signature.partition("|")[0]
    if png is not None:
        _draw(found, first, last, metric, png)
    place = found.shift
    if json:
        inside = (found.thresholds > first) & (found.thresholds < last)
        print_json(
            {
                "line": found.what,
                "axis": found.axis,
                "start": {"at": place, "score": found.at(0.0)},
                "best": {"from": start + place, "to": end + place, "score": best},
                "thresholds": (found.thresholds[inside] + place).tolist(),
                "scores": [found.best(a, b)[2] for a, b in _between(found, first, last)],
                "moved": {"at": target + place, "sentences": [asdict(each) for each in moved]},
            }
        )
        return
    print(f"{metric} of the merged lists, {found.what}")
    print(f"start  {place:.6g}: {found.at(0.0):.4f}")
    print(f"best   {start + place:.6g} to {end + place:.6g}: {best:.4f}\n")
    width = (last - first) / _ROWS
    parts = [(first + row * width, first + (row + 1) * width) for row in range(_ROWS)]
    scores = [found.best(*part)[2] for part in parts]
    least, most = min(scores), max(scores)
    print_table(
        (found.axis, metric, ""),
        [
            (
                f"{a + place:.4f} to {b + place:.4f}",
                f"{score:.4f}",
                "#" * round(_BAR * (score - least) / ((most - least) or 1.0))
                + ("  <- start" if a <= 0.0 < b else ""),
            )
            for (a, b), score in zip(parts, scores, strict=True)
        ],
        last=1,
    )
    print(f"\n{len(moved)} sentences change on the way to {target + place:.6g}")
    for each in moved[:sentences]:
        print(f"\n{each.sentence}  {each.before_score:.4f} -> {each.after_score:.4f}")
        print(f"  - {each.before}\n  + {each.after}")


def _part(found: Line, low: float | None, high: float | None) -> tuple[float, float]:
    """Ends of the part that is shown, in steps.

    Raises:
        UsageError: they are the wrong way round.
    """
    if found.shift or found.axis != "step":
        reach = max(2.0 * abs(found.shift), 0.2)
        ends = (-reach, reach)
    else:
        ends = (-0.5, 1.5)
    first = ends[0] if low is None else low - found.shift
    last = ends[1] if high is None else high - found.shift
    if first >= last:
        raise UsageError(
            f"--from {first + found.shift:g} must be less than --to {last + found.shift:g}"
        )
    return first, last


def _between(found: Line, first: float, last: float) -> list[tuple[float, float]]:
    """The intervals between thresholds inside two steps."""
    inside = found.thresholds[(found.thresholds > first) & (found.thresholds < last)].tolist()
    ends = [first, *inside, last]
    return list(itertools.pairwise(ends))


def _draw(found: Line, first: float, last: float, metric: str, path: Path) -> None:
    """The error surface as a picture.

    Raises:
        UsageError: matplotlib is missing.
    """
    import numpy as np

    from formats.text import write_atomic
    from mosesplug.report.data import ErrorSurface
    from mosesplug.report.figures import surface_png

    parts = _between(found, first, last)
    ends = np.array([parts[0][0], *(end for _, end in parts)]) + found.shift
    scores = np.array([found.best(a, b)[2] for a, b in parts])
    write_atomic(path, surface_png(ErrorSurface(found.axis, found.shift, ends, scores), metric))
