"""Search graphs in the store: what comes out, and when."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge, HypergraphFile
from mosesplug.errors import DataError, StoreError, StoreMismatch
from mosesplug.store import NBestStore, graph_writing
from tests.store.graphs import (
    COMMON,
    N_SENTENCES,
    finish_iteration,
    make_graph,
    read_value,
    spell_edges,
    spell_written,
)
from tests.store.toys import GROUPS, Hypothesis, make_list

WORDS = st.binary(min_size=1, max_size=4).filter(
    lambda word: not set(word) & set(b" \t\n\r\x0b\x0c|") and not word.startswith((b"[", b"#"))
)


@st.composite
def node_lists(draw: st.DrawFn) -> list[list[Edge]]:
    """Small graphs with any words, and sparse features."""
    nodes: list[list[Edge]] = []
    for head in range(draw(st.integers(1, 4))):
        edges = []
        covered = draw(st.integers(0, 9))
        for _ in range(draw(st.integers(1, 3))):
            tails = draw(st.lists(st.integers(0, head - 1), max_size=2)) if head else []
            words = draw(st.lists(WORDS, min_size=1, max_size=3))
            target = tuple(draw(st.permutations([*tails, *words])))
            dense = tuple(draw(st.sampled_from([0.0, -1.5, 0.25])) for _ in range(3))
            names = draw(st.lists(st.sampled_from(["s_a", "s_b", "t_1", "t_2"]), unique=True))
            sparse = tuple((name, draw(st.sampled_from([0.0, 2.0]))) for name in names)
            edges.append(Edge(target, covered, dense, sparse))
        nodes.append(edges)
    return nodes


@dataclass
class Step:
    """The next action.

    Attributes:
        graphs: of some sentences, in some order; None for none, not even an empty choice.
        cut: end the adding of graphs before the last one, and add them again.
        parts: add the lists in parts.
        drop: drop the iteration again.
        sparse: a sparse feature of its list.
    """

    graphs: dict[int, list[list[Edge]]] | None
    cut: bool
    parts: bool
    drop: bool
    sparse: str


steps = st.builds(
    Step,
    graphs=st.none() | st.dictionaries(st.integers(0, N_SENTENCES - 1), node_lists()),
    cut=st.booleans(),
    parts=st.booleans(),
    drop=st.integers(0, 3).map(lambda n: n == 0),
    sparse=st.sampled_from(["s_a", "u_x", "u_y"]),
)


class CutOff(Exception):
    """What ends the adding of graphs."""


def cut_off(files: list[tuple[int, HypergraphFile]]) -> Iterator[tuple[int, HypergraphFile]]:
    yield from files[:-1]
    raise CutOff


def take(store: NBestStore, number: int, step: Step) -> None:
    """Add an iteration."""
    if step.graphs is not None:
        files = [(sentence, make_graph(nodes)) for sentence, nodes in step.graphs.items()]
        if step.cut:
            with pytest.raises(CutOff):
                store.add_graphs(number, cut_off(files), groups=GROUPS)
        report = store.add_graphs(number, iter(files), groups=GROUPS)
        assert report.sentences == len(files)
    elif step.cut:
        with pytest.raises(CutOff):
            store.add_graphs(number, cut_off([(0, make_graph()), (1, make_graph())]), groups=GROUPS)
    assert store.graphs().iterations == tuple(i for i in store.graphs().iterations if i < number)
    lines = [Hypothesis(0, b"a", sparse=((step.sparse, 1.0),)), Hypothesis(2, b"b")]
    if step.parts:
        for line in lines:
            store.add_part(number, [make_list([line])], progress={}, **COMMON)
        store.finish_iteration(number, {})
    else:
        finish_iteration(store, number, *lines)


@given(run=st.lists(steps, max_size=4))
def test_stored_graphs_are_returned_unchanged(run: list[Step]) -> None:
    model: list[Step] = []
    with tempfile.TemporaryDirectory() as path:
        with NBestStore.open(path, writable=True, map_size=1 << 18) as store:
            for step in run:
                number = len(model) + 1
                take(store, number, step)
                if step.drop:
                    store.drop_last(number)
                else:
                    model.append(step)
            check(store, model)
        with NBestStore.open(path) as store:
            check(store, model)


def check(store: NBestStore, model: list[Step]) -> None:
    with store.graphs() as graphs:
        assert [r.n_graphs for r in store.iterations()] == [len(s.graphs or {}) for s in model]
        assert graphs.iterations == tuple(i for i, s in enumerate(model, start=1) if s.graphs)
        if not model:
            return
        names = graphs.space.names
        assert len(set(names)) == len(names)
        assert graphs.space == store.space
        for sentence in range(N_SENTENCES):
            wanted = [
                spell_written(s.graphs[sentence])
                for s in model
                if s.graphs and sentence in s.graphs
            ]
            assert [spell_edges(found, names) for found in graphs.of_sentence(sentence)] == wanted
            for iteration, step in enumerate(model, start=1):
                found = graphs.graph(iteration, sentence)
                assert (found is not None) == (sentence in (step.graphs or {}))
    # Lists count in the same columns.
    for iteration, step in enumerate(model, start=1):
        sparse = store.iteration_list(iteration, 0).sparse
        assert sparse is not None
        assert [names[len(names) - graphs.space.n_sparse + i] for i in sparse.indices] == [
            step.sparse
        ]


def test_the_names_of_the_first_graph_tell_the_groups(tmp_path: Path) -> None:
    borders = [[Edge((b"<s>",), 0)]]
    edges = [Edge((b"x",), 1, (1.0, 2.0, 3.0, 4.0), (("t_1", 1.0), ("TM0_x", 1.0)))]
    groups = (("LM0", 1), ("TM0", 2), ("D0", 1))
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(0, make_graph(borders, groups)), (1, make_graph([edges], groups))])
        assert store.space is None
        with pytest.raises(StoreMismatch, match=r"LM0 TM0\*2 D0"):
            finish_iteration(store, 1)
        line = Hypothesis(1, b"x", (1.0, 2.0, 3.0, 4.0), (("TM0_x", 3.0),))
        store.add_iteration(1, [make_list([line], groups)], record={}, **COMMON)
        space = store.graphs().space
        assert (space.groups, space.sparse) == (groups, ("t_1", "TM0_x"))


def test_columns_are_those_of_the_lists(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        finish_iteration(store, 1, Hypothesis(0, b"a", sparse=(("s_a", 1.0), ("s_b", 1.0))))
        store.add_graphs(2, [(0, make_graph())])
        finish_iteration(store, 2)
        found = store.graphs(2).graph(2, 0)
        assert found is not None
        assert found.feature_indices.tolist() == [0, 2, 4, 0, 1]
        assert found.feature_values.tolist() == [0.5, -1.0, 2.0, 0.25, 1.0]
        assert found.words == (b"<s>", b"a", b"\xff|", b"</s>")


def test_features_that_lists_have_not(tmp_path: Path) -> None:
    groups = (("Unknown0", 1), *GROUPS)
    nodes = [[Edge((b"x",), 1, (-100.0, 1.0, 2.0, 3.0))]]
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(0, make_graph(nodes, groups))], fixed=["Unknown0"])
        finish_iteration(store, 1)
        store.add_graphs(2, [(0, make_graph(nodes, groups))])
        finish_iteration(store, 2)
        space = store.graphs().space
        assert (space.groups, space.sparse) == (GROUPS, ("Unknown0",))
        for found in store.graphs().of_sentence(0):
            assert found.feature_indices.tolist() == [3, 0, 1, 2]


def test_the_input_length_follows_from_the_graphs(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(N_SENTENCES, make_graph())])
        with pytest.raises(StoreMismatch, match=f"graph of sentence {N_SENTENCES}"):
            finish_iteration(store, 1)


def test_missing_sentences_and_iterations(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(1, make_graph())])
        finish_iteration(store, 1)
        graphs = store.graphs()
        assert graphs.graph(1, 0) is None
        assert graphs.graph(2, 1) is None
        for sentence in (-1, N_SENTENCES):
            with pytest.raises(DataError, match=f"no sentence {sentence}"):
                graphs.graph(1, sentence)
        with pytest.raises(StoreError, match="iteration 2 is not in"):
            store.graphs([1, 2])


def test_dropping_the_open_iteration_removes_its_graphs(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(1, make_graph())], groups=GROUPS)
        store.drop_open()
        finish_iteration(store, 1)
        assert store.graphs().iterations == ()
        assert store.space is not None
        assert store.space.n_sparse == 0
        store.add_graphs(2, [(1, make_graph())])
        store.add_part(2, [make_list([Hypothesis(0, b"a")])], progress={}, **COMMON)
        store.drop_open()
        store.add_part(2, [make_list([Hypothesis(0, b"a")])], progress={}, **COMMON)
        store.finish_iteration(2, {})
        assert store.graphs().iterations == ()


def test_graphs_after_the_last_iteration_go_with_it(tmp_path: Path) -> None:
    """Their columns follow on those of the iteration that is dropped."""
    with NBestStore.open(tmp_path, writable=True) as store:
        finish_iteration(store, 1, Hypothesis(0, b"a", sparse=(("s_x", 1.0),)))
        store.add_graphs(2, [(1, make_graph())])
        store.drop_last(1)
        finish_iteration(store, 1)
        finish_iteration(store, 2)
        assert store.graphs().iterations == ()
        assert store.space is not None
        assert store.space.n_sparse == 0


def test_arrays_outlive_everything(tmp_path: Path) -> None:
    big = [[Edge((b"w%d" % i,), 1, (0.5, 1.0, 2.0)) for i in range(2000)]]
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(0, make_graph(big))], groups=GROUPS)
        finish_iteration(store, 1)
        graphs = store.graphs()
        found = graphs.graph(1, 0)
        assert found is not None
        assert not found.feature_values.flags.writeable
        assert not found.feature_values.flags.owndata
        graphs.close()
        with pytest.raises(StoreError, match="closed"):
            graphs.graph(1, 0)
        store.drop_last(1)
    assert found.feature_values.tolist() == [0.5, 1.0, 2.0] * 2000


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a transaction does not depend on the number of graphs."""
    sizes = []
    monkeypatch.setattr(graph_writing, "_TRANSACTION_BYTES", 3000)
    put = graph_writing.put_sorted

    def counted(transaction: Any, database: Any, items: dict[bytes, bytes]) -> None:
        sizes.append(sum(map(len, items.values())))
        put(transaction, database, items)

    monkeypatch.setattr(graph_writing, "put_sorted", counted)
    with NBestStore.open(tmp_path, writable=True) as store:
        one = make_graph()
        report = store.add_graphs(1, ((i, one) for i in range(100)))
        assert max(sizes) < 3000 + report.stored_bytes / 100
        assert sum(sizes) > report.stored_bytes > 5 * 3000


def test_graphs_of_an_iteration_that_is_not_finished(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(CutOff):
            store.add_graphs(1, cut_off([(0, make_graph()), (1, make_graph())]), groups=GROUPS)
        with store.graphs(unfinished=True) as graphs:
            assert graphs.iterations == ()
        edges = [Edge((b"x",), 1, (1.0, 1.0, 1.0), (("s_new", 1.0),))]
        store.add_graphs(1, [(0, make_graph([edges])), (1, make_graph())], groups=GROUPS)
        for parts in (False, True):  # before its first list, and after
            if parts:
                store.add_part(1, [make_list([Hypothesis(0, b"a")])], progress={}, **COMMON)
            with store.graphs(unfinished=True) as graphs:
                assert graphs.iterations == (1,)
                assert graphs.n_sentences == (N_SENTENCES if parts else 2)
                assert graphs.space.sparse == ("s_new", "s_b")
                assert [len(graphs.of_sentence(number)) for number in (0, 1)] == [1, 1]
            assert store.graphs().iterations == ()
        store.finish_iteration(1, {})
        store.add_graphs(2, [(1, make_graph())])
        with store.graphs(unfinished=True) as graphs:
            assert graphs.iterations == (1, 2)
            assert len(graphs.of_sentence(1)) == 2
        with store.graphs([1], unfinished=True) as graphs:
            assert graphs.iterations == (1, 2)


def test_the_schema_shows_that_a_store_has_graphs(tmp_path: Path) -> None:
    """What does not know of them must not write to it; without them, it may."""
    with NBestStore.open(tmp_path, writable=True) as store:
        finish_iteration(store, 1)
        store.require({"input": "1"})
    assert msgpack.unpackb(read_value(tmp_path, b"meta", b"schema")) == 2
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(CutOff):
            store.add_graphs(2, cut_off([(0, make_graph())]))
        store.require({"configuration": "1"})
    assert msgpack.unpackb(read_value(tmp_path, b"meta", b"schema")) == 3


def test_graphs_become_visible_with_their_iteration(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(0, make_graph())], groups=GROUPS)
        before = store.graphs()
        assert (before.iterations, before.n_sentences) == ((), 0)
        finish_iteration(store, 1)
        assert before.iterations == ()
        assert store.graphs().iterations == (1,)
        assert store.iterations()[0].n_graphs == 1
        # A snapshot stays what it was.
        now = store.graphs()
        store.drop_last(1)
        assert now.graph(1, 0) is not None
        assert store.graphs().iterations == ()
