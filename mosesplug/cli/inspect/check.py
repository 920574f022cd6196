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
    from mosesplug.inspection.checking import DataCheck

__all__ = ["check"]


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
    from mosesplug.cli.shared.output import print_json
    from mosesplug.inspection.checking import check_data

    found = check_data(
        source,
        references,
        nbest=nbest or (),
        phrase_table=phrase_table,
        train=train,
        test=test,
        metric_name=metric,
        metric_settings=metric_settings,
    )
    if json:
        warnings = [{"name": each.name, "message": each.message} for each in found.signs]
        texts = [asdict(each) for each in found.texts]
        print_json({"texts": texts, "facts": dict(found.facts), "warnings": warnings})
    else:
        _print(found)
    if strict and found.signs:
        names = ", ".join(dict.fromkeys(each.name for each in found.signs))
        raise DataError(f"--strict: {names}; see the warnings")


def _print(found: DataCheck) -> None:
    from mosesplug.cli.shared.layouts import Layout, current_layout
    from mosesplug.cli.shared.tables import print_table

    is_text = current_layout() is Layout.TEXT
    head = ("text", "lines", "words", "a line", "longest", "empty", "repeated", "distinct words")
    print_table(
        head,
        (
            (
                text.name,
                str(text.lines),
                str(text.words),
                f"{text.mean:.1f}",
                str(text.longest),
                str(text.empty),
                str(text.repeated),
                str(text.distinct),
            )
            for text in found.texts
        ),
        left=1,
    )
    if found.facts:
        if is_text:
            print()
        facts = ((name, f"{value:.4g}") for name, value in found.facts.items())
        print_table(("figure", "value"), facts, left=1)
    if is_text:
        print()
    if found.signs:
        rows = ((sign.name, sign.message) for sign in found.signs)
        print_table(("warning", "message"), rows, left=2)
    elif is_text:
        print("no warnings")
