"""``mosesplug mbr``: translations of least risk from search graphs or n-best lists."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mosesplug.cli.inspect.mbr_input import Task
    from mosesplug.forest.mbr.decisions import Criterion, Decision

__all__ = ["mbr"]

_AHEAD = 8
"""Sentences read ahead of each thread."""


def mbr(
    graphs: Annotated[
        Path | None,
        typer.Argument(
            metavar="GRAPHS",
            help="Search graphs: a directory of them, or a file.",
        ),
    ] = None,
    nbest: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An n-best list instead of graphs.")
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The graphs of a tuning run with --forest instead."),
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of --store; else the newest that has graphs."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="moses.ini, runN.dense or the like. Without: the file weights beside the graphs, "
            "the weights of the iteration, or the scores in the lists.",
        ),
    ] = None,
    sparse_weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of sparse features, name value a line.")
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the values of unlabelled lists, comma-separated.")
    ] = None,
    list_mbr: Annotated[
        bool,
        typer.Option(
            "--list-mbr",
            help="Choose by expected BLEU+1 over an n-best list (Kumar & Byrne 2004), that of the "
            "file or the best of the graph.",
        ),
    ] = False,
    lattice_mbr: Annotated[
        bool,
        typer.Option(
            "--lattice-mbr",
            help="Choose from all translations by linear BLEU (Tromble et al. 2008).",
        ),
    ] = False,
    scale: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="S",
            help="Of the model's scores: how sharp the posterior is. Weights that tuning has "
            "normalised need more than 1; try on held-out text.",
        ),
    ] = 1.0,
    size: Annotated[
        int, typer.Option(min=1, metavar="K", help="Translations of a graph to choose from.")
    ] = 200,
    precision: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Of --lattice-mbr: precision of words [0.8, as Moses' -lmbr-p]."
        ),
    ] = None,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="Of --lattice-mbr: by how much longer n-grams are less precise [0.6, -lmbr-r].",
        ),
    ] = None,
    beam: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="B",
            help="Prune graphs: leave out edges whose best derivation is less likely than the "
            "best one by a factor of exp(B); for graphs that are refused as too large. Without, "
            "sums are exact.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The translations; else stdout."),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="The translations do not depend on it.")
    ] = os.cpu_count() or 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Choose translations by minimum Bayes risk or consensus, not by the model's score alone.

    By default each of the best translations is compared, by BLEU, with the n-grams that the whole
    graph or list makes to be expected (DeNero et al. 2009, fast consensus decoding). One
    translation a line, an empty one for a sentence that has no graph or list.

    Example: mosesplug mbr search-graphs/ --weights run1.dense --scale 20 -o translations
    """
    _check_options(graphs, nbest, store, iteration, names, list_mbr, lattice_mbr, beam)
    _check_finite(scale, "--scale")
    _check_finite(beam, "--beam")
    if not lattice_mbr and (precision is not None or ratio is not None):
        raise UsageError("--precision and --ratio are for --lattice-mbr")
    for path in (graphs, nbest, store, weights, sparse_weights):
        if path is not None:
            path.stat()
    # Loaded here, since --help needs none of it.
    from formats.text import write_atomic
    from mosesplug.cli.shared.output import check_output, progress_bar
    from mosesplug.forest.mbr.decisions import Criterion
    from mosesplug.forest.oracles.linear_bleu import LinearBleu

    check_output(output)
    began = time.perf_counter()
    criterion = Criterion(
        "list" if list_mbr else "lattice" if lattice_mbr else "consensus",
        scale,
        size,
        beam,
        LinearBleu.of_precisions(
            _share(precision, 0.8, "--precision"), _share(ratio, 0.6, "--ratio")
        ),
    )
    tasks = _tasks(graphs, nbest, store, iteration, weights, sparse_weights, names)
    found: dict[int, Decision] = {}
    with progress_bar(quiet) as told:
        for sentence, decision in _decided(tasks, criterion, threads):
            found[sentence] = decision
            told(len(found), len(found), "sentences")
    lines = [
        b" ".join(found[sentence].words) + b"\n" if sentence in found else b"\n"
        for sentence in range(max(found, default=-1) + 1)
    ]
    if output is not None:
        write_atomic(output, b"".join(lines))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()
    if not quiet:
        _report(found, len(lines), time.perf_counter() - began)


def _check_options(
    graphs: Path | None,
    nbest: Path | None,
    store: Path | None,
    iteration: int | None,
    names: str | None,
    list_mbr: bool,
    lattice_mbr: bool,
    beam: float | None,
) -> None:
    """Refuse options that do not go together."""
    sources = [given for given in (graphs, nbest, store) if given is not None]
    if len(sources) > 1:
        raise UsageError("give one of GRAPHS, --nbest and --store")
    if list_mbr and lattice_mbr:
        raise UsageError("give one of --list-mbr and --lattice-mbr")
    if iteration is not None and store is None:
        raise UsageError("--iteration is for --store")
    if names is not None and nbest is None:
        raise UsageError("--names is for --nbest")
    if beam is not None and (nbest is not None or list_mbr):
        raise UsageError("--beam prunes graphs, which n-best lists are not taken from")


def _check_finite(value: float | None, option: str) -> None:
    """Refuse what is no number of use."""
    if value is not None and not math.isfinite(value):
        raise UsageError(f"{option}={value:g}: it is a finite number")


def _share(value: float | None, default: float, option: str) -> float:
    """A number above 0, and 1 at most."""
    if value is None:
        return default
    if not 0.0 < value <= 1.0:
        raise UsageError(f"{option}={value:g}: it is above 0, and 1 at most")
    return value


def _tasks(
    graphs: Path | None,
    nbest: Path | None,
    store: Path | None,
    iteration: int | None,
    weights: Path | None,
    sparse: Path | None,
    names: str | None,
) -> Iterator[Task]:
    """The sentences, with what chooses their translations."""
    from mosesplug.cli.inspect.mbr_input import in_graphs, in_lists, in_store
    from mosesplug.learning.weighted_graphs import read_graph_weights

    if sparse is not None and weights is None:
        raise UsageError("--sparse-weights needs the dense weights too: give them by --weights")
    if nbest is not None:
        columns = None if names is None else [name.strip() for name in names.split(",")]
        return in_lists(nbest, columns, weights, sparse)
    if store is not None:
        return in_store(store, iteration, read_graph_weights(weights, sparse, []))
    if graphs is None:
        raise UsageError("nothing to choose from: give GRAPHS, --nbest FILE or --store DIR")
    known = read_graph_weights(weights, sparse, [graphs])
    if known is None:
        place = graphs if graphs.is_dir() else graphs.parent
        raise UsageError(f"there is no file {place / 'weights'}: give the weights by --weights")
    return in_graphs(graphs, known)


def _decided(
    tasks: Iterator[Task], criterion: Criterion, threads: int
) -> Iterator[tuple[int, Decision]]:
    """The decisions in the order of the tasks, of which only some are read ahead."""
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor

    waiting: deque[tuple[int, Future[Decision]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for sentence, choose in tasks:
            waiting.append((sentence, pool.submit(choose, criterion)))
            if len(waiting) > _AHEAD * threads:
                number, future = waiting.popleft()
                yield number, future.result()
        for number, future in waiting:
            yield number, future.result()


def _report(found: dict[int, Decision], n_lines: int, seconds: float) -> None:
    """What was done, on stderr."""
    other = sum(not decision.is_best for decision in found.values())
    print(f"{len(found)} sentences, {other} not the model's best, {seconds:.1f} s", file=sys.stderr)
    if len(found) < n_lines:
        missing = next(sentence for sentence in range(n_lines) if sentence not in found)
        print(
            f"{n_lines - len(found)} sentences have nothing to choose from, the first is "
            f"{missing}: their lines are empty",
            file=sys.stderr,
        )
