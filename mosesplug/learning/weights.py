"""Read starting weights of any format for a feature space; write learned ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.graphs.hypergraph import hypergraph_names
from formats.nbest.block import NBestList
from formats.text import StrPath, write_atomic
from formats.weights.any_format import WeightFile
from formats.weights.files import format_dense, format_sparse
from formats.weights.list_changes import ListChanges
from formats.weights.named import (
    find_directory,
    length_companion,
    read_named_weights,
    sparse_companion,
)
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.lengths import divide_block
from mosesplug.learning.made_features import check_made_features
from mosesplug.settings.lengths import LengthRange
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.tuning_set import SparseRows, linear_scores


@dataclass(frozen=True)
class StartingWeights:
    """The weights that an optimizer starts from.

    Attributes:
        minima, maxima: float64 ``[n_features]``, the box of random starts; None if the file has
            none.
    """

    weights: NDArray[np.float64]
    minima: NDArray[np.float64] | None = None
    maxima: NDArray[np.float64] | None = None


def arrange_weights(
    file: WeightFile, space: FeatureSpace, lists: str = "this input"
) -> StartingWeights:
    """Return a file's weights in the order of ``space``; missing sparse ones are 0.

    Args:
        lists: what messages call the lists or graphs that have these features.

    Raises:
        UsageError: the weights were learned with added or derived features that ``space`` lacks.
        FormatError: the file lacks the weight of a dense feature, or a file of sparse weights that
            a ``moses.ini`` names cannot be read.
    """
    check_made_features(file, [name for name, _ in space.groups], lists)
    tail = _find_sparse(file, space)
    if not file.numbers:
        return StartingWeights(np.array([*_find_by_name(file, space), *tail], dtype=np.float64))
    if len(file.numbers) != space.n_dense:
        raise FormatError(
            f"{len(file.numbers)} weights, but the lists have {space.n_dense} dense features",
            path=file.path,
            remedy=f"Give one for each of {', '.join(space.names[: space.n_dense])}",
        )
    box = (
        None if side is None else np.append(side, np.zeros(space.n_sparse))
        for side in (file.minima, file.maxima)
    )
    return StartingWeights(np.append(file.numbers, tail), *box)


def read_initial_weights(name: str, sparse: StrPath | None = None) -> WeightFile:
    """Return the weights that ``--init`` names, a file or a run.

    Args:
        name: as for ``read_named_weights``, or a working directory.
        sparse: as for ``read_named_weights``.

    Raises:
        UsageError: the run in a directory has no result, or none of several runs is the result.
    """
    directory = find_directory(name)
    if directory is None:
        return read_named_weights(name, sparse)
    results = (path for path in Workspace(directory, 0).results if path.is_file())
    if (path := next(results, None)) is None:
        raise UsageError(f"{{--init}} {name}: the directory has no weights of a finished run")
    return read_named_weights(path, sparse)


def read_starting_weights(
    space: FeatureSpace,
    path: StrPath | WeightFile | None,
    sparse: StrPath | None = None,
    *,
    default: NDArray[np.float64] | None = None,
) -> StartingWeights:
    """Read the starting weights of a feature space.

    Args:
        path: a file, or a pipe, of any format that ``formats.weights.any_format`` knows; the
            weights themselves, ``lm=0.5 tm=0.3``; or a file that has been read; None: the default.
        sparse: a file of sparse weights, ``name value`` a line, which replace those that the first
            file holds or names; None: also those of its companion ``PATH.sparse``.
        default: float64 ``[n_features]``; None: equal weights of the dense features, which sum to
            1, and 0 for the sparse ones.

    Raises:
        FormatError: a file has another format, or lacks the weight of a dense feature.
    """
    if path is not None:
        if isinstance(path, WeightFile):
            return arrange_weights(path.with_sparse(sparse), space)
        return arrange_weights(read_initial_weights(fspath(path), sparse), space)
    if default is None:
        dense = np.arange(len(space)) < space.n_dense
        default = np.where(dense, 1.0 / max(1, space.n_dense), 0.0)
    return StartingWeights(default)


def find_graph_weights(places: Sequence[Path]) -> Path | None:
    """Return the file of the weights that search graphs were made with, or None.

    Moses writes ``weights`` into the directory of the graphs. The first of the places that has
    this file, or that is a graph (``12.gz``) beside it, counts.
    """
    for place in places:
        path = (place if place.is_dir() else place.parent) / "weights"
        if path.is_file():
            return path
    return None


def score_hypotheses(
    block: NBestList, weights: WeightFile, lengths: LengthRange | None = None
) -> NDArray[np.float64]:
    """Return model scores of a list's hypotheses, float64 ``[n]``, as in a tuning set.

    Args:
        lengths: an exponent of the length that scores are divided by; None: they are not.

    Raises:
        UsageError: they were learned with features that the list lacks; or see ``divide_block``.
    """
    space = FeatureSpace(block.groups, block.sparse_names)
    vector = arrange_weights(weights, space, str(block.path)).weights
    if lengths is not None and lengths.low != 0.0:
        return linear_scores(*divide_block(block, lengths), vector)
    sparse = SparseRows(*block.sparse_rows)
    return linear_scores(block.dense, sparse, vector)


def _find_sparse(file: WeightFile, space: FeatureSpace) -> list[float]:
    """Return the weights of the sparse features of ``space``; a missing one is 0."""
    if not space.sparse:
        return []  # nor read the files of sparse weights that a moses.ini names
    known = file.sparse_by_name
    return [known.get(name, 0.0) for name in space.sparse]


def _find_by_name(file: WeightFile, space: FeatureSpace) -> list[float]:
    """Return the weights of the dense features of ``space``, found by name."""
    known = file.groups
    values: list[float] = []
    for name, width in space.groups:
        if name not in known and (width > 1 or "_" in name):
            names = hypergraph_names([(name, width)])
            if all(name in file.single_values for name in names):
                values += [file.single_values[name] for name in names]
                continue
        if name not in known:
            raise FormatError(
                f"no weight of {name}, a feature of the lists",
                path=file.path,
                remedy=f"It names {', '.join(known) or 'no dense feature'}. Add it, as in "
                f"'{name}={' 0' * width}'",
            )
        if len(known[name]) != width:
            raise FormatError(
                f"{len(known[name])} weights of {name}, which has {width} values in the lists",
                path=file.path,
                remedy="Use the weights of the system that made the lists",
            )
        values += known[name]
    return values


def format_weights(
    space: FeatureSpace, weights: NDArray[np.float64], fixed: NDArray[np.bool_] | None = None
) -> tuple[bytes, bytes]:
    """Return learned weights as texts of a dense and a sparse weight file.

    Numbers have full precision. Sparse weights of 0 and those of fixed features are left out.

    Args:
        fixed: bool ``[n_features]``, features that are not tuned; None if there are none.

    Raises:
        OptimizerError: a weight is not finite, or all of them are 0.
    """
    if not (np.isfinite(weights).all() and weights.any()):
        raise OptimizerError("the optimizer found no usable weights; none are written")
    values = weights.tolist()
    groups, first = [], 0
    for name, width in space.groups:
        groups.append((name, values[first : first + width]))
        first += width
    fixed = np.zeros(len(values), dtype=np.bool_) if fixed is None else fixed
    tail = zip(space.sparse, values[first:], fixed[first:].tolist(), strict=True)
    sparse = {name: weight for name, weight, is_fixed in tail if weight != 0.0 and not is_fixed}
    return format_dense(groups), format_sparse(sparse)


def write_weights(path: Path, text: bytes, sparse: bytes | None, changes: ListChanges) -> None:
    """Write a file of weights and the companions that readers of it look for.

    ``PATH.sparse`` has the sparse weights that its format cannot hold, ``PATH.length`` the length
    exponent. Those of earlier weights are removed.

    Args:
        sparse: the content of ``PATH.sparse``; None or empty without one.
        changes: the changes of lists, with the length exponent.
    """
    exponent = changes.length_exponent
    length = f"{exponent}\n".encode("utf-8", "surrogateescape") if exponent else None
    write_atomic(path, text)
    for beside, content in ((sparse_companion(path), sparse), (length_companion(path), length)):
        if content:
            write_atomic(beside, content)
        else:
            beside.unlink(missing_ok=True)
