"""Every reader, with files to begin from and the words of its format."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats import (
    FormatError,
    decoder_flags,
    iter_nbest,
    parse_weight_overwrite,
    read_dense,
    read_init_opt,
    read_nbest,
    read_references,
    read_show_weights,
    read_sparse,
    read_weights_txt,
    slf_scales,
)
from formats.extras.cdec_forest import read_cdec_forest
from formats.extras.slf import read_slf
from formats.graphs.hypergraph_reader import read_hypergraph, read_target_graph
from formats.weights.named import read_named_weights
from mosesplug.store.encoding import encode_record, encode_value
from mosesplug.store.graph_records import encode_graph
from tests.long_running import hostile_directory, hostile_lists, hostile_store
from tests.long_running.checked_readers import (
    Reader,
    check_blocks,
    check_examples,
    check_features,
    check_finite,
    check_frequencies,
    check_graph_of,
    check_graph_record,
    check_graphs,
    check_ini,
    check_list,
    check_list_record,
    check_moses_graphs,
    check_named_list,
    check_outside_scores,
    check_scores,
    check_value,
    check_weights,
    read_surrogates,
)
from tests.long_running.mutations import Chance

__all__ = ["FAMILIES", "Family"]

DATA = Path(__file__).parents[1] / "data"


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
            "whole": lambda path: check_list(read_nbest(path, threads=1)),
            "in blocks": check_blocks,
            "by entry": lambda path: sum(1 for _ in iter_nbest(path)),
            "named": check_named_list,
            "unlabeled": lambda path: check_list(read_nbest(path, names=("A", "B"), threads=1)),
        },
        _files("valid/nbest/*", "invalid/nbest/*", _FOUND + "nbest"),
        (
            *(b" ||| ", b" ||| ", b"|||", b"LM0= ", b"TM0= ", b"d: ", b"WT_a~b= ", b"a=1 ", b"="),
            *(b"0 ||| das ||| LM0= 1 TM0= 1 2 ||| -1\n", *_NUMBERS, *_BLANKS),
        ),
    ),
    "hypergraph": Family(
        {
            "hypergraph": check_graph_of(read_hypergraph),
            "target graph": check_graph_of(read_target_graph),
        },
        _files("valid/search_graph/*.hypergraph", "valid/search_graph/*.target", _FOUND + "graph"),
        (
            *(b"# target ||| features ||| source-covered\n", b"# node\n", b" ||| ", b"[0]", b"[1]"),
            *(b"<s>", b"</s> ||| ", b"P=-1 ", b" ||| 1\n", b"2 1\n1\n", *_NUMBERS, *_BLANKS),
        ),
    ),
    "search graph": Family(
        {"of Moses": check_moses_graphs},
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
        {"lattice": check_graph_of(read_slf), "scales": slf_scales},
        _files("valid/search_graph/*.slf", _FOUND + "slf"),
        (
            *(b"N=2 L=1\n", b"I=0 W=a\n", b"J=0 S=0 E=1 ", b"W='x\\001'", b"a=-1 ", b"base=10\n"),
            *(b"start=0 end=1\n", b"x1scale=1\n", b"# L0 L0 1 of 1\n", *_NUMBERS, *_BLANKS),
        ),
    ),
    "forest of cdec": Family(
        {"forest": check_graph_of(read_cdec_forest)},
        _files("valid/search_graph/*.json", _FOUND + "json"),
        (
            *(b'{"rules":[', b'"edges":[{', b'"tail":[0],', b'"feats":[0,1],', b'"node":{', b"}"),
            *(b'"in_edges":[0],', b'"cat":"X"', b"]", b",", b'"rule":1', b"[" * 900, *_NUMBERS),
        ),
    ),
    "graph of any kind": Family(
        {"graph": check_graphs},
        _files("valid/search_graph/*", _FOUND + "graph"),
        (b"0 hyp=0 stack=0\n", b"N=2 L=1\n", b"{", b"1 1\n", b" ||| ", *_NUMBERS, *_BLANKS),
    ),
    "weights": Family(
        {
            "any": check_weights,
            "named": lambda path: read_named_weights(read_surrogates(path)),
            "dense": check_finite(read_dense),
            "sparse": check_finite(read_sparse),
            "shown": check_finite(read_show_weights),
            "init.opt": check_finite(read_init_opt),
            "weights.txt": check_finite(read_weights_txt),
            "overwrite": lambda path: parse_weight_overwrite(read_surrogates(path)),
            "flags": lambda path: decoder_flags(read_surrogates(path)),
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
        {"ini": check_ini, "weights": check_weights},
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
        {"features": check_features},
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
        {"scores": check_scores},
        (*_SCORE_FILES, *_files(_FOUND + "scores")),
        (
            *(b"SCORES_TXT_BEGIN_0 ", b"SCORES_BIN_BEGIN_0 ", b"SCORES_TXT_END_0\n", b"BLEU\n"),
            *(b"SCORES_BIN_END_0\n", b"0 1 2 BLEU\n", b"\x00\x00\x80?", *_NUMBERS, *_BLANKS),
        ),
    ),
    "scores from outside": Family(
        {"scores": check_outside_scores},
        (*_OUTSIDE_SCORES, *_files(_FOUND + "outside-scores")),
        (
            *(b"0 ||| 0.5\n", b" ||| ", b"u1 ||| a b ||| 1 2\n", b"nan", b"\x93NUMPY\x01\x00"),
            *(b"'descr': '<f8'", b"'shape': (2, 3)", b"'fortran_order': True", b"\x00\x00\xf0\x7f"),
            *_NUMBERS,
            *_BLANKS,
        ),
    ),
    "frequencies of words": Family(
        {"words": check_frequencies},
        (b"the\t17\nhouse\t3\n", b"the house\nthe\xff mouse\r\n", b"the\t1\n" * 100 + b"a b\n"),
        (b"the", b"\t", b"house\t2\n", b" ", *_NUMBERS, *_BLANKS),
    ),
    "references": Family(
        {"references": lambda path: read_references(path)},
        (b"the house\r\n\nthat home\n", b"a\x00b \xff\n", b""),
        (b"the ", b"house\n", b"\r\n", b"\n"),
    ),
    "megam examples": Family(
        {"with values": check_examples(True), "names alone": check_examples(False)},
        (*_MEGAM, *_files(_FOUND + "megam")),
        (b"F0 ", b"F1 ", b"DEV\n", b"TEST", b"$$$WEIGHT ", *_NUMBERS, *_BLANKS),
    ),
    "record of a list": Family(
        {"list": check_list_record},
        _list_records(),
        (b"\x00", b"\x01\x00\x00\x00"),
        (ValueError,),
        False,
    ),
    "record of a graph": Family(
        {"graph": check_graph_record}, _graph_records(), (b"\x00", b"\x01\x00\x00\x00"), (), False
    ),
    "value of the store": Family(
        {"value": check_value},
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
