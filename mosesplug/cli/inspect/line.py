"""``mosesplug line``: the score along a line, to explain why a weight changed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from formats.text import write_atomic
from mosesplug.cli.inspect.store_options import LineCommand
from mosesplug.cli.shared.output import note_weighting
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.metrics.error_rates import display_score
from mosesplug.results.report.figures import render_surface_png
from mosesplug.results.views.line import report_line, trace_line
from mosesplug.results.views.run import open_run
from mosesplug.results.weights.sources import read_weights_of


def line(options: LineCommand) -> None:
    """Print score and changed 1-best hypotheses along a line."""
    for option, number in (("--from", options.low), ("--to", options.high), ("--at", options.at)):
        if number is not None and not math.isfinite(number):
            raise UsageError(f"{option} must be a finite number, not {number}")
    with open_run(options.store, with_lists=True) as run:
        note_weighting(run)
        merged = run.store.tuning_set(parse_iteration(options.iteration))
        weights = run.arrange_weights(read_weights_of(options.weights))
        report, surface = report_line(
            run,
            merged,
            trace_line(run, merged, options.direction, weights),
            low=options.low,
            high=options.high,
            at=options.at,
            n_examples=options.sentences,
        )
    if options.png is not None:
        shown = [display_score(report.signature, score) for score in surface.scores.tolist()]
        picture = render_surface_png(replace(surface, scores=np.array(shown)), report.metric)
        write_atomic(options.png, picture)
    print_record(report)
