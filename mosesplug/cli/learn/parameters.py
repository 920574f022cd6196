"""Options of ``optimize`` and ``bench-optimizers``, apart from those of other commands, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mosesplug.errors import UsageError

__all__ = [
    "AlgorithmOptions",
    "Folds",
    "FromStore",
    "HeldOutLists",
    "HeldOutRefs",
    "HeldOutShare",
    "Init",
    "Iterations",
    "Runs",
    "SelectOfRuns",
    "SparseInit",
    "column_names",
]

FromStore = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="STORE",
        help="Learn from the lists of a tuning run: its working directory or store. It needs "
        "--refs for another --metric only.",
    ),
]
Iterations = Annotated[
    str | None,
    typer.Option(
        metavar="A:B|N|-N",
        help="With --from, the iterations to use; -N: the newest N. [all]",
    ),
]
Init = Annotated[
    Path | None,
    typer.Option(
        "--init",
        metavar="FILE",
        help="Starting weights: moses.ini, runN.dense, init.opt, ... [those that made the graphs "
        "or the store's lists; else equal ones]",
    ),
]
SparseInit = Annotated[
    Path | None,
    typer.Option(
        "--sparse-init",
        metavar="FILE",
        help="Starting weights of sparse features, name value a line.",
    ),
]
AlgorithmOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="A setting of the algorithm, as epochs=3 (mosesplug algorithms NAME lists all); may "
        "be repeated.",
    ),
]
HeldOutShare = Annotated[
    float | None,
    typer.Option(
        "--held-out",
        metavar="SHARE",
        help="Hold out this share of the sentences, as 0.2, and score it, too.",
    ),
]
HeldOutLists = Annotated[
    list[Path] | None,
    typer.Option(
        "--heldout-nbest",
        metavar="FILE",
        help="n-best lists of a held-out set to score; may be repeated.",
    ),
]
HeldOutRefs = Annotated[
    Path | None,
    typer.Option(
        "--heldout-refs",
        metavar="FILE",
        help="The references of --heldout-nbest.",
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="K",
        help="Report a K-fold cross-validation first. It does not change the weights.",
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Learn N times, with seeds S, S+1, ..., and print how the scores vary (Clark et al. "
        "2011).",
    ),
]
SelectOfRuns = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="WHICH",
        help="With --runs, the weights to write: of the median run, of the run best-heldout, or "
        "their average. [median]",
    ),
]


def column_names(names: str | None) -> Sequence[str] | None:
    """Return the names of columns; those of one group have one name and are adjacent.

    Raises:
        UsageError: an empty name, or a group that is not adjacent.
    """
    from mosesplug.features import FeatureSpace

    if names is None:
        return None
    columns = [name.strip() for name in names.split(",")]
    if not all(columns):
        raise UsageError(f"--names={names}: a name is empty")
    groups = [group for group, _ in FeatureSpace.of_names(columns).groups]
    for group in groups:
        if groups.count(group) > 1:
            raise UsageError(f"--names={names}: the columns of {group} are not adjacent")
    return columns
