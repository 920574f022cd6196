"""Search graphs in the store: invalid graphs, killed writers and damaged records."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from formats.graphs.hypergraph import Edge, HypergraphFile
from mosesplug.errors import StoreError, StoreMismatch
from mosesplug.hypergraph import Hypergraph
from mosesplug.store import NBestStore, graph_writing
from mosesplug.store.encoding import read_header
from tests.store.graphs import COMMON, finish_iteration, make_graph, read_value, write_value
from tests.store.toys import GROUPS, Hypothesis, make_list


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        ((("LM0", 1), ("TM0", 3)), "TM0_3"),
        ((("LM0", 2), ("TM0", 2)), "LM0_1"),
        ((("LM0", 1), ("D0", 1), ("TM0", 1)), "D0"),
    ],
)
def test_dense_features_that_the_store_has_not_are_rejected(
    tmp_path: Path, groups: Any, name: str
) -> None:
    width = sum(n for _, n in groups)
    wrong = replace(make_graph([[Edge((b"x",), 1, (1.0,) * width)]], groups), path="dir/1.gz")
    with NBestStore.open(tmp_path, writable=True) as store:
        finish_iteration(store, 1)
        with pytest.raises(StoreMismatch, match=rf"dir/1.gz has the feature {name}, .* LM0 TM0\*2"):
            store.add_graphs(2, [(0, make_graph()), (1, wrong)])
        with pytest.raises(StoreMismatch, match=r"features are X, but"):
            store.add_graphs(2, [], groups=(("X", 1),))
        finish_iteration(store, 2)
        assert store.graphs().iterations == ()


def test_invalid_graphs_are_rejected(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        finish_iteration(store, 1)
        for number in (1, 3):
            with pytest.raises(StoreError, match="the next one is 2"):
                store.add_graphs(number, [])
        with pytest.raises(FormatError, match="sentence 3 does not exist: the input has 3"):
            store.add_graphs(2, [(3, make_graph())])
        with pytest.raises(FormatError, match="sentence 1 already has a search graph"):
            store.add_graphs(2, [(1, make_graph()), (1, make_graph())])
        store.add_part(2, [make_list([Hypothesis(0, b"a")])], progress={}, **COMMON)
        with pytest.raises(StoreError, match="iteration 2 is open"):
            store.add_graphs(2, [])
    with (
        NBestStore.open(tmp_path) as store,
        pytest.raises(StoreError, match="open read-only"),
    ):
        store.add_graphs(2, [])


def killed_while_adding(path: Path, graphs: Iterator[tuple[int, HypergraphFile]]) -> None:
    """A child adds graphs, one in a transaction, and is killed by the last."""
    child = os.fork()
    if not child:
        graph_writing._TRANSACTION_BYTES = 1
        try:
            with NBestStore.open(path, writable=True) as store:
                store.add_graphs(2, graphs)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_killed_while_graphs_are_added(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(0, make_graph())], groups=GROUPS)
        finish_iteration(store, 1)

    def until_killed() -> Iterator[tuple[int, HypergraphFile]]:
        yield 0, make_graph([[Edge((b"x",), 1, (1.0, 1.0, 1.0), (("s_new", 1.0),))]])
        yield 1, make_graph()
        os.kill(os.getpid(), signal.SIGKILL)

    killed_while_adding(tmp_path, until_killed())
    with NBestStore.open(tmp_path) as store:
        assert len(store.iterations()) == 1
        assert store.graphs().iterations == (1,)
    killed_while_adding(tmp_path, until_killed())
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(2, [(2, make_graph())])
        finish_iteration(store, 2)
        graphs = store.graphs()
        assert [len(graphs.of_sentence(i)) for i in range(3)] == [1, 0, 1]
        assert graphs.space.sparse == ("s_b",)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(2, make_graph())], groups=GROUPS)
        finish_iteration(store, 1)
    key = b"\0\0\0\1\0\0\0\2"
    whole = read_value(tmp_path, b"forest", key)
    longer = bytearray(whole)
    place = whole.index(np.array([0, 1, 3, 4], "<i8").tobytes())
    longer[place + 24] = 9
    for damaged in (b"", b"\1", whole[:40], whole[:-40], b"\0" + whole[1:], bytes(longer)):
        write_value(tmp_path, b"forest", key, damaged)
        with (
            NBestStore.open(tmp_path) as store,
            pytest.raises(StoreError, match="graph of sentence 2 in iteration 1 is corrupt"),
        ):
            store.graphs().graph(1, 2)


def test_faults_of_graphs(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_graphs(1, [(2, make_graph())], groups=GROUPS)
        finish_iteration(store, 1)
        assert [store.faults(1, sentence) for sentence in range(3)] == [[], [], []]
    key = b"\0\0\0\1\0\0\0\2"
    whole = read_value(tmp_path, b"forest", key)
    # The arrays are in the order of the fields, except for the words.
    (_, *places), begin = read_header(np.frombuffer(whole, np.uint8))
    at = {
        field.name: begin + place
        for field, place in zip(fields(Hypergraph), places[1::2], strict=False)
    }
    for name, changed, fault in (
        ("edge_offsets", np.array([0, 4, 3, 4], "<i8"), "its search graph has invalid offsets"),
        ("tails", np.array([0, 2, 1], "<i4"), "does not precede its head"),
        ("tails", np.array([0, -1, 1], "<i4"), "does not precede its head"),
        ("targets", np.array([0, 1, 1, 2, -1, -1, 3], "<i4"), "tails that do not match its target"),
        ("targets", np.array([0, -1, 9, 2, -1, -1, 3], "<i4"), "an invalid word"),
        ("feature_indices", np.array([0, 2, 9, 0, 1], "<i4"), "has no name"),
        ("feature_values", np.array([1, 2, np.nan, 0, 1], "<f4"), "not a finite number"),
        ("covered", np.array([0, -1, 1], "<i4"), "a negative coverage"),
    ):
        new = changed.tobytes()
        write_value(
            tmp_path, b"forest", key, whole[: at[name]] + new + whole[at[name] + len(new) :]
        )
        with NBestStore.open(tmp_path, compare=False) as store:
            (said,) = store.faults(1, 2)
            assert fault in said
    write_value(tmp_path, b"forest", key, whole[:-40])
    with NBestStore.open(tmp_path, compare=False) as store:
        assert store.faults(1, 2)[0].startswith("its search graph cannot be read")
