"""``mosesplug forest``: lists and oracles of search graphs, and what is in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.errors import DataError, UsageError

if TYPE_CHECKING:
    from mosesplug.learning.weighted_graphs import GraphWeights, WeightedGraph

__all__ = ["info", "nbest", "oracle"]

Graphs = Annotated[
    list[Path],
    typer.Argument(
        metavar="GRAPHS",
        help="Directories (0.gz, 1.gz, ...) or files of search graphs: those of one sentence are "
        "searched together.",
        show_default=False,
    ),
]
WeightsFile = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="moses.ini, runN.dense, or name and value a line; else the file 'weights' beside the "
        "graphs.",
    ),
]
SparseFile = Annotated[
    Path | None,
    typer.Option("--sparse-weights", metavar="FILE", help="Of sparse features: name and value."),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Else stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def nbest(
    graphs: Graphs,
    weights: WeightsFile = None,
    sparse_weights: SparseFile = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="N", help="Length of a list.")] = 100,
    distinct: Annotated[
        bool, typer.Option(help="Every translation once, by its best derivation.")
    ] = True,
    diverse: Annotated[
        float | None,
        typer.Option(
            metavar="LAMBDA",
            help="Translations that differ: each pays LAMBDA for every pair of equal n-grams with "
            "each earlier one (Gimpel et al. 2013); the list is in the order of the choice.",
        ),
    ] = None,
    ngram: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --diverse: words of the n-grams [2]."),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --diverse: choose from the N best, not from the whole graph.",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="N random derivations, as likely as exp(scale * score), in place of the best; "
            "with --no-distinct every draw is listed.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --samples: of the draws [1].")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(metavar="X", help="With --samples: of the scores [1].")
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Write n-best lists of search graphs, in Moses' format.

    Examples: mosesplug forest nbest hypergraph --weights run3.dense -k 100 -o best100.gz;
    mosesplug forest nbest hypergraph --diverse 0.1 -k 20;
    mosesplug forest nbest hypergraph --samples 1000 --seed 7 --scale 2
    """
    _check_nbest(distinct, diverse, ngram, pool, samples, seed, scale)

    import numpy as np

    from formats.nbest.files import format_list
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.forest.diverse import ORDER, diverse_of
    from mosesplug.forest.diverse import diverse as diverse_list
    from mosesplug.forest.k_best import Derivations, k_best
    from mosesplug.forest.n_best import listed
    from mosesplug.forest.sampling import counted, sampled
    from mosesplug.learning.weighted_graphs import read_weighted_graphs

    rng = np.random.default_rng(1 if seed is None else seed)

    def chosen(found: WeightedGraph) -> Derivations:
        graph, scores = found.graph, found.scores
        if samples is not None:
            drawn = sampled(graph, scores, samples, rng, scale=1.0 if scale is None else scale)
            if distinct:
                return counted(graph, drawn).derivations
            return drawn.some(np.argsort(-drawn.scores, kind="stable"))
        if diverse is None:
            return k_best(graph, scores, k, distinct=distinct)
        if pool is None:
            return diverse_list(graph, scores, k, diverse, order=ngram or ORDER)
        best = k_best(graph, scores, pool, distinct=True)
        return diverse_of(graph, best, k, diverse, order=ngram or ORDER)

    known = _known(graphs, weights, sparse_weights)
    if known is None:
        raise UsageError("there are no weights: use --weights FILE")
    with _written(output) as write, progress_bar(quiet) as progress:
        for done, found in enumerate(read_weighted_graphs(graphs, known), start=1):
            with _named(found):
                derivations = chosen(found)
            made = listed(
                found.sentence, found.graph, derivations, found.features, source=found.source
            )
            for line in format_list(made):
                write(line)
            progress(done, 0, "search graphs")


def oracle(
    graphs: Graphs,
    refs: Annotated[
        Path | None,
        typer.Option(help="The reference; or the prefix of several: REFS0, REFS1, ..."),
    ] = None,
    weights: WeightsFile = None,
    sparse_weights: SparseFile = None,
    sentence: Annotated[
        bool, typer.Option("--sentence", help="Of each sentence the highest BLEU+1.")
    ] = False,
    linear: Annotated[
        bool,
        typer.Option(
            "--linear", help="The highest linear BLEU (Tromble et al. 2008): exact, and fast."
        ),
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Partial derivations kept of a node [10; all with --linear].",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the order of sentences.")] = 1,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Print the translations in search graphs that BLEU likes best, one a line.

    Sentences are chosen for each other, so that corpus BLEU is highest (greedily); --sentence and
    --linear are faster. Corpus BLEU is told on stderr, and that of the best model scores where
    there are weights.

    Examples: mosesplug forest oracle hypergraph --refs dev.en -o oracle.en;
    mosesplug forest oracle hypergraph --refs dev.en --linear
    """
    if refs is None:
        raise UsageError("no reference is given: use --refs FILE")
    if sentence and linear:
        raise UsageError("--sentence and --linear exclude each other")

    import numpy as np

    from formats.references import read_references
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.forest.oracles.bleu import BEAM, oracle_graph
    from mosesplug.forest.oracles.corpus import (
        greedy_oracles,
        linear_oracles,
        model_oracles,
        sentence_oracles,
    )
    from mosesplug.learning.weighted_graphs import read_weighted_graphs

    lines = read_references(refs)
    known = _known(graphs, weights, sparse_weights)
    with progress_bar(quiet) as progress:
        searched = []
        for found in read_weighted_graphs(graphs, known):
            if found.sentence >= len(lines[0]):
                raise DataError(
                    f"{found.source} is of sentence {found.sentence}, and {refs} has "
                    f"{len(lines[0])} lines: the first belongs to sentence 0"
                )
            texts = [line[found.sentence].split() for line in lines]
            searched.append(oracle_graph(found.graph, texts, found.scores, sentence=found.sentence))
            progress(len(searched), 0, "search graphs")
        if linear:
            result = linear_oracles(searched, beam=beam, told=progress)
        elif sentence:
            result = sentence_oracles(searched, beam=beam or BEAM, told=progress)
        else:
            rng = np.random.default_rng(seed)
            result = greedy_oracles(searched, rng, beam=beam or BEAM, told=progress)
    with _written(output) as write:
        for graph, one in zip(searched, result.oracles, strict=True):
            write(b" ".join(graph.said(one.derivation.edges)) + b"\n")
    if not quiet:
        if known is not None:
            _tell("best by the model", model_oracles(searched).score)
        _tell("oracle", result.score)


def info(
    graphs: Graphs,
    weights: WeightsFile = None,
    sparse_weights: SparseFile = None,
) -> None:
    """Print what is in search graphs: nodes, edges, derivations, the best score, features.

    Example: mosesplug forest info hypergraph --weights run3.dense
    """
    from mosesplug.forest.counting import log_count
    from mosesplug.forest.viterbi import viterbi
    from mosesplug.learning.weighted_graphs import read_weighted_graphs

    known = _known(graphs, weights, sparse_weights)
    print(f"{'sentence':>8} {'nodes':>9} {'edges':>10} {'derivations':>12} {'best score':>12}")
    names: dict[str, None] = {}
    n_graphs = n_nodes = n_edges = 0
    for found in read_weighted_graphs(graphs, known):
        graph = found.graph
        with _named(found):
            best = f"{viterbi(graph, found.scores).score:12.6g}" if known else f"{'-':>12}"
        count = _power_of_ten(log_count(graph))
        print(f"{found.sentence:8} {graph.n_nodes:9} {graph.n_edges:10} {count:>12} {best}")
        n_graphs, n_nodes, n_edges = n_graphs + 1, n_nodes + graph.n_nodes, n_edges + graph.n_edges
        names |= dict.fromkeys(found.names)
    print(f"{n_graphs} sentences, {n_nodes} nodes, {n_edges} edges, {len(names)} features:")
    print(" ".join(names))


def _power_of_ten(logarithm: float) -> str:
    """A number given by its natural logarithm, as ``1.2e+345``."""
    import math

    if logarithm < math.log(1e6):
        return str(round(math.exp(logarithm)))
    power, digits = divmod(logarithm / math.log(10.0), 1.0)
    return f"{10.0**digits:.1f}e+{power:.0f}"


def _tell(what: str, score: float) -> None:
    print(f"{what:18} BLEU {100 * score:.2f}", file=sys.stderr)


def _check_nbest(
    distinct: bool,
    diverse: float | None,
    ngram: int | None,
    pool: int | None,
    samples: int | None,
    seed: int | None,
    scale: float | None,
) -> None:
    """Refuse options that do not go together, and values that no search takes."""
    if diverse is not None and samples is not None:
        raise UsageError("--diverse and --samples exclude each other")
    if diverse is not None and not distinct:
        raise UsageError("--diverse lists every translation once: leave --no-distinct out")
    if diverse is not None and not 0.0 < diverse < float("inf"):
        raise UsageError(f"--diverse {diverse:g}: the penalty must be more than 0")
    if diverse is None and (ngram is not None or pool is not None):
        raise UsageError("--ngram and --pool belong to --diverse: give a penalty")
    if samples is None and (seed is not None or scale is not None):
        raise UsageError("--seed and --scale belong to --samples: say how many")
    if scale is not None and not 0.0 < scale < float("inf"):
        raise UsageError(f"--scale {scale:g}: it must be more than 0")


def _known(places: list[Path], weights: Path | None, sparse: Path | None) -> GraphWeights | None:
    """The weights, made sure that there is something at all places."""
    from mosesplug.learning.weighted_graphs import read_graph_weights

    for place in places:
        place.stat()
    return read_graph_weights(weights, sparse, places)


@contextmanager
def _named(found: WeightedGraph) -> Iterator[None]:
    """Say which graph it is that cannot be searched."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{found.source}: sentence {found.sentence}: {error}") from None


@contextmanager
def _written(output: Path | None) -> Iterator[Callable[[bytes], object]]:
    """What takes the lines; a file is written whole or not at all."""
    from formats.text import atomic_write

    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with atomic_write(output, compress="gz" if output.suffix == ".gz" else None) as file:
        yield file.write
