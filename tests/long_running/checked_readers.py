"""Check what the readers return.

Kernels that check no bounds take these arrays. So an array that does not fit is an error, as much
as a crash.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats import (
    FormatError,
    format_examples,
    parse_moses_ini,
    read_examples,
    read_features,
    read_graphs,
    read_moses_ini,
    read_nbest,
    read_nbest_blocks,
    read_scores,
    read_weights,
    with_weights,
)
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.graphs.search_graph import core_names, read_search_graphs
from formats.moses.ini import add_features, find_missing_models, with_absolute_paths
from formats.moses.ini_features import fixed_weights, list_features, sparse_weights
from formats.nbest.block import NBestList
from formats.nbest.files import dense_features
from formats.scores import read_score_blocks, read_score_width
from formats.weights.yaml_file import format_yaml, parse_yaml
from formats.word_frequencies import read_word_frequencies
from mosesplug.store.encoding import decode_value
from mosesplug.store.graph_records import list_graph_faults
from mosesplug.store.records import KbestRecord

Reader = Callable[[Path], object]


def _offsets(offsets: NDArray[np.int64], count: int, end: int) -> None:
    assert len(offsets) == count + 1
    assert offsets[0] == 0
    assert offsets[-1] == end
    assert (np.diff(offsets) >= 0).all()


def _within(values: NDArray[np.int32], low: int, end: int) -> None:
    assert not len(values) or low <= values.min() <= values.max() < end


def check_list(found: NBestList) -> None:
    rows = len(found)
    assert rows
    assert found.dense.shape == (rows, sum(width for _, width in found.groups))
    assert found.dense.dtype == np.float32
    assert np.isfinite(found.dense).all()
    assert np.isfinite(found.sparse_data).all()
    assert not np.isinf(found.scores).any()
    assert (np.diff(found.sentence_ids) >= 0).all()
    assert found.sentence_ids[0] >= 0
    _offsets(found.sparse_indptr, rows, len(found.sparse_data))
    assert len(found.sparse_indices) == len(found.sparse_data)
    _within(found.sparse_indices, 0, len(found.sparse_names))
    for starts, ends in (
        (found.text_starts, found.text_ends),
        (found.extra_starts, found.extra_ends),
    ):
        assert (starts >= 0).all()
        assert (starts <= ends).all()
        assert (ends <= len(found.buffer)).all()
    assert b"\n" not in b"".join(map(found.text, range(rows)))


def check_graph(graph: HypergraphFile) -> None:
    nodes, edges = len(graph.covered), len(graph.tail_offsets) - 1
    assert nodes
    _offsets(graph.edge_offsets, nodes, edges)
    _offsets(graph.tail_offsets, edges, len(graph.tails))
    _offsets(graph.target_offsets, edges, len(graph.targets))
    _offsets(graph.feature_indptr, edges, len(graph.feature_values))
    assert len(graph.feature_indices) == len(graph.feature_values)
    _within(graph.feature_indices, 0, len(graph.names))
    _within(graph.targets, TAIL, len(graph.words))
    assert len(set(graph.names)) == len(graph.names)
    assert np.isfinite(graph.feature_values).all()
    assert (graph.covered >= 0).all()
    heads = np.repeat(np.arange(nodes), np.diff(graph.edge_offsets))
    assert (graph.tails >= 0).all()
    assert (graph.tails < np.repeat(heads, np.diff(graph.tail_offsets))).all()
    own = np.repeat(np.arange(edges), np.diff(graph.target_offsets))[graph.targets == TAIL]
    assert (np.bincount(own, minlength=edges) == np.diff(graph.tail_offsets)).all()
    derivable = np.zeros(nodes, dtype=bool)
    tails = graph.tails.tolist()
    for edge, (begin, end) in enumerate(itertools.pairwise(graph.tail_offsets.tolist())):
        derivable[heads[edge]] |= all(derivable[tail] for tail in tails[begin:end])
    assert derivable[-1]


def check_graph_of(read: Callable[[Path], HypergraphFile]) -> Reader:
    return lambda path: check_graph(read(path))


def check_graphs(path: Path) -> None:
    for number, graph in read_graphs(path):
        assert number >= 0
        check_graph(graph)


def check_moses_graphs(path: Path) -> None:
    for _, graph in read_search_graphs(path, ("A", "B")):
        check_graph(graph)


def check_ini(path: Path) -> None:
    ini = read_moses_ini(path)
    shown = list_features(ini)
    for value in (*shown.values, *fixed_weights(ini).values()):
        assert np.isfinite(value)
    core_names(ini)
    find_missing_models(parse_moses_ini(with_absolute_paths(ini), path))
    parse_moses_ini(add_features(ini, "PhraseLengthFeature name=PL"), path)
    with contextlib.suppress(FormatError):
        assert all(map(np.isfinite, sparse_weights(ini).values()))
    with contextlib.suppress(FormatError):
        written = with_weights(ini, shown)
        again = list_features(parse_moses_ini(written, path))
        assert again.names == shown.names


def check_blocks(path: Path) -> None:
    for block in read_nbest_blocks(path, block_bytes=64):
        check_list(block)


def check_named_list(path: Path) -> None:
    names = dense_features([path])
    if names is not None:
        check_list(read_nbest(path, dense=names, threads=1))


def check_outside_scores(path: Path) -> None:
    width = read_score_width(path)
    first = 1
    for rows in read_score_blocks(path, _chunk_bytes=64):
        assert rows.first == first
        assert rows.values.shape == (len(rows), width)
        assert np.isfinite(rows.values).all()
        assert rows.ids is None or len(rows.ids) == len(rows)
        assert rows.texts is None or len(rows.texts) == len(rows)
        first += len(rows)


def check_frequencies(path: Path) -> None:
    found = read_word_frequencies(path, (b"the", b"mouse"))
    assert found.keys() == {b"the", b"mouse"}
    assert all(count >= 0 for count in found.values())


def check_features(path: Path) -> None:
    found = read_features(path, threads=1)
    assert found.dense.shape == (found.offsets[-1], len(found.names))
    assert np.isfinite(found.dense).all()
    assert np.isfinite(found.sparse_data).all()
    _offsets(found.offsets, len(found.sentence_ids), len(found.dense))
    _offsets(found.sparse_indptr, len(found.dense), len(found.sparse_data))
    _within(found.sparse_indices, 0, len(found.sparse_names))


def check_scores(path: Path) -> None:
    found = read_scores(path, threads=1)
    assert np.isfinite(found.stats).all()
    _offsets(found.offsets, len(found.sentence_ids), len(found.stats))


def check_examples(with_values: bool) -> Reader:
    def read(path: Path) -> None:
        found = read_examples(path, with_values=with_values)
        _offsets(found.indptr, len(found.labels), len(found.data))
        _within(found.indices, 0, len(found.names))
        assert ((found.labels >= 0) & (found.labels <= 1)).all()
        assert np.isfinite(found.data).all()
        assert sum(1 for _ in format_examples(found)) == len(found.labels)

    return read


def check_weights(path: Path) -> None:
    found = read_weights(path)
    shown = (value for values in found.groups.values() for value in values)
    for value in (*shown, *found.sparse.values(), *found.fixed_weights.values(), *found.numbers):
        assert np.isfinite(value)
    single = {name: (value,) for name, value in found.single_values.items()}
    if single and all(name.isprintable() for name in single):
        assert parse_yaml(path, format_yaml(single.items(), {})).weights == single


def check_finite(read: Callable[[Path], object]) -> Reader:
    def checked(path: Path) -> None:
        found = read(path)
        assert "nan" not in repr(found).lower() or b"nan" in path.read_bytes().lower()

    return checked


def read_surrogates(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def check_list_record(path: Path) -> None:
    record = KbestRecord(np.frombuffer(path.read_bytes(), np.uint8))
    rows = record.n_new
    assert record.dense.shape == (rows, record.n_dense)
    _offsets(record.sparse().indptr, rows, len(record.sparse_data))
    assert len(record.hypotheses()) == len(record.hashes) == len(record.lengths) == rows
    assert len(record.home_iterations) == len(record.home_rows) == record.n_list
    assert len(record.list_extras()) == record.n_list


def check_graph_record(path: Path) -> None:
    assert isinstance(list_graph_faults(np.frombuffer(path.read_bytes(), np.uint8), 3), list)


def check_value(path: Path) -> None:
    decode_value(path.read_bytes())
