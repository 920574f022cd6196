"""``mosesplug report``: runs as one HTML page, or one figure as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from mosesplug.api.run import report as write_report
from mosesplug.cli.inspect.store_options import ReportCommand
from mosesplug.cli.shared.output import progress_bar
from mosesplug.cli.shared.stdout_files import goes_to_stdout
from mosesplug.metrics import Metric
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.metrics.registry import metric_of_text, names_of_text


def report(options: ReportCommand) -> None:
    """Write runs as one HTML page."""
    names, commands = options.report_metric or (), options.score_commands
    commands.check_use("report-metric", names)
    with progress_bar(options.quiet) as progress:
        # Each run binds the source that the command reads.
        outside = commands.make_metrics(None)
        path = write_report(
            options.stores,
            options.output,
            figure=options.png,
            references=options.refs,
            source=options.source,
            ids=options.ids,
            examples=options.examples,
            sentence=options.sentence,
            dpi=options.dpi,
            title=options.title,
            report_metrics=[_bind_commands(name, outside) for name in names],
            sentences=options.sentences,
            max_size=options.max_size,
            all_hypotheses=options.all_hypotheses,
            progress=progress,
        )
    if not (options.quiet or goes_to_stdout(options.output)):
        print(path)


def _bind_commands(name: str, commands: Sequence[OutsideMetric]) -> str | Metric:
    """Return the metric if a command computes a part; the run knows the others."""
    own = {command.name for command in commands}
    return name if own.isdisjoint(names_of_text(name)) else metric_of_text(name, commands)
