"""Tuning with search graphs from the decoder."""

from __future__ import annotations

import gc
import gzip
import itertools
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.graphs.hypergraph import list_hypergraph_files
from formats.nbest.files import read_nbest
from formats.text import read_lines
from formats.weights.files import ShowWeights, read_dense
from mosesplug.decoders.wrappers import Queue
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted, Event, Note, PhaseStarted
from mosesplug.features import FeatureSpace
from mosesplug.forest.scanner import scan_graph
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, algorithm
from mosesplug.optimizers.batch.mira.kbmira import KbmiraOptions
from mosesplug.settings.decoding import GraphSettings
from mosesplug.store import NBestStore, graph_writing
from mosesplug.tuning import tune
from mosesplug.tuning.context import RunData
from mosesplug.tuning.graphs.learning import use_graphs
from mosesplug.tuning.graphs.storing import GraphFiles
from mosesplug.tuning.parallel.ordered_map import start_in_order
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_result
from tests.tuning.conftest import make_toy
from tests.tuning.graphs.forest_runs import assert_same_graphs, open_store

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Files = Callable[[Path], dict[str, bytes]]
GRAPHS: dict[str, Any] = {"graphs": GraphSettings()}
MIRA: dict[str, Any] = {"algorithm": "kbmira", "options": {"epochs": 3}}
ON_LISTS: dict[str, Any] = {"algorithm": "pro", "options": {}}


@pytest.mark.parametrize("optimization", [{}, MIRA, ON_LISTS], ids=["mert", "kbmira", "lists"])
def test_a_run(toy: Toy, log: Any, optimization: dict[str, Any]) -> None:
    made = toy.configuration(decoding=GRAPHS, optimization=optimization, minimum_change=0.0)
    result = tune(made, log)
    scores = [step.first_best_score for step in result.iterations]
    assert len(scores) == 3
    assert max(scores) > scores[0]
    work = toy.directory / "work"
    with open_store(work) as store:
        assert [record.n_graphs for record in store.iterations()] == [12, 12, 12]
        assert store.iterations()[0].hypotheses == 12 * 15
        assert store.space is not None
        assert "UnknownWordPenalty0" in store.space.sparse
    from_graphs = "algorithm" not in optimization or optimization is MIRA
    assert (result.uses_graphs, result.scored_on) == (
        from_graphs,
        "graphs" if from_graphs else "lists",
    )
    # It is never tuned.
    assert not result.weights.sparse
    assert not any(path.name.endswith("sparse-weights") for path in work.iterdir())
    command = log.of(CommandStarted)[1].command
    at = command.index("-output-search-graph-hypergraph")
    assert command[at : at + 4] == ("-output-search-graph-hypergraph", "true", "gz", "hypergraph")
    assert "-n-best-list" not in command
    # As with the script, the graphs of the last iteration are there to be looked at.
    assert len(list_hypergraph_files(work / "hypergraph")) == 12


def test_lists_are_those_that_the_decoder_would_have_written(toy: Toy) -> None:
    for name, decoding in (("lists", {}), ("graphs", GRAPHS)):
        tune(toy.configuration(name, decoding=decoding, maximum_iterations=1))
    mine, theirs = (
        read_nbest(toy.directory / name / "run1.best15.out.gz") for name in ("graphs", "lists")
    )
    assert mine.groups == theirs.groups
    np.testing.assert_array_equal(mine.sentence_ids, theirs.sentence_ids)
    assert [mine.text(i) for i in range(len(mine))] == [theirs.text(i) for i in range(len(mine))]
    np.testing.assert_allclose(mine.dense, theirs.dense, rtol=1e-5)
    unknown = np.where(mine.sentence_ids % 2 == 1, -100.0, 0.0)
    np.testing.assert_allclose(mine.scores, theirs.scores + unknown, rtol=1e-4)


def test_mert_searches_all_that_is_in_the_graphs(toy: Toy) -> None:
    """On graphs that are lists it does what it does on these lists, of any length."""
    optima = []
    for name, decoding in (
        ("lists", {"nbest": 100}),
        ("graphs", {"nbest": 1, "graphs": GraphSettings(0)}),
    ):
        made = toy.configuration(
            name,
            decoding=decoding,
            optimization={"options": {"graph_search": "graphs"}},
            maximum_iterations=1,
        )
        tune(made)
        with open_store(toy.directory / name) as store:
            optima.append(read_result(store.iterations()[0]))
    assert optima[1].optimum == pytest.approx(optima[0].optimum, abs=1e-6)
    np.testing.assert_allclose(optima[1].weights.dense, optima[0].weights.dense, atol=1e-3)


def test_graphs_of_all_iterations_are_learned_from(toy: Toy) -> None:
    """A second decoding changes nothing where the graphs had everything already."""
    few = {"graphs": GraphSettings(1)}
    made = toy.configuration(decoding=few, optimization=MIRA, maximum_iterations=2)
    tune(made)
    with open_store(made.working_directory) as store, store.graphs() as graphs:
        kept = [len(graphs.of_sentence(number)) for number in range(12)]
        assert kept == [2] * 12
        first, second = graphs.graph(1, 0), graphs.graph(2, 0)
        assert first is not None
        assert second is not None
        # Of 60 hypotheses, one edge for each word of the reference; two more for the borders.
        words = len((toy.directory / "reference0").read_text().split("\n")[0].split())
        assert first.n_edges <= words + 2
        assert store.iterations()[0].hypotheses == 12 * 15


def test_the_window_and_historic_bests(toy: Toy) -> None:
    optimization = {"window": 0, "historic_bests": True}
    made = toy.configuration(decoding=GRAPHS, optimization=optimization, maximum_iterations=2)
    assert len(tune(made).iterations) == 2


def test_inactive_weights_stay(toy: Toy) -> None:
    for optimization in ({}, MIRA):
        made = toy.configuration(
            decoding=GRAPHS,
            optimization=optimization | {"active": ("LM0", "WordPenalty0")},
            maximum_iterations=1,
            existing="overwrite",
        )
        found = tune(made).iterations
        with open_store(made.working_directory) as store:
            result = read_result(store.iterations()[0])
            before = store.iterations()[0].record["dense"]
        assert found
        kept = [0, 3, 4, 5]
        np.testing.assert_allclose(
            np.array(result.weights.dense)[kept], np.array(before)[kept], rtol=1e-12
        )
        assert result.weights.dense[1] != before[1]


def test_sparse_features_of_graphs_are_learned(toy: Toy) -> None:
    made = toy.configuration(
        flags="-sparse", decoding=GRAPHS, optimization=MIRA, maximum_iterations=2
    )
    weights = tune(made).weights
    with open_store(made.working_directory) as store:
        second = store.iterations()[1].record["sparse"]
    assert any(name.startswith("wt_") and weight for name, weight in second.items())
    assert "UnknownWordPenalty0" not in {*second, *weights.sparse}


def test_killed_at_any_moment(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lay on the disk before and after each transaction with graphs is a run to continue."""
    whole = toy.directory / "whole"
    settings: dict[str, Any] = {
        "decoding": GRAPHS, "optimization": MIRA, "maximum_iterations": 2, "minimum_change": 0.0
    }  # fmt: skip
    moments: list[str] = []

    def remember(moment: str) -> None:
        shutil.copytree(whole, toy.directory / f"killed{len(moments)}")
        moments.append(moment)

    put, puts = graph_writing._put, itertools.count()

    def put_and_remember(transaction: Any, environment: Any, records: Any) -> None:
        put(transaction, environment, records)
        if next(puts) % 5 == 2:
            remember("graphs")

    def at_event(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase in ("score", "optimize"):
            remember(str(event))

    monkeypatch.setattr(graph_writing, "_put", put_and_remember)
    monkeypatch.setattr(graph_writing, "_TRANSACTION_BYTES", 4000)
    tune(toy.configuration("whole", **settings), at_event)
    monkeypatch.setattr(graph_writing, "_put", put)
    assert moments.count("graphs") >= 2
    expected = left_by_run(whole)
    for number, moment in enumerate(moments):
        name = f"killed{number}"
        tune(toy.configuration(name, existing="continue", **settings))
        assert left_by_run(toy.directory / name) == expected, moment
        assert_same_graphs(whole, toy.directory / name)


def test_mira_gives_the_weights_of_moses(multi30k: Path, tmp_path: Path) -> None:
    """Recorded graphs, pruned and stored, then three epochs: the weights of the best."""
    recorded = multi30k / "forest"
    dense = read_dense(recorded / "init.dense")
    groups = FeatureSpace.of_names(name for name, values in dense for _ in values).groups
    references = [[line.split()] for line in read_lines(multi30k / "text" / "dev.en")[:60]]
    files = list_hypergraph_files(recorded / "hypergraph")
    work = GraphFiles(
        sentences=tuple(files),
        paths=tuple(files.values()),
        groups=groups,
        fixed_weights={"UnknownWordPenalty0": 1.0},
        weights=Weights(tuple(value for _, values in dense for value in values)),
        nbest=1,
        edges=[50 * len(lines[0]) for lines in references],
        scan=scan_graph,
    )
    bleu = metric("BLEU", "case:true")
    lines = [tuple(b" ".join(each[0]) for each in references)]
    with NBestStore.open(tmp_path / "store", writable=True) as store:
        with start_in_order(work, 60, 2) as taken:
            store.add_graphs(
                1,
                enumerate(graph for graph, _ in taken),
                groups=groups,
                fixed=("UnknownWordPenalty0",),
            )
        prepared = bleu.prepare(lines)
        store.add_iteration(1, (), metric=bleu, references=prepared, n_sentences=60, record={})
        nothing = store.batch(())
        (tmp_path / "reference").write_bytes(b"\n".join([*lines[0], b""]))
        configuration = replace(
            make_toy(tmp_path).configuration(), references=tmp_path / "reference"
        )
        fixed = {"UnknownWordPenalty0": 0.0}
        data = RunData(configuration, ShowWeights(()), Weights(()), prepared, 1, fixed)
        given = use_graphs(Problem(nothing, bleu), data, algorithm("kbmira"), store, (1,))
        initial = work.weights.vector(nothing.space, fixed)
    options = KbmiraOptions(epochs=3, shuffle=False)
    found = algorithm("kbmira").optimize(given, initial, np.random.default_rng(1), options)
    expected = [
        float(line.split()[1])
        for line in (recorded / "kbmira.noshuffle.weights").read_text().splitlines()
        if line.startswith("F")
    ]
    assert [step["updates"] for step in found.history] == [58, 56, 54]
    assert found.history[0]["score"] == pytest.approx(0.413453, abs=1e-6)
    np.testing.assert_allclose(
        found.weights[:14], np.array(expected) / np.abs(expected).sum(), rtol=1e-5
    )
    assert Weights.of_vector(nothing.space, found.weights, fixed).sparse == {}


def test_a_finished_run_can_be_continued(toy: Toy, left_by_run: Files) -> None:
    tune(toy.configuration("whole", decoding=GRAPHS))
    tune(toy.configuration("twice", decoding=GRAPHS, maximum_iterations=1))
    tune(toy.configuration("twice", decoding=GRAPHS, existing="continue"))
    assert left_by_run(toy.directory / "twice") == left_by_run(toy.directory / "whole")


def test_a_run_with_lists_continues_with_graphs(toy: Toy, log: Any) -> None:
    tune(toy.configuration(maximum_iterations=1))
    made = toy.configuration(decoding=GRAPHS, existing="continue", maximum_iterations=2)
    tune(made, log)
    with open_store(made.working_directory) as store:
        assert [record.n_graphs for record in store.iterations()] == [0, 12]
        assert store.graphs().iterations == (2,)
    assert any("forest: None -> Graphs" in note.text for note in log.of(Note))


def test_the_decoder_may_be_skipped(toy: Toy, left_by_run: Files) -> None:
    made = toy.configuration(decoding=GRAPHS, maximum_iterations=1)
    tune(made)
    expected = left_by_run(made.working_directory)
    again = replace(made, existing="overwrite", skip_decoder=True)
    tune(again)
    assert left_by_run(made.working_directory)["moses.ini"] == expected["moses.ini"]
    shutil.rmtree(made.working_directory / "hypergraph")
    with pytest.raises(DecoderError, match=r"there is no .*hypergraph"):
        tune(again)


def test_files_of_others_stay(toy: Toy) -> None:
    made = toy.configuration(decoding=GRAPHS, maximum_iterations=1)
    graphs = made.working_directory / "hypergraph"
    graphs.mkdir(parents=True)
    with gzip.open(graphs / "99.gz", "wb") as file:
        file.write(b"of an earlier run")
    tune(made)
    assert not (graphs / "99.gz").exists()
    (graphs / "notes").write_text("mine")
    tune(replace(made, existing="overwrite", decoding=replace(made.decoding, graphs=None)))
    assert [path.name for path in graphs.iterdir()] == ["notes"]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("gap", "n-best lists of 11 of 12 sentences and 12 translations; it left out sentence 3"),
        ("short", "lists of 3 of 12 sentences and 3 translations"),
        ("empty", "the decoder wrote no search graphs: .*the directory has no search graphs"),
        ("surprise", r"0.gz has the feature Surprise0, which the decoder did not announce: that is"
                     r" Distortion0 LM0 WordPenalty0 TranslationModel0\*3"),
        ("cut", "search graphs that cannot be used: .*0.gz.*the file ends"),
        ("die", "assertion failed"),
    ],
)  # fmt: skip
def test_invalid_output_of_decoders_is_rejected(toy: Toy, fault: str, why: str) -> None:
    made = toy.configuration(flags=f"-fault {fault}", decoding=GRAPHS)
    with pytest.raises(DecoderError, match=why):
        tune(made)
    with open_store(made.working_directory) as store:
        assert not store.iterations()
    # Existing files do not prevent the continuation of a run.
    mended = toy.configuration(decoding=GRAPHS, existing="continue", maximum_iterations=1)
    assert len(tune(mended).iterations) == 1


@pytest.mark.parametrize("optimization", [{}, MIRA], ids=["mert", "kbmira"])
def test_a_sentence_without_translation_has_no_graph(
    toy: Toy, log: Any, optimization: dict[str, Any]
) -> None:
    made = toy.configuration(
        flags="-fault unparsed", decoding=GRAPHS, optimization=optimization, maximum_iterations=1
    )
    tune(made, log)
    warnings = [note.text for note in log.of(Note) if note.is_warning]
    assert any("1 of 12 sentences have no n-best list" in text for text in warnings)
    with open_store(made.working_directory) as store, store.graphs() as graphs:
        assert graphs.graph(1, 3) is None


@pytest.mark.parametrize(
    ("decoding", "more", "why"),
    [
        ({"lattice_samples": 3}, {}, "--lattice-samples"),
        ({"transform": "bpe"}, {}, "--forest excludes --transform"),
        ({}, {"metric": metric("TER", "")}, "kbmira learns from search graphs by BLEU with case"),
        ({}, {"metric": metric("BLEU", "case:false")}, "not by BLEU.*lc-ascii"),
    ],
)
def test_conflicting_settings_are_rejected(
    toy: Toy, decoding: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    made = toy.configuration(decoding=GRAPHS | decoding, optimization=MIRA, **more)
    with pytest.raises(UsageError, match=why):
        tune(made)
    assert not made.working_directory.exists()


def test_graphs_are_not_joined_by_queues(toy: Toy) -> None:
    made = toy.configuration(decoding=GRAPHS)
    decoder = replace(made.decoding.decoder, queue=Queue(Path("moses-parallel.pl"), 2))
    with pytest.raises(UsageError, match="--jobs"):
        tune(replace(made, decoding=replace(made.decoding, decoder=decoder)))


@pytest.mark.parametrize("optimization", [{}, MIRA], ids=["mert", "kbmira"])
def test_the_map_grows_from_iteration_to_iteration(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, optimization: dict[str, Any]
) -> None:
    """It cannot grow while graphs are in use; learning lets go of them."""
    open_mapped = NBestStore.open.__func__  # type: ignore[attr-defined]

    def small(cls: type[NBestStore], path: Path, *, writable: bool = False) -> NBestStore:
        store = open_mapped(cls, path, writable=writable, map_size=1 << 17)
        assert isinstance(store, NBestStore)
        return store

    monkeypatch.setattr(NBestStore, "open", classmethod(small))
    made = toy.configuration(
        decoding={"graphs": GraphSettings(0)}, optimization=optimization, minimum_change=0.0
    )
    gc.disable()
    try:
        assert len(tune(made).iterations) == 3
    finally:
        gc.enable()
    with open_store(made.working_directory) as store:
        assert store.graphs().iterations == (1, 2, 3)
