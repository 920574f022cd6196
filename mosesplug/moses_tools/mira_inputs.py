"""The input of Moses' ``kbmira``: hypotheses or graphs, and starting weights.

Imports are inside of functions: the files are read by other processes, which start first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mosesplug.cores import usable_cores
from mosesplug.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from formats.graphs.any_graph import Scan
    from formats.graphs.hypergraph import HypergraphFile
    from formats.graphs.parsed import ParsedGraphs
    from formats.weights.any_format import WeightFile
    from mosesplug.forest.oracles.graph_search import GraphSearch
    from mosesplug.moses_tools.extractor_files import ExtractorSet
    from mosesplug.tuning_set import TuningSet


def add_start(files: ExtractorSet, start: WeightFile) -> tuple[TuningSet, NDArray[np.float64]]:
    """Return the hypotheses and the starting weights.

    Sparse features with a weight come first. Moses numbers sparse features in the order of their
    appearance, and sums in that order.

    Raises:
        DataError: the dense features of hypotheses and weights differ.
    """
    import numpy as np

    from mosesplug.features import FeatureSpace
    from mosesplug.tuning_set import SparseRows

    tuning_set = files.tuning_set
    space = tuning_set.space
    if start.path and len(start.dense) != space.n_dense:
        raise DataError(
            f"{start.path} has {len(start.dense)} dense weights, and the hypotheses have "
            f"{space.n_dense} dense features: {', '.join(files.names)}"
        )
    groups = start.show.names
    if groups and groups != space.group_names:
        raise DataError(
            f"{start.path} has weights of {', '.join(dict.fromkeys(groups))}, and the hypotheses "
            f"have features of {', '.join(dict.fromkeys(space.group_names))}: give the weights in "
            "the features' order"
        )
    names = tuple(dict.fromkeys([*start.all_sparse, *space.sparse]))
    place = {name: number for number, name in enumerate(names)}
    columns = np.array([place[name] for name in space.sparse], dtype=np.int32)
    sparse = tuning_set.sparse
    if sparse is not None:
        sparse = sparse.move(columns)
    elif names:
        sparse = SparseRows.empty(tuning_set.n_hyps)
    dense = start.dense or (0.0,) * space.n_dense
    initial = np.array([*dense, *(start.all_sparse.get(name, 0.0) for name in names)])
    return replace(tuning_set, space=FeatureSpace(space.groups, names), sparse=sparse), initial


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


def read_graphs(
    directory: str,
    references: Sequence[str],
    start: WeightFile,
    edges_per_word: int,
    on_graph: Callable[[int], None],
) -> HypergraphInput:
    """Read and prune a directory's search graphs, one per line of the references.

    Args:
        directory: files of graphs, named by the numbers of their sentences.
        start: starting weights, dense ones with names. Other features start at 0.
        edges_per_word: edges of a graph to keep for each word of the shortest reference.
        on_graph: called with the number of graphs so far, after each of them.

    Raises:
        DataError: there are too few or too many graphs, the references differ in length, or the
            weights and the graphs have different features.
        FormatError: a file is malformed.
    """
    lines = _references(references)
    paths = _paths(directory, len(lines), references[0])
    with _files(paths) as files:
        import numpy as np

        from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
        from mosesplug.forest.oracles.graph_search import GraphSearch
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
        for number, (file, texts) in enumerate(zip(files, lines, strict=True), start=1):
            for name in file.names:
                columns.setdefault(name, len(columns))
            seen.update(file.names)
            weights = np.zeros(len(columns), dtype=np.float32)
            weights[: len(known)] = known
            edges = edges_per_word * min(map(len, texts))
            try:
                graph = prune_to_edges(Hypergraph.of_file(file, columns), weights, edges)
            except DataError as error:
                raise DataError(f"{file.path}: {error}") from None
            graphs.append(search_graph(graph, ReferenceNgramTree.of(texts)))
            on_graph(number)
        missing = [name for name in start.value_names if name not in seen]
        if missing:
            raise DataError(
                f"{start.path} has a weight of {missing[0]}, and no search graph in "
                f"{directory} has that feature"
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

    files = list_hypergraph_files(directory)
    if max(files) >= n_sentences:
        raise DataError(
            f"{directory} has a search graph of sentence {max(files)}, but {reference} has only "
            f"{n_sentences} lines (sentences are counted from 0)"
        )
    missing = [number for number in range(n_sentences) if number not in files]
    if missing:
        raise DataError(
            f"there is no search graph {missing[0]} in {directory}: {reference} has "
            f"{n_sentences} lines, and {len(files)} graphs are there"
        )
    return [files[number] for number in range(n_sentences)]


@contextmanager
def _files(paths: Sequence[Path]) -> Iterator[Iterator[HypergraphFile]]:
    """Read the graphs ahead, in threads or other processes."""
    from mosesplug.large_arrays import keep_freed_memory
    from mosesplug.tuning.graphs.reading import start_reading
    from mosesplug.user_cache import open_parsed_graphs

    parsed = open_parsed_graphs()
    keep_freed_memory()  # in the other processes, too
    with start_reading(partial(_read, parsed), paths, usable_cores()) as files:
        from mosesplug.kernels import load_compiler

        load_compiler()
        yield files


def _read(parsed: ParsedGraphs, path: Path, scan: Scan | None) -> HypergraphFile:
    """Read one graph, in any format with one file per sentence."""
    from formats.graphs.any_graph import read_graph

    return parsed.read(path, lambda: read_graph(path, scan=scan))
