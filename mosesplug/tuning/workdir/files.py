"""The files of an iteration, in the spelling of ``mert-moses.pl``; numbers lose no digits.

All of them follow from weights that the store holds, so that each can be written again. Only the
date in a configuration's header is of the moment.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.moses.decoder_flags import decoder_flags
from formats.moses.ini import read_moses_ini, with_weights
from formats.text import write_atomic
from formats.weights.files import (
    InitOpt,
    ShowWeights,
    format_dense,
    format_init_opt,
    format_sparse,
    format_weights_txt,
)
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.tuning_set import TuningSet

__all__ = [
    "date",
    "write_before",
    "write_config",
    "write_extractor_files",
    "write_finished_step",
    "write_init_opt",
    "write_sparse_weights",
    "write_weights",
]


def write_before(
    configuration: Configuration,
    workspace: Workspace,
    config: Path,
    show: ShowWeights,
    iteration: int,
    weights: Weights,
    score: float | None,
) -> None:
    """``runN.moses.ini`` and ``runN.dense``: what an iteration is decoded with."""
    sparse = None
    if weights.sparse and iteration > 1:
        sparse = workspace.run(iteration, "sparse-weights")
    target = workspace.run(iteration, "moses.ini")
    write_config(configuration, config, target, show, weights, sparse, iteration, score)
    pairs = zip(show.names, weights.dense, strict=True)
    dense = format_dense(((name, (weight,)) for name, weight in pairs), one_value_a_line=True)
    write_atomic(workspace.run(iteration, "dense"), dense)


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
    """A configuration with other weights and the decoder's flags in it, all else as it was.

    ``score`` is of the tuning set, ``heldout`` of the held-out text, as far as they are known.
    """
    decoder = configuration.decoding.decoder
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
    """Comments for the top of a configuration.

    Two of them have the words of ``mert-moses.pl``, ``BLEU 0.41`` and ``We were before running
    iteration 7``: the web page of Moses' experiment management looks for these.
    """
    decoder = configuration.decoding.decoder
    metric = configuration.metric.name
    value = "--not-estimated--" if score is None else f"{score:.6g}"
    other = configuration.held_out
    judged: tuple[str, ...] = ()
    if heldout is not None and other is not None:
        judged = (f"held out, {other.input}: {metric} {heldout:.6g}",)
    return (
        f"weights tuned by mosesplug, algorithm {configuration.optimising.algorithm}",
        f"decoder {shlex.join([str(decoder.program), *decoder.flags])}",
        f"{metric} {value} on dev {configuration.input}",
        *judged,
        f"We were before running iteration {iteration}",
        f"finished {date()}",
    )


def write_init_opt(
    workspace: Workspace,
    iteration: int,
    weights: Weights,
    minima: Sequence[float],
    maxima: Sequence[float],
) -> None:
    """``runN.init.opt``: where the search starts, and the box of its random starts."""
    init = InitOpt(weights.dense, tuple(minima), tuple(maxima))
    write_atomic(workspace.run(iteration, "init.opt"), format_init_opt(init))


def write_weights(workspace: Workspace, iteration: int, weights: Weights) -> None:
    """``runN.weights.txt``, and sparse weights for the next decoding: its ``sparse-weights``."""
    text = format_weights_txt(weights.dense, digits=None)
    write_atomic(workspace.run(iteration, "weights.txt"), text)
    if weights.sparse:
        write_sparse_weights(workspace, iteration + 1, weights)


def write_sparse_weights(workspace: Workspace, iteration: int, weights: Weights) -> None:
    """``runN.sparse-weights``, which the decoder reads in that iteration."""
    path = workspace.run(iteration, "sparse-weights")
    write_atomic(path, format_sparse(weights.sparse))


def write_extractor_files(
    workspace: Workspace, iteration: int, lists: TuningSet, metric: str
) -> None:
    """``runN.features.dat`` and ``runN.scores.dat``, as Moses' extractor makes them."""
    sparse = None
    if lists.sparse is not None:
        rows = lists.sparse
        sparse = SparseColumns(lists.space.sparse, rows.indptr, rows.indices, rows.data)
    write_features(
        workspace.run(iteration, "features.dat"),
        lists.space.names[: lists.space.n_dense],
        lists.sentence_ids,
        lists.offsets,
        lists.dense,
        sparse,
    )
    write_scores(
        workspace.run(iteration, "scores.dat"),
        metric,
        lists.sentence_ids,
        lists.offsets,
        lists.stats,
    )


def write_finished_step(workspace: Workspace, iteration: int) -> None:
    """``finished_step.txt``: the number of the last finished iteration."""
    write_atomic(workspace.finished_step, f"{iteration}\n".encode())


def date() -> str:
    """Now, as ``date`` prints it in the C locale and in UTC."""
    return time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime())
