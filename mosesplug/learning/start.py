"""Weights of any file, for the features of lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.graphs.hypergraph import hypergraph_names
from formats.nbest.files import NBestList
from formats.weights.any_format import WeightFile, read_weights
from formats.weights.files import read_sparse
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, linear_scores

__all__ = ["GivenWeights", "Start", "list_scores", "read_given", "read_start"]

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class Start:
    """Where a search starts.

    Attributes:
        weights: float64 ``[n_features]``.
        minima, maxima: the box of random starts, where the file has one.
    """

    weights: NDArray[np.float64]
    minima: NDArray[np.float64] | None = None
    maxima: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class GivenWeights:
    """What a call gives as weights, read once.

    Attributes:
        file: the weights.
        sparse_file: those of a further file of sparse weights, which take the place of those of
            the first; None where none is given.
    """

    file: WeightFile
    sparse_file: Mapping[str, float] | None = None

    @cached_property
    def sparse(self) -> Mapping[str, float]:
        """The sparse weights that count.

        Raises:
            FormatError: a file that a ``moses.ini`` names cannot be read.
        """
        return self.file.all_sparse() if self.sparse_file is None else self.sparse_file

    @property
    def dense_names(self) -> tuple[str, ...]:
        """Names of single values: in lists that name every value, the dense features.

        Of a file that has a name and a number a line, all; of others, those that are not sparse.
        """
        named = tuple(hypergraph_names((n, len(v)) for n, v in self.file.groups.items()))
        return (*named, *self.file.sparse) if self.file.format in ("sparse", "graph") else named

    def start(self, space: FeatureSpace) -> Start:
        """The weights of some features. Sparse ones that are not known are 0.

        Raises:
            FormatError: the file has not one for each dense feature.
        """
        tail = [self.sparse.get(name, 0.0) for name in space.sparse]
        if not self.file.numbers:
            return Start(np.array([*_by_name(self.file, space), *tail], dtype=np.float64))
        if len(self.file.numbers) != space.n_dense:
            raise FormatError(
                f"{len(self.file.numbers)} weights, but the lists have {space.n_dense} dense "
                "features",
                path=self.file.path,
                remedy=f"Give one for each of {', '.join(space.names[: space.n_dense])}",
            )
        box = (
            None if side is None else np.append(side, np.zeros(space.n_sparse))
            for side in (self.file.minima, self.file.maxima)
        )
        return Start(np.append(self.file.numbers, tail), *box)


def read_given(path: Path_, sparse: Path_ | None = None) -> GivenWeights:
    """Weights from any file that holds some.

    Args:
        path: a file of any format that ``formats.weights.any_format`` knows; it may be a pipe.
        sparse: a file of sparse weights, ``name value``, which takes the place of those that the
            first has or names.

    Raises:
        FormatError: one is no such file.
    """
    return GivenWeights(read_weights(path), None if sparse is None else read_sparse(sparse))


def read_start(path: Path_, space: FeatureSpace, sparse: Path_ | None = None) -> Start:
    """Starting weights from any file that holds some; see ``read_given``.

    Args:
        path: the file.
        space: the features of the lists.
        sparse: a file of sparse weights.

    Raises:
        FormatError: not such a file, or not the weights of these features.
    """
    return read_given(path, sparse).start(space)


def list_scores(block: NBestList, weights: GivenWeights) -> NDArray[np.float64]:
    """Model scores of the hypotheses of a list by other weights, float64 ``[n]``.

    They are those of a tuning set: what is first-best there is so here.

    Raises:
        FormatError: they are not the weights of these features.
    """
    space = FeatureSpace(block.groups, block.sparse_names)
    vector = weights.start(space).weights
    sparse = SparseRows(block.sparse_indptr, block.sparse_indices, block.sparse_data)
    return linear_scores(block.dense, sparse, vector)


def _single(file: WeightFile) -> dict[str, float]:
    """Weights by the names of single values, ``TM0_1``, as other decoders name all of theirs."""
    names = hypergraph_names((name, len(values)) for name, values in file.groups.items())
    values = (value for group in file.groups.values() for value in group)
    return {**file.sparse, **dict(zip(names, values, strict=True))}


def _by_name(file: WeightFile, space: FeatureSpace) -> list[float]:
    """The weights of the lists' dense groups, found by name."""
    known = file.groups
    single = _single(file) if any("_" in name for name, _ in space.groups) else {}
    values: list[float] = []
    for name, width in space.groups:
        if width == 1 and name not in known and name in single:
            values.append(single[name])
            continue
        if name not in known:
            raise FormatError(
                f"no weight of {name}, which the lists have",
                path=file.path,
                remedy=f"It names {', '.join(known) or 'no dense feature'}",
            )
        if len(known[name]) != width:
            raise FormatError(
                f"{len(known[name])} weights of {name}, which has {width} values in the lists",
                path=file.path,
                remedy="Take the weights of the system that made the lists",
            )
        values += known[name]
    return values
