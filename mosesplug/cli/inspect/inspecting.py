"""What the commands that look at a store have in common: their parameters, and texts beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.inspection.run import Run
    from mosesplug.inspection.texts import Texts
    from mosesplug.tuning.weights import Weights

__all__ = [
    "Dense",
    "IterationOption",
    "Json",
    "Refs",
    "Source",
    "Store",
    "WeightsFile",
    "iteration_of",
    "texts_of",
    "weights_of",
]

Store = Annotated[
    Path, typer.Argument(metavar="STORE", help="A working directory, or the store in it.")
]
Refs = Annotated[
    Path | None, typer.Option("--refs", help="The references: a file, or a prefix of several.")
]
Source = Annotated[Path | None, typer.Option("--source", help="The input.")]
Dense = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Of lists that name every value (name=value, as Joshua and cdec do), which features "
        "are dense; the others are sparse. [all, if there are up to 50; else those that at least "
        "half of the lines have]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")]
IterationOption = Annotated[
    str, typer.Option("--iteration", metavar="N|all", help="One iteration's lists, or all, merged.")
]
WeightsFile = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="Score with these: moses.ini, runN.dense, ... [the run's result]",
    ),
]


def texts_of(source: Path | None, refs: Path | None) -> Texts:
    """The texts that are given.

    Raises:
        FormatError: one cannot be read.
    """
    from formats.references import read_references
    from formats.text import read_lines
    from mosesplug.inspection.texts import Texts

    return Texts(
        read_lines(source) if source is not None else (),
        read_references(refs) if refs is not None else (),
    )


def iteration_of(text: str) -> int | None:
    """The number that ``--iteration`` gives; None for all.

    Raises:
        UsageError: it is neither.
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"--iteration is a number from 1, or all, not {text!r}")
    return int(text)


def weights_of(run: Run, path: Path | None) -> Weights | None:
    """The weights in a file, for the features of a run.

    Raises:
        FormatError: they are not weights of these features.
    """
    if path is None:
        return None
    from mosesplug.learning.weights import read_starting_weights
    from mosesplug.tuning.weights import Weights

    return Weights.of_vector(run.space, read_starting_weights(run.space, path).weights)
