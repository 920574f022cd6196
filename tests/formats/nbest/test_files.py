"""n-best lists: the bulk readers against the reader of single lines, and Moses' recordings."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest import block as nbest_block
from formats.nbest.block import NBestList, concatenate, parse_block_fast
from formats.nbest.entry import Layout, NBestEntry, Place, format_entry
from formats.nbest.fields import MANY_COLUMNS
from formats.nbest.files import format_list, iter_nbest, read_nbest, read_nbest_blocks, write_nbest
from formats.text import read_bytes, write_atomic

DATA = Path(__file__).parents[2] / "data"
VALID = sorted((DATA / "valid" / "nbest").glob("*.nbest"))
INVALID = sorted((DATA / "invalid" / "nbest").glob("*.nbest"))
SLOW = {
    "empty_lines",
    "no_blanks_around_separators",
}  # valid lists that the bulk parser leaves to the other


def test_there_are_fixtures() -> None:
    assert len(VALID) > 15
    assert len(INVALID) > 25


def assert_same(block: NBestList, entries: Sequence[NBestEntry]) -> None:
    """The arrays say what the entries say, values rounded to float32 by numpy."""
    assert block.sentence_ids.tolist() == [entry.sentence_id for entry in entries]
    assert [block.text(row) for row in range(len(block))] == [entry.text for entry in entries]
    assert [block.extra(row) for row in range(len(block))] == [entry.extra for entry in entries]
    scores = np.array([entry.score for entry in entries])
    np.testing.assert_array_equal(block.scores, scores)
    assert block.groups == tuple((name, len(values)) for name, values in entries[0].dense)
    dense = np.array([[v for _, values in e.dense for v in values] for e in entries], np.float64)
    assert block.dense.dtype == np.float32
    assert block.dense.flags.c_contiguous
    assert block.dense.shape == dense.shape
    np.testing.assert_array_equal(
        block.dense.view(np.int32), dense.astype(np.float32).view(np.int32)
    )
    for row, entry in enumerate(entries):
        part = slice(*block.sparse_indptr[row : row + 2])
        names = [block.sparse_names[index] for index in block.sparse_indices[part]]
        assert names == [name for name, _ in entry.sparse]
        values = np.array([value for _, value in entry.sparse], dtype=np.float64)
        np.testing.assert_array_equal(block.sparse_data[part], values.astype(np.float32))
    appearance = dict.fromkeys(name for entry in entries for name, _ in entry.sparse)
    assert block.sparse_names == tuple(appearance)


def fast(path: Path) -> NBestList | None:
    """A list by the bulk parser alone."""
    text = read_bytes(path)
    text += b"" if text.endswith(b"\n") else b"\n"
    layout = Layout.of_line(text.split(b"\n")[0], None, Place(str(path), 1))
    return parse_block_fast(text, layout, str(path), 1)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_list_reads_the_same_all_ways(path: Path) -> None:
    entries = list(iter_nbest(path))
    assert_same(read_nbest(path), entries)
    assert_same(read_nbest(path, threads=1), entries)
    assert_same(concatenate(list(read_nbest_blocks(path, block_bytes=64))), entries)
    if path.stem not in SLOW:
        in_bulk = fast(path)
        assert in_bulk is not None
        assert_same(in_bulk, entries)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_uniform_lines_give_the_same_result_token_by_token(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(nbest_block, "parse_columns", lambda *_, **__: None)
    assert_same(read_nbest(path), list(iter_nbest(path)))


@pytest.mark.parametrize("stem", ["moses", "marian", "bars_and_equals_in_text", "long_numbers"])
def test_uniform_lines_are_parsed_by_columns(monkeypatch: pytest.MonkeyPatch, stem: str) -> None:
    monkeypatch.delattr(nbest_block, "parse_tokens")
    path = DATA / "valid" / "nbest" / f"{stem}.nbest"
    assert_same(read_nbest(path), list(iter_nbest(path)))


@pytest.mark.parametrize("n_digits", [8, 9, 16, 17, 31, 32, 33, 40, 64, 65, 66, 70])
def test_numbers_of_any_length(tmp_path: Path, n_digits: int) -> None:
    path = tmp_path / "list"
    token = "0." + "1234567890" * 7
    path.write_text(
        f"0 ||| a ||| LM= 1 2 TM= 3 ||| 1\n0 ||| a ||| LM= {token[:n_digits]} 2 TM= 3 ||| 1\n"
    )
    assert_same(read_nbest(path), list(iter_nbest(path)))
    path.write_text(f"0 ||| a ||| LM= 1 2 ||| 1\n0 ||| a ||| LM= {token[:n_digits]} ||| 1\n")
    with pytest.raises(FormatError, match=r":2: the features are LM, but"):
        read_nbest(path)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_list_is_rejected_with_file_line_and_reason(path: Path) -> None:
    expected = path.with_suffix(".error").read_text().strip()
    for read in (
        read_nbest,
        lambda path: list(iter_nbest(path)),
        lambda path: list(read_nbest_blocks(path)),
        lambda path: list(read_nbest_blocks(path, block_bytes=16)),
    ):
        with pytest.raises(FormatError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}{expected}")
        assert caught.value.remedy


def test_values_of_some_fixtures() -> None:
    directory = DATA / "valid" / "nbest"
    moses = read_nbest(directory / "moses.nbest")
    assert moses.groups == (("LM0", 1), ("WordPenalty0", 1), ("TranslationModel0", 2))
    assert moses.dense[0].tolist() == np.float32([-44.1007, -9, -5.31229, -12.4899]).tolist()
    assert moses.scores.tolist() == [-103.732, -103.732, -1e-05]
    assert [moses.text(row) for row in range(3)] == [b"a truck .", b"a car .", b"the end"]
    assert moses.lines.tolist() == [1, 2, 3]
    assert read_nbest(directory / "empty_lines.nbest").lines.tolist() == [2, 5]
    old = read_nbest(directory / "old_labels.nbest")
    assert old.groups == (("d", 2), ("lm", 1), ("w", 1))
    glued = read_nbest(directory / "glued_labels.nbest")
    assert glued.groups == (("lm", 1), ("WordPenalty", 1))
    assert glued.sparse_names == ("tm_pt_0", "OOV_x")
    assert glued.sparse_data.tolist() == np.float32([-3.2, 1, 0.5]).tolist()
    joshua = read_nbest(directory / "joshua.nbest")
    assert joshua.groups == (("tm-pt-0", 1), ("lm-0", 1), ("WordPenalty", 1))
    assert joshua.sparse_names == ("OOV_Penalty",)
    assert joshua.sparse_indptr.tolist() == [0, 1, 1]
    marked = read_nbest(directory / "byte_order_mark.nbest")
    assert marked.text(1) == "\ufeffa car .".encode()
    odd = read_nbest(directory / "sparse_names_of_any_bytes.nbest")
    assert [name.encode("utf-8", "surrogateescape") for name in odd.sparse_names] == [
        b"WT_,~,", b"WT_=~=", b"WT_:~:", b"WT_|~||", b"WT_\xff~\xe9", b"WT_1~2", b"_",
    ]  # fmt: skip
    assert np.isnan(read_nbest(directory / "no_score.nbest").scores).all()
    assert np.signbit(read_nbest(directory / "negative_zero.nbest").dense).tolist() == [
        [True, False, True]
    ]


def test_list_without_labels_takes_names_from_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"0 ||| a ||| 0.1 -2 3 ||| 1\n0 ||| b ||| 1 2 3.5 ||| 1\n")
    names = ["LM0", "TM0", "TM0"]
    block = read_nbest(path, names=names)
    assert block.groups == (("LM0", 1), ("TM0", 2))
    assert block.dense.tolist() == np.float32([[0.1, -2, 3], [1, 2, 3.5]]).tolist()
    assert_same(block, list(iter_nbest(path, names=names)))
    with pytest.raises(FormatError, match=r":1: 3 feature values, but 2 names were given"):
        read_nbest(path, names=names[1:])
    path.write_bytes(b"0 ||| a ||| 0.1 -2 ||| 1\n0 ||| b ||| LM= 1 ||| 1\n")
    with pytest.raises(FormatError, match=r":2: a feature value is not a number: 'LM='"):
        read_nbest(path, names=["LM", "TM"])


def test_names_must_agree_with_labels(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"0 ||| a ||| LM0= 0.1 TM0= -2 3 ||| 1\n")
    assert read_nbest(path, names=["LM0", "TM0", "TM0"]).groups == (("LM0", 1), ("TM0", 2))
    with pytest.raises(FormatError, match=r"are LM0 TM0\*2, but the names given say TM0\*2 LM0"):
        read_nbest(path, names=["TM0", "TM0", "LM0"])


def test_error_line_counts_from_the_start_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "list"
    lines = [b"%d ||| w%d ||| LM= %d ||| 1\n" % (i // 7, i, i) for i in range(5000)]
    lines[4321] = b"617 ||| w ||| LM= nan ||| 1\n"
    path.write_bytes(b"".join(lines))
    for read in (read_nbest, lambda path: list(read_nbest_blocks(path, block_bytes=1000))):
        with pytest.raises(FormatError, match=r":4322: a value of LM is not finite"):
            read(path)


def test_blocks_hold_whole_sentences(tmp_path: Path) -> None:
    path = tmp_path / "list.gz"
    lines = [b"%d ||| w%d ||| LM= %d ||| 1\n" % (i // 7, i, i) for i in range(1000)]
    path.write_bytes(gzip.compress(b"".join(lines)))
    blocks = list(read_nbest_blocks(path, block_bytes=500))
    assert len(blocks) > 20
    seen = [sentence for block in blocks for sentence in np.unique(block.sentence_ids).tolist()]
    assert seen == list(range(143))
    assert np.concatenate([block.lines for block in blocks]).tolist() == list(range(1, 1001))


def test_blocks_that_meet_sparse_features_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(
        b"0 ||| a ||| LM= 1 x_a= 1 x_b= 2 ||| 1\n"
        b"1 ||| a ||| LM= 1 x_c= 3 x_a= 4 ||| 1\n"
        b"2 ||| a ||| LM= 1 x_b= 5 ||| 1\n"
    )
    blocks = list(read_nbest_blocks(path, block_bytes=40))
    assert [block.sparse_names for block in blocks] == [("x_a", "x_b"), ("x_c", "x_a"), ("x_b",)]
    together = concatenate(blocks)
    assert together.sparse_names == ("x_a", "x_b", "x_c")
    assert together.sparse_indices.tolist() == [0, 1, 2, 0, 1]
    assert_same(together, list(iter_nbest(path)))


def test_a_sentence_longer_than_many_blocks(tmp_path: Path) -> None:
    path = tmp_path / "list"
    lines = [b"%d ||| w%d ||| LM= %d ||| 1\n" % (i >= 3, i, i) for i in range(100)]
    path.write_bytes(b"".join([*lines, b"\n", b"2 ||| a ||| LM= 1 ||| 1\n"]))
    blocks = list(read_nbest_blocks(path, block_bytes=50))
    assert [block.sentence_ids.tolist() for block in blocks] == [[0] * 3, [1] * 97, [2]]


def test_lines_of_very_many_values(tmp_path: Path) -> None:
    path = tmp_path / "list"
    values = " ".join(map(str, range(MANY_COLUMNS + 1)))
    path.write_text(f"0 ||| a ||| LM= {values} ||| 1\n0 ||| b ||| LM= {values} ||| 1\n")
    assert fast(path) is not None
    assert_same(read_nbest(path), list(iter_nbest(path)))


def test_truncated_archive(tmp_path: Path) -> None:
    path = tmp_path / "run1.best100.out.gz"
    path.write_bytes(gzip.compress(VALID[0].read_bytes() * 99)[:-20])
    for read in (read_nbest, lambda path: list(iter_nbest(path))):
        with pytest.raises(FormatError, match="cut short or damaged"):
            read(path)


def test_many_numbers_of_every_length(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=20000) * 10.0 ** rng.integers(-12, 12, size=20000)
    tokens = [f"{v:.{d}g}" for v, d in zip(values, rng.integers(1, 18, 20000), strict=True)]
    tokens += [f"{v:.{d}f}" for v, d in zip(values, rng.integers(0, 18, 20000), strict=True)]
    path = tmp_path / "list"
    path.write_text("".join(f"0 ||| a ||| X= {token} ||| {token}\n" for token in tokens))
    block = read_nbest(path)
    expected = np.array([float(token) for token in tokens])
    np.testing.assert_array_equal(block.scores, expected)
    np.testing.assert_array_equal(block.dense[:, 0], expected.astype(np.float32))


numbers = st.one_of(
    st.floats(-1e30, 1e30).map(lambda x: f"{x:.6g}"),
    st.floats(-1e30, 1e30).map(repr),
    st.decimals(-1000000, 1000000, allow_nan=False, places=6).map(lambda x: f"{x:f}"),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["-0", ".5", "5.", "+1", "1e-05", "-1E+2", "0.1", "1.2.3", "nan", "x", "1,2"]),
).map(str.encode)
words = st.binary(min_size=1, max_size=20).map(
    lambda word: word.replace(b"\n", b"N").replace(b"|||", b"||")
)
labels = st.sampled_from([b"LM=", b"TM=", b"lm:", b"x_1=", b"x_a~b=", b"y_=", b"=", b"_:"])
tails = st.lists(st.one_of(numbers, labels, words), max_size=3).map(lambda t: b" ".join([b"", *t]))


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that is often right, and wrong in every way now and then."""
    fields = [
        draw(st.sampled_from([b"0", b"0", b"1", b"2", b" 3 ", b"x", b""])),
        draw(st.lists(words, max_size=4).map(b" ".join)),
        b"LM= %b TM%b %b %b%b"
        % (
            draw(numbers),
            draw(st.sampled_from([b"=", b"="])),
            draw(numbers),
            draw(numbers),
            draw(st.one_of(st.just(b""), tails)),
        ),
    ]
    if draw(st.integers(0, 9)):
        fields.append(draw(numbers))
        fields += draw(st.lists(words, max_size=2))
    blank = draw(st.sampled_from([b" ", b" ", b"", b"\t", b"  "]))
    return (blank + b"|||" + blank).join(fields) + draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))


@given(st.lists(lines(), min_size=1, max_size=6), st.integers(1, 400))
def test_all_readers_agree(
    tmp_path_factory: pytest.TempPathFactory, some: list[bytes], block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("nbest") / "list"
    path.write_bytes(b"".join(some))
    try:
        entries = list(iter_nbest(path))
    except FormatError as error:
        # Of a sentence out of order and a fault behind it, the bulk reader may meet either first.
        fault = "." if "go backwards" in error.message else re.escape(str(error))
        with pytest.raises(FormatError, match=fault):
            read_nbest(path)
        return
    assert_same(read_nbest(path), entries)
    assert_same(concatenate(list(read_nbest_blocks(path, block_bytes=block_bytes))), entries)


@given(st.data())
def test_write_and_read_round_trip(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    value = st.floats(width=32, allow_nan=False, allow_infinity=False)
    widths = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    entry = st.builds(
        NBestEntry,
        sentence_id=st.just(4),
        text=words.map(lambda word: word.strip(bytes(range(33)))),
        dense=st.tuples(
            *(
                st.tuples(st.just(f"F{i}"), st.tuples(*[value] * width))
                for i, width in enumerate(widths)
            )
        ),
        sparse=st.dictionaries(st.sampled_from(["a_b", "é_~", "_"]), value).map(
            lambda features: tuple(features.items())
        ),
        score=value,
        extra=st.sampled_from([b"", b" 0-0 1-1 ", b" 0=0 ||| 0-0"]),
    )
    entries = data.draw(st.lists(entry, min_size=1, max_size=4))
    path = tmp_path_factory.mktemp("nbest") / "list.gz"
    write_nbest(path, entries, digits=9, compress="gz")
    read = list(iter_nbest(path))
    for mine, theirs in zip(entries, read, strict=True):
        assert (mine.text, mine.extra) == (theirs.text, theirs.extra)
        for (name, values), (other, others) in zip(mine.dense, theirs.dense, strict=True):
            assert name == other
            assert np.float32(values).tolist() == np.float32(others).tolist()
    assert_same(read_nbest(path), read)


@pytest.mark.parametrize(
    "stem",
    [
        "moses", "alignment_and_segmentation", "gap_in_sentence_ids", "bars_and_equals_in_text",
        "bytes_that_are_not_utf8", "negative_zero",
    ],
)  # fmt: skip
def test_moses_spelling_survives_reading_and_writing(tmp_path: Path, stem: str) -> None:
    path = DATA / "valid" / "nbest" / f"{stem}.nbest"
    expected = path.read_bytes().replace(b"0.0 -0.000", b"0 -0")
    write_nbest(tmp_path / "list", iter_nbest(path))
    assert (tmp_path / "list").read_bytes() == expected
    assert b"".join(format_list(read_nbest(path))) == expected


def test_entry_without_score_has_three_fields() -> None:
    entry = NBestEntry(sentence_id=1, text=b"", dense=(("F0", (0.5,)),))
    assert math.isnan(entry.score)
    assert format_entry(entry) == b"1 |||  ||| F0= 0.5\n"


RECORDED = [
    "multi30k-de-en/mert-work/run1.best100.out.gz",
    "multi30k-de-en/mert-work/run7.best100.out.gz",
    "multi30k-de-en/sparse/run.best100.out.gz",
    "multi30k-de-en/forest/first60.best100.gz",
    "hindi-4ref/dev.en3.nbest",
]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_list(recordings: Path, tmp_path: Path, name: str) -> None:
    """Bulk equals one by one, the bulk parser does it alone, and writing gives the same bytes."""
    path = recordings / name
    text = b"".join(read_bytes(path).splitlines(keepends=True)[-1000:])
    part = tmp_path / "list"
    write_atomic(part, text)
    entries = list(iter_nbest(part))
    assert_same(read_nbest(part), entries)
    in_bulk = fast(part)
    assert in_bulk is not None
    assert_same(in_bulk, entries)
    if "hindi" not in name:  # converted by hand: one blank behind the tokens
        write_nbest(tmp_path / "again", entries)
        assert (tmp_path / "again").read_bytes() == text
        assert b"".join(format_list(in_bulk)) == text


def test_recorded_sparse_list_keeps_its_features(multi30k: Path) -> None:
    block = read_nbest(multi30k / "sparse" / "run.best100.out.gz")
    assert block.sparse_names[:2] == ("WT_männern~men", "WT_auf~on")
    assert block.sparse_indptr[1] == 15
    assert block.sparse_data[:15].tolist() == [1] * 9 + [3] * 6


def test_a_line_of_many_blocks(tmp_path: Path) -> None:
    path = tmp_path / "list"
    lines = [b"0 ||| %s ||| LM0= 1 ||| -1\n" % (b"a " * 200), b"0 ||| b ||| LM0= 2 ||| -2\n"]
    lines.append(b"1 ||| %s ||| LM0= 3 ||| -3" % (b"c " * 300))
    path.write_bytes(b"".join(lines))
    for size in (7, 64, 1000):
        blocks = list(read_nbest_blocks(path, block_bytes=size))
        assert [block.text(row) for block in blocks for row in range(len(block))] == [
            (b"a " * 200).strip(),
            b"b",
            (b"c " * 300).strip(),
        ]
        assert [line for block in blocks for line in block.lines.tolist()] == [1, 2, 3]
