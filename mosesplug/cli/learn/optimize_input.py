"""What ``mosesplug optimize`` learns from: n-best lists, search graphs, or the lists of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists import load_lists
from mosesplug.learning.weights import StartingWeights, read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.optimizers import Algorithm, Problem, Progress
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["Files", "Given", "given_graphs", "given_lists", "held_out_lists"]


@dataclass(frozen=True)
class Files:
    """What the command line names.

    Attributes:
        hypotheses: lists, or directories and files of search graphs.
        references: the reference, or the prefix of several.
        init, sparse_init: starting weights.
        names: one for each value of unlabelled lists or graphs.
        dense: names of the dense features of lists that name every value; None for other lists.
    """

    hypotheses: Sequence[Path]
    references: Path
    init: Path | None = None
    sparse_init: Path | None = None
    names: Sequence[str] | None = None
    dense: Sequence[str] | None = None


@dataclass(frozen=True)
class Given:
    """Hypotheses that were read.

    Attributes:
        problem: with all dense features active, and the box of the starting weights.
        start: the starting weights.
        summary: how many hypotheses there are.
        signature: the metric with its settings and the number of references.
        listed: int64, positions of the sentences that have hypotheses, ascending.
        restricted: hypotheses of the sentences at some positions alone, in the place of those of a
            problem.
    """

    problem: Problem
    start: StartingWeights
    summary: str
    signature: str
    listed: NDArray[np.int64]
    restricted: Callable[[Problem, NDArray[np.int64]], Problem]

    @property
    def space(self) -> FeatureSpace:
        """The features."""
        return self.problem.tuning_set.space

    def part(self, positions: NDArray[np.int64]) -> Problem:
        """The problem of some sentences."""
        return self.restricted(self.problem, positions)

    @classmethod
    def of_lists(
        cls,
        made: TuningSet,
        metric: Metric,
        start: StartingWeights,
        signature: str,
        hypotheses: int,
        threads: int,
    ) -> Given:
        """Merged lists.

        Args:
            made: the distinct hypotheses.
            metric: whose statistics they have.
            start: the starting weights.
            signature: of the metric.
            hypotheses: in the lists, duplicates included.
            threads: how many may work at once.
        """
        listed = np.flatnonzero(np.diff(made.offsets)).astype(np.int64)
        summary = (
            f"{_sentences(len(listed), made.n_sentences)}, {made.n_hyps} distinct hypotheses of "
            f"{hypotheses}, {len(made.space)} features"
        )
        problem = Problem(made, metric, minima=start.minima, maxima=start.maxima, threads=threads)
        return cls(problem, start, summary, signature, listed, _some_lists)


def given_lists(files: Files, metric: Metric, threads: int, told: Progress) -> Given:
    """Read n-best lists."""
    lists = load_lists(
        files.hypotheses,
        files.references,
        metric,
        names=files.names,
        dense=files.dense,
        threads=threads,
        loaded=lambda done: told(done, len(files.hypotheses), "lists"),
    )
    made = lists.tuning_set
    start = read_starting_weights(made.space, files.init, files.sparse_init)
    return Given.of_lists(made, metric, start, lists.signature, lists.hypotheses, threads)


def held_out_lists(files: Files, learning: Problem, told: Progress) -> Problem:
    """Read lists of other sentences, with the features that another problem has.

    Raises:
        DataError: they have other dense features.
    """
    lists = load_lists(
        files.hypotheses,
        files.references,
        learning.metric,
        names=files.names,
        dense=files.dense,
        threads=learning.threads,
        loaded=lambda done: told(done, len(files.hypotheses), "held-out lists"),
    )
    space = learning.tuning_set.space
    return replace(learning, tuning_set=_with_features_of(lists.tuning_set, space))


def given_graphs(
    files: Files, metric: Metric, algorithm: Algorithm, edges: int, threads: int, told: Progress
) -> Given:
    """Read search graphs, and cut them down to so many edges a word of the reference (0: none).

    Raises:
        UsageError: the algorithm does not learn from graphs, or not by this metric.
    """
    from mosesplug.learning.graphs import (
        check_graph_learner,
        load_graphs,
        make_graph_problem,
        select_sentences,
    )

    check_graph_learner(algorithm, metric)
    graphs = load_graphs(
        files.hypotheses,
        files.references,
        metric,
        init=files.init,
        sparse_init=files.sparse_init,
        edges=edges,
        names=files.names,
        threads=threads,
        loaded=lambda done: told(done, len(files.hypotheses), "decodings"),
    )
    summary = (
        f"{_sentences(graphs.n_sentences, len(graphs.sentences))}, {graphs.n_graphs} search "
        f"graphs, {graphs.n_kept} of {graphs.n_edges} edges, {len(graphs.space)} features"
    )
    problem = make_graph_problem(graphs, metric, algorithm, threads)

    def restricted(problem: Problem, positions: NDArray[np.int64]) -> Problem:
        some = make_graph_problem(
            select_sentences(graphs, positions, metric), metric, algorithm, threads
        )
        return replace(problem, source=some.source, search=some.search)

    listed = np.array([n for n, each in enumerate(graphs.sentences) if each], dtype=np.int64)
    signature = graphs.prepared.signature
    return Given(problem, graphs.start, summary, signature, listed, restricted)


def _some_lists(problem: Problem, positions: NDArray[np.int64]) -> Problem:
    return replace(problem, tuning_set=problem.tuning_set.take_sentences(positions))


def _with_features_of(lists: TuningSet, space: FeatureSpace) -> TuningSet:
    """The same hypotheses in the columns of other lists.

    Sparse features that those do not have are left out: no weight of them will be learnt.

    Raises:
        DataError: the dense features differ.
    """
    if lists.space.groups != space.groups:
        raise DataError(
            f"the held-out lists have the features {' '.join(lists.space.names)[:200]}, those to "
            f"learn from {' '.join(space.names)[:200]}: take lists of one system"
        )
    if lists.sparse is None or not space.n_sparse:
        return replace(lists, space=space, sparse=None if not space.n_sparse else _none_of(lists))
    known = {name: column for column, name in enumerate(space.sparse)}
    columns = np.array([known.get(name, -1) for name in lists.space.sparse], dtype=np.int32)
    found = columns[lists.sparse.indices]
    kept = found >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    rows = SparseRows(before[lists.sparse.indptr], found[kept], lists.sparse.data[kept])
    return replace(lists, space=space, sparse=rows)


def _none_of(lists: TuningSet) -> SparseRows:
    """No sparse feature of any hypothesis."""
    indptr = np.zeros(lists.n_hyps + 1, dtype=np.int64)
    return SparseRows(indptr, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))


def _sentences(some: int, every: int) -> str:
    return f"{some} of {every} sentences" if some < every else f"{some} sentences"
