"""``mosesplug score``: score a translation by several metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from formats.pipes import InputFile, wrap_files
from mosesplug.api.scoring import score as score_translation
from mosesplug.cli.inspect.score_options import ScoreCommand
from mosesplug.cli.shared.output import print_formats, print_warnings, progress_bar
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.metrics import Metric
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.metrics.registry import metric_of_text
from mosesplug.results.scores.comparison import to_percent
from mosesplug.results.scores.scoring import DEFAULT_METRICS, ScoreReport, Selection
from mosesplug.settings.lists import hint_at_tables
from mosesplug.settings.scores.files import parse_score_sources


def score(options: ScoreCommand) -> None:
    """Score a translation: corpus scores, 95 % intervals and signatures."""
    settings, references = options.settings, options.references
    if not options.nbest and (options.rank is not None or options.oracle):
        raise UsageError("--rank and --oracle require --nbest")
    reading = replace(settings, source=None)
    if not options.nbest and reading.first_given is not None:
        raise UsageError(f"--{reading.first_given} requires --nbest{hint_at_tables(settings)}")
    commands = settings.score_commands
    if settings.source is not None and not commands.commands:
        raise UsageError("--source requires --score-command")
    if options.nbest and options.errors is not None:
        raise UsageError("--errors requires a translation: rerank writes that of an n-best list")
    selection: Selection | None = None
    lists: Path | InputFile | None = None
    if options.nbest:
        selection = "oracle" if options.oracle else options.rank or 1
        (lists,) = wrap_files([options.translation])
        print_formats([lists], settings, quiet=options.quiet or options.json)
    sources = parse_score_sources(options.scores or ())
    if options.refs is not None:
        references = [options.refs]
    if not references and not (sources or commands.commands):
        raise UsageError(
            "there are no references: give REF..., or --scores NAME=FILE, or "
            "--score-command NAME=COMMAND"
        )
    if sources and commands.commands:
        raise UsageError("--scores and --score-command exclude each other here: score twice")
    if options.metric is not None:
        commands.check_use("metric", options.metric)
    # Scores of commands take long.
    with progress_bar(options.quiet or options.json):
        scores = score_translation(
            lists or options.translation,
            references or None,
            _find_metrics(options.metric, commands.make_metrics(settings.source), bool(references)),
            scores=None if not sources else {source.key: source.paths for source in sources},
            select=selection,
            names=settings.names,
            format=settings.format,
            columns=settings.columns,
            word_scores=settings.word_scores,
            transform=settings.transform,
            ids=options.ids,
            errors=options.errors,
            samples=options.samples,
            seed=options.seed,
        )
    print_warnings(scores.warnings)
    shown = to_percent(scores) if options.percent else scores
    print_record(ScoreReport(tuple(shown), options.sentences))


def _find_metrics(
    names: Sequence[str] | None, commands: Sequence[OutsideMetric], has_references: bool
) -> Sequence[str | Metric] | None:
    """Return the metrics to score by, those of commands among them."""
    if not commands:
        return names
    if names is None:
        return [*(DEFAULT_METRICS if has_references else ()), *commands]
    return [metric_of_text(name, commands) for name in names]
