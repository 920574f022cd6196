"""What ``mosesplug optimize`` learns from: n-best lists or search graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.optimizers import Algorithm, Problem, Progress
from mosesplug.tuning.offline import Start, load_lists, read_start

__all__ = ["Files", "Given", "given_graphs", "given_lists"]


@dataclass(frozen=True)
class Files:
    """What the command line names.

    Attributes:
        hypotheses: lists, or directories and files of search graphs.
        references: the reference, or the prefix of several.
        init, sparse_init: starting weights.
        names: one for each value of unlabelled lists or graphs.
    """

    hypotheses: Sequence[Path]
    references: Path
    init: Path | None
    sparse_init: Path | None
    names: Sequence[str] | None


@dataclass(frozen=True)
class Given:
    """Hypotheses that were read.

    Attributes:
        problem: with all dense features active, and the box of the starting weights.
        start: the starting weights.
        summary: how many hypotheses there are.
        signature: the metric with its settings and the number of references.
    """

    problem: Problem
    start: Start
    summary: str
    signature: str

    @property
    def space(self) -> FeatureSpace:
        """The features."""
        return self.problem.tuning_set.space


def given_lists(files: Files, metric: Metric, threads: int, told: Progress) -> Given:
    """Read n-best lists."""
    lists = load_lists(
        files.hypotheses,
        files.references,
        metric,
        names=files.names,
        threads=threads,
        loaded=lambda done: told(done, len(files.hypotheses), "lists"),
    )
    made = lists.tuning_set
    if files.init is not None:
        start = read_start(files.init, made.space, files.sparse_init)
    else:
        start = _all_equal(made.space)
    listed = int(np.count_nonzero(np.diff(made.offsets)))
    summary = (
        f"{_sentences(listed, made.n_sentences)}, {made.n_hyps} distinct hypotheses of "
        f"{lists.hypotheses}, {len(made.space)} features"
    )
    problem = Problem(made, metric, minima=start.minima, maxima=start.maxima, threads=threads)
    return Given(problem, start, summary, lists.signature)


def given_graphs(
    files: Files, metric: Metric, algorithm: Algorithm, edges: int, threads: int, told: Progress
) -> Given:
    """Read search graphs, and cut them down to so many edges a word of the reference (0: none).

    Raises:
        UsageError: the algorithm does not learn from graphs, or not by this metric.
    """
    from mosesplug.tuning.offline_graphs import Starts, check_learner, graph_problem, load_graphs

    check_learner(algorithm, metric)
    graphs = load_graphs(
        files.hypotheses,
        files.references,
        metric,
        starts=Starts(files.init, files.sparse_init),
        edges=edges,
        names=files.names,
        threads=threads,
        loaded=lambda done: told(done, len(files.hypotheses), "decodings"),
    )
    summary = (
        f"{_sentences(graphs.n_sentences, len(graphs.sentences))}, {graphs.n_graphs} search "
        f"graphs, {graphs.n_kept} of {graphs.n_edges} edges, {len(graphs.space)} features"
    )
    problem = graph_problem(graphs, metric, algorithm, threads)
    return Given(problem, graphs.start, summary, graphs.prepared.signature)


def _all_equal(space: FeatureSpace) -> Start:
    """The same weight for all dense features."""
    return Start(np.where(np.arange(len(space)) < space.n_dense, 1.0 / max(1, space.n_dense), 0.0))


def _sentences(some: int, every: int) -> str:
    return f"{some} of {every} sentences" if some < every else f"{some} sentences"
