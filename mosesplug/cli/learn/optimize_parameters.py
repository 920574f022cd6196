"""Options of ``mosesplug optimize`` for stored lists, sentences held out, and several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Folds",
    "FromStore",
    "HeldOutLists",
    "HeldOutRefs",
    "HeldOutShare",
    "Iterations",
    "Runs",
    "SelectOfRuns",
]

FromStore = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="STORE",
        help="Learn from the lists of a tuning run: its working directory, or the store in it, "
        "which stays as it is. Its statistics are used, so that --refs are needed for another "
        "--metric only. Starts with the weights of the first iteration that is used.",
    ),
]
Iterations = Annotated[
    str | None,
    typer.Option(metavar="A:B|N|-N", help="With --from, which iterations; -N: the newest N [all]."),
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="K",
        help="Cross-validation first: sentences are dealt to K folds, each scored with weights "
        "learnt from the others. The weights that are written are learnt from all sentences, as "
        "without.",
    ),
]
HeldOutShare = Annotated[
    float | None,
    typer.Option(
        "--held-out",
        metavar="SHARE",
        help="Hold this share of the sentences out, as 0.2, and score on it, too; the weights are "
        "learnt from the rest.",
    ),
]
HeldOutLists = Annotated[
    list[Path] | None,
    typer.Option(
        "--heldout-nbest",
        metavar="FILE",
        help="Lists of other text to score on, too; several are merged: repeat the option.",
    ),
]
HeldOutRefs = Annotated[
    Path | None, typer.Option("--heldout-refs", metavar="REFS", help="Its references.")
]
Runs = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Learn so many times, with seeds S, S+1, ..., S+N-1 where --seed is S, and print how "
        "much the scores differ (Clark et al. 2011).",
    ),
]
SelectOfRuns = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="median|best-heldout|average",
        help="With --runs, whose weights are written: those of the median run (by what was held "
        "out, if anything was; of an even number the lower of two in the middle), of the run that "
        "is best on it, or the average of all, each normalised [median].",
    ),
]
