"""``mosesplug line``: the score along a line, to explain why a weight changed."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np

from formats.text import write_atomic
from mosesplug.cli.inspect.store_options import LineCommand
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_table
from mosesplug.errors import UsageError
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.results.report.figures import render_surface_png
from mosesplug.results.views.line import (
    ChangedSentence,
    LineSurface,
    find_changed_sentences,
    trace_line,
)
from mosesplug.results.views.run import open_run
from mosesplug.results.weights.sources import read_weights_of

_ROWS = 20
_BAR = 30


def line(options: LineCommand) -> None:
    """Print score and changed 1-best hypotheses along a line."""
    for option, number in (("--from", options.low), ("--to", options.high), ("--at", options.at)):
        if number is not None and not math.isfinite(number):
            raise UsageError(f"{option} must be a finite number, not {number}")
    with open_run(options.store, with_lists=True) as run:
        merged = run.store.tuning_set(parse_iteration(options.iteration))
        weights = run.arrange_weights(read_weights_of(options.weights))
        traced = trace_line(run, merged, options.direction, weights)
        first, last = traced.find_range(options.low, options.high)
        start, end, best = traced.best_interval(first, last)
        target = 0.5 * (start + end) if options.at is None else options.at - traced.shift
        changed = find_changed_sentences(run, merged, traced, target)
        metric, signature = run.metric_name, run.signature
    surface, shift = traced.surface(first, last), traced.shift
    if options.png is not None:
        shown = [display_score(signature, score) for score in surface.scores.tolist()]
        picture = render_surface_png(replace(surface, scores=np.array(shown)), metric)
        write_atomic(options.png, picture)
    if options.json:
        moved = {"at": target + shift, "sentences": [asdict(sentence) for sentence in changed]}
        print_json(
            {
                "line": traced.what,
                "axis": traced.axis,
                "start": {"at": shift, "score": traced.start},
                "best": {"from": start + shift, "to": end + shift, "score": best},
                "thresholds": surface.ends[1:-1].tolist(),
                "scores": surface.scores.tolist(),
                "moved": moved,
            }
        )
        return
    less = "; less is better" if is_error_rate(signature) else ""
    print(f"{metric} of the merged lists, {traced.what}{less}")
    print(f"start  {shift:.6g}: {display_score(signature, traced.start):.4f}")
    score = display_score(signature, best)
    print(f"best   {start + shift:.6g} to {end + shift:.6g}: {score:.4f}\n")
    print_table((traced.axis, metric, ""), _draw(traced, first, last, signature), last=1)
    print(f"\n{len(changed)} sentences change on the way to {target + shift:.6g}")
    for sentence in changed[: options.sentences]:
        _print_change(sentence, signature)


def _draw(
    traced: LineSurface, first: float, last: float, signature: str
) -> list[tuple[str, str, str]]:
    """Return the parts of a line with bars of their scores."""
    parts = [
        (a, b, display_score(signature, score)) for a, b, score in traced.sample(first, last, _ROWS)
    ]
    least, most = min(score for *_, score in parts), max(score for *_, score in parts)
    span = (most - least) or 1.0
    return [
        (
            f"{a + traced.shift:.4f} to {b + traced.shift:.4f}",
            f"{score:.4f}",
            "#" * round(_BAR * (score - least) / span) + ("  <- start" if a <= 0.0 < b else ""),
        )
        for a, b, score in parts
    ]


def _print_change(sentence: ChangedSentence, signature: str) -> None:
    before = display_score(signature, sentence.before_score)
    after = display_score(signature, sentence.after_score)
    print(f"\n{sentence.sentence}  {before:.4f} -> {after:.4f}")
    print(f"  - {sentence.before}\n  + {sentence.after}")
