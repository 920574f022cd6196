"""Store the search graphs of a decoding, and make n-best lists of them.

Several processes read the graphs. What they return is small: a list as text, and a graph that is
pruned to the edges of its best derivations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formats.errors import FormatError
from formats.graphs.any_graph import Scan, read_graph
from formats.graphs.hypergraph import GraphColumns, HypergraphFile, list_hypergraph_files
from formats.nbest.files import format_list
from formats.text import atomic_write
from mosesplug.cores import usable_cores
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import DataError, StoreError
from mosesplug.events import GraphsRead
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures, make_nbest_list
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.forest.scanner import choose_scan
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import load_compiler
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.decoding import GraphSettings
from mosesplug.tuning.context import Context
from mosesplug.tuning.graphs.features import read_configured_features
from mosesplug.tuning.parallel.ordered_map import start_in_order
from mosesplug.tuning.references import read_run_references
from mosesplug.tuning.weights import Weights


@dataclass(frozen=True)
class GraphFiles:
    """Reader of one decoding's search graphs, which it prunes.

    Call it with the index of a file.

    Attributes:
        sentences: ids of those that have a graph, ascending.
        groups: dense groups that the decoder announced.
        fixed_weights: weights of features that are not tuned, by their names in graphs.
        weights: that they were decoded with.
        nbest: length of the n-best lists.
        edges: how many edges of each graph are kept, and all that tie with the last; 0 keeps all.
        scan: parses their text faster than the reader, or None.
    """

    sentences: Sequence[int]
    paths: Sequence[Path]
    groups: tuple[tuple[str, int], ...]
    fixed_weights: Mapping[str, float]
    weights: Weights
    nbest: int
    edges: Sequence[int]
    scan: Scan | None = None

    def __call__(self, place: int) -> tuple[HypergraphFile, bytes]:
        """Return a file's graph, pruned, and the lines of its n-best list.

        Raises:
            DataError: it has a feature that the decoder did not announce, or no derivation.
        """
        path = self.paths[place]
        file = read_graph(path, "hypergraph", scan=self.scan)
        columns = GraphColumns(self.groups, fixed=self.fixed_weights)
        try:
            graph = Hypergraph.of_file(file, columns.of(file.names))
        except KeyError as error:
            raise DataError(
                f"{path} has the feature {error.args[0]}, which the decoder did not announce: that"
                f" is {spelled_groups(self.groups)}"
            ) from None
        space = FeatureSpace(self.groups, tuple(columns.sparse))
        features = GraphFeatures(space, self.fixed_weights)
        weights = features.vector(self.weights.dense, self.weights.sparse)
        try:
            own_list = make_nbest_list(
                self.sentences[place], [graph], features, weights, self.nbest, source=str(path)
            )
            if edges := self.edges[place]:
                graph = prune_to_edges(graph, weights.astype(np.float32), edges)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        lines = b"" if own_list is None else b"".join(format_list(own_list))
        return _as_file(str(path), graph, columns.names), lines


def _as_file(path: str, graph: Hypergraph, names: tuple[str, ...]) -> HypergraphFile:
    """Return a graph in the form of a file, with ``names`` of its columns."""
    return HypergraphFile(
        path,
        names,
        graph.words,
        graph.edge_offsets,
        graph.tail_offsets,
        graph.tails,
        graph.target_offsets,
        graph.targets,
        graph.feature_indptr,
        graph.feature_indices,
        graph.feature_values,
        graph.covered,
    )


def store_graphs(context: Context, iteration: int, weights: Weights, lists: DecodedInput) -> None:
    """Store an iteration's search graphs, and write its list to ``lists.path``."""
    configuration = context.configuration
    n_sentences, groups = context.references.n_sentences, context.space.groups
    try:
        paths = list_hypergraph_files(lists.graphs or "")
    except FormatError as error:
        raise lists.failure(f"the decoder wrote no search graphs: {error}") from error
    if (last := max(paths)) >= n_sentences:
        raise lists.failure(
            f"there is a search graph of sentence {last}, but the input has only {n_sentences},"
            " counted from 0"
        )
    graphs = configuration.decoding.graphs or GraphSettings()
    references = read_sentence_references(configuration, n_sentences)
    work = GraphFiles(
        sentences=tuple(paths),
        paths=tuple(paths.values()),
        groups=groups,
        fixed_weights=read_configured_features(context.config).fixed_weights,
        weights=weights,
        nbest=configuration.decoding.nbest,
        edges=[graphs.edges * max(1, min(map(len, references[number]))) for number in paths],
        scan=choose_scan(tuple(paths.values())),
    )
    load_compiler()  # once for all processes, which are forked
    processes = min(configuration.optimization.threads, usable_cores())
    try:
        with (
            start_in_order(work, len(paths), processes) as taken,
            atomic_write(lists.path, compress="gz") as written,
        ):

            def numbered() -> Iterator[tuple[int, HypergraphFile]]:
                pairs = zip(paths, taken, strict=True)
                for done, (sentence, (graph, lines)) in enumerate(pairs, start=1):
                    context.watch(GraphsRead(iteration, done, len(paths)))
                    written.write(lines)
                    yield sentence, graph

            context.store.add_graphs(
                iteration, numbered(), groups=groups, fixed=tuple(work.fixed_weights)
            )
    except StoreError:
        raise
    except (FormatError, DataError) as error:
        raise lists.failure(
            f"the decoder wrote search graphs that cannot be used: {error}"
        ) from error


def read_sentence_references(
    configuration: Configuration, n_sentences: int
) -> list[list[list[bytes]]]:
    """Return the words of the references, ``[sentence][reference][word]``."""
    lines = read_run_references(configuration, n_sentences)
    return [
        [[word for word in line.split(b" ") if word] for line in sentence]
        for sentence in zip(*lines, strict=True)
    ]
