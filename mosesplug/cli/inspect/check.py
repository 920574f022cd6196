"""``mosesplug check``: what to know of data before tuning."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cli.shared.inputs import REFERENCES
from mosesplug.cli.shared.parameters import Json, MetricSettings
from mosesplug.errors import DataError

if TYPE_CHECKING:
    from mosesplug.api.checking import DataReport


def check(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="The source of the tuning set, a sentence a line.")
    ],
    references: Annotated[
        Path,
        typer.Argument(metavar="REFS", help="Its references: a file, or a prefix of several."),
        REFERENCES,
    ],
    nbest: Annotated[
        list[Path] | None,
        typer.Option("--nbest", metavar="LIST", help="An n-best list of SRC; repeatable."),
    ] = None,
    phrase_table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Moses' phrase table, as text or compressed."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The source side of the training text.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The source side of a test set.")
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The metric to tune for, which reads the texts.",
            autocompletion=complete_metrics,
        ),
    ] = "BLEU",
    metric_settings: MetricSettings = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="End with an error if there is a warning.")
    ] = False,
    json: Json = False,
) -> None:
    """Check a tuning set and its lists before tuning.

    Lengths, empty and repeated lines, lines that are no translation, markup, blanks, case and
    tokenization, words that the phrase table lacks, sentences that are in other texts, too, and
    the number of features.

    Example: mosesplug check dev.src dev.ref --nbest run1.best100.out.gz --phrase-table phrases.gz
    """
    from mosesplug.api.checking import check as check_data
    from mosesplug.cli.shared.output import print_json
    from mosesplug.metrics import metric as find_metric

    report = check_data(
        source,
        references,
        nbest=nbest or None,
        phrase_table=phrase_table,
        train=train,
        test=test,
        metric=find_metric(metric, metric_settings),
    )
    if json:
        warnings = [{"name": each.name, "message": each.message} for each in report.signs]
        texts = [asdict(each) for each in report.texts]
        print_json({"texts": texts, "facts": dict(report.facts), "warnings": warnings})
    else:
        _print(report)
    if strict and report.signs:
        names = ", ".join(dict.fromkeys(each.name for each in report.signs))
        raise DataError(f"--strict: {names}; see the warnings")


def _print(report: DataReport) -> None:
    from mosesplug.cli.shared.layouts import TableLayout, current_layout
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.checking import NO_WARNINGS

    is_text = current_layout() is TableLayout.TEXT
    for place, table in enumerate(report.tabulate()):
        if is_text and place:
            print()
        print_blocks([table])
    if is_text and not report.signs:
        print(f"\n{NO_WARNINGS}")
