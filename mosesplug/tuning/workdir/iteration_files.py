"""Read and write the files of an iteration, as ``mert-moses.pl`` does.

``tune`` writes them with all digits. They follow from the content of the store, so each can be
written again; only the date in the header of a ``moses.ini`` differs. Whoever needs weights or
lists of a working directory without a store (a resumed run, ``import``, ``weights``) reads them
here.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path

from formats.errors import FormatError
from formats.moses.decoder_flags import decoder_flags
from formats.moses.ini import read_moses_ini, with_weights
from formats.text import read_bytes, write_atomic
from formats.weights.any_format import WeightFile, read_weights
from formats.weights.files import (
    ShowWeights,
    format_sparse,
    format_weight,
    format_weights_txt,
    read_sparse,
)
from formats.weights.weight_format import Format
from mosesplug.decoders.command import format_decoder_weights
from mosesplug.decoders.protocol import WEIGHT_FILES
from mosesplug.errors import DataError
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.weights import Weights, to_model_weights
from mosesplug.tuning.workdir.workspace import Workspace

_NOT_USED = b"not used"
_DENSE_NAME = re.compile(r"F[0-9]{1,4}")
_NBEST_LIST = re.compile(r"run([0-9]+)\.best[0-9]+\.out(\.(gz|bz2|xz))?")


def find_nbest_lists(directory: Path) -> dict[int, Path]:
    """Return the n-best list of each iteration that has one, by iteration."""
    lists: dict[int, Path] = {}
    for path in sorted(directory.iterdir()):
        if match := _NBEST_LIST.fullmatch(path.name):
            lists.setdefault(int(match[1]), path)
    return lists


def read_decoding_weights(workspace: Workspace, iteration: int) -> WeightFile | None:
    """Read the weights that an iteration was decoded with; None if they are missing.

    They are in ``runN.dense`` and, if there are sparse weights, ``runN.sparse-weights``.

    Raises:
        FormatError: a file cannot be read.
    """
    return _read_weights(workspace, workspace.run(iteration, "dense"), "dense", iteration)


def read_resulting_weights(workspace: Workspace, iteration: int) -> WeightFile | None:
    """Read the weights that an iteration led to; None if they are missing.

    They are those that the next iteration was decoded with, or ``runN.weights.txt``. After another
    optimizer than ``mert``, the script has no weights there, and they are in ``runN.mert.out``.

    Raises:
        FormatError: a file cannot be read.
    """
    if (weights := read_decoding_weights(workspace, iteration + 1)) is not None:
        return weights
    path = workspace.run(iteration, "weights.txt")
    if path.is_file() and read_bytes(path).strip() == _NOT_USED:
        return _read_optimizer_output(workspace, iteration)
    return _read_weights(workspace, path, "weights.txt", iteration + 1)


def _read_optimizer_output(workspace: Workspace, iteration: int) -> WeightFile | None:
    """Read ``F0 0.3`` and ``name 0.3`` lines, and normalize as the script does."""
    path = workspace.run(iteration, "mert.out")
    if not path.is_file():
        return None
    given = read_sparse(path)
    dense = {int(name[1:]): given[name] for name in given if _DENSE_NAME.fullmatch(name)}
    norm = sum(map(abs, dense.values()))
    if not norm:
        raise FormatError("all dense weights are missing or 0", path=str(path))
    numbers = tuple(dense.get(place, 0.0) / norm for place in range(max(dense) + 1))
    sparse = {n: value / norm for n, value in given.items() if not _DENSE_NAME.fullmatch(n)}
    return WeightFile(str(path), "weights.txt", numbers=numbers, sparse=sparse)


def _read_weights(
    workspace: Workspace, dense: Path, format: Format, iteration: int
) -> WeightFile | None:
    if not dense.is_file():
        return None
    weights, sparse = read_weights(dense, (format,)), workspace.run(iteration, "sparse-weights")
    return replace(weights, sparse=read_sparse(sparse)) if sparse.is_file() else weights


def read_finished_step(workspace: Workspace) -> int:
    """Return the number of the last finished iteration, 0 if there is none.

    Raises:
        DataError: ``finished_step.txt`` is not a number.
    """
    path = workspace.finished_step
    try:
        return int(path.read_text()) if path.is_file() else 0
    except ValueError as error:
        raise DataError(
            f"{path} is not a number. Correct it, or start in another directory"
        ) from error


def writes_moses_ini(configuration: Configuration) -> bool:
    """Return whether the run writes its weights into copies of a ``moses.ini``."""
    return configuration.decoding.decoder.weights_format == "moses"


def weights_path(configuration: Configuration, workspace: Workspace, iteration: int) -> Path:
    """Return ``runN.moses.ini``, or the file in another format that the decoder reads."""
    return workspace.run(iteration, WEIGHT_FILES[configuration.decoding.decoder.weights_format])


def result_path(configuration: Configuration, workspace: Workspace) -> Path:
    """Return the file of the result: ``moses.ini``, or one in another format."""
    return workspace.directory / WEIGHT_FILES[configuration.decoding.decoder.weights_format]


def write_config(
    configuration: Configuration,
    source: Path,
    target: Path,
    show: ShowWeights,
    weights: Weights,
    sparse_file: Path | None,
    iteration: int,
    score: float | None,
    heldout: float | None = None,
) -> None:
    """Write a configuration with other weights and the decoder's flags.

    All else is unchanged. A decoder that reads another format gets only the weights, in that
    format. ``score`` is of the tuning set, ``heldout`` of the held-out set, if they are known.
    """
    decoder = configuration.decoding.decoder
    if not writes_moses_ini(configuration):
        model = to_model_weights(show, weights)
        write_atomic(target, format_decoder_weights(model, decoder.weights_format))
        return
    data = with_weights(
        read_moses_ini(source),
        show.with_values(weights.dense),
        sections=decoder_flags(shlex.join(decoder.flags)),
        sparse_file=None if sparse_file is None else str(sparse_file),
        header=_header(configuration, iteration, score, heldout),
        digits=None,
    )
    write_atomic(target, data)


def _header(
    configuration: Configuration, iteration: int, score: float | None, heldout: float | None
) -> tuple[str, ...]:
    """Return the comments at the top of a configuration.

    The web page of Moses' experiment management looks for two of them, in the words of
    ``mert-moses.pl``: ``BLEU 0.41`` and ``We were before running iteration 7``.
    """
    decoder = configuration.decoding.decoder
    metric = configuration.metric.name
    value = "--not-estimated--" if score is None else f"{score:.6g}"
    other = configuration.held_out
    judged: tuple[str, ...] = ()
    if heldout is not None and other is not None:
        judged = (f"held out, {other.input}: {metric} {heldout:.6g}",)
    return (
        f"weights tuned by mosesplug, algorithm {configuration.optimization.algorithm}",
        f"decoder {shlex.join(decoder.words)}",
        f"{metric} {value} on dev {configuration.input}",
        *judged,
        f"We were before running iteration {iteration}",
        f"finished {format_date()}",
    )


def write_weights(workspace: Workspace, iteration: int, weights: Weights) -> None:
    """Write ``runN.weights.txt``, and the ``sparse-weights`` of the next iteration."""
    text = format_weights_txt(weights.dense, digits=None)
    write_atomic(workspace.run(iteration, "weights.txt"), text)
    if weights.sparse:
        write_sparse_weights(workspace, iteration + 1, weights)


def write_sparse_weights(workspace: Workspace, iteration: int, weights: Weights) -> None:
    """Write ``runN.sparse-weights``, which the decoder reads in that iteration."""
    path = workspace.run(iteration, "sparse-weights")
    write_atomic(path, format_sparse(weights.sparse))


def write_optimizer_files(
    workspace: Workspace, iteration: int, weights: Weights, score: float
) -> None:
    """Write ``runN.mert.log`` and ``.mert.out`` for ``mert-moses.pl --continue``.

    It takes the result of ``mert`` from the first, and that of ``kbmira`` and PRO from the second.
    """
    point = format_weights_txt(weights.dense, digits=None).decode().strip()
    value = f"{score:.6f}" if math.isfinite(score) else "0"
    log = f"Best point: {point} => {value}\nBest BLEU = {value}\n"
    write_atomic(workspace.run(iteration, "mert.log"), log.encode())
    dense = "".join(f"F{i} {format_weight(value)}\n" for i, value in enumerate(weights.dense))
    out = dense.encode() + format_sparse(weights.sparse)
    write_atomic(workspace.run(iteration, "mert.out"), out)


def write_finished_step(workspace: Workspace, iteration: int) -> None:
    """Write ``finished_step.txt``: the number of the last finished iteration."""
    write_atomic(workspace.finished_step, f"{iteration}\n".encode())


def format_date() -> str:
    """Return the current time as ``date`` prints it in the C locale and in UTC."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime())
