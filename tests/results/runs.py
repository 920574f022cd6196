"""A run of two iterations, small enough to check by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from formats.graphs.hypergraph import HypergraphFile
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.metrics import Metric, metric
from mosesplug.results.report.data import ReportData
from mosesplug.results.report.gather import gather_report_steps
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    Evaluation,
    IterationResult,
    IterationStart,
    ListFigures,
)
from tests.store.toys import Hypothesis, make_list

REFERENCE = (b"the red house is old", b"she sees a small dog today", b"they went home")
GROUPS = (("LM0", 1), ("TM0", 1))
WEIGHTS = (Weights((0.5, 0.5)), Weights((0.2, 0.6)), Weights((0.25, 0.75)))

LISTS: Sequence[Sequence[Hypothesis]] = (
    (
        Hypothesis(0, b"the house is red old", (-1.0, -2.0)),
        Hypothesis(0, b"the red house is old", (-2.0, -2.0)),
        Hypothesis(1, b"she sees one dog", (-1.0, -1.0)),
        Hypothesis(1, b"she sees a small dog", (-3.0, 0.0)),
        Hypothesis(2, b"they went home", (-1.0, -1.0)),
    ),
    (
        Hypothesis(0, b"the red house is old", (-2.0, -2.0)),
        Hypothesis(0, b"the house is red old", (-1.0, -2.0)),
        Hypothesis(1, b"she sees a small dog today", (-4.0, 0.0)),
        Hypothesis(2, b"they went home", (-1.0, -1.0)),
    ),
)

GRAPH = """# target ||| features ||| source-covered
4 5
# node 0
1
<s> |||  ||| 0
# node 1
2
[0] the red house ||| LM0=-1.5 TM0=-1.0 ||| 2
[0] the house ||| LM0=-0.5 TM0=-1.0 ||| 2
# node 2
1
[1] is old ||| LM0=-0.5 TM0=-1.0 ||| 4
# node 3
1
[2] </s> |||  ||| 4
"""


def read_graph(directory: Path, text: str = GRAPH) -> HypergraphFile:
    """A search graph, from the text of its file."""
    path = directory / "graph"
    path.write_text(text)
    return read_hypergraph(path)


def make_run(
    directory: Path,
    *,
    name: str = "BLEU",
    graph: HypergraphFile | None = None,
    lists: Sequence[Sequence[Hypothesis]] = LISTS,
    finished: bool = True,
    shards: ListFigures | None = None,
) -> Path:
    """A working directory with a store; the sentence of a graph is the first."""
    directory.mkdir(exist_ok=True)
    judge: Metric = metric(name)
    references = judge.prepare([REFERENCE])
    with NBestStore.open(directory / "nbests.lmdb", writable=True) as store:
        for iteration, hypotheses in enumerate(lists, start=1):
            if graph is not None:
                store.add_graphs(iteration, [(0, graph)], groups=GROUPS)
            start = IterationStart(
                WEIGHTS[iteration - 1], 7, {"algorithm": "mert"}, ("moses", "-f", "x"), 1.5
            )
            store.add_iteration(
                iteration,
                [make_list(hypotheses, GROUPS)] if hypotheses else [],
                metric=judge,
                references=references,
                n_sentences=len(REFERENCE),
                record=start.as_record(),
            )
            if finished or iteration < len(lists):
                result = IterationResult(
                    WEIGHTS[iteration],
                    0.9,
                    0.1,
                    0.5,
                    heldout=(Evaluation(1, 0.3), Evaluation(2, 0.4)) if iteration == 2 else (),
                    elsewhere=shards,
                )
                store.record_result(iteration, result.as_record())
    return directory


def gather_report(
    run: StoredRun, text: ParallelText, examples: int = 5, lattice: int | None = None
) -> ReportData:
    """The data of a report when all of its steps are done."""
    *_, data = gather_report_steps(run, text, examples, lattice)
    return data
