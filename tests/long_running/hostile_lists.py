"""n-best lists of every registered format, and directories with anything in them.

A list must read the same in blocks of any size, and JSON lines the same with both of their parsers.
An input for a directory is a list of entries with a zero byte between them: what it is (``f`` a
file, ``l`` a link), its name, and behind ``=`` what is in it, or where it leads.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np

from formats.errors import FormatError
from formats.extras import espnet, fairseq, kaldi
from formats.nbest import files, json_values, regroup
from formats.nbest.block import NBestList, concatenate
from formats.nbest.json_structs import StructParser
from formats.nbest.list_format import ListOptions, SentenceIds
from formats.nbest.readers import documents, tables
from formats.nbest.registry import AUTO, list_formats, open_blocks, read_whole

__all__ = ["DIRECTORIES", "LISTS", "begin", "list_files", "readers", "words"]

DATA = Path(__file__).parents[1] / "data"
LISTS = tuple(list_formats())
DIRECTORIES = ("kaldi", "espnet")
"""Formats whose lists are directories."""
_BESIDE = (".expected", ".options", ".error")

_OPTIONS: dict[str, dict[str, ListOptions]] = {
    "jsonl": {
        "sparse": ListOptions(dense=("lm",), word_scores="sum"),
        "chosen": ListOptions(columns=("id", "hyp", "lm")),
    },
    "json": {
        "sized": ListOptions(group_size=2),
        "sparse": ListOptions(dense=("lm",), word_scores="sum"),
        "chosen": ListOptions(columns=("id", "hyp", "lm")),
    },
    "tsv": {"chosen": ListOptions(columns=("id", "hyp", "-", "lm"))},
    "csv": {"chosen": ListOptions(columns=("id", "hyp", "-", "lm"))},
    "flat": {
        "chosen": ListOptions(columns=("hyp", "-", "lm")),
        "named": ListOptions(names=("asr", "asr")),
    },
    "fairseq": {"summed": ListOptions(word_scores="sum")},
    "espnet": {"chosen": ListOptions(columns=("id", "hyp", "lm"))},
    "kaldi": {"chosen": ListOptions(columns=("id", "hyp", "lm"))},
    "marian": {"summed": ListOptions(word_scores="sum")},
    "travatar": {"dense": ListOptions(dense=("lm",))},
    "joshua": {"dense": ListOptions(dense=("lm_0", "a"))},
    "cdec": {"dense": ListOptions(dense=("LanguageModel", "a"))},
    "moses": {"unlabeled": ListOptions(names=("A", "B"))},
}
"""Options with which the files of a format are read, beside none."""

_WORDS: dict[str, tuple[bytes, ...]] = {
    "jsonl": (
        *(b'{"id": 0, "hyp": "a", "scores": {"lm": 1}}\n', b'"id": ', b'"hyp": ', b'"lm": ', b"{"),
        *(b'"scores": ', b'"hyps": [', b'"u"', b"}", b"}", b"]", b", ", b"null", b"true"),
        *(b'"score"', b"NaN", b"-Infinity", b"\\ud800", b"[" * 2000, b"1" * 400),
    ),
    "tsv": (
        *(b"id\thyp\tlm\n", b"0\ta b\t1\n", b"\t", b"\t", b"u1", b"utt_id", b"utt", b"key"),
        *(b"text", b"-"),
    ),
    "json": (
        *(b'[["a", "b"], ["c"]]', b'[[{"text": "a", "lm": 1}]]', b'["a", 1]', b'{"u": ["a"]}'),
        *(b'"hyps": [["a"], ["b"]]', b'"scores": [[1], [2]]', b"[", b"[", b"]", b"]", b", ", b"{"),
        *(b"}", b'"id": ', b'"text": ', b"null", b"NaN", b'"sentence_id": 1'),
        b'"translation": "a"',
    ),
    "csv": (
        *(b"id,hyp,lm\n", b'0,"a, b",1\n', b",", b",", b'"', b'""', b";", b"u1"),
        *(b"utt_id", b"text", b"\t"),
    ),
    "trn": (b"the house (u-1)\n", b"a (u-2)\n", b"(u-1)", b"(u)", b"(", b")", b";; a\n", b"-2"),
    "flat": (b"a b\t1\t2\n", b"\t", b"\t", b"a b"),
    "nemo": (b"a b\t1\n", b"\t", b"\t", b"a b"),
    "fairseq": (
        *(b"H-0\t-1\ta b\n", b"D-0\t-1\ta\n", b"P-0\t-1 2\n", b"H-1\t", b"D-1\t", b"P-1\t"),
        *(b"S-2\t", b"\t", b"H-", b"T-0", b"E-0_1\t", b"INFO | "),
    ),
    "espnet": (
        *(b"\0f", b"1best_recog/text=", b"1best_recog/score=", b"2best_recog/text=", b"u1 a\n"),
        *(b"u1 -1\n", b"u2 tensor(-2.)\n", b"2best_recog/score=", b"10best_recog/token="),
        *(b"\0l", b"1best_recog=/etc", b"2best_recog=.", b"output.1=.", b"logdir=/proc", b"u2 b\n"),
    ),
    "kaldi": (
        *(b"\0f", b"words_text=", b"lm=", b"archives.1/words_text=", b"archives.2/lm=", b"u-1 a\n"),
        *(b"u-1 1\n", b"u-2 2\n", b"\0l", b"lm=/dev/zero", b"words_text=/dev/stdin", b"text=lm"),
        *(b"archives.1=/etc", b"archives.3=.", b"u-", b"-1 "),
    ),
}  # fmt: skip
_BARS = (b"0 ||| a b ||| lm=1 ||| -1\n", b" ||| ", b"|||", b"LM0= ", b"a=", b"u1", b"WordScores= ")
_COMMON = (b"0", b"1", b"-0.5", b"1e-3", b" ", b"\n", b"\n", b"\r\n")


def words(name: str) -> tuple[bytes, ...]:
    """Return words of a format."""
    return (*_WORDS.get(name, _BARS), *_COMMON)


def list_files(name: str) -> tuple[bytes, ...]:
    """Return the files of a format in ``tests/data``, valid and invalid ones in equal parts.

    A directory is one input. A change of an invalid file is hardly ever valid.
    """
    valid, invalid = (
        [
            _entries(path) if path.is_dir() else path.read_bytes()
            for path in sorted((DATA / kind / "nbest" / name).glob("*"))
            if path.suffix not in _BESIDE
        ]
        for kind in ("valid", "invalid")
    )
    return (*(-(-len(invalid) // len(valid)) * valid), *invalid)


def _entries(directory: Path) -> bytes:
    found = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return b"\0".join(
        b"f%b=%b" % (bytes(path.relative_to(directory)), path.read_bytes()) for path in found
    )


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mosesplug-archives-")


def _directory() -> Path:
    return Path(_place().name) / "archives"


def begin(path: Path) -> None:
    """Make the directory that a file describes; nothing is written outside it."""
    directory = _directory()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for entry in path.read_bytes().split(b"\0"):
        kind, (name, _, content) = entry[:1], entry[1:].partition(b"=")
        place = directory / name.decode("utf-8", "surrogateescape")
        inside = place.parent in (directory, *directory.iterdir()) and not place.parent.is_symlink()
        if b".." in name or (not inside and name.count(b"/") != 1):
            continue
        with contextlib.suppress(OSError, ValueError):
            if not inside:
                place.parent.mkdir()
                if place.parent.parent != directory:
                    continue
            if kind == b"l":
                place.symlink_to(content.decode("utf-8", "surrogateescape"))
            else:
                with place.open("xb") as file:  # never through a link
                    file.write(content)


def readers(name: str) -> dict[str, Callable[[Path], object]]:
    """Return readers of a format: by its name with options, and by the first lines."""
    found = {"plain": partial(_read, name, ListOptions())}
    for variant, options in _OPTIONS.get(name, {}).items():
        found[variant] = partial(_read, name, options)
    found[AUTO] = partial(_read, AUTO, ListOptions())
    return found


def _read(name: str, options: ListOptions, path: Path) -> None:
    """Read a list in whole blocks and in small ones; both must say the same."""
    spelled = f"{name}:2" if name != AUTO and list_formats()[name].is_sized else name
    place = _directory() if name in DIRECTORIES else path
    outcomes = []
    for small, fast in ((False, True), (True, True), (False, False)):
        if not fast and name != "jsonl":
            continue
        ids = SentenceIds()
        with _blocks_of(small), _parser_of(fast):
            try:
                if small:
                    found = concatenate(list(open_blocks(place, spelled, options, ids)))
                else:
                    found = read_whole(place, spelled, options, ids, threads=1)
            except FormatError as error:
                outcomes.append(error)
                continue
        assert found.sentence_ids[0] >= 0
        outcomes.append((found, ids.names))
    first, *others = outcomes
    for other in others:
        assert isinstance(first, FormatError) == isinstance(other, FormatError), (first, other)
        if not isinstance(first, FormatError):
            _assert_same(first, other)
    if isinstance(first, FormatError):
        raise first
    assert first[1] == () or max(first[0].sentence_ids) == len(first[1]) - 1


def _assert_same(one: tuple[NBestList, object], other: tuple[NBestList, object]) -> None:
    lists = (one[0], other[0])
    for name in ("sentence_ids", "dense", "scores", "lines", "sparse_data", "sparse_indptr"):
        np.testing.assert_array_equal(*(getattr(each, name) for each in lists))
    for name in ("groups", "sparse_names", "has_texts"):
        assert getattr(lists[0], name) == getattr(lists[1], name)
    for row in range(len(lists[0])):
        text = lists[0].text(row)
        assert text == lists[1].text(row)
        assert b"\n" not in text
    assert one[1] == other[1]


@contextlib.contextmanager
def _blocks_of(small: bool) -> Iterator[None]:
    if not small:
        yield
        return
    with (
        mock.patch.object(regroup, "BLOCK_BYTES", 48),
        mock.patch.object(fairseq, "BLOCK_BYTES", 48),
        mock.patch.object(json_values, "CHUNK_BYTES", 16),
        mock.patch.object(tables, "BLOCK_ROWS", 2),
        mock.patch.object(documents, "BLOCK_ROWS", 2),
        mock.patch.object(kaldi, "BLOCK_ROWS", 2),
        mock.patch.object(espnet, "BLOCK_ROWS", 2),
        mock.patch.dict(files.read_nbest_blocks.__kwdefaults__, {"block_bytes": 48}),
    ):
        yield


@contextlib.contextmanager
def _parser_of(fast: bool) -> Iterator[None]:
    if fast:
        yield
        return
    with mock.patch.object(StructParser, "parse", return_value=None):
        yield
