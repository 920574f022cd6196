"""Every registered format of lists, on its files in ``tests/data``.

A new format enters by being registered, with files in ``valid/nbest/NAME`` and
``invalid/nbest/NAME``. Beside each file FILE there may be FILE.options (JSON, the fields of
``ListOptions``, and "format" for a name such as ``flat:2``). FILE.expected has a JSON object for
each hypothesis; FILE.error has part of the message, or if it begins with : or /, what follows the
name of the file. FILE may be a directory.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from formats.extras import espnet, fairseq, kaldi
from formats.nbest import files as nbest_files
from formats.nbest import json_values, regroup
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.nbest.readers import documents, tables
from formats.nbest.registry import (
    AUTO,
    detect_format,
    find_format,
    list_formats,
    open_blocks,
    register_format,
    split_format_name,
)

DATA = Path(__file__).parents[2] / "data"
FORMATS = sorted(list_formats())
_BESIDE = (".expected", ".options", ".error")


def list_files(kind: str, name: str) -> list[Path]:
    return sorted(
        path for path in (DATA / kind / "nbest" / name).glob("*") if path.suffix not in _BESIDE
    )


VALID = [path for name in FORMATS for path in list_files("valid", name)]
INVALID = [path for name in FORMATS for path in list_files("invalid", name)]


def read_options(path: Path) -> tuple[str, ListOptions]:
    beside = Path(f"{path}.options")
    known: dict[str, Any] = json.loads(beside.read_text()) if beside.exists() else {}
    format = known.pop("format", path.parent.name)
    lists = {name: tuple(each) for name, each in known.items() if isinstance(each, list)}
    return format, ListOptions(**(known | lists))


def read_expected(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(f"{path}.expected").read_text().splitlines()]


def spell_row(block: NBestList, row: int, ids: SentenceIds) -> dict[str, Any]:
    """Return a hypothesis as ``.expected`` files have it."""
    number = int(block.sentence_ids[row])
    features: dict[str, list[float]] = {}
    column = 0
    for name, width in block.groups:
        features[name] = block.dense[row, column : column + width].tolist()
        column += width
    for at in range(block.sparse_indptr[row], block.sparse_indptr[row + 1]):
        name = block.sparse_names[block.sparse_indices[at]]
        features[name] = [float(block.sparse_data[at])]
    score = float(block.scores[row])
    return {
        "id": ids.names[number] if ids.names else number,
        "text": block.text(row).decode("utf-8", "surrogateescape"),
        "features": features,
        "score": None if np.isnan(score) else score,
        "line": int(block.lines[row]),
        "has_texts": block.has_texts,
    }


def assert_expected(blocks: Iterator[NBestList], ids: SentenceIds, path: Path) -> None:
    found = [spell_row(block, row, ids) for block in blocks for row in range(len(block))]
    expected = read_expected(path)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        wanted = {name: np.float32(values).tolist() for name, values in other["features"].items()}
        assert {name: one[name] for name in other} == {**other, "features": wanted}
        assert one["has_texts"] == other.get("has_texts", True)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_files(name: str) -> None:
    assert len(list_files("valid", name)) >= 1
    assert len(list_files("invalid", name)) >= 1
    found = list_formats()[name]
    assert found.name == name
    assert 0 < len(found.summary) <= 60


def pack(path: Path, packed: Path) -> Path:
    """Compress a file, or each file of a directory."""
    if not path.is_dir():
        packed.write_bytes(gzip.compress(path.read_bytes()))
        return packed
    shutil.copytree(path, packed)
    for file in [each for each in packed.rglob("*") if each.is_file()]:
        pack(file, file.with_name(f"{file.name}.gz"))
        file.unlink()
    return packed


@pytest.mark.parametrize("path", VALID, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_valid(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format, options = read_options(path)
    ids = SentenceIds()
    assert_expected(open_blocks(path, format, options, ids), ids, path)
    # Blocks are whole sentences, whatever their size, and archives read as the plain file does.
    packed = pack(path, tmp_path / "packed.gz")
    monkeypatch.setattr(regroup, "BLOCK_BYTES", 16)
    monkeypatch.setattr(fairseq, "BLOCK_BYTES", 16)
    monkeypatch.setattr(json_values, "CHUNK_BYTES", 16)
    for reader in (kaldi, espnet, tables, documents):
        monkeypatch.setattr(reader, "BLOCK_ROWS", 1)
    ids = SentenceIds()
    blocks = list(open_blocks(packed, format, options, ids))
    assert_expected(iter(blocks), ids, path)
    for one, other in pairwise(blocks):
        assert one.sentence_ids[-1] < other.sentence_ids[0]
    whole = concatenate(blocks)
    assert (np.diff(whole.sentence_ids) >= 0).all()
    assert whole.dense.dtype == np.float32
    assert whole.dense.shape == (len(whole), sum(width for _, width in whole.groups))
    if path.is_file():
        lines = path.read_bytes().count(b"\n") + 1
        assert ((whole.lines >= 1) & (whole.lines <= lines)).all()


@pytest.mark.parametrize("path", VALID, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_auto_recognizes(path: Path) -> None:
    format, options = read_options(path)
    if ":" in format or options.columns is not None:
        return  # nothing in such a file says what it is
    assert detect_format(path).name == format
    ids = SentenceIds()
    assert_expected(open_blocks(path, AUTO, options, ids), ids, path)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_invalid(path: Path) -> None:
    format, options = read_options(path)
    with pytest.raises(FormatError) as caught:
        list(open_blocks(path, format, options))
    expected = Path(f"{path}.error").read_text().strip()
    assert expected
    if expected.startswith((":", "/")):
        assert str(caught.value).startswith(f"{path}{expected}")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value.path).startswith(str(path))
    assert caught.value.remedy


@pytest.mark.parametrize("name", FORMATS)
def test_another_file_is_an_error_with_its_place(name: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\n|| ||\n")
    with pytest.raises(FormatError, match="picture"):
        list(open_blocks(path, f"{name}:3" if list_formats()[name].is_sized else name))


def test_ids_have_one_number_in_all_files(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("b ||| x ||| LM0= 1\na ||| y ||| LM0= 1\n")
    second.write_text("a ||| z ||| LM0= 1\nc ||| z ||| LM0= 1\n")
    ids = SentenceIds()
    blocks = [block for path in (first, second) for block in open_blocks(path, ids=ids)]
    assert concatenate(blocks).sentence_ids.tolist() == [0, 1, 1, 2]
    assert ids.names == ("b", "a", "c")
    third = tmp_path / "third"
    third.write_text("a ||| z ||| LM0= 1\nb ||| z ||| LM0= 1\n")
    with pytest.raises(FormatError, match=r"third:2: sentence 'b' comes after 'a', but precedes"):
        list(open_blocks(third, ids=ids))


def test_text_ids_are_numbered_in_small_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "list"
    lines = [f"utt{n // 3} ||| word {n} ||| LM0= {n} ||| {n}" for n in range(60)]
    path.write_text("\n".join(lines))
    monkeypatch.setitem(nbest_files.read_nbest_blocks.__kwdefaults__, "block_bytes", 50)
    ids = SentenceIds()
    blocks = list(open_blocks(path, ids=ids))
    assert len(blocks) > 5
    whole = concatenate(blocks)
    assert whole.sentence_ids.tolist() == [n // 3 for n in range(60)]
    assert whole.lines.tolist() == list(range(1, 61))
    assert ids.names == tuple(f"utt{n}" for n in range(20))


def test_auto_names_the_formats_if_none_fits(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("once upon a time\nthere was a file\n")
    with pytest.raises(FormatError) as caught:
        detect_format(path)
    message = str(caught.value)
    assert "notes.txt" in message
    assert "once upon a time" in message
    assert all(name in message for name in FORMATS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"NBestList1.0\n(-3) a b\n", r"an n-best list of SRILM, .* nbest-optimize"),
        (b"PAR1\x15\x04\n", r"a Parquet file, .* Convert it: .*read_parquet\(.*to_csv.*LIST"),
        (b"ARROW1\0\0", r"a Feather file, .*read_feather"),
        (b"PK\x03\x04\x14", "a spreadsheet or an archive .* as CSV"),
        (b"\x80\x04\x95", "a pickled object, .*pickle.load"),
        (b"\x93NUMPY\x01\x00", "an array of NumPy, .* --add-feature NAME=.*LIST"),
        (b'<?xml version="1.0"?>\n', "an XML file"),
        (b"hyp,lm\na,1\n", "a table without a column of sentence ids, .* awk .*LIST"),
        (b"-3.5\ta b\n-4\ta\n", r"scores and texts without sentence ids, .* awk .*LIST"),
        (b"{'id': 'u', 'hyp': 'a'}\n", r"a dictionary as Python prints it. .*_eval.* < .*LIST"),
        (b"the house\nthe mouse\n", "begins like this: 'the house'.* flat:N"),
    ],
)  # fmt: skip
def test_layouts_that_are_not_read_are_explained(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "LIST"
    path.write_bytes(text)
    with pytest.raises(FormatError, match=message):
        next(open_blocks(path))


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (b'hyp,lm\na,1\n"b, c",2\n', "csv"),
        (b"text\tlm\na\t1\nb\t2\n", "tsv"),
        (b"-3.5\ta b\n-4\ta\n", "nemo:2"),
        (b"{'id': 0, 'hyp': 'a', 'lm': 1}\n{'id': 0, 'hyp': 'b', 'lm': 2}\n", "jsonl"),
        (pickle.dumps([["a", "b"]]), "json"),
    ],
)
def test_commands_of_messages_convert(tmp_path: Path, content: bytes, format: str) -> None:
    path = tmp_path / "a 'list'"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        next(open_blocks(path))
    assert caught.value.remedy is not None
    found = re.search(r"(?:python3|awk) .*> (list\S*?)(?:$|, )", caught.value.remedy)
    assert found is not None
    command = found[0].removesuffix(", ").replace("n=N", "n=2")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    (block,) = open_blocks(tmp_path / found[1], format)
    assert block.sentence_ids.tolist() == [0, 0]


def test_auto_asks_for_the_size_of_groups(tmp_path: Path) -> None:
    path = tmp_path / "beams.tsv"
    path.write_text("the house\t-3.5\nthe mouse\t-4\n")
    assert detect_format(path).name == "nemo"
    with pytest.raises(FormatError, match=r"beams\.tsv: .* is unknown\. Give it: --format nemo:N"):
        list(open_blocks(path))


def test_format_names() -> None:
    assert split_format_name("moses") == ("moses", None)
    for text in ("mosses", "", "moses:", "moses:0", "moses:-1", "moses:two", "moses:2"):
        with pytest.raises(ValueError, match="list format"):
            split_format_name(text)
    with pytest.raises(ValueError, match="unknown list format 'mosses'"):
        find_format("anywhere", "mosses")


def test_a_format_can_be_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formats.nbest.registry._REGISTERED", dict(list_formats()))
    moses = list_formats()["moses"]
    own = ListFormat("own", "a test", lambda lines: lines[0] == b"own\n", moses.read_blocks)
    register_format(own)
    register_format(own)
    assert list_formats()["own"] is own
    with pytest.raises(ValueError, match="there is a list format own already"):
        register_format(ListFormat("own", "another", own.recognizes, own.read_blocks))
    path = tmp_path / "list"
    path.write_text("own\n")
    assert detect_format(path) is own


def test_named_columns_make_a_table(tmp_path: Path) -> None:
    """The caller who names an id means a table, even if it looks like another format."""
    path = tmp_path / "rescored.tsv"
    path.write_text("utt-1\tthe house\t-3.5\nutt-1\tthe mouse\t-4\n")
    columns = ("id", "hyp", "lm")
    assert detect_format(path, columns).name == "tsv"
    (block,) = open_blocks(path, options=ListOptions(columns=columns))
    assert block.dense.tolist() == [[-3.5], [-4.0]]
    with pytest.raises(FormatError, match="the line has 3 columns, not 4"):
        next(open_blocks(path, options=ListOptions(columns=(*columns, "asr"))))
