"""``mosesplug score``: how good translations are, by several metrics."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from mosesplug.cli.inspect.inspecting import Json
from mosesplug.errors import UsageError

__all__ = ["METRICS", "MetricOption", "Samples", "Seed", "score"]

METRICS = ("BLEU", "TER-SACREBLEU", "CHRF beta:2")

MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="'NAME [SETTINGS]'",
        help="BLEU, CDER, CHRF, PER, TER (as Moses has it), TER-SACREBLEU, WER; with settings "
        "as 'CHRF beta:2'; may be repeated [BLEU, TER-SACREBLEU, CHRF beta:2].",
    ),
]
Samples = Annotated[
    int, typer.Option(min=0, help="Of the bootstrap, for 95 % intervals; 0 for none.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Of all random choices.")]


def score(
    translation: Annotated[
        Path, typer.Argument(metavar="HYP", help="The translation, one sentence a line.")
    ],
    references: Annotated[
        list[Path],
        typer.Argument(metavar="REF...", help="Its references: files, or the prefix of several."),
    ],
    metric: MetricOption = None,
    nbest: Annotated[
        bool, typer.Option("--nbest", help="HYP is an n-best list: score one of each sentence.")
    ] = False,
    rank: Annotated[
        int | None,
        typer.Option(min=1, help="With --nbest, which; of a shorter list the last [1]."),
    ] = None,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="With --nbest, the best choice, by greedy search.")
    ] = False,
    names: Annotated[
        str | None, typer.Option(help="Names of the values of an unlabelled list, comma-separated.")
    ] = None,
    samples: Samples = 1000,
    seed: Seed = 1,
    sentences: Annotated[
        bool,
        typer.Option("--sentences", help="Scores of single sentences too, tab-separated."),
    ] = False,
    json: Json = False,
) -> None:
    """How good a translation is: scores, 95 % intervals, signatures.

    Texts are taken as they are, tokens between blanks. TER, WER, PER and CDER are rates of errors:
    less is better. The score of a sentence is BLEU+1 (Lin & Och 2004) for BLEU, else the metric's.

    Example: mosesplug score output.en dev.en --metric BLEU --metric 'CHRF beta:2'
    """
    import numpy as np

    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.evaluation.scores import candidate
    from mosesplug.evaluation.significance import bootstrap_interval
    from mosesplug.evaluation.translations import (
        by_sentence,
        chosen_of_list,
        figure,
        judges,
    )

    if not nbest and (rank is not None or oracle or names is not None):
        raise UsageError("--rank, --oracle and --names are for n-best lists: give --nbest, too")
    if rank is not None and oracle:
        raise UsageError("--rank and --oracle exclude each other")
    lines = _references(references)
    threads = os.cpu_count() or 1
    rows: list[dict[str, Any]] = []
    columns = []
    for judge in judges(metric or METRICS, lines):
        if nbest:
            choice = "oracle" if oracle else rank or 1
            listed = names.split(",") if names else None
            statistics = chosen_of_list(
                translation,
                judge,
                choice,  # type: ignore[arg-type]
                names=listed,
                threads=threads,
            )
        else:
            hypotheses = candidate(translation, len(lines[0]))
            statistics = judge.statistics(hypotheses, threads)
        name = judge.metric.name
        row: dict[str, Any] = {"metric": name}
        row["score"] = figure(name, float(judge.metric.score(statistics.sum(axis=0))))
        if samples:
            rng = np.random.default_rng(seed)
            low, high, _ = bootstrap_interval(judge.metric, statistics, samples, rng)
            row["interval"] = sorted([figure(name, low), figure(name, high)])
        row["signature"] = judge.prepared.signature
        rows.append(row)
        columns.append([figure(name, each) for each in by_sentence(judge, statistics).tolist()])
    if json:
        if sentences:
            for row, column in zip(rows, columns, strict=True):
                row["sentences"] = column
        print_json(rows)
        return
    if sentences:
        print("\t".join(["sentence", *(row["metric"] for row in rows)]))
        for number, values in enumerate(zip(*columns, strict=True)):
            print("\t".join([str(number), *(f"{value:.4f}" for value in values)]))
        print()
    print_table(
        ("metric", "score", "95 % interval", "signature"),
        [
            (
                row["metric"],
                f"{row['score']:.4f}",
                "{:.4f} to {:.4f}".format(*row["interval"]) if samples else "",
                row["signature"],
            )
            for row in rows
        ],
        left=1,
        last=1,
    )


def _references(paths: list[Path]) -> list[list[bytes]]:
    """The lines of all references; one path may be the prefix of several.

    Raises:
        FormatError: one cannot be read, or the first is empty.
    """
    from formats.errors import FormatError
    from formats.references import read_reference, read_references

    if len(paths) == 1:
        found = read_references(paths[0])
    else:
        found = [read_reference(path) for path in paths]
    if not found[0]:
        raise FormatError(
            "there is no reference in it",
            path=paths[0],
            remedy="Give the reference translation, one sentence a line",
        )
    return found
