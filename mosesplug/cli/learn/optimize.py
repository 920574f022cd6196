"""``mosesplug optimize``: learn weights from n-best lists or search graphs.

No decoder is needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from formats.pipes import wrap_files
from formats.references import reference_files
from mosesplug.api.optimize import check_settings, fit_settings
from mosesplug.cli.learn.options import OptimizeCommand
from mosesplug.cli.learn.result_files import find_result_format, format_result
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import (
    check_output,
    check_two_outputs,
    print_bytes,
    print_formats,
    print_warnings,
    progress_bar,
)
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.learning.inputs import GivenData
from mosesplug.learning.weights import write_weights
from mosesplug.results.report.learning_report import FitReport
from mosesplug.settings.learning import make_learning_settings


def optimize(options: OptimizeCommand) -> None:
    """Learn weights from existing n-best lists or search graphs, without a decoder."""
    values = dict(options.settings or {})
    if options.files:
        kind = "graphs" if "graphs" in values else "nbest"
        values[kind] = [*values.get(kind, ()), *options.files]
    output, html, quiet = options.output, options.html, options.quiet
    settings = make_learning_settings(values)
    if settings.domains is not None and output is None:
        raise UsageError("--domains writes a file of weights for each domain: give --output FILE")
    if output is None and current_layout() not in (TableLayout.TEXT, TableLayout.JSON):
        raise UsageError(
            f"the tables in {current_layout()} and the weights would both go to stdout: give"
            " --output FILE for the weights"
        )
    # Fail now instead of after minutes of work.
    optimizer, idle = check_settings(settings)
    # Weights may replace those that the run starts from.
    starts = (*settings.init_files, settings.sparse_init)
    inputs = settings.input_paths
    for references in (settings.references, settings.heldout_refs):
        inputs += [] if references is None else reference_files(references)
    check_output(output, inputs=[path for path in inputs if path not in starts])
    check_output(html, "--html", inputs)
    check_two_outputs({"--output": output, "--html": html})
    to, config = find_result_format(options.weights_format, output, settings.init_file)
    print_warnings(idle)
    lists = wrap_files(settings.nbest)
    print_formats(lists, settings.lists, quiet=quiet)
    with progress_bar(quiet) as progress:
        fit = fit_settings(settings, optimizer, GivenData(lists=lists), progress, idle=idle)
    print_warnings(fit.warnings[len(idle) :])
    if options.json or not quiet:
        # On stderr, so that the weights can be piped.
        weights = dict(fit.weights)
        report = FitReport(
            fit.result, settings, fit.gains, weights, fit.length_exponent, fit.warnings
        )
        print_record(report, sys.stderr)
    if html is not None:
        fit.write_html(html)
    changes = fit.weights.file.changes
    for name in fit.domains:
        path = Path(f"{output}.{name}")
        own = format_result(fit, to, config, path, name)
        write_weights(path, own.text, own.sparse, changes)
    shared = format_result(fit, to, config, output)
    for note in () if quiet else shared.notes:
        print(note, file=sys.stderr)
    everything = shared.text + (shared.sparse or b"")
    if output is None:
        if not options.json:  # which has them
            print_bytes(everything)
        return
    try:
        write_weights(output, shared.text, shared.sparse, changes)
    except OSError:
        print_bytes(everything)
        raise
