"""MERT on search graphs against MERT on the 100-best lists of the same decoding.

Both start from the weights of the decoding, with the same seeds, and both results are judged by
decoding the graphs. Prints a line a seed, then means and standard deviations.

    python -m tests.benchmarks.graph_mert [--seeds 5] [--restarts 20] [--polish 20] [--prune N]
        [--graph-search lists|graphs]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from formats.graphs.hypergraph import GraphColumns, list_hypergraph_files
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.references import read_reference
from mosesplug.features import FeatureSpace
from mosesplug.forest import Hypergraph
from mosesplug.forest.derivations import GraphDerivations
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.learning.lists.merging import load_lists
from mosesplug.learning.weights import read_starting_weights
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, Solution
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.registry import algorithm

mert = algorithm("mert").optimize

BLEU = metric("BLEU", "case:true")
UNKNOWN = "UnknownWordPenalty0"


@dataclass(frozen=True)
class Setting:
    """The recorded decoding of 60 sentences.

    Attributes:
        lists: its 100-best lists as a problem, without what is not tuned.
        graphs: its search graphs as a problem, with what is not tuned as the last feature.
        judge: the score of decoding all of the graphs.
        start: weights of the decoding, for ``graphs``.
    """

    lists: Problem
    graphs: Problem
    judge: Callable[[np.ndarray], float]
    start: np.ndarray


def setting(system: Path, prune: int | None) -> Setting:
    """Load it."""
    forest = system / "forest"
    lines = read_reference(system / "text" / "dev.en")[:60]
    with tempfile.TemporaryDirectory() as directory:
        reference = Path(directory) / "reference"
        reference.write_bytes(b"\n".join([*lines, b""]))
        lists = load_lists([forest / "first60.best100.gz"], reference, BLEU).tuning_set
    columns = GraphColumns(lists.space.groups, fixed=(UNKNOWN,))
    columns.of([UNKNOWN])
    space = FeatureSpace(columns.groups, (UNKNOWN,))
    start = np.append(read_starting_weights(lists.space, forest / "init.dense").weights, 1.0)
    graphs = []
    for path in list_hypergraph_files(forest / "hypergraph").values():
        file = read_hypergraph(path)
        graphs.append([Hypergraph.of_file(file, columns.of(file.names))])
    prepared = BLEU.prepare([lines])
    searched = graphs
    if prune is not None:
        single = start.astype(np.float32)
        searched = [
            [prune_to_edges(graph, single, prune * len(line.split()))]
            for (graph,), line in zip(graphs, lines, strict=True)
        ]
    nothing = replace(lists.take_sentences(np.zeros(0, np.int64)), space=space)
    fixed = np.arange(len(space)) == len(space) - 1
    words = [[line.split()] for line in lines]
    whole = GraphDerivations.of(graphs, words, space, BLEU, prepared, 2)
    derivations = GraphDerivations.of(searched, words, space, BLEU, prepared, 2)
    return Setting(
        Problem(lists, BLEU, threads=2),
        Problem(nothing, BLEU, threads=2, source=derivations, is_fixed=fixed),
        whole.score,
        start,
    )


def timed(
    problem: Problem, start: np.ndarray, seed: int, options: MertOptions
) -> tuple[Solution, float]:
    """A search, and the CPU seconds that it took."""
    began = time.process_time()
    found = mert(problem, start, np.random.default_rng(seed), options)
    return found, time.process_time() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--polish", type=int, default=20)
    parser.add_argument("--prune", type=int, help="edges for each reference word; default all")
    parser.add_argument("--graph-search", choices=("lists", "graphs"), default="lists")
    given = parser.parse_args()
    default = Path(__file__).parent.parent.parent.parent / "shared" / "data"
    made = setting(
        Path(os.environ.get("MOSES_RECORDINGS", default)) / "multi30k-de-en", given.prune
    )
    options = MertOptions(
        restarts=given.restarts, polish=given.polish, graph_search=given.graph_search
    )
    for problem, start in ((made.lists, made.start[:-1]), (made.graphs, made.start)):
        timed(problem, start, 0, MertOptions(restarts=0, polish=1))  # compiles

    rows = []
    print(f"start: BLEU {100 * made.judge(made.start):.2f} of the graphs' first-best")
    print("seed   lists: own, graphs'   CPU s   graphs: own, graphs'   CPU s", flush=True)
    for seed in range(1, given.seeds + 1):
        row: list[float] = []
        for problem, start in ((made.lists, made.start[:-1]), (made.graphs, made.start)):
            found, seconds = timed(problem, start, seed, options)
            weights = np.append(found.weights, 1.0)[: len(made.start)]
            row += [100 * found.score, 100 * made.judge(weights), seconds]
        rows.append(row)
        print(
            "{:4}  {:10.2f} {:8.2f} {:8.1f} {:13.2f} {:8.2f} {:8.1f}".format(seed, *row), flush=True
        )
    for name, summary in (("mean", statistics.mean), ("sd", statistics.stdev)):
        shown = (
            [summary(column) for column in zip(*rows, strict=True)] if len(rows) > 1 else rows[0]
        )
        print("{:4}  {:10.2f} {:8.2f} {:8.1f} {:13.2f} {:8.2f} {:8.1f}".format(name, *shown))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
