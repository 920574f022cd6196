"""What weights are learned from: n-best lists, search graphs, or the store of a tuning run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.dense import is_named
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists import list_dense_features, load_lists
from mosesplug.learning.weights import StartingWeights, read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.registry import metric_of_signature
from mosesplug.moses_tools.scoring import Hypotheses
from mosesplug.optimizers import Algorithm, Problem, Progress
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.learning import LearningSettings
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import ranges
from mosesplug.tuning.workdir.records import start_of
from mosesplug.tuning.workdir.stores import open_run_store
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = [
    "LearningData",
    "parse_column_names",
    "read_data",
    "read_graph_data",
    "read_held_out_lists",
    "read_list_data",
    "read_store_data",
    "select_iterations",
]


@dataclass(frozen=True)
class LearningData:
    """Hypotheses or search graphs to learn from, with starting weights.

    Attributes:
        problem: all sentences; every dense feature is active unless features were selected.
        start: the starting weights.
        description: the size of the data, for people.
        signature: the metric with its settings and the number of references.
        sentences: int64, positions of the sentences that have hypotheses, ascending.
        restrict: returns a problem that has only the sentences at some positions.
    """

    problem: Problem
    start: StartingWeights
    description: str
    signature: str
    sentences: NDArray[np.int64]
    restrict: Callable[[Problem, NDArray[np.int64]], Problem]

    @property
    def space(self) -> FeatureSpace:
        """The features."""
        return self.problem.tuning_set.space

    def take_sentences(self, positions: NDArray[np.int64]) -> Problem:
        """Return the problem of the sentences at some positions."""
        return self.restrict(self.problem, positions)

    def select_features(
        self, active: Sequence[str] | None = None, bounds: Sequence[str] = ()
    ) -> LearningData:
        """Return the same data with some features active and a box of random starts.

        Args:
            active: names of features or groups to tune; None: all dense ones.
            bounds: ``NAME:MIN..MAX`` texts; none: the box of the starting weights.

        Raises:
            UsageError: an unknown feature, or bounds that cannot be read.
        """
        space = self.space
        mask = None
        if active is not None:
            try:
                mask = space.select(active)
            except KeyError as error:
                raise UsageError(
                    f"--active: unknown feature {error.args[0]}; known: "
                    f"{', '.join(space.names[:30])}"
                ) from error
        minima, maxima = self.start.minima, self.start.maxima
        if bounds:
            low, high = ranges(tuple(bounds), space.group_names)
            minima = np.concatenate([low, np.zeros(space.n_sparse)])
            maxima = np.concatenate([high, np.ones(space.n_sparse)])
        return replace(
            self, problem=replace(self.problem, active=mask, minima=minima, maxima=maxima)
        )


def read_data(settings: LearningSettings, progress: Progress = no_progress) -> LearningData:
    """Read the data that settings name.

    Raises:
        UsageError: settings that cannot be used with this data.
        FormatError: a file has another format.
        DataError: the data do not belong together.
        StoreError: a store cannot be read.
    """
    names = parse_column_names(settings.names)
    if settings.store is not None:
        data = read_store_data(
            settings.store,
            settings.iterations,
            metric=settings.metric,
            metric_settings=settings.metric_settings,
            references=settings.references,
            init=settings.init,
            sparse_init=settings.sparse_init,
            threads=settings.threads,
            progress=progress,
        )
        return data.select_features(settings.active, settings.ranges)
    if settings.references is None:
        raise UsageError("no reference is given: use --refs FILE")
    metric = find_metric(settings.metric or "BLEU", settings.metric_settings)
    if settings.graphs:
        data = read_graph_data(
            settings.graphs,
            settings.references,
            metric,
            find_algorithm(settings.algorithm),
            names=names,
            edges=settings.hg_prune,
            init=settings.init,
            sparse_init=settings.sparse_init,
            threads=settings.threads,
            progress=progress,
        )
    else:
        data = read_list_data(
            settings.nbest,
            settings.references,
            metric,
            names=names,
            dense=settings.dense,
            init=settings.init,
            sparse_init=settings.sparse_init,
            threads=settings.threads,
            progress=progress,
        )
    return data.select_features(settings.active, settings.ranges)


def parse_column_names(names: str | None) -> list[str] | None:
    """Return the names of ``--names``; those of one group have one name and are adjacent.

    Raises:
        UsageError: an empty name, or a group that is not adjacent.
    """
    if names is None:
        return None
    columns = [name.strip() for name in names.split(",")]
    if not all(columns):
        raise UsageError(f"--names={names}: a name is empty")
    groups = [group for group, _ in FeatureSpace.of_names(columns).groups]
    for group in groups:
        if groups.count(group) > 1:
            raise UsageError(f"--names={names}: the columns of {group} are not adjacent")
    return columns


def read_list_data(
    files: Sequence[Path],
    references: Path,
    metric: Metric,
    *,
    names: Sequence[str] | None = None,
    dense: str | None = None,
    init: Path | None = None,
    sparse_init: Path | None = None,
    threads: int = 1,
    progress: Progress = no_progress,
) -> LearningData:
    """Read and merge n-best lists.

    Args:
        files, references, metric, names, threads: see ``load_lists``.
        dense: see ``list_dense_features``.
        init, sparse_init: files of starting weights; None: equal ones.
        progress: called with the number of files that have been read.

    Raises:
        FormatError: a file has another format.
        DataError: the lists have different sentences or features.
    """
    lists = load_lists(
        files,
        references,
        metric,
        names=names,
        dense=list_dense_features(files, dense),
        threads=threads,
        loaded=lambda done: progress(done, len(files), "lists"),
    )
    start = read_starting_weights(lists.tuning_set.space, init, sparse_init)
    return _list_data(lists.tuning_set, metric, start, lists.signature, lists.hypotheses, threads)


def read_held_out_lists(
    files: Sequence[Path],
    references: Path,
    problem: Problem,
    *,
    names: Sequence[str] | None = None,
    progress: Progress = no_progress,
) -> Problem:
    """Read n-best lists of a held-out set into the feature space of a problem.

    Args:
        files, references, names: see ``load_lists``.
        problem: the problem to learn from.
        progress: called with the number of files that have been read.

    Raises:
        FormatError: a file has another format.
        DataError: the lists have other dense features than the problem.
    """
    space = problem.tuning_set.space
    lists = load_lists(
        files,
        references,
        problem.metric,
        names=names,
        dense=[name for name, _ in space.groups] if is_named(files[0]) else None,
        threads=problem.threads,
        loaded=lambda done: progress(done, len(files), "held-out lists"),
    )
    return replace(problem, tuning_set=_in_space(lists.tuning_set, space))


def read_graph_data(
    places: Sequence[Path],
    references: Path,
    metric: Metric,
    algorithm: Algorithm,
    *,
    names: Sequence[str] | None = None,
    edges: int = 0,
    init: Path | None = None,
    sparse_init: Path | None = None,
    threads: int = 1,
    progress: Progress = no_progress,
) -> LearningData:
    """Read search graphs, and prune them if ``edges`` is not 0.

    Args:
        places, references, metric, names, edges, init, sparse_init, threads: see ``load_graphs``.
        algorithm: the algorithm that learns from them.
        progress: called with the number of places that have been read.

    Raises:
        UsageError: the algorithm does not learn from graphs, or does not support this metric.
        FormatError: a file has another format.
        DataError: the graphs have different features, or sentences that the references lack.
    """
    # Here and not above: it loads Numba kernels that lists do not need.
    from mosesplug.learning.graphs import (
        check_graph_learner,
        load_graphs,
        make_graph_problem,
        select_sentences,
    )

    check_graph_learner(algorithm, metric)
    graphs = load_graphs(
        places,
        references,
        metric,
        init=init,
        sparse_init=sparse_init,
        edges=edges,
        names=names,
        threads=threads,
        loaded=lambda done: progress(done, len(places), "decodings"),
    )
    problem = make_graph_problem(graphs, metric, algorithm, threads)

    def restrict(problem: Problem, positions: NDArray[np.int64]) -> Problem:
        selected = select_sentences(graphs, positions, metric)
        part = make_graph_problem(selected, metric, algorithm, threads)
        return replace(problem, source=part.source, search=part.search)

    return LearningData(
        problem,
        graphs.start,
        f"{_count(graphs.n_sentences, len(graphs.sentences))}, {graphs.n_graphs} search "
        f"graphs, {graphs.n_kept} of {graphs.n_edges} edges, {len(graphs.space)} features",
        graphs.prepared.signature,
        np.array([n for n, each in enumerate(graphs.sentences) if each], dtype=np.int64),
        restrict,
    )


def read_store_data(
    store: Path,
    iterations: str | None = None,
    *,
    metric: str | None = None,
    metric_settings: str = "",
    references: Path | None = None,
    init: Path | None = None,
    sparse_init: Path | None = None,
    threads: int = 1,
    progress: Progress = no_progress,
) -> LearningData:
    """Read the merged lists of some iterations of a tuning run.

    Args:
        store: a working directory, or the store in it. It is not changed.
        iterations: see ``select_iterations``; None: all.
        metric, metric_settings: what to optimise; by default the metric of the run.
        references: the statistics are computed anew from these; None: the stored statistics.
        init, sparse_init: files of starting weights; None: the weights that decoded the first of
            the iterations, or equal ones if the run does not know them.
        threads: number of threads for scoring and optimizing.
        progress: called with the number of sentences that have been scored.

    Raises:
        UsageError: another metric than the run's without references, or no such iterations.
        DataError: the store has no lists, or the references have another number of sentences.
        StoreError: there is no store, or it cannot be read.
    """
    with open_run_store(store, with_lists=True) as (path, opened):
        records = opened.iterations()
        selected = select_iterations(iterations, len(records))
        signature = records[-1].signature
        stored_metric = scorer = metric_of_signature(signature)
        if metric is not None or metric_settings:
            scorer = find_metric(metric or stored_metric.name, metric_settings)
        if references is None and scorer != stored_metric:
            raise UsageError(
                f"the store has statistics of {signature}: to optimise {scorer.signature()}, give "
                "--refs, and they are computed"
            )
        lists = opened.tuning_set(selected)
        if references is not None:
            lists, signature = _score_again(
                opened, path, selected, lists, scorer, references, threads, progress
            )
        decoded_with = start_of(records[selected[0] - 1]).weights
        default = decoded_with.vector(lists.space) if any(decoded_with.dense) else None
        start = read_starting_weights(lists.space, init, sparse_init, default=default)
    hypotheses = sum(records[number - 1].hypotheses for number in selected)
    return _list_data(lists, scorer, start, signature, hypotheses, threads)


def select_iterations(text: str | None, count: int) -> list[int]:
    """Return iterations in ascending order.

    Args:
        text: ``2:5``, ``2:``, ``:5``, ``3``, or ``-5`` for the newest five; None: all.
        count: number of iterations of the run.

    Raises:
        UsageError: another text, or iterations that the run does not have.
    """
    if text is None:
        return list(range(1, count + 1))
    match = re.fullmatch(r"(?P<newest>-[0-9]+)|(?P<one>[0-9]+)|(?P<a>[0-9]*):(?P<b>[0-9]*)", text)
    if match is None:
        raise UsageError(f"--iterations must be A:B, N, or -N for the newest N, not {text!r}")
    if match["newest"]:
        first, last = max(1, count + 1 + int(match["newest"])), count
    elif match["one"]:
        first = last = int(match["one"])
    else:
        first, last = int(match["a"] or 1), int(match["b"] or count)
    if not 1 <= first <= last <= count:
        raise UsageError(f"--iterations {text}: the store has iterations 1 to {count}")
    return list(range(first, last + 1))


def _score_again(
    store: NBestStore,
    path: Path,
    selected: Sequence[int],
    lists: TuningSet,
    metric: Metric,
    references: Path,
    threads: int,
    progress: Progress,
) -> tuple[TuningSet, str]:
    """Return lists with statistics computed from the stored texts, and the metric's signature."""
    from formats.references import read_references

    prepared = metric.prepare(read_references(references))
    n_sentences = store.iterations()[-1].n_sentences
    if prepared.n_sentences != n_sentences:
        raise DataError(
            f"{references} has {prepared.n_sentences} lines, the store at {path} has "
            f"{n_sentences} sentences"
        )
    texts: list[bytes] = []
    for sentence in range(n_sentences):
        texts += store.hypotheses(sentence, selected)
        progress(sentence + 1, n_sentences, "sentences")
    owners: NDArray[np.int64] = np.repeat(lists.sentence_ids, np.diff(lists.offsets))
    hypotheses = Hypotheses.of_lines(texts, owners)
    statistics = metric.statistics(
        prepared,
        hypotheses.sentence_ids,
        hypotheses.buffer,
        hypotheses.starts,
        hypotheses.ends,
        threads=threads,
    )
    return replace(lists, stats=statistics), prepared.signature


def _list_data(
    lists: TuningSet,
    metric: Metric,
    start: StartingWeights,
    signature: str,
    hypotheses: int,
    threads: int,
) -> LearningData:
    sentences = np.flatnonzero(np.diff(lists.offsets)).astype(np.int64)
    return LearningData(
        Problem(lists, metric, minima=start.minima, maxima=start.maxima, threads=threads),
        start,
        f"{_count(len(sentences), lists.n_sentences)}, {lists.n_hyps} distinct hypotheses of "
        f"{hypotheses}, {len(lists.space)} features",
        signature,
        sentences,
        _restrict_lists,
    )


def _restrict_lists(problem: Problem, positions: NDArray[np.int64]) -> Problem:
    return replace(problem, tuning_set=problem.tuning_set.take_sentences(positions))


def _in_space(lists: TuningSet, space: FeatureSpace) -> TuningSet:
    """Return lists in another feature space, without the sparse features that it lacks.

    Raises:
        DataError: the dense features differ.
    """
    if lists.space.groups != space.groups:
        raise DataError(
            f"the held-out lists have the features {' '.join(lists.space.names)[:200]}, those to "
            f"learn from {' '.join(space.names)[:200]}: take lists of one system"
        )
    if not space.n_sparse:
        return replace(lists, space=space, sparse=None)
    indptr = np.zeros(lists.n_hyps + 1, dtype=np.int64)
    rows = SparseRows(indptr, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))
    if lists.sparse is not None:
        known = {name: column for column, name in enumerate(space.sparse)}
        columns = np.array([known.get(name, -1) for name in lists.space.sparse], dtype=np.int32)
        found = columns[lists.sparse.indices]
        kept = found >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        rows = SparseRows(before[lists.sparse.indptr], found[kept], lists.sparse.data[kept])
    return replace(lists, space=space, sparse=rows)


def _count(some: int, every: int) -> str:
    return f"{some} of {every} sentences" if some < every else f"{some} sentences"
