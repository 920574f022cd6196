"""N-best lists, oracles and statistics of search graphs in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.errors import DataError, UsageError, count_noun
from mosesplug.forest.diverse import ORDER, choose_diverse, find_diverse
from mosesplug.forest.inside_outside import log_count
from mosesplug.forest.k_best import Derivations, k_best
from mosesplug.forest.n_best import list_derivations
from mosesplug.forest.oracles.bleu import BEAM, OracleGraph, oracle_graph
from mosesplug.forest.oracles.corpus import (
    CorpusOracle,
    greedy_oracles,
    linear_oracles,
    sentence_oracles,
)
from mosesplug.forest.sampling import count_translations, sample_derivations
from mosesplug.forest.viterbi import viterbi
from mosesplug.learning.weighted_graphs import (
    WeightedGraph,
    read_graph_weights,
    read_weighted_graphs,
)
from mosesplug.learning.weights import find_graph_weights
from mosesplug.optimizers import Progress
from mosesplug.optimizers.problem import no_progress
from mosesplug.results.render.record import Count, Shown, format_power_of_ten, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block
from mosesplug.results.views.stored_graphs import read_stored_graphs
from mosesplug.results.weights.sources import read_weights_of
from mosesplug.tuning.graphs.decoder import find_graph_store
from mosesplug.tuning.workdir.stores import find_run
from mosesplug.tuning.workdir.workspace import Workspace

GraphOracleMethod = Literal["greedy", "sentence", "linear"]


def open_graphs(
    places: Sequence[Path],
    weights: str | None,
    sparse_weights: Path | None = None,
    iteration: int | None = None,
) -> tuple[Iterator[WeightedGraph], bool]:
    """Return the graphs of files or of a run, and whether they have weights.

    Args:
        places: directories or files of search graphs, or one run.
        weights: the weights; None for those beside the graphs, or of the decoding.
        iteration: an iteration of the run; None for the newest that has graphs.

    Raises:
        UsageError: a run is not alone, or an iteration of other graphs is given.
        FormatError, StoreError, DataError: weights or graphs cannot be read.
    """
    runs = [place for place in places if place.is_dir() and find_graph_store(find_run(place))]
    if runs:
        if len(places) > 1:
            raise UsageError(f"{runs[0]} is a run: give it alone")
        file = read_weights_of(weights, sparse_weights)
        own = None if file is None else read_graph_weights(file, [])
        return read_stored_graphs(runs[0], own, iteration), True
    if iteration is not None:
        raise UsageError("{--iteration} requires a run: search graphs in files have no iterations")
    # Working directories without a store are those of mert-moses.pl.
    places = [
        beneath if (beneath := Workspace(place, 0).graphs).is_dir() else place for place in places
    ]
    if weights is None and (beside := find_graph_weights(places)) is not None:
        weights = str(beside)
    known = read_graph_weights(read_weights_of(weights, sparse_weights), places)
    return read_weighted_graphs(places, known), known is not None


@dataclass(frozen=True)
class GraphListSettings:
    """Which derivations of a graph to list.

    Attributes:
        k: length of a list; ignored with ``samples``.
        distinct: list each translation once, by its best derivation.
        penalty: penalty of n-grams shared with earlier translations (Gimpel et al. 2013); None for
            the best derivations.
        pool: choose diverse translations from this number of best ones; None for the whole graph.
        samples: list this number of random derivations instead, drawn in proportion to
            ``exp(scale * score)``.
        scale: see ``samples``.
    """

    k: int = 100
    distinct: bool = True
    penalty: float | None = None
    order: int = ORDER
    pool: int | None = None
    samples: int | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class GraphSummary:
    """Size and best score of a search graph.

    Attributes:
        log_derivations: natural logarithm of the number of derivations.
        best_score: the highest model score; None without weights.
    """

    sentence: Count
    nodes: Count
    edges: Count
    log_derivations: Annotated[float, Shown(format_power_of_ten, "derivations")]
    best_score: Annotated[float | None, Shown(".6g", "best score", "-")]
    features: tuple[str, ...]


@dataclass(frozen=True)
class GraphSummaries:
    """The sizes of several search graphs; the document is a list of them."""

    document: tuple[GraphSummary, ...]

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a table, the sums, and the names of the features."""
        graphs = self.document
        yield tabulate(GraphSummary, graphs)
        features = dict.fromkeys(name for graph in graphs for name in graph.features)
        sentences = count_noun(len(graphs), "sentence")
        n_nodes, n_edges = sum(g.nodes for g in graphs), sum(g.edges for g in graphs)
        names = count_noun(len(features), "feature")
        yield f"{sentences}, {n_nodes} nodes, {n_edges} edges, {names}:"
        yield " ".join(features)


def make_list(
    graph: WeightedGraph, settings: GraphListSettings, rng: np.random.Generator
) -> NBestList:
    """Return the n-best list of a search graph.

    Raises:
        DataError: the graph cannot be searched.
    """
    with name_graph(graph):
        derivations = _select_derivations(graph, settings, rng)
    return list_derivations(
        graph.sentence, graph.graph, derivations, graph.features, source=graph.source
    )


def _select_derivations(
    weighted: WeightedGraph, settings: GraphListSettings, rng: np.random.Generator
) -> Derivations:
    graph, scores, k = weighted.graph, weighted.scores, settings.k
    if settings.samples is not None:
        drawn = sample_derivations(graph, scores, settings.samples, rng, scale=settings.scale)
        if settings.distinct:
            return count_translations(graph, drawn).derivations
        return drawn.some(np.argsort(-drawn.scores, kind="stable"))
    if settings.penalty is None:
        return k_best(graph, scores, k, distinct=settings.distinct)
    if settings.pool is None:
        return find_diverse(graph, scores, k, settings.penalty, order=settings.order)
    best = k_best(graph, scores, settings.pool, distinct=True)
    return choose_diverse(graph, best, k, settings.penalty, order=settings.order)


def read_oracle_graphs(
    graphs: Iterable[WeightedGraph], references: Sequence[Sequence[bytes]]
) -> Iterator[OracleGraph]:
    """Prepare search graphs for the search of oracles.

    Args:
        references: ``references[k][sentence]``.

    Raises:
        DataError: a sentence has no reference.
    """
    for graph in graphs:
        if graph.sentence >= len(references[0]):
            raise DataError(
                f"{graph.source} belongs to sentence {graph.sentence}, but the references have "
                f"only {len(references[0])} lines (the first is sentence 0)"
            )
        texts = [lines[graph.sentence].split() for lines in references]
        yield oracle_graph(graph.graph, texts, graph.scores, sentence=graph.sentence)


def find_graph_oracles(
    graphs: Sequence[OracleGraph],
    method: GraphOracleMethod,
    *,
    beam: int | None = None,
    seed: int = 1,
    progress: Progress = no_progress,
) -> CorpusOracle:
    """Find the oracle of each graph.

    Args:
        method: ``greedy`` for the highest corpus BLEU, ``sentence`` for the highest BLEU+1 of each
            sentence, ``linear`` for the highest linear BLEU (Tromble et al. 2008).
        beam: partial derivations kept at each node; None for 10, or for all with ``linear``.
        seed: seed of the order of sentences (``greedy``).
        progress: is called with the graphs searched.
    """
    match method:
        case "linear":
            return linear_oracles(graphs, beam=beam, on_progress=progress)
        case "sentence":
            return sentence_oracles(graphs, beam=beam or BEAM, on_progress=progress)
        case "greedy":
            rng = np.random.default_rng(seed)
            return greedy_oracles(graphs, rng, beam=beam or BEAM, on_progress=progress)


def summarize_graph(graph: WeightedGraph, *, has_weights: bool) -> GraphSummary:
    """Return the size of a search graph, and its best score if it has weights.

    Raises:
        DataError: the graph cannot be searched.
    """
    best_score = None
    if has_weights:
        with name_graph(graph):
            best_score = viterbi(graph.graph, graph.scores).score
    return GraphSummary(
        sentence=graph.sentence,
        nodes=graph.graph.n_nodes,
        edges=graph.graph.n_edges,
        log_derivations=log_count(graph.graph),
        best_score=best_score,
        features=graph.names,
    )


@contextmanager
def name_graph(graph: WeightedGraph) -> Iterator[None]:
    """Name the file and the sentence of a graph in errors of its search."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{graph.source}: sentence {graph.sentence}: {error}") from None
