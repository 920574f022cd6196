"""Lists that name every value, spelled as Joshua and cdec spell them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest import block as nbest_block
from formats.nbest.block import concatenate
from formats.nbest.files import (
    FEW,
    dense_features,
    format_list,
    is_named,
    iter_nbest,
    read_nbest,
    read_nbest_blocks,
)
from tests.formats.nbest.test_files import assert_same

# Joshua: all dense features in every line and in one order, with three decimals; sparse ones
# behind them, by name.
JOSHUA = b"""\
0 ||| the small house ||| lm_0=-12.184 tm_pt_0=-0.000 tm_pt_1=-3.100 tm_glue_0=3.000 \
WordPenalty=-1.737 OOVPenalty=0.000 ||| -17.021
0 ||| the little house ||| lm_0=-13.022 tm_pt_0=-0.000 tm_pt_1=-2.940 tm_glue_0=3.000 \
WordPenalty=-1.737 OOVPenalty=0.000 ||| -17.699
1 ||| haus ||| lm_0=-103.500 tm_pt_0=0.000 tm_pt_1=0.000 tm_glue_0=1.000 WordPenalty=-0.869 \
OOVPenalty=-100.000 ||| -203.369
"""
# cdec: what is 0 is left out, and the order is that of the derivation's features.
CDEC = b"""\
0 ||| the small house ||| Glue=2 EgivenFCoherent=1.3581 LanguageModel=-12.4031 \
WordPenalty=-1.73718 ||| -3.0412
0 ||| the little house ||| EgivenFCoherent=1.9e-05 LanguageModel=-13.0221 WordPenalty=-1.73718 \
||| -3.2

2 ||| haus ||| PassThrough=1 PassThrough_1=1 LanguageModel=-9.5 LanguageModel_OOV=1 \
||| -9.25 ||| 0.41
"""
JOSHUA_NAMES = ("lm_0", "tm_pt_0", "tm_pt_1", "tm_glue_0", "WordPenalty", "OOVPenalty")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    return tmp_path / "list"


def read_in_all_ways(path: Path, dense: tuple[str, ...]) -> None:
    entries = list(iter_nbest(path, dense=dense))
    assert_same(read_nbest(path, dense=dense), entries)
    blocks = list(read_nbest_blocks(path, dense=dense, block_bytes=60))
    assert_same(concatenate(blocks), entries)


def test_joshua(listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed.write_bytes(JOSHUA)
    assert is_named(listed)
    assert dense_features([listed]) == JOSHUA_NAMES
    read_in_all_ways(listed, JOSHUA_NAMES)
    # Lines that are alike are read as fast as Moses'.
    monkeypatch.delattr(nbest_block, "parse_named")
    found = read_nbest(listed, dense=JOSHUA_NAMES)
    assert found.groups == tuple((name, 1) for name in JOSHUA_NAMES)
    assert found.dense[2].tolist() == np.float32([-103.5, 0, 0, 1, -0.869, -100]).tolist()
    assert found.sparse_names == ()
    assert found.scores.tolist() == [-17.021, -17.699, -203.369]


def test_cdec(listed: Path) -> None:
    listed.write_bytes(CDEC)
    names = dense_features([listed])
    assert names == (
        "Glue", "EgivenFCoherent", "LanguageModel", "WordPenalty", "PassThrough", "PassThrough_1",
        "LanguageModel_OOV",
    )  # fmt: skip
    read_in_all_ways(listed, names)
    found = read_nbest(listed, dense=("LanguageModel", "Glue", "Unseen"))
    assert (
        found.dense.tolist()
        == np.float32([[-12.4031, 2, 0], [-13.0221, 0, 0], [-9.5, 0, 0]]).tolist()
    )
    assert found.sparse_names == (
        "EgivenFCoherent", "WordPenalty", "PassThrough", "PassThrough_1", "LanguageModel_OOV",
    )  # fmt: skip
    assert found.sparse_indptr.tolist() == [0, 2, 4, 7]
    assert found.sparse_data[2] == np.float32(1.9e-05)
    assert found.extra(2) == b" 0.41"
    assert found.lines.tolist() == [1, 2, 4]
    read_in_all_ways(listed, ("LanguageModel", "Glue", "Unseen"))
    read_in_all_ways(listed, ())


def test_many_features_are_dense_where_half_of_the_lines_have_them(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    sparse = [f"R:{number}=1" for number in range(FEW - 3)]
    one.write_text(
        f"0 ||| a ||| lm=-1 half=1 {' '.join(sparse)} ||| 1\n0 ||| b ||| lm=-2 less=1 ||| 1\n"
    )
    other.write_text("0 ||| c ||| lm=-1 half=2 ||| 1\n0 ||| d ||| other=1 ||| 1\n")
    assert dense_features([one]) is not None
    assert len(dense_features([one]) or ()) == FEW  # few enough: all
    assert dense_features([one, other]) == ("lm", "half")
    assert len(dense_features([other, other]) or ()) == 3


def test_lists_of_moses_and_marian_are_not_named(tmp_path: Path) -> None:
    valid = Path(__file__).parents[2] / "data" / "valid" / "nbest"
    for stem in ("moses", "marian", "marian_word_scores", "sparse", "no_features", "no_score"):
        assert not is_named(valid / f"{stem}.nbest")
        assert dense_features([valid / f"{stem}.nbest"]) is None
    os.mkfifo(tmp_path / "pipe")
    assert not is_named(tmp_path / "pipe")  # without reading it
    with pytest.raises(FormatError, match="cannot be read"):
        is_named(tmp_path / "none")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a=1 b", r"a value of a is not a number: 'b'"),
        ("b a=1", r"the features begin with 'b', which is not a label"),
        ("a=1 2", r"the feature a has 2 values in a list that names every value"),
        ("a=1 b=", r"the feature b has no value"),
        ("a=1 b=2 a=3", r"the feature a appears twice"),
        ("a=x", r"the value of a is not a number: 'x'"),
        ("a=1 s=nan", r"the value of s is not finite"),
        ("a=1e39", r"the value of a is too large"),
        ("a=1 =2", r"a label has no name"),
        ("Name= 1 2", r"the feature Name has 2 values"),
    ],
)
def test_invalid_lines_are_rejected_with_their_number(listed: Path, line: str, said: str) -> None:
    listed.write_text(f"0 ||| x ||| a=1 s=2 ||| 1\n0 ||| y ||| {line} ||| 2\n")
    for read in (read_nbest, lambda path, dense: list(iter_nbest(path, dense=dense))):
        with pytest.raises(FormatError, match=rf"list:2: {said}"):
            read(listed, dense=("a",))
    with pytest.raises(FormatError, match=rf"list:2: {said}"):
        dense_features([listed])


def test_names_of_columns_are_for_other_lists(listed: Path) -> None:
    listed.write_bytes(JOSHUA)
    with pytest.raises(FormatError, match=r"list:1: column names are given"):
        read_nbest(listed, names=["a"], dense=("a",))


def test_named_values_are_written_and_read_again(listed: Path, tmp_path: Path) -> None:
    listed.write_bytes(CDEC)
    found = read_nbest(listed, dense=("Glue", "WordPenalty"))
    again = tmp_path / "again"
    again.write_bytes(b"".join(format_list(found, digits=9, named=True)))
    assert again.read_bytes().startswith(b"0 ||| the small house  ||| Glue=2 WordPenalty=-1.737")
    assert is_named(again)
    read = read_nbest(again, dense=("Glue", "WordPenalty"))
    assert read.dense.tolist() == found.dense.tolist()
    assert read.sparse_names == found.sparse_names
    assert read.sparse_data.tolist() == found.sparse_data.tolist()


names = st.sampled_from(["a", "b_0", "R:1", "é", "x=y", "_", "a|b"])
values = st.floats(-1e6, 1e6).map(lambda value: f"{value:.6g}")


@given(
    st.lists(st.dictionaries(names, values, max_size=6), min_size=1, max_size=6),
    st.sets(names),
)
def test_all_readers_agree(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, str]], dense: set[str]
) -> None:
    path = tmp_path_factory.mktemp("named") / "list"
    spelled = (" ".join(f"{name}={value}" for name, value in line.items()) for line in lines)
    text = "".join(f"{n // 2} ||| w ||| {each} ||| 1\n" for n, each in enumerate(spelled))
    path.write_text(text)
    wanted = tuple(sorted(dense))
    entries = list(iter_nbest(path, dense=wanted))
    for entry, line in zip(entries, lines, strict=True):
        assert dict(entry.sparse) == {n: float(v) for n, v in line.items() if n not in dense}
        assert dict(entry.dense) == {name: (float(line.get(name, 0.0)),) for name in wanted}
    assert_same(read_nbest(path, dense=wanted), entries)
