"""Search graphs: reading and storing them, and what is found in them.

They are 60 graphs that Moses wrote, of some 1,750 nodes and 17,500 edges each, 438 MB of text;
where they are not, there is nothing to measure.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.graphs.any_graph import Scan, read_graph
from formats.graphs.hypergraph import HypergraphFile, list_hypergraph_files
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.text import read_bytes
from formats.weights.files import WeightGroup, read_dense
from mosesplug.decoders.batch import ModelWeights
from mosesplug.features import FeatureSpace
from mosesplug.forest import Hypergraph, envelope, k_best
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.large_arrays import keep_freed_memory
from mosesplug.metrics import metric
from mosesplug.store import NBestStore, StoredGraphs
from mosesplug.tuning.graphs.decoder import ForestRecipe
from mosesplug.tuning.graphs.reading import start_reading

ROUNDS = {"rounds": 5, "iterations": 1, "warmup_rounds": 1}
FIXED = "UnknownWordPenalty0"
BLEU = metric("BLEU", "case:true")


@dataclass(frozen=True)
class Recorded:
    """The graphs' files, and the weights that they were decoded with."""

    paths: list[Path]
    groups: tuple[tuple[str, int], ...]
    weights: tuple[float, ...]

    def vector(self, space: FeatureSpace) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([*self.weights, *(1.0 for _ in space.sparse)])


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    default = Path(__file__).parent.parent.parent.parent / "shared" / "data"
    forest = Path(os.environ.get("MOSES_RECORDINGS", default)) / "multi30k-de-en" / "forest"
    if not forest.is_dir():
        pytest.skip(f"no recorded search graphs at {forest} (set MOSES_RECORDINGS)")
    return recorded_in(forest)


def recorded_in(forest: Path) -> Recorded:
    dense = read_dense(forest / "init.dense")
    names = [name for name, values in dense for _ in values]
    return Recorded(
        list(list_hypergraph_files(forest / "hypergraph").values()),
        FeatureSpace.of_names(names).groups,
        tuple(value for _, values in dense for value in values),
    )


def read(path: Path, scan: Scan | None) -> HypergraphFile:
    return read_graph(path, "hypergraph", scan=scan)


def store_all(recorded: Recorded, directory: Path, threads: int) -> int:
    """Read and store all graphs; the number of their edges."""
    n = len(recorded.paths)
    with NBestStore.open(directory, writable=True) as store:
        with start_reading(read, recorded.paths, threads) as files:
            report = store.add_graphs(1, enumerate(files), groups=recorded.groups, fixed=(FIXED,))
        references = BLEU.prepare([(b"",) * n])
        store.add_iteration(1, (), metric=BLEU, references=references, n_sentences=n, record={})
    return report.edges


@pytest.fixture(scope="session")
def stored(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("graphs")
    store_all(recorded, directory, 2)
    return directory


@contextmanager
def opened(directory: Path) -> Iterator[StoredGraphs]:
    with NBestStore.open(directory) as store, store.graphs() as graphs:
        yield graphs


def every(graphs: StoredGraphs) -> list[Hypergraph]:
    return [graph for number in range(60) for graph in graphs.of_sentence(number)]


@pytest.mark.parametrize("threads", [1, 2])
def test_read_and_store(benchmark: Any, recorded: Recorded, tmp_path: Path, threads: int) -> None:
    """From gzipped text to the store."""
    fresh = itertools.count()
    spent: list[float] = []

    def ingest() -> int:
        start = time.process_time()
        n_edges = store_all(recorded, tmp_path / str(next(fresh)), threads)
        spent.append(time.process_time() - start)
        return n_edges

    assert benchmark.pedantic(ingest, **ROUNDS | {"rounds": 3}) > 900_000
    print(f"\nread and stored, {threads} threads: {statistics.median(spent):.2f} CPU s")


@pytest.mark.parametrize("threads", [1, 2])
def test_read(benchmark: Any, recorded: Recorded, threads: int) -> None:
    """Parsing all graphs, gunzip included."""
    megabytes = sum(len(read_bytes(path)) for path in recorded.paths) / 1e6
    keep_freed_memory()
    spent: list[float] = []

    def read_all() -> int:
        start = time.process_time()
        with start_reading(read, recorded.paths, threads) as files:
            n_edges = sum(len(file.tail_offsets) - 1 for file in files)
        spent.append(time.process_time() - start)
        return n_edges

    assert benchmark.pedantic(read_all, **ROUNDS) > 900_000
    rates = [megabytes / each for each in (benchmark.stats.stats.median, statistics.median(spent))]
    print(f"\nread, {threads} threads: {rates[0]:.0f} MB/s, {rates[1]:.0f} MB a CPU second")


def test_read_without_kernels(benchmark: Any, recorded: Recorded) -> None:
    """Parsing one graph with array operations, gunzip included."""
    assert benchmark.pedantic(read_hypergraph, (recorded.paths[1],), **ROUNDS).names


def test_views(benchmark: Any, stored: Path) -> None:
    """All 60 graphs as views on the map."""
    with opened(stored) as graphs:
        assert len(benchmark.pedantic(every, (graphs,), **ROUNDS)) == 60


@pytest.mark.parametrize("threads", [1, 2])
def test_decoder(benchmark: Any, recorded: Recorded, stored: Path, threads: int) -> None:
    """Distinct 100-best lists of all 60 graphs, with features and text: forest:PLACE."""
    recipe = ForestRecipe(stored, {FIXED: 1.0}, 100, "graphs", threads)
    rest = iter(recorded.weights)
    weights = ModelWeights(
        tuple(
            WeightGroup(name, tuple(next(rest) for _ in range(width)))
            for name, width in recorded.groups
        )
    )
    sentences = [(number, b"") for number in range(60)]
    with recipe.make("", lambda text: None) as decoder:
        lists = benchmark.pedantic(decoder.decode, (sentences, weights), **ROUNDS)
    assert sum(map(len, lists)) == 6000


@pytest.mark.parametrize("edges", [50, 0], ids=["50 edges a word", "whole graphs"])
def test_envelopes(benchmark: Any, recorded: Recorded, stored: Path, edges: int) -> None:
    """The upper envelopes of all 60 graphs along one direction, on one thread."""
    with opened(stored) as graphs:
        weights = recorded.vector(graphs.space)
        direction = np.zeros(len(weights))
        direction[graphs.space.columns["LM0_0"]] = 1.0
        wanted = every(graphs)
        if edges:
            wanted = [
                prune_to_edges(graph, weights.astype(np.float32), edges * int(graph.covered[-1]))
                for graph in wanted
            ]

        def along() -> int:
            return sum(
                len(envelope(graph, graph.edge_scores(weights), graph.edge_scores(direction)))
                for graph in wanted
            )

        assert benchmark.pedantic(along, **ROUNDS) > 60


def test_distinct_100_best(benchmark: Any, recorded: Recorded, stored: Path) -> None:
    """The 100 best translations of one sentence, from the whole graph."""
    with opened(stored) as graphs:
        (graph,) = graphs.of_sentence(1)
        weights = recorded.vector(graphs.space)

        def best() -> int:
            return len(k_best(graph, graph.edge_scores(weights), 100, distinct=True))

        assert benchmark.pedantic(best, **ROUNDS) == 100


PEAK = r"""
import sys
from pathlib import Path
from tests.benchmarks import bench_forest

def peak():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024

recorded = bench_forest.recorded_in(Path(sys.argv[1]))
before = peak()
bench_forest.store_all(recorded, Path(sys.argv[2]), 1)
print(before, peak())
"""


def test_memory_of_storing(benchmark: Any, recorded: Recorded, tmp_path: Path) -> None:
    """The largest size of a process that reads and stores the graphs, and of one that did not."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell the size of processes")

    def measured() -> list[int]:
        forest = recorded.paths[0].parent.parent
        words = [sys.executable, "-c", PEAK, str(forest), str(tmp_path / "graphs")]
        root = Path(__file__).parent.parent.parent
        done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=root)
        return [int(word) for word in done.stdout.split()]

    before, after = benchmark.pedantic(measured, rounds=1)
    print(f"\npeak memory: {before} MB with all modules loaded, {after} MB when all is stored")
    assert after > before
