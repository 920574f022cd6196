"""What ``mosesplug mbr`` chooses translations from: search graphs, a store of them, or lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.graphs import read_graphs
from formats.hypergraph import hypergraph_names
from formats.moses_ini import parse_moses_ini
from formats.nbest import NBestList, read_nbest_blocks
from formats.text import read_bytes
from formats.weights import WeightGroup, read_show_weights, read_sparse
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.forest.decisions import Criterion, Decision, decide_in_graph, decide_in_list
from mosesplug.forest.graphs import named
from mosesplug.hypergraph import Hypergraph
from mosesplug.store import NBestStore
from mosesplug.tuning.forest_source import store_at
from mosesplug.tuning.offline import read_start
from mosesplug.tuning.records import start_of

__all__ = ["GraphWeights", "Task", "in_graphs", "in_lists", "in_store", "read_weights"]

Task = tuple[int, Callable[[Criterion], Decision]]
"""A sentence, and what chooses its translation."""

_UNKNOWN_WORD = "UnknownWordPenalty"
"""Moses' only feature that has a weight without being tuned, which is 1."""


@dataclass(frozen=True)
class GraphWeights:
    """Weights by the names that search graphs give to features.

    Attributes:
        source: where they are from, for messages.
        values: by name.
    """

    source: str
    values: Mapping[str, float]

    def vector(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The weights of some features, float64 ``[n]``; a sparse one that has none counts as 0.

        Raises:
            DataError: a dense feature has none.
        """
        return np.array([self._weight(name) for name in names], dtype=np.float64)

    def _weight(self, name: str) -> float:
        weight = self.values.get(name)
        if weight is not None:
            return weight
        if name.startswith(_UNKNOWN_WORD):
            return 1.0
        group, underscore, number = name.rpartition("_")
        if not underscore or (number.isdecimal() and f"{group}_1" in self.values):
            raise DataError(
                f"{self.source} has no weight of {name}, which the search graphs have: give the"
                " weights of the system that made them"
            )
        return 0.0


def read_weights(path: Path, sparse: Path | None) -> GraphWeights:
    """Weights by name from any file that holds some.

    A ``moses.ini``, ``Name= value value`` lines (``runN.dense``, the answer to ``-show-weights``),
    or ``name value`` lines as in the ``weights`` beside search graphs.

    Args:
        path: the file.
        sparse: one of sparse weights, ``name value`` a line.

    Raises:
        FormatError: it is none of these.
    """
    text = read_bytes(path)
    first = text.split(maxsplit=1)[:1]
    if any(line.strip() == b"[weight]" for line in text.split(b"\n")):
        values = _spelled(parse_moses_ini(text, path).weights)
    elif first and first[0].endswith(b"="):
        groups = read_show_weights(path).groups
        values = _spelled({group.name: _known(path, group) for group in groups})
    else:
        values = read_sparse(path)
    if not values:
        raise FormatError("there is no weight in it", path=path, remedy="Give a moses.ini")
    return GraphWeights(str(path), values | ({} if sparse is None else read_sparse(sparse)))


def _known(path: Path, group: WeightGroup) -> list[float]:
    """The weights of a feature function, all of which must be there."""
    known = [value for value in group.values if value is not None]
    if len(known) < len(group.values):
        raise FormatError(
            f"a weight of {group.name} is not told",
            path=path,
            remedy="Give the moses.ini of the system that made the search graphs",
        )
    return known


def in_graphs(path: Path, weights: GraphWeights) -> Iterator[Task]:
    """The search graphs of a file or a directory.

    Raises:
        FormatError: a file that is no search graph.
        DataError: a dense feature has no weight.
    """
    for sentence, file in read_graphs(path):
        columns = {name: column for column, name in enumerate(file.names)}
        yield _graph_task(sentence, Hypergraph.of_file(file, columns), weights.vector(file.names))


def in_store(path: Path, iteration: int | None, weights: GraphWeights | None) -> Iterator[Task]:
    """The search graphs of one iteration of a tuning run.

    Args:
        path: the working directory, or the store in it.
        iteration: whose; None for the newest that has graphs.
        weights: None for those that it was decoded with.

    Raises:
        StoreError: it cannot be read.
        DataError: there is no such iteration, or it has no graphs.
    """
    place = store_at(path)
    if place is None:
        raise UsageError(f"there is no store in {path}")
    with NBestStore.open(place) as store:
        records = {record.iteration: record for record in store.iterations() if record.n_graphs}
        chosen = max(records, default=0) if iteration is None else iteration
        if chosen not in records:
            which = "no iteration" if iteration is None else f"no iteration {iteration}"
            raise DataError(f"{place} has {which} with search graphs: tune with --forest")
        with store.graphs([chosen]) as graphs:
            space = graphs.space
            if weights is None:
                decoded_with = start_of(records[chosen]).weights
                dense = zip(hypergraph_names(space.groups), decoded_with.dense, strict=True)
                values = {**dict(dense), **decoded_with.sparse}
                weights = GraphWeights(f"iteration {chosen} of {place}", values)
            vector = weights.vector((*hypergraph_names(space.groups), *space.sparse))
            for sentence in range(graphs.n_sentences):
                graph = graphs.graph(chosen, sentence)
                if graph is not None:
                    yield _graph_task(sentence, graph, vector)


def in_lists(
    path: Path, names: Sequence[str] | None, weights: Path | None, sparse: Path | None
) -> Iterator[Task]:
    """The n-best lists of a file.

    Args:
        path: the file.
        names: of the values of unlabelled lists.
        weights: None for the scores that the lists have; else a file of any kind that holds some.
        sparse: a file of sparse weights.

    Raises:
        FormatError: a file is no list, or has not the weights of these features; or lists have
            no scores and there are no weights.
    """
    for block in read_nbest_blocks(path, names=names):
        scores = block.scores
        if weights is not None:
            scores = _scores(block, weights, sparse)
        elif not np.isfinite(scores).all():
            raise FormatError(
                "a hypothesis has no score",
                path=path,
                line=int(block.lines[int(np.argmin(np.isfinite(scores)))]),
                remedy="Give --weights, by which it can be scored",
            )
        bounds = np.flatnonzero(np.diff(block.sentence_ids, prepend=-1, append=-1))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            texts = [block.text(row).split() for row in range(first, last)]
            yield _list_task(int(block.sentence_ids[first]), texts, scores[first:last])


def _graph_task(sentence: int, graph: Hypergraph, weights: NDArray[np.float64]) -> Task:
    def choose(criterion: Criterion) -> Decision:
        with named(sentence):
            return decide_in_graph(graph, weights, criterion)

    return sentence, choose


def _list_task(sentence: int, texts: list[list[bytes]], scores: NDArray[np.float64]) -> Task:
    def choose(criterion: Criterion) -> Decision:
        # Of equal translations the first is chosen, so the model's best come first.
        order = np.argsort(-scores, kind="stable")
        ranked = [texts[row] for row in order.tolist()]
        chosen = ranked[decide_in_list(ranked, scores[order], criterion)]
        return Decision(tuple(chosen), chosen == ranked[0])

    return sentence, choose


def _scores(block: NBestList, weights: Path, sparse: Path | None) -> NDArray[np.float64]:
    """The hypotheses' scores under other weights."""
    space = FeatureSpace(block.groups, block.sparse_names)
    vector = read_start(weights, space, sparse).weights
    scores = (block.dense.astype(np.float64) * vector[: space.n_dense]).sum(axis=1)
    rows = np.repeat(np.arange(len(block)), np.diff(block.sparse_indptr))
    worth = block.sparse_data * vector[space.n_dense :][block.sparse_indices]
    return np.asarray(scores + np.bincount(rows, weights=worth, minlength=len(block)))


def _spelled(groups: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Weights by the names of search graphs."""
    names = hypergraph_names((name, len(values)) for name, values in groups.items())
    return dict(zip(names, (v for values in groups.values() for v in values), strict=True))
