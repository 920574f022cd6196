"""``mosesplug forest``: n-best lists, oracles and statistics of search graphs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from formats.nbest.files import format_list
from formats.references import read_references, reference_files
from formats.weights.named import find_weight_files
from mosesplug.cli.inspect.list_options import (
    ForestInfoCommand,
    ForestNbestCommand,
    ForestOracleCommand,
)
from mosesplug.cli.shared.output import check_output, open_output, progress_bar
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.forest.diverse import ORDER
from mosesplug.forest.oracles.corpus import model_oracles
from mosesplug.learning.weighted_graphs import (
    WeightedGraph,
    read_graph_weights,
    read_weighted_graphs,
)
from mosesplug.learning.weights import find_graph_weights
from mosesplug.results.choices.graphs import (
    GraphListSettings,
    GraphOracleMethod,
    GraphSummaries,
    find_graph_oracles,
    make_list,
    read_oracle_graphs,
    summarize_graph,
)
from mosesplug.results.views.stored_graphs import read_stored_graphs
from mosesplug.results.weights.sources import read_weights_of
from mosesplug.sentence_ids import arrange_lines
from mosesplug.tuning.graphs.decoder import find_graph_store
from mosesplug.tuning.workdir.stores import find_run
from mosesplug.tuning.workdir.workspace import Workspace


def nbest(options: ForestNbestCommand) -> None:
    """Write n-best lists of search graphs, in Moses' format."""
    if options.diverse is not None and not options.distinct:
        raise UsageError("--diverse lists every translation once: leave --no-distinct out")
    settings = GraphListSettings(
        k=options.k,
        distinct=options.distinct,
        penalty=options.diverse,
        order=options.ngram or ORDER,
        pool=options.pool,
        samples=options.samples,
        scale=1.0 if options.scale is None else options.scale,
    )
    rng = np.random.default_rng(1 if options.seed is None else options.seed)
    check_output(options.output, inputs=_find_inputs(options))
    graphs, has_weights = _open_graphs(options)
    if not has_weights:
        raise UsageError("there are no weights: give --weights FILE")
    with open_output(options.output) as write, progress_bar(options.quiet) as progress:
        for done, graph in enumerate(graphs, start=1):
            for line in format_list(make_list(graph, settings, rng)):
                write(line)
            progress(done, 0, "search graphs")


def oracle(options: ForestOracleCommand) -> None:
    """Print the oracle translations of search graphs, one per line."""
    refs = options.refs
    if refs is None:
        raise UsageError("there are no references: give --refs FILE")
    method: GraphOracleMethod = "greedy"
    if options.linear or options.sentence:
        method = "linear" if options.linear else "sentence"
    check_output(options.output, inputs=_find_inputs(options) + reference_files(refs))
    references = arrange_lines(read_references(refs), (), f"{refs}", options.ids)
    graphs, has_weights = _open_graphs(options)
    with progress_bar(options.quiet) as progress:
        prepared = []
        for graph in read_oracle_graphs(graphs, references):
            prepared.append(graph)
            progress(len(prepared), 0, "search graphs")
        oracles = find_graph_oracles(
            prepared, method, beam=options.beam, seed=options.seed, progress=progress
        )
    with open_output(options.output) as write:
        for graph, best in zip(prepared, oracles.oracles, strict=True):
            write(b" ".join(graph.read_words(best.derivation.edges)) + b"\n")
    if not options.quiet:
        if has_weights:
            _report("best by the model", model_oracles(prepared).score)
        _report("oracle", oracles.score)


def info(options: ForestInfoCommand) -> None:
    """Print sizes and best scores of search graphs."""
    graphs, has_weights = _open_graphs(options)
    summaries = (summarize_graph(graph, has_weights=has_weights) for graph in graphs)
    print_record(GraphSummaries(tuple(summaries)))


def _report(what: str, score: float) -> None:
    print(f"{what:18} BLEU {score:.4f}", file=sys.stderr)


_Options = ForestNbestCommand | ForestOracleCommand | ForestInfoCommand


def _open_graphs(options: _Options) -> tuple[Iterator[WeightedGraph], bool]:
    """Return the graphs of files or of a run, and whether they have weights."""
    places, weights, sparse = options.graphs, options.weights, options.sparse_weights
    runs = [place for place in places if place.is_dir() and find_graph_store(find_run(place))]
    if runs:
        if len(places) > 1:
            raise UsageError(f"{runs[0]} is a run: give it alone")
        file = read_weights_of(weights, sparse)
        own = None if file is None else read_graph_weights(file, [])
        return read_stored_graphs(runs[0], own), True
    # Working directories without a store are those of mert-moses.pl.
    places = [
        beneath if (beneath := Workspace(place, 0).graphs).is_dir() else place for place in places
    ]
    if weights is None and (beside := find_graph_weights(places)) is not None:
        weights = str(beside)
    known = read_graph_weights(read_weights_of(weights, sparse), places)
    return read_weighted_graphs(places, known), known is not None


def _find_inputs(options: _Options) -> list[Path]:
    """Return the graphs and weights that a command reads, and weights beside graphs."""
    named = () if options.weights is None else find_weight_files(options.weights)
    paths = (*named, options.sparse_weights, find_graph_weights(options.graphs))
    return [*options.graphs, *(path for path in paths if path is not None)]
