"""Read the search graphs of many files in order, in threads or in processes.

Compiled code scans hypergraphs in threads, which run at the same time and hand over their arrays
without copying them. Compiling it takes two seconds once and loading it takes as long as parsing
some megabytes without it, so it is for more text than that. All other graphs are parsed in
processes, since Python runs in one thread of a process at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from formats.graphs.any_graph import Scan, detect_graph_kind, read_graph, read_graphs
from formats.graphs.hypergraph import HypergraphFile, list_hypergraph_files
from formats.graphs.parsed import ParsedGraphs
from mosesplug.ahead import map_ahead
from mosesplug.errors import DataError
from mosesplug.forest.scanner import choose_scan
from mosesplug.kernels import load_compiler
from mosesplug.tuning.parallel.ordered_map import start_in_order

Result = TypeVar("Result")

_AHEAD = 2
"""Graphs for each thread that are read before they are asked for."""


@contextmanager
def start_reading(
    read: Callable[[Path, Scan | None], Result], paths: Sequence[Path], threads: int
) -> Iterator[Iterator[Result]]:
    """Start to read files; yield what is read, in the order of the files.

    Args:
        read: reads one file with a scanner for hypergraphs or, if that is None, without one.
    """
    scan = choose_scan(paths)
    if scan is None or detect_graph_kind(paths[0]) != "hypergraph":
        work = partial(_read_one, read, paths)
        with start_in_order(work, len(paths), threads) as results:
            yield results
        return
    load_compiler()  # once for all threads
    executor = ThreadPoolExecutor(threads, thread_name_prefix="graphs")
    try:
        yield map_ahead(executor, lambda path: read(path, scan), paths, _AHEAD * threads)
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def open_graphs(
    place: Path, core: Sequence[str] | None, threads: int, parsed: ParsedGraphs | None = None
) -> Iterator[Iterator[tuple[int, HypergraphFile]]]:
    """Yield the graphs of one decoding with their sentence ids.

    Args:
        place: a directory with one file per sentence, or one file with all graphs.
        core: names of the dense features of graphs that do not name them.
        parsed: a cache of parsed hypergraphs for the files of a directory.
    """
    if not place.is_dir():
        yield read_graphs(place, core_names=core)
        return
    paths = list_hypergraph_files(place)
    with start_reading(partial(_read_graph, core, parsed), [*paths.values()], threads) as files:
        yield zip(paths, files, strict=True)


def _read_graph(
    core: Sequence[str] | None, parsed: ParsedGraphs | None, path: Path, scan: Scan | None
) -> HypergraphFile:
    """Read one graph of a directory."""
    if detect_graph_kind(path) == "hypergraph":  # which needs no names
        if parsed is None:
            return read_graph(path, "hypergraph", scan=scan)
        return parsed.read(path, lambda: read_graph(path, "hypergraph", scan=scan))
    graphs = list(read_graphs(path, core_names=core))
    if len(graphs) != 1:
        raise DataError(
            f"{path}: search graphs of {len(graphs)} sentences. Give the file itself, not "
            "its directory."
        )
    return graphs[0][1]


def _read_one(
    read: Callable[[Path, Scan | None], Result], paths: Sequence[Path], number: int
) -> Result:
    return read(paths[number], None)
