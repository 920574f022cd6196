"""``mosesplug ask`` and ``tell``: a tuning run without a decoder of its own.

A script or a scheduler runs the decoder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosesplug.cli.shared.inputs import OUTPUT, REFERENCES, Files
from mosesplug.cli.shared.setting_options import add_parameters, make_parameters, take_values
from mosesplug.errors import UsageError
from mosesplug.options import Opt, list_options
from mosesplug.settings.configuration import RunPlan

if TYPE_CHECKING:
    from mosesplug.api.tuner import Tuner

__all__ = ["ask", "tell"]

_PANELS = ("Data", "Learning", "Parallel", "Output")
_OF_DECODER = ("nbest", "weights-format", "config-weights-first")
_OMITTED = ("refs", "config", "decoder", "working-dir", "continue", "last", "verbose", "quiet")

_Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The working directory of the run."), OUTPUT
]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def _list_own_settings() -> list[Opt]:
    """Return the settings of a run that has no decoder of its own."""
    return [
        each
        for each in list_options(RunPlan)
        if each.name not in _OMITTED and (each.panel in _PANELS or each.name in _OF_DECODER)
    ]


def _ask(
    directory: _Directory,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REFS WEIGHTS",
            help="References, and a file with all features and their starting weights. Only"
            " needed to begin a run.",
            show_default=False,
        ),
        Files((*REFERENCES.kinds, "path")),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: _Quiet = False,
    **given: Any,
) -> None:
    """Print the weights that a decoder elsewhere must decode with.

    Prints the path of a file of weights, or nothing if the run is finished; then the resulting
    weights are in DIR. Decode, and give the n-best list to `mosesplug tell DIR FILE`. Until then,
    the same weights are printed. Settings that are not given are those the run began with.

    Example: mosesplug ask tuning dev.en start.weights --algorithm kbmira
    """
    from mosesplug.cli.shared.output import print_json

    values = take_values(_list_own_settings(), given)
    if files and len(files) != 2:
        raise UsageError(f"expected two arguments after DIR (REFS WEIGHTS), got {len(files)}")
    references, weights = files or (None, None)
    with _open(directory, values, references, weights, quiet=quiet) as tuner:
        request = tuner.ask()
        path = tuner.result_path if request is None else request.weights_path
    if as_json:
        print_json(
            {
                "iteration": None if request is None else request.iteration,
                "weights": str(path),
                "nbest_size": None if request is None else request.nbest_size,
                "finished": tuner.reason or None,
            }
        )
    elif request is not None:
        print(path)
    elif not quiet:
        print(f"tuned weights: {path}", file=sys.stderr)


ask = add_parameters(_ask, make_parameters(_list_own_settings()))


def tell(
    directory: _Directory,
    lists: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The n-best lists of all sentences, in any format."),
    ],
    iteration: Annotated[
        int | None,
        typer.Option(
            "--iteration",
            metavar="N",
            min=1,
            help="The open request's iteration; accepts repeated lists, too.",
        ),
    ] = None,
    quiet: _Quiet = False,
) -> None:
    """Store and learn from the n-best list that answers `mosesplug ask`.

    If the list cannot be used, nothing is stored, and the request is still open. A list is told
    once: without an open request, this is an error, and so is the list of an earlier request,
    unless --iteration says that the decoder wrote it again.

    Example: mosesplug tell tuning run1.nbest
    """
    with _open(directory, {}, None, None, quiet=quiet) as tuner:
        request = tuner.ask_again()
        if request is None:
            raise UsageError(
                f"there is no open request in {directory}: its list has been told, or none was"
                f" asked for. Run mosesplug ask {directory}"
            )
        if iteration is not None and iteration != request.iteration:
            raise UsageError(
                f"the open request in {directory} is of iteration {request.iteration}, not"
                f" {iteration}"
            )
        tuner.tell(request, lists, may_repeat=iteration is not None)


def _open(
    directory: Path,
    values: dict[str, Any],
    references: str | None,
    weights: str | None,
    *,
    quiet: bool,
) -> Tuner:
    from mosesplug.api.tuner import open_tuner
    from mosesplug.cli.run.progress import Reporter

    return open_tuner(
        directory,
        values,
        references=references,
        initial=weights,
        overwrite=bool(values.pop("overwrite", False)),
        watch=Reporter(sys.stderr, quiet=quiet, verbose=False),
        spelled="--{}".format,
    )
