"""Choose translations by minimum Bayes risk.

They come from search graphs, a store of search graphs, or n-best lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.graphs.hypergraph import hypergraph_names
from formats.pipes import copy_pipes
from formats.text import StrPath
from formats.utilities import UtilityReader
from formats.weights.any_format import WeightFile
from mosesplug.ahead import map_ahead
from mosesplug.errors import DataError, UsageError
from mosesplug.features import spelled_groups
from mosesplug.forest.mbr import (
    Criterion,
    Decision,
    decide_by_utility,
    decide_in_graph,
    decide_in_list,
)
from mosesplug.forest.n_best import GraphFeatures
from mosesplug.forest.oracles.hope_fear import name_sentence
from mosesplug.hypergraph import Hypergraph
from mosesplug.learning.lengths import find_recorded_length
from mosesplug.learning.lists.blocks import names_values, read_file_blocks
from mosesplug.learning.lists.made_features import check_derived_features
from mosesplug.learning.lists.merging import select_dense_features
from mosesplug.learning.lists.transforming import pair_transformed
from mosesplug.learning.sparse_coverage import SparseCoverage
from mosesplug.learning.weighted_graphs import GraphWeights, read_weighted_graphs
from mosesplug.learning.weights import score_hypotheses
from mosesplug.metrics.protocol import Metric, needs_outside, needs_texts
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.scores import ScoreSource
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.graphs.decoder import find_graph_store
from mosesplug.tuning.graphs.features import UNTUNED, read_configured_features
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "MbrTask",
    "check_utility",
    "decide_translations",
    "pairwise_scores",
    "read_graph_tasks",
    "read_list_tasks",
    "read_store_tasks",
]

_AHEAD = 8
"""Sentences read ahead of each thread."""


@dataclass(frozen=True)
class MbrTask:
    """A sentence, and a function that chooses its translation."""

    sentence: int
    choose: Callable[[Criterion], Decision]


def decide_translations(
    tasks: Iterable[MbrTask], criterion: Criterion, threads: int
) -> Iterator[tuple[int, Decision]]:
    """Yield each sentence with its decision, in the order of the tasks.

    Args:
        tasks: the sentences, of which only some are read ahead.
        criterion: the criterion of the choice.
        threads: number of threads; the decisions do not depend on it.
    """

    def decide(task: MbrTask) -> tuple[int, Decision]:
        return task.sentence, task.choose(criterion)

    with ThreadPoolExecutor(threads) as pool:
        yield from map_ahead(pool, decide, tasks, _AHEAD * threads)


def read_graph_tasks(path: Path, weights: GraphWeights) -> Iterator[MbrTask]:
    """Read the search graphs of a file or a directory.

    Raises:
        FormatError: a file is not a search graph.
        DataError: a dense feature has no weight, or sentences are not in order.
    """
    for found in read_weighted_graphs([path], weights):
        yield _graph_task(found.sentence, found.graph, found.weights)


def read_store_tasks(
    path: Path, iteration: int | None, weights: GraphWeights | None
) -> Iterator[MbrTask]:
    """Read the search graphs of one iteration of a tuning run.

    Args:
        path: the working directory, or the store in it.
        iteration: the iteration; None for the newest that has graphs.
        weights: the weights; None for those that the iteration was decoded with.

    Raises:
        UsageError: there is no store.
        StoreError: it cannot be read.
        DataError: the iteration does not exist or has no graphs, or a feature has no weight.
    """
    place = find_graph_store(path)
    if place is None:
        raise UsageError(f"there is no store in {path}")
    with NBestStore.open(place) as store:
        records = {record.iteration: record for record in store.iterations() if record.n_graphs}
        chosen = max(records, default=0) if iteration is None else iteration
        if chosen not in records:
            which = "no iteration" if iteration is None else f"no iteration {iteration}"
            raise DataError(f"{place} has {which} with search graphs: tune with --forest")
        with store.graphs([chosen]) as graphs:
            groups = graphs.space.groups
            if weights is None:
                own = _read_decoding_weights(records[chosen])
                fixed = _read_fixed_weights(place, chosen)
                weights = GraphWeights(groups, own.dense, own.sparse, fixed)
            features = GraphFeatures(graphs.space, weights.fixed_weights)
            vector = features.vector(_arrange(weights, groups, place), weights.sparse)
            for sentence in range(graphs.n_sentences):
                graph = graphs.graph(chosen, sentence)
                if graph is not None:
                    yield _graph_task(sentence, graph, vector)


def _read_decoding_weights(record: IterationRecord) -> Weights:
    """Return the weights that the decoder got; those of iteration 1 may be normalized."""
    start = read_start(record)
    if record.iteration == 1 and "-weight-overwrite" in start.command:
        return start.weights.normalize()
    return start.weights


def _read_fixed_weights(store: Path, iteration: int) -> Mapping[str, float]:
    """Return weights of untuned features from the configuration beside the store."""
    config = Workspace(store.parent, 1).run(iteration, "moses.ini")
    return read_configured_features(config).fixed_weights if config.is_file() else UNTUNED


def _arrange(
    weights: GraphWeights, groups: tuple[tuple[str, int], ...], place: Path
) -> tuple[float, ...]:
    """Return the dense weights in the order of a store's columns."""
    known = dict(zip(hypergraph_names(weights.groups), weights.dense, strict=True))
    names = hypergraph_names(groups)
    missing = [name for name in names if name not in known]
    if missing:
        raise DataError(
            f"the search graphs in {place} have the feature {missing[0]}, but the weights are for "
            f"{spelled_groups(weights.groups)}: give one for each dense feature"
        )
    return tuple(known[name] for name in names)


def read_list_tasks(
    path: StrPath,
    settings: ListSettings,
    weights: WeightFile | None,
    utility: ScoreSource | None = None,
    metric: Metric | None = None,
) -> Iterator[MbrTask]:
    """Read the n-best lists of a file.

    Args:
        path: the file.
        settings: how it is read; ``transform`` changes the texts that are compared, not those that
            are chosen.
        weights: the weights; None for the scores in the lists.
        utility: a file of utilities instead of a criterion of n-grams; see ``formats.utilities``.
            Hypotheses of lists without scores then have the same probability.
        metric: the utility instead of a criterion of n-grams: the score of each hypothesis against
            each other one.

    Raises:
        FormatError: a file cannot be read or lacks a weight, or lists without scores are given
            without weights and utilities; or the utilities belong to another list.
        UsageError: the lists have no texts.
    """
    (path,) = copy_pipes([path])
    reader = None if utility is None else UtilityReader(utility.paths[0])
    sign = -1.0 if utility is not None and utility.is_error_rate else 1.0
    dense: tuple[str, ...] | None = None
    lengths = None if weights is None else find_recorded_length(weights)
    if weights is not None:
        check_derived_features(weights, settings)
        dense = select_dense_features(path, weights, settings)
    elif names_values(path, settings):
        dense = ()
    blocks = read_file_blocks(path, replace(settings, transform=None), dense=dense)
    coverage = None if weights is None else SparseCoverage.of_file(weights)
    for block, compared in pair_transformed(blocks, settings.transform):
        if not block.has_texts:
            raise UsageError(f"{path} has no texts to choose from by minimum Bayes risk")
        scores = block.scores
        if weights is not None and coverage is not None:
            coverage.add(block.sparse_names)
            scores = score_hypotheses(block, weights, lengths)
        elif (utility is not None or metric is not None) and np.isnan(scores).all():
            scores = np.zeros(len(block))
        elif not np.isfinite(scores).all():
            raise FormatError(
                "a hypothesis has no score",
                path=path,
                line=int(block.lines[int(np.argmin(np.isfinite(scores)))]),
                remedy="Give --weights to score it",
            )
        bounds = np.flatnonzero(np.diff(block.sentence_ids, prepend=-1, append=-1))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            texts = [block.text(row).split() for row in range(first, last)]
            changed = texts
            if compared is not block:
                changed = [compared.text(row).split() for row in range(first, last)]
            gains: Callable[[], NDArray[np.float64]] | None = None
            if metric is not None:
                whole = [compared.text(row) for row in range(first, last)]
                gains = partial(pairwise_scores, metric, whole)
            if reader is not None:
                taken = sign * reader.take(last - first, f"{path}:{block.lines[first]}")
                gains = partial(np.asarray, taken)
            sentence = int(block.sentence_ids[first])
            yield _list_task(sentence, texts, changed, scores[first:last], gains)
    if coverage is not None:
        coverage.warn(str(path))
    if reader is not None:
        reader.finish()


def _graph_task(sentence: int, graph: Hypergraph, weights: NDArray[np.float64]) -> MbrTask:
    def choose(criterion: Criterion) -> Decision:
        with name_sentence(sentence):
            return decide_in_graph(graph, weights, criterion)

    return MbrTask(sentence, choose)


def _list_task(
    sentence: int,
    texts: list[list[bytes]],
    compared: list[list[bytes]],
    scores: NDArray[np.float64],
    utilities: Callable[[], NDArray[np.float64]] | None,
) -> MbrTask:
    """Return the task to choose one of ``texts`` by comparing those ``compared``."""

    def choose(criterion: Criterion) -> Decision:
        # The first of equally good translations is chosen, so sort by model score.
        order = np.argsort(-scores, kind="stable")
        ranked = [texts[row] for row in order.tolist()]
        if utilities is None:
            others = [compared[row] for row in order.tolist()]
            place = decide_in_list(others, scores[order], criterion)
        else:
            place = decide_by_utility(utilities(), scores, criterion.scale, order)
        chosen = ranked[place]
        return Decision(tuple(chosen), chosen == ranked[0])

    return MbrTask(sentence, choose)


def check_utility(metric: Metric) -> None:
    """Check that a metric can compare two hypotheses.

    Raises:
        UsageError: it reads scores from outside.
    """
    if needs_outside(metric) or not needs_texts(metric):
        raise UsageError(
            f"{metric.name} needs scores from outside, which compare no two hypotheses: name a"
            " metric of texts"
        )


def pairwise_scores(metric: Metric, texts: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the sentence scores of all pairs of ``n`` texts, float64 ``[n, n]``.

    Row ``h`` has the scores of text ``h`` where the text of each column is the reference. Equal
    texts are compared once.
    """
    distinct = list(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(distinct)}
    n = len(distinct)
    ends = np.cumsum([len(text) for text in distinct], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    # Hypotheses of the same reference follow each other, which prepares references once.
    rows = metric.statistics(
        metric.prepare([distinct]),
        np.repeat(np.arange(n, dtype=np.int64), n),
        np.frombuffer(b"".join(distinct), dtype=np.uint8),
        np.tile(starts, n),
        np.tile(ends, n),
    )
    scores = metric.sentence_scores(rows.astype(np.float64)).reshape(n, n).T
    columns = [places[text] for text in texts]
    return np.asarray(scores[np.ix_(columns, columns)], dtype=np.float64)
