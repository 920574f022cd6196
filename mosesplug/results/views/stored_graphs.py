"""Read the search graphs in the store of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from formats.graphs.hypergraph import hypergraph_names
from mosesplug.errors import DataError, UsageError
from mosesplug.features import spelled_groups
from mosesplug.forest.n_best import GraphFeatures
from mosesplug.learning.weighted_graphs import GraphWeights, WeightedGraph
from mosesplug.results.views.run import choose_run
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.graphs.decoder import find_graph_store
from mosesplug.tuning.graphs.features import UNTUNED, read_configured_features
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.workspace import Workspace


def read_stored_graphs(
    path: Path, weights: GraphWeights | None, iteration: int | None = None
) -> Iterator[WeightedGraph]:
    """Yield the search graphs of one iteration of a run.

    Args:
        path: the store, or the working directory that holds it. Of several runs, that whose weights
            are the result is read.
        weights: the weights; None for those that the iteration was decoded with.
        iteration: the iteration; None for the newest that has graphs.

    Raises:
        UsageError: there is no store.
        StoreError: it cannot be read.
        DataError: the iteration does not exist or has no graphs, or a feature has no weight.
    """
    place = find_graph_store(choose_run(path))
    if place is None:
        raise UsageError(f"there is no store in {path}")
    with NBestStore.open(place) as store:
        records = {record.iteration: record for record in store.iterations() if record.n_graphs}
        chosen = max(records, default=0) if iteration is None else iteration
        if chosen not in records:
            which = "no iteration" if iteration is None else f"no iteration {iteration}"
            raise DataError(f"{place} has {which} with search graphs: tune with {{--forest}}")
        with store.graphs([chosen]) as graphs:
            groups = graphs.space.groups
            if weights is None:
                own = _read_decoding_weights(records[chosen])
                fixed = _read_fixed_weights(place, chosen)
                weights = GraphWeights(groups, own.dense, own.sparse, fixed)
            features = GraphFeatures(graphs.space, weights.fixed_weights)
            vector = features.vector(_arrange(weights, groups, place), weights.sparse)
            names = (*hypergraph_names(groups), *graphs.space.sparse)
            for sentence in range(graphs.n_sentences):
                graph = graphs.graph(chosen, sentence)
                if graph is not None:
                    scores = graph.edge_scores(vector)
                    yield WeightedGraph(
                        sentence, str(place), graph, names, features, vector, scores
                    )


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
