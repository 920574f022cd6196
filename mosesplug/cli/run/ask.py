"""``mosesplug ask`` and ``tell``: a tuning run without a decoder of its own.

A script or a scheduler runs the decoder.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mosesplug.api.requests import Request
from mosesplug.api.tuner import Tuner
from mosesplug.cli.run.options import AskCommand, TellCommand
from mosesplug.cli.run.progress import Reporter
from mosesplug.cli.shared.output import print_json
from mosesplug.errors import UsageError


@dataclass(frozen=True)
class AskedWeights:
    """The weights for the next decoding, or those of the result.

    Attributes:
        iteration, nbest_size: None if the run is finished.
        weights: a file of weights, at the end that of the result.
        finished: why the run ended; None if it has not.
        batch: number of the mini-batch in its epoch, if the run is online.
        sentences: a file with the ids of its sentences.
        source: a file with the source sentences, if they are not those of the tuning set.
    """

    JSON_KEYS: ClassVar = "iteration weights nbest_size finished batch? sentences? source?"

    iteration: int | None
    weights: str
    nbest_size: int | None
    finished: str | None
    batch: int | None = None
    sentences: str | None = None
    source: str | None = None


def ask(options: AskCommand) -> None:
    """Print the weights for the next decoding, which the user runs."""
    values, files, directory = dict(options.given or {}), options.files, options.directory
    if files and len(files) != 2:
        raise UsageError(f"expected two arguments after DIR (REFS WEIGHTS), got {len(files)}")
    references, weights = files or (None, None)
    with _open(directory, values, references, weights, quiet=options.quiet) as tuner:
        request = tuner.ask()
        path = tuner.result_path if request is None else request.weights_path
    if options.as_json:
        print_json(_describe(request, path, tuner.reason))
    elif request is not None:
        print(path)
        for further in (request.sentences_path, request.source_path):
            if further is not None:
                print(further)
    elif not options.quiet:
        print(f"tuned weights: {path}", file=sys.stderr)


def _describe(request: Request | None, path: Path, reason: str) -> AskedWeights:
    if request is None:
        return AskedWeights(None, str(path), None, reason or None)
    ids, source = (
        None if file is None else str(file)
        for file in (request.sentences_path, request.source_path)
    )
    number, size = request.iteration, request.nbest_size
    return AskedWeights(number, str(path), size, None, request.batch, ids, source)


def tell(options: TellCommand) -> None:
    """Store and learn from the n-best list that answers `mosesplug ask`."""
    directory, iteration = options.directory, options.iteration
    with _open(directory, {}, None, None, quiet=options.quiet) as tuner:
        request = tuner.ask_again()
        if request is None:
            raise UsageError(
                f"there is no open request in {directory}: its lists were taken, or nothing"
                f" was asked for. Run mosesplug ask {directory}"
            )
        if iteration is not None and iteration != request.iteration:
            raise UsageError(
                f"the open request in {directory} is for iteration {request.iteration}, not"
                f" {iteration}"
            )
        tuner.tell(request, options.lists, may_repeat=iteration is not None)


def _open(
    directory: Path,
    values: dict[str, Any],
    references: str | None,
    weights: str | None,
    *,
    quiet: bool,
) -> Tuner:
    return Tuner.open(
        directory,
        references=references,
        initial=weights,
        overwrite=bool(values.pop("overwrite", False)),
        watch=Reporter(sys.stderr, quiet=quiet, verbose=False),
        **{name.replace("-", "_"): value for name, value in values.items()},
    )
