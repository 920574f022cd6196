"""``mosesplug compare``: test whether systems differ by more than chance."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from formats.references import read_references, reference_files
from mosesplug.api.analysis import analyze_all
from mosesplug.api.scoring import compare_all
from mosesplug.cli.inspect.score_options import CompareCommand
from mosesplug.cli.shared.output import check_output, print_warnings, progress_bar
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.learning.lists.outside import make_named_metrics
from mosesplug.results.render.analysis_tables import SystemReport
from mosesplug.results.scores.comparison import count_system_edits, parse_systems, to_percent
from mosesplug.results.scores.outside import attach_scores
from mosesplug.results.scores.scoring import DEFAULT_METRICS, prepare_metrics
from mosesplug.results.scores.sentence_ids import arrange_systems
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.scores.files import parse_score_sources


def compare(options: CompareCommand) -> None:
    """Test whether systems differ from the first by more than chance."""
    if len(options.systems) < 2:
        raise UsageError("give two systems or more, the baseline first")
    systems = parse_systems(options.systems, decode=options.decode)
    for note in (note for system in systems for note in system.notes):
        print(f"note: {note}", file=sys.stderr)
    sources = parse_score_sources(options.scores or ())
    commands = options.score_commands.commands
    if options.refs is None and not (sources or commands):
        raise UsageError(
            "there are no references: give --refs FILE, or --scores NAME=FILE,..., or "
            "--score-command NAME=COMMAND"
        )
    if options.source is not None and not (options.analysis or options.html or commands):
        raise UsageError("--source requires --analysis or --html, or --score-command")
    if (options.analysis or options.html) and options.refs is None and not sources:
        raise UsageError("--analysis and --html need --refs FILE, or --scores NAME=FILE,...")
    translations = [path for system in systems for path in system.translations]
    inputs = [Path(path) for path in translations if isinstance(path, str | PathLike)]
    inputs += [path for source in sources for path in source.paths]
    inputs += [path for path in (options.source, options.frequency_text) if path is not None]
    inputs += [] if options.refs is None else reference_files(options.refs)
    check_output(options.html, "--html", inputs)
    if options.metric is not None:
        options.score_commands.check_use("metric", options.metric)
    outside = make_named_metrics(
        ListSettings(
            scores=tuple(sources), score_commands=options.score_commands, source=options.source
        )
    )
    lines: Sequence[Sequence[bytes]]
    lines = [] if options.refs is None else read_references(options.refs)
    systems = attach_scores(systems, sources)
    systems, lines = arrange_systems(systems, lines, options.ids, what=f"{options.refs}")
    metrics = options.metric or [
        *(DEFAULT_METRICS if lines else ()),
        *(metric.name for metric in outside),
    ]
    analysis = None
    with progress_bar(options.quiet) as progress:
        if options.analysis or options.html is not None:
            # First, so that an error in its files shows before the tests, which take longer.
            analysis = analyze_all(
                systems,
                lines,
                metrics,
                outside,
                source=options.source,
                frequencies=options.frequency_text,
                ngrams=options.ngrams,
                examples=options.examples,
                progress=progress,
            )
        results = compare_all(
            systems,
            lines,
            metrics,
            outside,
            samples=options.samples,
            trials=options.trials,
            seed=options.seed,
            progress=progress,
        )
    print_warnings(results.warnings)
    if analysis is not None and options.html is not None:
        analysis.write_html(options.html, scores=results)
    shown = to_percent(results) if options.percent else list(results)
    if options.errors is not None and lines:
        prepared = prepare_metrics(metrics, lines, outside)
        shown = count_system_edits(shown, systems, prepared, lines, options.errors)
    facts = analysis.facts if analysis is not None and options.analysis else None
    print_record(SystemReport(tuple(shown), facts))
