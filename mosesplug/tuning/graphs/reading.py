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

from formats.graphs.any_graph import Scan, detect_graph_kind
from mosesplug.ahead import map_ahead
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


def _read_one(
    read: Callable[[Path, Scan | None], Result], paths: Sequence[Path], number: int
) -> Result:
    return read(paths[number], None)
