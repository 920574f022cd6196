"""Read and prune the search graphs of ``kbmira --type hypergraph``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mosesplug.cli.moses.arguments import Arguments
from mosesplug.cli.moses.kbmira_start import log
from mosesplug.errors import DataError

if TYPE_CHECKING:
    from formats.graphs.any_graph import Scan
    from formats.graphs.hypergraph_reader import HypergraphFile
    from formats.graphs.parsed import ParsedGraphs
    from formats.weights.any_format import WeightFile
    from mosesplug.forest.oracles.hope_fear import GraphSearch

__all__ = ["HypergraphInput", "read_graphs"]

_DOT, _COUNT = 10, 400


@dataclass(frozen=True)
class HypergraphInput:
    """Pruned search graphs.

    Attributes:
        search: finds hope and fear in the graphs.
        sparse: names of the features after the dense ones: those with a starting weight, then
            the others in the order of the graphs.
    """

    search: GraphSearch
    sparse: tuple[str, ...]


def read_graphs(given: Arguments, start: WeightFile) -> HypergraphInput:
    """Read and prune the graphs of ``--hgdir``, one for each line of the references.

    Raises:
        DataError: there are too few or too many graphs, the references differ in length, or the
            weights and the graphs have different features.
        FormatError: a file is malformed.
    """
    if not start.value_names:
        raise DataError(
            f"{given['dense-init']} has no names: search graphs need one 'name= value' per line"
        )
    both = sorted(set(start.value_names) & set(start.all_sparse))
    if both:
        raise DataError(
            f"both {given['sparse-init']} and {given['dense-init']} have a weight of {both[0]}"
        )
    lines = _references(given["reference"])
    paths = _paths(given["hgdir"], len(lines), given["reference"][0])
    log("Reading  hypergraphs\n")
    try:
        with _files(paths, given["hgdir"]) as files:
            graphs = _prune(files, lines, start, given)
    finally:
        # An error message begins on its own line too.
        log("\n")
    log("Done\n")
    return graphs


def _prune(
    files: Iterator[HypergraphFile],
    lines: Sequence[Sequence[Sequence[bytes]]],
    start: WeightFile,
    given: Arguments,
) -> HypergraphInput:
    """Prune the graphs; a feature without a starting weight starts at 0."""
    import numpy as np

    from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
    from mosesplug.forest.oracles.hope_fear import GraphSearch
    from mosesplug.forest.pruning import prune_to_edges
    from mosesplug.forest.search_graph import search_graph
    from mosesplug.hypergraph import Hypergraph

    names = (*start.value_names, *start.all_sparse)
    initial = (*start.dense, *start.all_sparse.values())
    _check_size(names, initial)
    known = np.array(initial, dtype=np.float32)
    columns = {name: column for column, name in enumerate(names)}
    seen: set[str] = set()
    graphs = []
    for number, (file, references) in enumerate(zip(files, lines, strict=True), start=1):
        for name in file.names:
            columns.setdefault(name, len(columns))
        seen.update(file.names)
        weights = np.zeros(len(columns), dtype=np.float32)
        weights[: len(known)] = known
        edges = given["hg-prune"] * min(map(len, references))
        try:
            graph = prune_to_edges(Hypergraph.of_file(file, columns), weights, edges)
        except DataError as error:
            raise DataError(f"{file.path}: {error}") from None
        graphs.append(search_graph(graph, ReferenceNgramTree.of(references)))
        log("." * (number % _DOT == 0) + f" [count={number}]\n" * (number % _COUNT == 0))
    missing = [name for name in start.value_names if name not in seen]
    if missing:
        raise DataError(
            f"{given['dense-init']} has a weight of {missing[0]}, and no search graph in "
            f"{given['hgdir']} has that feature"
        )
    return HypergraphInput(GraphSearch(graphs), tuple(columns)[len(start.value_names) :])


def _check_size(names: Sequence[str], weights: Sequence[float]) -> None:
    """Raise DataError for weights too large for model scores in single precision."""
    from mosesplug.optimizers.batch.mira.kbmira import LARGEST

    for name, weight in zip(names, weights, strict=True):
        if not abs(weight) <= LARGEST:
            raise DataError(
                f"the starting weight of {name} is {weight:g}: weights must be finite numbers up "
                f"to {LARGEST:g}; scale them down"
            )


def _references(paths: Sequence[str]) -> list[list[list[bytes]]]:
    """Return the words of each reference of each sentence."""
    from formats.references import read_reference

    files = [read_reference(path) for path in paths]
    for path, lines in zip(paths, files, strict=True):
        if len(lines) != len(files[0]):
            raise DataError(
                f"{path} has {len(lines)} lines, and {paths[0]} has {len(files[0])}: references "
                "need one line per sentence"
            )
    return [
        [[word for word in line.split(b" ") if word] for line in lines]
        for lines in zip(*files, strict=True)
    ]


def _paths(directory: str, n_sentences: int, reference: str) -> list[Path]:
    """Return the graph files of sentences 0, 1, ..., without the file ``weights``."""
    from formats.graphs.hypergraph import list_hypergraph_files

    found = list_hypergraph_files(directory)
    if max(found) >= n_sentences:
        raise DataError(
            f"{directory} has a search graph of sentence {max(found)}, but {reference} has only "
            f"{n_sentences} lines (sentences are counted from 0)"
        )
    missing = [number for number in range(n_sentences) if number not in found]
    if missing:
        raise DataError(
            f"there is no search graph {missing[0]} in {directory}: {reference} has "
            f"{n_sentences} lines, and {len(found)} graphs are there"
        )
    return [found[number] for number in range(n_sentences)]


@contextmanager
def _files(paths: Sequence[Path], directory: str) -> Iterator[Iterator[HypergraphFile]]:
    """Read the graphs ahead, in threads or other processes."""
    from formats.graphs.parsed import ParsedGraphs
    from mosesplug.large_arrays import keep_freed_memory
    from mosesplug.tuning.graphs.reading import start_reading

    parsed = ParsedGraphs.beside(directory)
    keep_freed_memory()  # in the other processes, too
    with start_reading(partial(_read, parsed), paths, os.cpu_count() or 1) as files:
        from mosesplug.kernels import load_compiler

        load_compiler()
        yield files
    parsed.forget_unused()


def _read(parsed: ParsedGraphs, path: Path, scan: Scan | None) -> HypergraphFile:
    """Read one graph, in any format with one file per sentence."""
    from formats.graphs.any_graph import read_graph

    return parsed.read(path, lambda: read_graph(path, scan=scan))
