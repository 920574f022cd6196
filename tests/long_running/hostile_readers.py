"""Every reader, with files to begin from, the words of its format, and what must hold of a result.

What is read goes to kernels that look at no bounds, so an array that does not fit is a finding as
much as a crash is.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats import (
    FormatError,
    decoder_flags,
    format_examples,
    iter_nbest,
    parse_moses_ini,
    parse_weight_overwrite,
    read_dense,
    read_examples,
    read_features,
    read_graphs,
    read_init_opt,
    read_moses_ini,
    read_nbest,
    read_nbest_blocks,
    read_references,
    read_scores,
    read_show_weights,
    read_sparse,
    read_weights,
    read_weights_txt,
    slf_scales,
    with_weights,
)
from formats.graphs.cdec_forest import read_cdec_forest
from formats.graphs.hypergraph_reader import (
    TAIL,
    HypergraphFile,
    read_hypergraph,
    read_target_graph,
)
from formats.graphs.search_graph import core_names, read_search_graphs
from formats.graphs.slf import read_slf
from formats.moses.ini_features import fixed_weights, list_features, sparse_weights
from formats.nbest.block import NBestList
from formats.nbest.files import dense_features
from formats.scores import read_score_blocks, read_score_width
from formats.weights.named import read_named_weights
from formats.weights.yaml_file import format_yaml, parse_yaml
from formats.word_frequencies import read_word_frequencies
from mosesplug.store.graph_records import encode_graph, list_graph_faults
from mosesplug.store.records import KbestRecord, decode_value, encode_record, encode_value
from tests.long_running import hostile_directory, hostile_lists, hostile_store
from tests.long_running.mutations import Chance

__all__ = ["FAMILIES", "Family", "Reader"]

DATA = Path(__file__).parents[1] / "data"

Reader = Callable[[Path], object]


@dataclass(frozen=True)
class Family:
    """Readers of one kind of file.

    Attributes:
        readers: by name; each reads the file of a path.
        corpus: files to begin from.
        words: of the format.
        refusals: what a reader may raise.
        is_packed: whether such files may be archives.
        make: an input, where it is no file that is changed at random.
        begin: makes what must be there before the file of a path is read.
    """

    readers: dict[str, Reader]
    corpus: tuple[bytes, ...]
    words: tuple[bytes, ...]
    refusals: tuple[type[Exception], ...] = (FormatError,)
    is_packed: bool = True
    make: Callable[[Chance], bytes] | None = None
    begin: Callable[[Path], object] = lambda _: None


def _files(*patterns: str) -> tuple[bytes, ...]:
    paths = sorted(path for pattern in patterns for path in DATA.glob(pattern))
    return tuple(
        path.read_bytes()
        for path in paths
        if path.is_file() and path.suffix not in (".error", ".md")
    )


def _offsets(offsets: NDArray[np.int64], count: int, end: int) -> None:
    assert len(offsets) == count + 1
    assert offsets[0] == 0
    assert offsets[-1] == end
    assert (np.diff(offsets) >= 0).all()


def _within(values: NDArray[np.int32], low: int, end: int) -> None:
    assert not len(values) or low <= values.min() <= values.max() < end


def _sound_list(found: NBestList) -> None:
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


def _sound_graph(graph: HypergraphFile) -> None:
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


def _graphs(read: Callable[[Path], HypergraphFile]) -> Reader:
    return lambda path: _sound_graph(read(path))


def _all_graphs(path: Path) -> None:
    for number, graph in read_graphs(path):
        assert number >= 0
        _sound_graph(graph)


def _search_graphs(path: Path) -> None:
    for _, graph in read_search_graphs(path, ("A", "B")):
        _sound_graph(graph)


def _ini(path: Path) -> None:
    ini = read_moses_ini(path)
    shown = list_features(ini)
    for value in (*shown.values, *fixed_weights(ini).values()):
        assert np.isfinite(value)
    core_names(ini)
    with contextlib.suppress(FormatError):
        assert all(map(np.isfinite, sparse_weights(ini).values()))
    with contextlib.suppress(FormatError):
        written = with_weights(ini, shown)
        again = list_features(parse_moses_ini(written, path))
        assert again.names == shown.names


def _blocks(path: Path) -> None:
    for block in read_nbest_blocks(path, block_bytes=64):
        _sound_list(block)


def _named(path: Path) -> None:
    names = dense_features([path])
    if names is not None:
        _sound_list(read_nbest(path, dense=names, threads=1))


def _outside_scores(path: Path) -> None:
    width = read_score_width(path)
    first = 1
    for rows in read_score_blocks(path, _chunk_bytes=64):
        assert rows.first == first
        assert rows.values.shape == (len(rows), width)
        assert np.isfinite(rows.values).all()
        assert rows.ids is None or len(rows.ids) == len(rows)
        assert rows.texts is None or len(rows.texts) == len(rows)
        first += len(rows)


def _frequencies(path: Path) -> None:
    found = read_word_frequencies(path, (b"the", b"mouse"))
    assert found.keys() == {b"the", b"mouse"}
    assert all(count >= 0 for count in found.values())


def _features(path: Path) -> None:
    found = read_features(path, threads=1)
    assert found.dense.shape == (found.offsets[-1], len(found.names))
    assert np.isfinite(found.dense).all()
    assert np.isfinite(found.sparse_data).all()
    _offsets(found.offsets, len(found.sentence_ids), len(found.dense))
    _offsets(found.sparse_indptr, len(found.dense), len(found.sparse_data))
    _within(found.sparse_indices, 0, len(found.sparse_names))


def _scores(path: Path) -> None:
    found = read_scores(path, threads=1)
    assert np.isfinite(found.stats).all()
    _offsets(found.offsets, len(found.sentence_ids), len(found.stats))


def _examples(with_values: bool) -> Reader:
    def read(path: Path) -> None:
        found = read_examples(path, with_values=with_values)
        _offsets(found.indptr, len(found.labels), len(found.data))
        _within(found.indices, 0, len(found.names))
        assert ((found.labels >= 0) & (found.labels <= 1)).all()
        assert np.isfinite(found.data).all()
        assert sum(1 for _ in format_examples(found)) == len(found.labels)

    return read


def _weights(path: Path) -> None:
    found = read_weights(path)
    shown = (value for values in found.groups.values() for value in values)
    for value in (*shown, *found.sparse.values(), *found.fixed.values(), *found.numbers):
        assert np.isfinite(value)
    single = {name: (value,) for name, value in found.single_values.items()}
    if single and all(name.isprintable() for name in single):
        assert parse_yaml(path, format_yaml(single.items(), {})) == single


def _finite(read: Callable[[Path], object]) -> Reader:
    def checked(path: Path) -> None:
        found = read(path)
        assert "nan" not in repr(found).lower() or b"nan" in path.read_bytes().lower()

    return checked


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _list_record(path: Path) -> None:
    record = KbestRecord(np.frombuffer(path.read_bytes(), np.uint8))
    rows = record.n_new
    assert record.dense.shape == (rows, record.n_dense)
    _offsets(record.sparse().indptr, rows, len(record.sparse_data))
    assert len(record.hypotheses()) == len(record.hashes) == len(record.lengths) == rows
    assert len(record.home_iterations) == len(record.home_rows) == record.n_list
    assert len(record.list_extras()) == record.n_list


def _graph_record(path: Path) -> None:
    assert isinstance(list_graph_faults(np.frombuffer(path.read_bytes(), np.uint8), 3), list)


def _value(path: Path) -> None:
    decode_value(path.read_bytes())


def _list_records() -> tuple[bytes, ...]:
    def record(rows: int, positions: int, sparse: bool) -> bytes:
        return encode_record(
            2,
            (
                np.arange(rows, dtype="<u8"),
                np.linspace(-1, 1, 2 * rows, dtype="<f4"),
                np.ones(rows, dtype="<i4"),
                np.arange(rows + 1, dtype="<u4"),
                np.arange(rows + 1, dtype="<u4") if sparse else np.zeros(0, "<u4"),
                np.arange(rows, dtype="<i4") if sparse else np.zeros(0, "<i4"),
                np.ones(rows, dtype="<f4") if sparse else np.zeros(0, "<f4"),
                np.ones(positions, dtype="<i4"),
                np.arange(positions, dtype="<i4"),
                np.zeros(positions, dtype="<f8"),
                np.zeros(positions + 1, dtype="<u4"),
                np.full(rows, 97, np.uint8),
                np.zeros(0, np.uint8),
            ),
        )

    return tuple(
        record(*each) for each in ((0, 0, False), (1, 1, True), (5, 7, False), (4, 4, True))
    )


@cache
def _graph_records() -> tuple[bytes, ...]:
    graph = read_hypergraph(DATA / "valid/search_graph/tiny.hypergraph")
    return (encode_graph(graph, {name: column for column, name in enumerate(graph.names)}),)


def _values() -> tuple[bytes, ...]:
    values = (
        {"weights": np.linspace(0, 1, 5), "state": 2**80, "text": "caf\udcc3", "none": None},
        [["BLEU", "closest", 9, "<i4"], {"a": 1.5}],
        {"commit": {"groups": [["LM0", 1]], "n_lists": 3, "first_best_score": 0.25}},
    )
    return tuple(map(encode_value, values))


_FOUND = "invalid/found/*."
_NUMBERS = (b"0", b"1", b"2", b"-0.5", b"1e-3", b"0.25")
_BLANKS = (b" ", b" ", b"\n", b"\n")
_BINARY_BLOCK = (
    b"FEATURES_BIN_BEGIN_0 0 2 2 LM_0 TM_0 \n"
    + np.array([1, 2, 3, 4], "<f4").tobytes()
    + b"FEATURES_BIN_END_0\n"
)
_FEATURE_FILES = (
    b"FEATURES_TXT_BEGIN_0 0 2 2 LM_0 TM_0 \n1 2 \n-1.5 0.25 a=1 b_c=-2 \nFEATURES_TXT_END_0\n",
    b"FEATURES_TXT_BEGIN_0 1 0 2 LM_0 TM_0 \nFEATURES_TXT_END_0\n",
    b"FEATURES_TXT_BEGIN_0 0 1000000000000 2 LM_0 TM_0 \n1 2 \nFEATURES_TXT_END_0\n",
    _BINARY_BLOCK,
    _BINARY_BLOCK.replace(b" 0 2 2", b" 0 1000000000000 2"),
)
_SCORE_FILES = tuple(
    text.replace(b"FEATURES", b"SCORES").replace(b"LM_0 TM_0", b"BLEU").replace(b"a=1 b_c=-2", b"")
    for text in _FEATURE_FILES
)
_MEGAM = (b"1 F0 1.01958 F3 0.50432 WT_haus~house 1\n0 F0 -1.01958 F3 -0.50432\n", b"0.5 a 1\n")


def _array_file(values: NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


_OUTSIDE_SCORES = (
    *(b"0.5\n-1\n", b"1 2\n3 4\n", b"0 ||| 0.5\n1 ||| 1\n", b"u ||| a b ||| 1 2\nu ||| ||| 3 4\n"),
    *(b"0.5\n\n1\n", b"1 2\n3\n", b"nan\n", b"0 ||| a ||| b ||| 1\n", b""),
    _array_file(np.linspace(0, 1, 5)),
    _array_file(np.arange(6, dtype=np.int32).reshape(3, 2)),
    _array_file(np.asfortranarray(np.ones((3, 2), dtype=np.float32))),
    _array_file(np.array([1.0, np.nan])),
    _array_file(np.array(["a"])),
    _array_file(np.zeros((2, 0))),
    _array_file(np.array(3.0)),
)

FAMILIES: dict[str, Family] = {
    "n-best list": Family(
        {
            "whole": lambda path: _sound_list(read_nbest(path, threads=1)),
            "in blocks": _blocks,
            "by entry": lambda path: sum(1 for _ in iter_nbest(path)),
            "named": _named,
            "unlabelled": lambda path: _sound_list(read_nbest(path, names=("A", "B"), threads=1)),
        },
        _files("valid/nbest/*", "invalid/nbest/*", _FOUND + "nbest"),
        (
            *(b" ||| ", b" ||| ", b"|||", b"LM0= ", b"TM0= ", b"d: ", b"WT_a~b= ", b"a=1 ", b"="),
            *(b"0 ||| das ||| LM0= 1 TM0= 1 2 ||| -1\n", *_NUMBERS, *_BLANKS),
        ),
    ),
    "hypergraph": Family(
        {"hypergraph": _graphs(read_hypergraph), "target graph": _graphs(read_target_graph)},
        _files("valid/search_graph/*.hypergraph", "valid/search_graph/*.target", _FOUND + "graph"),
        (
            *(b"# target ||| features ||| source-covered\n", b"# node\n", b" ||| ", b"[0]", b"[1]"),
            *(b"<s>", b"</s> ||| ", b"P=-1 ", b" ||| 1\n", b"2 1\n1\n", *_NUMBERS, *_BLANKS),
        ),
    ),
    "search graph": Family(
        {"of Moses": _search_graphs},
        _files("valid/search_graph/*.osg*", _FOUND + "osg"),
        (
            *(
                b"hyp=1 ",
                b"stack=0 ",
                b"0 hyp=0 stack=0\n",
                b"back=0 ",
                b"score=-1 ",
                b"forward=-1 ",
            ),
            *(b"covered=0-1 ", b"out=a b\n", b'scores="core=(1,2) "', *_NUMBERS, *_BLANKS),
        ),
    ),
    "lattice": Family(
        {"lattice": _graphs(read_slf), "scales": slf_scales},
        _files("valid/search_graph/*.slf", _FOUND + "slf"),
        (
            *(b"N=2 L=1\n", b"I=0 W=a\n", b"J=0 S=0 E=1 ", b"W='x\\001'", b"a=-1 ", b"base=10\n"),
            *(b"start=0 end=1\n", b"x1scale=1\n", b"# L0 L0 1 of 1\n", *_NUMBERS, *_BLANKS),
        ),
    ),
    "forest of cdec": Family(
        {"forest": _graphs(read_cdec_forest)},
        _files("valid/search_graph/*.json", _FOUND + "json"),
        (
            *(b'{"rules":[', b'"edges":[{', b'"tail":[0],', b'"feats":[0,1],', b'"node":{', b"}"),
            *(b'"in_edges":[0],', b'"cat":"X"', b"]", b",", b'"rule":1', b"[" * 900, *_NUMBERS),
        ),
    ),
    "graph of any kind": Family(
        {"graph": _all_graphs},
        _files("valid/search_graph/*", _FOUND + "graph"),
        (b"0 hyp=0 stack=0\n", b"N=2 L=1\n", b"{", b"1 1\n", b" ||| ", *_NUMBERS, *_BLANKS),
    ),
    "weights": Family(
        {
            "any": _weights,
            "named": lambda path: read_named_weights(_text(path)),
            "dense": _finite(read_dense),
            "sparse": _finite(read_sparse),
            "shown": _finite(read_show_weights),
            "init.opt": _finite(read_init_opt),
            "weights.txt": _finite(read_weights_txt),
            "overwrite": lambda path: parse_weight_overwrite(_text(path)),
            "flags": lambda path: decoder_flags(_text(path)),
        },
        _files("valid/weights/*", "invalid/weights/*", _FOUND + "weights"),
        (
            *(b"LM0= ", b"TM0= ", b"TM0_1 ", b"F0 ", b"UNTUNEABLE", b"UNTUNEABLECOMPONENT ", b"x "),
            *(b"WT_a~b ", b"[weight]\n", b"# ", b"=", b"-weight-overwrite ", *_NUMBERS, *_BLANKS),
            *(b"lm: 0.5\n", b"lm=0.5 ", b"feature\tweight\n", b"---\n", b'"a": [1, null]\n', b"'"),
            *(
                b'{"a": 1, ',
                b'"b": [1]}',
                b"# derived: a=b\n",
                b'"derived": {',
                b'"added": [',
                b"\\",
            ),
        ),
    ),
    "moses.ini": Family(
        {"ini": _ini, "weights": _weights},
        _files("valid/moses_ini/*", "invalid/moses_ini/*", _FOUND + "ini"),
        (
            *(b"[feature]\n", b"[weight]\n", b"[input-factors]\n", b"[", b"]"),
            *(b"[weight-file]\n", b"/dev/zero\n", b"input\n"),
            *(b"KENLM name=LM0 ", b"path=../../../etc/passwd", b"num-features=2 ", b"LM0= "),
            *(b"tuneable=false", b"UnknownWordPenalty\n", b"tuneable-components=0,1", b"# "),
            *_NUMBERS,
            *_BLANKS,
        ),
    ),
    "features.dat": Family(
        {"features": _features},
        (*_FEATURE_FILES, *_files(_FOUND + "features")),
        (
            *(
                b"FEATURES_TXT_BEGIN_0 ",
                b"FEATURES_BIN_BEGIN_0 ",
                b"FEATURES_TXT_END_0\n",
                b"LM_0 ",
            ),
            *(b"FEATURES_BIN_END_0\n", b"0 1 2 LM_0 TM_0\n", b"a=1 ", b"\x00\x00\x80?", *_NUMBERS),
            *_BLANKS,
        ),
    ),
    "scores.dat": Family(
        {"scores": _scores},
        (*_SCORE_FILES, *_files(_FOUND + "scores")),
        (
            *(b"SCORES_TXT_BEGIN_0 ", b"SCORES_BIN_BEGIN_0 ", b"SCORES_TXT_END_0\n", b"BLEU\n"),
            *(b"SCORES_BIN_END_0\n", b"0 1 2 BLEU\n", b"\x00\x00\x80?", *_NUMBERS, *_BLANKS),
        ),
    ),
    "scores from outside": Family(
        {"scores": _outside_scores},
        (*_OUTSIDE_SCORES, *_files(_FOUND + "outside-scores")),
        (
            *(b"0 ||| 0.5\n", b" ||| ", b"u1 ||| a b ||| 1 2\n", b"nan", b"\x93NUMPY\x01\x00"),
            *(b"'descr': '<f8'", b"'shape': (2, 3)", b"'fortran_order': True", b"\x00\x00\xf0\x7f"),
            *_NUMBERS,
            *_BLANKS,
        ),
    ),
    "frequencies of words": Family(
        {"words": _frequencies},
        (b"the\t17\nhouse\t3\n", b"the house\nthe\xff mouse\r\n", b"the\t1\n" * 100 + b"a b\n"),
        (b"the", b"\t", b"house\t2\n", b" ", *_NUMBERS, *_BLANKS),
    ),
    "references": Family(
        {"references": lambda path: read_references(path)},
        (b"the house\r\n\nthat home\n", b"a\x00b \xff\n", b""),
        (b"the ", b"house\n", b"\r\n", b"\n"),
    ),
    "megam examples": Family(
        {"with values": _examples(True), "names alone": _examples(False)},
        (*_MEGAM, *_files(_FOUND + "megam")),
        (b"F0 ", b"F1 ", b"DEV\n", b"TEST", b"$$$WEIGHT ", *_NUMBERS, *_BLANKS),
    ),
    "record of a list": Family(
        {"list": _list_record},
        _list_records(),
        (b"\x00", b"\x01\x00\x00\x00"),
        (ValueError,),
        False,
    ),
    "record of a graph": Family(
        {"graph": _graph_record}, _graph_records(), (b"\x00", b"\x01\x00\x00\x00"), (), False
    ),
    "value of the store": Family(
        {"value": _value},
        _values(),
        (
            b"\x81",
            b"\xa1a",
            b"\x92",
            b"\xc7\x05\x01",
            b"\xc7\x03\x02",
            b"\xd4\x02",
            b"\xdf\xff\xff",
        ),
        (ValueError,),
        False,
    ),
    "store": Family(
        {"store": hostile_store.read},
        _files(_FOUND + "store"),
        (),
        (hostile_store.NoChanges,),
        make=hostile_store.made,
        begin=lambda _: hostile_store.begin(),
    ),
    "directory of graphs": Family(
        {"directory": hostile_directory.read},
        (*hostile_directory.ENTRIES, *_files(_FOUND + "directory")),
        hostile_directory.WORDS,
        is_packed=False,
        begin=hostile_directory.begin,
    ),
}

FAMILIES |= {
    f"list of {name}": Family(
        hostile_lists.readers(name),
        (*hostile_lists.list_files(name), *_files(_FOUND + f"list-{name}")),
        hostile_lists.words(name),
        begin=hostile_lists.begin if name in hostile_lists.DIRECTORIES else lambda _: None,
    )
    for name in hostile_lists.LISTS
}
