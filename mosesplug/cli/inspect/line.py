"""``mosesplug line``: the score along a line, to explain why a weight changed."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.shared.inputs import OUTPUT
from mosesplug.cli.shared.parameters import (
    IterationOption,
    Json,
    Store,
    StoreWeights,
    parse_iteration,
)
from mosesplug.errors import UsageError

_ROWS = 20
_BAR = 30


def line(
    store: Store,
    direction: Annotated[
        str,
        typer.Option(
            metavar="FEATURE|N:M",
            help="A feature to change, or from iteration N's weights to M's.",
        ),
    ],
    iteration: IterationOption = "all",
    weights: StoreWeights = None,
    low: Annotated[
        float | None, typer.Option("--from", help="Least weight or step [around the start].")
    ] = None,
    high: Annotated[
        float | None, typer.Option("--to", help="Greatest weight or step [around the start].")
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(metavar="X", help="Show the changes up to this position [the best one]."),
    ] = None,
    sentences: Annotated[int, typer.Option(min=0, help="Number of changes to show.")] = 10,
    png: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the line; needs mosesplug[report]."),
        OUTPUT,
    ] = None,
    json: Json = False,
) -> None:
    """Print score and changed 1-best hypotheses along a line.

    Scores are exact: the 1-best hypotheses are constant between thresholds, and a row shows the
    best interval of its part. Weights have an L1 norm of 1.

    Example: mosesplug line tuning --direction LM0
    """
    import numpy as np

    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.metrics.error_rates import display_score, is_error_rate
    from mosesplug.results.views.line import find_changed_sentences, trace_line
    from mosesplug.results.views.run import open_run
    from mosesplug.results.weights.sources import read_weights_of

    for option, number in (("--from", low), ("--to", high), ("--at", at)):
        if number is not None and not math.isfinite(number):
            raise UsageError(f"{option} must be a finite number, not {number}")
    with open_run(store, with_lists=True) as run:
        merged = run.store.tuning_set(parse_iteration(iteration))
        found = trace_line(run, merged, direction, run.arrange_weights(read_weights_of(weights)))
        first, last = found.find_range(low, high)
        start, end, best = found.best_interval(first, last)
        target = 0.5 * (start + end) if at is None else at - found.shift
        changed = find_changed_sentences(run, merged, found, target)
        metric, signature = run.metric_name, run.signature
    if png is not None:
        from formats.text import write_atomic
        from mosesplug.results.report.figures import render_surface_png

        surface = found.surface(first, last)
        shown = [display_score(signature, score) for score in surface.scores.tolist()]
        write_atomic(png, render_surface_png(replace(surface, scores=np.array(shown)), metric))
    place = found.shift
    if json:
        surface = found.surface(first, last)
        print_json(
            {
                "line": found.what,
                "axis": found.axis,
                "start": {"at": place, "score": found.start},
                "best": {"from": start + place, "to": end + place, "score": best},
                "thresholds": surface.ends[1:-1].tolist(),
                "scores": surface.scores.tolist(),
                "moved": {"at": target + place, "sentences": [asdict(each) for each in changed]},
            }
        )
        return
    less = "; less is better" if is_error_rate(signature) else ""
    print(f"{metric} of the merged lists, {found.what}{less}")
    print(f"start  {place:.6g}: {display_score(signature, found.start):.4f}")
    print(
        f"best   {start + place:.6g} to {end + place:.6g}: {display_score(signature, best):.4f}\n"
    )
    parts = [
        (a, b, display_score(signature, score)) for a, b, score in found.sample(first, last, _ROWS)
    ]
    least, most = min(score for *_, score in parts), max(score for *_, score in parts)
    rows = [
        (
            f"{a + place:.4f} to {b + place:.4f}",
            f"{score:.4f}",
            "#" * round(_BAR * (score - least) / ((most - least) or 1.0))
            + ("  <- start" if a <= 0.0 < b else ""),
        )
        for a, b, score in parts
    ]
    print_table((found.axis, metric, ""), rows, last=1)
    print(f"\n{len(changed)} sentences change on the way to {target + place:.6g}")
    for each in changed[:sentences]:
        before = display_score(signature, each.before_score)
        after = display_score(signature, each.after_score)
        print(f"\n{each.sentence}  {before:.4f} -> {after:.4f}")
        print(f"  - {each.before}\n  + {each.after}")
