"""``mosesplug forest``: n-best lists, oracles and statistics of search graphs."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.shared.parameters import (
    GraphWeights,
    Json,
    Output,
    Quiet,
    References,
    SentenceIdsOfLines,
    SparseWeights,
)
from mosesplug.errors import UsageError, count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mosesplug.learning.weighted_graphs import WeightedGraph
    from mosesplug.results.choices.graphs import GraphOracleMethod

Graphs = Annotated[
    list[Path],
    typer.Argument(
        metavar="GRAPHS|RUN",
        help="Directories or files of search graphs, or a run with --forest.",
        show_default=False,
    ),
]


def nbest(
    graphs: Graphs,
    weights: GraphWeights = None,
    sparse_weights: SparseWeights = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="Length of a list.")] = 100,
    distinct: Annotated[
        bool, typer.Option(help="List every translation once, by its best derivation.")
    ] = True,
    diverse: Annotated[
        float | None,
        typer.Option(metavar="LAMBDA", help="List diverse translations: penalty of n-grams."),
    ] = None,
    ngram: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --diverse, length of the n-grams [2]."),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --diverse, choose from the N best [all]."),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="List N random derivations instead.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --samples, the seed [1].")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(metavar="X", help="With --samples, scale of the scores [1].")
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Write n-best lists of search graphs, in Moses' format.

    GRAPHS are directories (0.gz, 1.gz, ...) or files; several graphs of one sentence are merged.
    With --diverse, each translation pays LAMBDA for every pair of equal n-grams with each earlier
    one (Gimpel et al. 2013), and the list has the order of the choice. With --samples, derivations
    are drawn in proportion to exp(scale * score); --no-distinct lists every draw.

    Examples: mosesplug forest nbest hypergraph --weights run3.dense -k 100 -o best100.gz;
    mosesplug forest nbest hypergraph --diverse 0.1 -k 20;
    mosesplug forest nbest hypergraph --samples 1000 --seed 7 --scale 2
    """
    _check_nbest(distinct, diverse, ngram, pool, samples, seed, scale)
    import numpy as np

    from formats.nbest.files import format_list
    from mosesplug.cli.shared.output import check_output, open_output, progress_bar
    from mosesplug.forest.diverse import ORDER
    from mosesplug.results.choices.graphs import GraphListSettings, make_list

    settings = GraphListSettings(
        k=k,
        distinct=distinct,
        penalty=diverse,
        order=ngram or ORDER,
        pool=pool,
        samples=samples,
        scale=1.0 if scale is None else scale,
    )
    rng = np.random.default_rng(1 if seed is None else seed)
    check_output(output, inputs=_find_inputs(graphs, weights, sparse_weights))
    opened = _open_graphs(graphs, weights, sparse_weights)
    if not opened.has_weights:
        raise UsageError("there are no weights: give --weights FILE")
    with open_output(output) as write, progress_bar(quiet) as progress:
        for done, graph in enumerate(opened.graphs, start=1):
            for line in format_list(make_list(graph, settings, rng)):
                write(line)
            progress(done, 0, "search graphs")


def oracle(
    graphs: Graphs,
    refs: References = None,
    ids: SentenceIdsOfLines = None,
    weights: GraphWeights = None,
    sparse_weights: SparseWeights = None,
    sentence: Annotated[
        bool, typer.Option("--sentence", help="Maximize the BLEU+1 of each sentence.")
    ] = False,
    linear: Annotated[
        bool, typer.Option("--linear", help="Maximize linear BLEU (Tromble et al. 2008).")
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Partial derivations of a node [10; all with --linear]."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seed of the order of sentences.")
    ] = 1,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Print the oracle translations of search graphs, one per line.

    By default a greedy search maximizes corpus BLEU; --sentence and --linear are faster, and
    --linear is exact. Corpus BLEU is printed on stderr, and with weights that of the 1-best.

    Examples: mosesplug forest oracle hypergraph --refs dev.en -o oracle.en;
    mosesplug forest oracle hypergraph --refs dev.en --linear
    """
    if refs is None:
        raise UsageError("there are no references: give --refs FILE")
    if sentence and linear:
        raise UsageError("--sentence and --linear exclude each other")
    from formats.references import read_references, reference_files
    from mosesplug.cli.shared.output import check_output, open_output, progress_bar
    from mosesplug.forest.oracles.corpus import model_oracles
    from mosesplug.results.choices.graphs import find_graph_oracles, read_oracle_graphs
    from mosesplug.sentence_ids import arrange_lines

    method: GraphOracleMethod = "linear" if linear else "sentence" if sentence else "greedy"
    inputs = _find_inputs(graphs, weights, sparse_weights) + reference_files(refs)
    check_output(output, inputs=inputs)
    references = arrange_lines(read_references(refs), (), f"{refs}", ids)
    opened = _open_graphs(graphs, weights, sparse_weights)
    with progress_bar(quiet) as progress:
        prepared = []
        for graph in read_oracle_graphs(opened.graphs, references):
            prepared.append(graph)
            progress(len(prepared), 0, "search graphs")
        found = find_graph_oracles(prepared, method, beam=beam, seed=seed, progress=progress)
    with open_output(output) as write:
        for graph, each in zip(prepared, found.oracles, strict=True):
            write(b" ".join(graph.read_words(each.derivation.edges)) + b"\n")
    if not quiet:
        if opened.has_weights:
            _report("best by the model", model_oracles(prepared).score)
        _report("oracle", found.score)


def info(
    graphs: Graphs,
    weights: GraphWeights = None,
    sparse_weights: SparseWeights = None,
    json: Json = False,
) -> None:
    """Print sizes and best scores of search graphs.

    Example: mosesplug forest info hypergraph --weights run3.dense
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.choices.graphs import GraphSummary, summarize_graph
    from mosesplug.results.render.record import tabulate

    opened = _open_graphs(graphs, weights, sparse_weights)
    features: dict[str, None] = {}
    graphs_found = []
    for graph in opened.graphs:
        found = summarize_graph(graph, has_weights=opened.has_weights)
        graphs_found.append(found)
        features |= dict.fromkeys(found.features)
    if json:
        print_json([asdict(found) for found in graphs_found])
        return
    print_blocks([tabulate(GraphSummary, graphs_found)])
    n_nodes = sum(found.nodes for found in graphs_found)
    n_edges = sum(found.edges for found in graphs_found)
    sentences = count_noun(len(graphs_found), "sentence")
    names = count_noun(len(features), "feature")
    print(f"{sentences}, {n_nodes} nodes, {n_edges} edges, {names}:")
    print(" ".join(features))


def _report(what: str, score: float) -> None:
    print(f"{what:18} BLEU {score:.4f}", file=sys.stderr)


def _check_nbest(
    distinct: bool,
    diverse: float | None,
    ngram: int | None,
    pool: int | None,
    samples: int | None,
    seed: int | None,
    scale: float | None,
) -> None:
    """Reject options that exclude each other, and values out of range."""
    if diverse is not None and samples is not None:
        raise UsageError("--diverse and --samples exclude each other")
    if diverse is not None and not distinct:
        raise UsageError("--diverse lists every translation once: leave --no-distinct out")
    if diverse is not None and not 0.0 < diverse < float("inf"):
        raise UsageError(f"--diverse {diverse:g}: the penalty must be more than 0")
    if diverse is None and (ngram is not None or pool is not None):
        raise UsageError("--ngram and --pool require --diverse")
    if samples is None and (seed is not None or scale is not None):
        raise UsageError("--seed and --scale require --samples")
    if scale is not None and not 0.0 < scale < float("inf"):
        raise UsageError(f"--scale {scale:g}: it must be more than 0")


@dataclass(frozen=True)
class _Input:
    """Search graphs, and whether they have weights."""

    graphs: Iterator[WeightedGraph]
    has_weights: bool


def _open_graphs(places: list[Path], weights: str | None, sparse: Path | None) -> _Input:
    """Open the graphs of files, or of the store of a run, with their weights."""
    from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
    from mosesplug.learning.weights import find_graph_weights
    from mosesplug.results.views.stored_graphs import read_stored_graphs
    from mosesplug.results.weights.sources import read_weights_of
    from mosesplug.tuning.graphs.decoder import find_graph_store
    from mosesplug.tuning.workdir.stores import find_run
    from mosesplug.tuning.workdir.workspace import Workspace

    runs = [place for place in places if place.is_dir() and find_graph_store(find_run(place))]
    if runs:
        if len(places) > 1:
            raise UsageError(f"{runs[0]} is a run: give it alone")
        if sparse is not None and weights is None:
            raise UsageError("--sparse-weights requires --weights for the graphs of a run")
        file = read_weights_of(weights, sparse)
        own = None if file is None else read_graph_weights(file, [])
        return _Input(read_stored_graphs(runs[0], own), True)
    # Working directories without a store are those of mert-moses.pl.
    places = [
        beneath if (beneath := Workspace(place, 0).graphs).is_dir() else place for place in places
    ]
    name = weights
    if name is None and (beside := find_graph_weights(places)) is not None:
        name = str(beside)
    known = read_graph_weights(read_weights_of(name, sparse), places)
    return _Input(read_weighted_graphs(places, known), known is not None)


def _find_inputs(places: list[Path], weights: str | None, sparse: Path | None) -> list[Path]:
    """Return the graphs and weights that a command reads, and weights beside graphs."""
    from formats.weights.named import find_weight_files
    from mosesplug.learning.weights import find_graph_weights

    named = () if weights is None else find_weight_files(weights)
    found = (*named, sparse, find_graph_weights(places))
    return [*places, *(path for path in found if path is not None)]
