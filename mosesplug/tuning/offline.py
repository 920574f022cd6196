"""Tuning without a decoder: existing n-best lists in, weights out.

The lists go through a store of their own, so that they are read, scored, merged and freed of
duplicates exactly as in a tuning run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.moses_ini import parse_moses_ini
from formats.nbest import NBestList, read_nbest_blocks
from formats.references import read_references
from formats.text import read_bytes
from formats.weights import read_init_opt, read_show_weights, read_sparse, read_weights_txt
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.store import NBestStore
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["Lists", "Start", "list_scores", "load_lists", "read_start"]

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class Lists:
    """Merged lists, and where they came from.

    Attributes:
        tuning_set: distinct hypotheses with the metric's statistics.
        signature: the metric with its settings and the number of references.
        hypotheses: hypotheses read, duplicates included.
    """

    tuning_set: TuningSet
    signature: str
    hypotheses: int


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


def load_lists(
    files: Sequence[Path_],
    references: Path_,
    metric: Metric,
    *,
    names: Sequence[str] | None = None,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
) -> Lists:
    """Read, score and merge n-best lists.

    Args:
        files: n-best lists of the same text, one for each iteration or shard.
        references: the reference, or the prefix of several.
        metric: scores the hypotheses.
        names: names of the values of unlabelled lists.
        threads: for reading and scoring.
        loaded: told how many files are done.

    Raises:
        FormatError: a file that is no n-best list, or no reference.
        DataError: lists that do not go together.
    """
    lines = read_references(references)
    prepared = metric.prepare(lines)
    hypotheses = 0
    with (
        tempfile.TemporaryDirectory(prefix="mosesplug-") as directory,
        NBestStore.open(Path(directory) / "lists", writable=True) as store,
    ):
        for number, file in enumerate(files, start=1):
            report = store.add_iteration(
                number,
                read_nbest_blocks(file, names=names),
                metric=metric,
                references=prepared,
                n_sentences=len(lines[0]),
                record={},
                threads=threads,
            )
            hypotheses += report.hypotheses
            loaded(number)
        merged = store.tuning_set()
    return Lists(merged, prepared.signature, hypotheses)


def read_start(path: Path_, space: FeatureSpace, sparse: Path_ | None = None) -> Start:
    """Starting weights from any file that holds some.

    A ``moses.ini``, ``Name= value value`` lines (dense weights, the answer to ``-show-weights``,
    one value a line as in ``runN.dense``), or numbers alone (``init.opt`` with the box of random
    starts, ``weights.txt``).

    Args:
        path: the file.
        space: the features of the lists.
        sparse: a file of sparse weights, ``name value``.

    Raises:
        FormatError: not such a file, or not the weights of these features.
    """
    vector = np.zeros(len(space))
    start = Start(vector)
    text = read_bytes(path)
    if _has_only_numbers(text):
        start = _numbers(path, space)
        vector = start.weights
    else:
        vector[: space.n_dense] = _by_name(path, text, space)
    if sparse is not None:
        known = read_sparse(sparse)
        vector[space.n_dense :] = [known.get(name, 0.0) for name in space.sparse]
    return Start(vector, start.minima, start.maxima)


def list_scores(block: NBestList, weights: Path_, sparse: Path_ | None) -> NDArray[np.float64]:
    """Model scores of the hypotheses of a list by other weights, float64 ``[n]``.

    Summed in the order of the features, so that equal hypotheses have equal scores.

    Args:
        block: the list.
        weights: a file of any kind that ``read_start`` reads.
        sparse: a file of sparse weights; what it lacks counts as 0.

    Raises:
        FormatError: as ``read_start``.
    """
    space = FeatureSpace(block.groups, block.sparse_names)
    vector = read_start(weights, space, sparse).weights
    scores = (block.dense.astype(np.float64) * vector[: space.n_dense]).sum(axis=1)
    rows = SparseRows(block.sparse_indptr, block.sparse_indices, block.sparse_data)
    return np.asarray(scores + rows.scores(0, len(block), vector[space.n_dense :]))


def _has_only_numbers(text: bytes) -> bool:
    """Whether every word is a number."""
    try:
        return bool([float(word) for word in text.split()])
    except ValueError:
        return False


def _numbers(path: Path_, space: FeatureSpace) -> Start:
    """One line of weights, or three of ``init.opt``, in the order of the columns."""
    lines = [line for line in read_bytes(path).split(b"\n") if line.strip()]
    if len(lines) == 1:
        rows: tuple[tuple[float, ...], ...] = (read_weights_txt(path),)
    else:
        init = read_init_opt(path)
        rows = (init.start, init.minima, init.maxima)
    if len(rows[0]) != space.n_dense:
        raise FormatError(
            f"{len(rows[0])} weights, but the lists have {space.n_dense} dense features",
            path=path,
            remedy=f"Give one for each of {', '.join(space.names[: space.n_dense])}",
        )
    padding = np.zeros(space.n_sparse)
    vectors = [np.concatenate([np.asarray(row), padding]) for row in rows]
    return Start(*vectors)


def _by_name(path: Path_, text: bytes, space: FeatureSpace) -> list[float]:
    """The weights of the lists' dense groups, found by name."""
    known = _weights_by_group(path, text)
    values: list[float] = []
    for name, width in space.groups:
        if name not in known:
            raise FormatError(
                f"no weight of {name}, which the lists have",
                path=path,
                remedy=f"It names {', '.join(known) or 'no feature'}",
            )
        if len(known[name]) != width:
            raise FormatError(
                f"{len(known[name])} weights of {name}, which has {width} values in the lists",
                path=path,
                remedy="Take the weights of the system that made the lists",
            )
        values += known[name]
    return values


def _weights_by_group(path: Path_, text: bytes) -> Mapping[str, Sequence[float]]:
    """Every dense weight that a ``moses.ini`` or a file of ``Name= value`` lines has."""
    if any(line.strip() == b"[weight]" for line in text.split(b"\n")):
        return parse_moses_ini(text, path).weights
    shown = read_show_weights(path)
    return {
        group.name: [value for value in group.values if value is not None] for group in shown.groups
    }
