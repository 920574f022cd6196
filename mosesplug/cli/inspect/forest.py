"""``mosesplug forest``: n-best lists, oracles and statistics of search graphs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from formats.nbest.files import format_list
from formats.references import read_references, reference_files
from formats.weights.named import find_weight_files
from mosesplug.cli.inspect.list_options import (
    ForestErrorsCommand,
    ForestInfoCommand,
    ForestNbestCommand,
    ForestOracleCommand,
)
from mosesplug.cli.shared.output import check_output, open_output, progress_bar
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.forest.diverse import ORDER
from mosesplug.forest.oracles.corpus import model_oracles
from mosesplug.learning.weighted_graphs import WeightedGraph
from mosesplug.learning.weights import find_graph_weights
from mosesplug.results.analysis.search_errors import find_search_errors
from mosesplug.results.choices.graphs import (
    GraphListSettings,
    GraphOracleMethod,
    GraphSummaries,
    find_graph_oracles,
    make_list,
    open_graphs,
    read_oracle_graphs,
    summarize_graph,
)
from mosesplug.sentence_ids import arrange_lines


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


def errors(options: ForestErrorsCommand) -> None:
    """Tell search errors from model errors, sentence by sentence."""
    if options.refs is None:
        raise UsageError("there are no references: give --refs FILE")
    report = find_search_errors(
        options.graphs,
        options.refs,
        ids=options.ids,
        iteration=options.iteration,
        wider=options.wider or (),
        weights=options.weights,
        sparse_weights=options.sparse_weights,
        top=options.top,
    )
    print_record(replace(report, shows_sentences=options.sentences))


def _report(what: str, score: float) -> None:
    print(f"{what:18} BLEU {score:.4f}", file=sys.stderr)


_Options = ForestNbestCommand | ForestOracleCommand | ForestInfoCommand


def _open_graphs(options: _Options) -> tuple[Iterator[WeightedGraph], bool]:
    return open_graphs(options.graphs, options.weights, options.sparse_weights)


def _find_inputs(options: _Options) -> list[Path]:
    """Return the graphs and weights that a command reads, and weights beside graphs."""
    named = () if options.weights is None else find_weight_files(options.weights)
    paths = (*named, options.sparse_weights, find_graph_weights(options.graphs))
    return [*options.graphs, *(path for path in paths if path is not None)]
