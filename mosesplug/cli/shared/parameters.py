"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cli.shared.inputs import OUTPUT, REFERENCES, SCORES, WEIGHTS
from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError

__all__ = [
    "THREADS",
    "Errors",
    "GraphWeights",
    "IterationOption",
    "Json",
    "ListReferences",
    "ListWeights",
    "Lists",
    "MetricName",
    "MetricSettings",
    "Metrics",
    "Output",
    "OutsideScores",
    "Percent",
    "Quiet",
    "References",
    "Seed",
    "SentenceId",
    "SentenceIdsOfLines",
    "Source",
    "SparseWeights",
    "Store",
    "StoreWeights",
    "Threads",
    "parse_iteration",
]

THREADS = usable_cores()

Store = Annotated[
    Path, typer.Argument(metavar="STORE", help="A working directory, or the store in it.")
]
Lists = Annotated[
    list[Path],
    typer.Argument(
        metavar="STORE|NBEST...",
        help="A working directory or store, or n-best lists of one text.",
        show_default=False,
    ),
]
SentenceId = Annotated[
    str, typer.Argument(metavar="SENTENCE", help="A sentence id, or its number from 0.")
]
Source = Annotated[Path | None, typer.Option("--source", help="The source sentences.")]
References = Annotated[
    Path | None,
    typer.Option("--refs", help="The references: a file, or a prefix of several."),
    REFERENCES,
]
ListReferences = Annotated[
    Path | None,
    typer.Option("--refs", help="The references: a file, or a prefix; required for NBEST."),
    REFERENCES,
]
IterationOption = Annotated[
    str, typer.Option("--iteration", metavar="N|all", help="The lists of one iteration, or merged.")
]
StoreWeights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FILE|RUN",
        help="Weights of the model score, in any format [the run's result].",
    ),
    WEIGHTS,
]
ListWeights = Annotated[
    str | None,
    typer.Option(
        "--weights", metavar="FILE|RUN", help="Weights that rank the lists, in any format."
    ),
    WEIGHTS,
]
GraphWeights = Annotated[
    str | None,
    typer.Option(
        "--weights", metavar="FILE|RUN", help="Weights, in any format [the file weights of GRAPHS]."
    ),
    WEIGHTS,
]
SparseWeights = Annotated[
    Path | None,
    typer.Option("--sparse-weights", metavar="FILE", help="Sparse weights, name value a line."),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="BLEU, CDER, CER, CHRF, MER, PER, TER, TER-SACREBLEU, WER, or a sum. [BLEU; of a "
        "store, the metric of its run]",
        autocompletion=complete_metrics,
    ),
]
OutsideScores = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        metavar="NAME=FILE",
        help="Scores from outside, a line a hypothesis, as a metric; repeatable.",
    ),
    SCORES,
]
MetricSettings = Annotated[
    str, typer.Option(metavar="SETTINGS", help="Metric settings, as reflen:shortest,case:false.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="'NAME [SETTINGS]'",
        help="A metric, as 'CHRF beta:2'; may be repeated [BLEU, TER-SACREBLEU, CHRF beta:2].",
        autocompletion=complete_metrics,
    ),
]
SentenceIdsOfLines = Annotated[
    bool | None,
    typer.Option("--ids/--no-ids", help="Lines begin with sentence ids [if they look so]."),
]
Errors = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Count edits of WER, MER, CER; show N aligned sentences."
    ),
]
Percent = Annotated[
    bool, typer.Option("--percent", help="Scores from 0 to 100, as sacrebleu prints them.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of all random choices.")]
Threads = Annotated[
    int, typer.Option(min=1, metavar="N", help="Threads; the result does not depend on it.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The output [stdout]."),
    OUTPUT,
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print results and errors only.")]


def parse_iteration(text: str) -> int | None:
    """Return the number of ``--iteration``, None for all.

    Raises:
        UsageError: it is neither a number nor ``all``.
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"--iteration takes a number from 1, or all, not {text!r}")
    return int(text)
