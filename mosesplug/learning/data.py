"""What weights are learned from: n-best lists, search graphs, or the store of a tuning run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.files import is_named
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.given import NOTHING_GIVEN, GivenData
from mosesplug.learning.lists import (
    References,
    find_dense_features,
    load_lists,
    name_references,
    read_lines_of,
)
from mosesplug.learning.weights import StartingWeights, read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.registry import metric_of_signature
from mosesplug.moses_tools.scoring import ScorerInput
from mosesplug.optimizers import Problem, Progress
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.learning import LearningSettings
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import parse_ranges
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.stores import open_run_store
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = [
    "LearningData",
    "make_list_data",
    "parse_column_names",
    "read_data",
    "read_held_out_lists",
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
            low, high = parse_ranges(tuple(bounds), space.group_names)
            minima = np.concatenate([low, np.zeros(space.n_sparse)])
            maxima = np.concatenate([high, np.ones(space.n_sparse)])
        return replace(
            self, problem=replace(self.problem, active=mask, minima=minima, maxima=maxima)
        )


def read_data(
    settings: LearningSettings,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
) -> LearningData:
    """Read the n-best lists, search graphs or store that settings name.

    Args:
        settings: see ``LearningSettings``.
        progress: called with the work done.
        given: data in the place of those that settings name.

    Raises:
        UsageError: settings that cannot be used with this data: an unknown feature, iterations that
            a run does not have, a metric that a store or an algorithm does not support.
        FormatError: a file has another format.
        DataError: files that do not belong together.
        StoreError: a store cannot be read.
    """
    if given.scored is not None:
        data = given.scored
    elif settings.store is not None:
        data = _read_store(settings, settings.store, progress, given)
    else:
        references = given.references or settings.references
        if references is None:
            raise UsageError("no reference is given: use --refs FILE")
        read = _read_graphs if settings.graphs else _read_lists
        metric = given.metric or find_metric(settings.metric or "BLEU", settings.metric_settings)
        data = read(settings, references, metric, progress, given)
    return data.select_features(settings.active, settings.ranges)


def read_held_out_lists(
    settings: LearningSettings,
    problem: Problem,
    progress: Progress = no_progress,
    given: GivenData = NOTHING_GIVEN,
) -> Problem | None:
    """Read the held-out lists that settings name into the feature space of a problem.

    Args:
        settings: see ``LearningSettings``.
        problem: the problem.
        progress: called with the work done.
        given: data in the place of those that settings name.

    Returns:
        A problem with these lists, or None without any.

    Raises:
        FormatError: a file has another format.
        DataError: the lists have other dense features than the problem.
    """
    files = given.heldout_lists or settings.heldout_nbest
    references = given.heldout_references or settings.heldout_refs
    if not files or references is None:
        return None
    space = problem.tuning_set.space
    names_values = any(isinstance(file, Path) and is_named(file) for file in files[:1])
    lists = load_lists(
        files,
        references,
        problem.metric,
        names=_column_names(settings, given),
        dense=[name for name, _ in space.groups] if names_values else None,
        threads=settings.threads,
        loaded=lambda done: progress(done, len(files), "held-out lists"),
    )
    return replace(problem, tuning_set=_move_to_space(lists.tuning_set, space))


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


def _read_lists(
    settings: LearningSettings,
    references: References,
    metric: Metric,
    progress: Progress,
    given: GivenData,
) -> LearningData:
    files = given.lists or settings.nbest
    dense = given.dense
    if dense is None and (paths := [file for file in files if isinstance(file, Path)]):
        dense = find_dense_features(paths, settings.dense)
    lists = load_lists(
        files,
        references,
        metric,
        names=_column_names(settings, given),
        dense=dense,
        threads=settings.threads,
        loaded=lambda done: progress(done, len(files), "lists"),
    )
    space = lists.tuning_set.space
    if given.start is not None:
        start = given.start(space)
    else:
        start = read_starting_weights(space, settings.init, settings.sparse_init)
    return make_list_data(
        lists.tuning_set, metric, start, lists.signature, lists.hypotheses, settings.threads
    )


def _column_names(settings: LearningSettings, given: GivenData) -> Sequence[str] | None:
    return parse_column_names(settings.names) if given.names is None else given.names


def _read_graphs(
    settings: LearningSettings,
    references: References,
    metric: Metric,
    progress: Progress,
    given: GivenData,
) -> LearningData:
    # Here and not above: it loads Numba kernels that lists do not need.
    from mosesplug.learning.graphs import (
        check_graph_learner,
        load_graphs,
        make_graph_problem,
        select_sentences,
    )

    algorithm, threads = find_algorithm(settings.algorithm), settings.threads
    check_graph_learner(algorithm, metric)
    graphs = load_graphs(
        settings.graphs,
        references,
        metric,
        init=given.graph_start or settings.init,
        sparse_init=settings.sparse_init,
        edges=settings.hg_prune,
        names=_column_names(settings, given),
        threads=threads,
        loaded=lambda done: progress(done, len(settings.graphs), "decodings"),
    )

    def restrict(problem: Problem, positions: NDArray[np.int64]) -> Problem:
        selected = select_sentences(graphs, positions, metric)
        part = make_graph_problem(selected, metric, algorithm, threads)
        return replace(problem, source=part.source, search=part.search)

    return LearningData(
        make_graph_problem(graphs, metric, algorithm, threads),
        graphs.start,
        f"{_count(graphs.n_sentences, len(graphs.sentences))}, {graphs.n_graphs} search "
        f"graphs, {graphs.n_kept} of {graphs.n_edges} edges, {len(graphs.space)} features",
        graphs.prepared.signature,
        np.array([n for n, each in enumerate(graphs.sentences) if each], dtype=np.int64),
        restrict,
    )


def _read_store(
    settings: LearningSettings, store: Path, progress: Progress, given: GivenData
) -> LearningData:
    references: References | None = given.references or settings.references
    with open_run_store(store, with_lists=True) as (path, opened):
        records = opened.iterations()
        selected = select_iterations(settings.iterations, len(records))
        signature = records[-1].signature
        stored_metric = metric = metric_of_signature(signature)
        if given.metric is not None:
            metric = given.metric
        elif settings.metric is not None or settings.metric_settings:
            metric = find_metric(settings.metric or stored_metric.name, settings.metric_settings)
        if references is None and metric != stored_metric:
            raise UsageError(
                f"the store has statistics of {signature}: to optimise {metric.signature()}, use "
                "--refs FILE to compute its statistics"
            )
        lists = opened.tuning_set(selected)
        if references is not None:
            lists, signature = _score_again(
                opened, path, selected, lists, metric, references, settings.threads, progress
            )
        decoded_with = read_start(records[selected[0] - 1]).weights
        if given.start is not None:
            start = given.start(lists.space)
        else:
            start = read_starting_weights(
                lists.space,
                settings.init,
                settings.sparse_init,
                default=decoded_with.vector(lists.space) if any(decoded_with.dense) else None,
            )
    hypotheses = sum(records[number - 1].hypotheses for number in selected)
    return make_list_data(lists, metric, start, signature, hypotheses, settings.threads)


def _score_again(
    store: NBestStore,
    path: Path,
    selected: Sequence[int],
    lists: TuningSet,
    metric: Metric,
    references: References,
    threads: int,
    progress: Progress,
) -> tuple[TuningSet, str]:
    """Return lists with statistics computed from the stored texts, and the metric's signature."""
    prepared = metric.prepare(read_lines_of(references))
    n_sentences = store.iterations()[-1].n_sentences
    if prepared.n_sentences != n_sentences:
        raise DataError(
            f"{name_references(references)} has {prepared.n_sentences} lines, the store at {path} "
            f"has {n_sentences} sentences"
        )
    texts: list[bytes] = []
    for sentence in range(n_sentences):
        texts += store.hypotheses(sentence, selected)
        progress(sentence + 1, n_sentences, "sentences")
    owners: NDArray[np.int64] = np.repeat(lists.sentence_ids, np.diff(lists.offsets))
    hypotheses = ScorerInput.of_lines(texts, owners)
    statistics = metric.statistics(
        prepared,
        hypotheses.sentence_ids,
        hypotheses.buffer,
        hypotheses.starts,
        hypotheses.ends,
        threads=threads,
    )
    return replace(lists, stats=statistics), prepared.signature


def make_list_data(
    lists: TuningSet,
    metric: Metric,
    start: StartingWeights,
    signature: str,
    hypotheses: int,
    threads: int,
) -> LearningData:
    """Return merged lists to learn from.

    Args:
        lists: the lists with their statistics.
        metric: scores the statistics.
        start: the starting weights.
        signature: the metric with its settings and the number of references.
        hypotheses: number of hypotheses before duplicates were removed.
        threads: maximum number of threads.
    """
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


def _move_to_space(lists: TuningSet, space: FeatureSpace) -> TuningSet:
    """Return lists in another feature space, without the sparse features that it lacks."""
    if lists.space.groups != space.groups:
        raise DataError(
            f"the held-out lists have the features {' '.join(lists.space.names)[:200]}, but the "
            f"lists to learn from have {' '.join(space.names)[:200]}. Use lists of one system."
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
