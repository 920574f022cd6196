"""Test n-best lists as arrays against the files that they are read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import mosesplug
from mosesplug.errors import DataError, UsageError

LINES = (
    "0 ||| the house  ||| LM0= -1.5 TM0= 1 2 WT_a~b= 1 ||| -1\n"
    "0 ||| a house  ||| LM0= -2.1 TM0= 3 4 ||| -2\n"
    "2 ||| yes \udcff  ||| LM0= 0.1 TM0= 0 0 WT_c~d= -2 WT_a~b= 0 ||| -3 ||| 0-0\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lists"
    path.write_bytes(LINES.encode("utf-8", "surrogateescape"))
    return path


def test_arrays_of_a_file(path: Path) -> None:
    lists = mosesplug.read_nbest(path)
    assert lists.sentence_ids.tolist() == [0, 0, 2]
    assert lists.texts == ["the house", "a house", "yes \udcff"]
    assert lists.dense.tolist() == np.float32([[-1.5, 1, 2], [-2.1, 3, 4], [0.1, 0, 0]]).tolist()
    assert lists.sparse.toarray().tolist() == [[1, 0], [0, 0], [0, -2]]
    assert lists.names == ("LM0", "TM0", "TM0", "WT_a~b", "WT_c~d")
    assert lists.scores.tolist() == [-1, -2, -3]
    assert (len(lists), lists.n_sentences, repr(lists)) == (
        3,
        2,
        "NBest of 2 sentences, 3 hypotheses, 5 features",
    )
    assert not lists.dense.flags.writeable
    assert "a house     LM0= -2.1 TM0= 3 4" in str(lists)
    assert '<td style="text-align:left">yes' in lists._repr_html_()


def test_arrays_make_the_same_lists(path: Path, tmp_path: Path) -> None:
    lists = mosesplug.read_nbest(path)
    # Any order of sentences; hypotheses of one keep their order.
    rows = [2, 0, 1]
    made = mosesplug.NBest(
        sentence_ids=lists.sentence_ids[rows],
        hypotheses=[lists.texts[row] for row in rows],
        features=lists.features[rows],
        names=lists.names,
        dense=["LM0", "TM0"],
        scores=lists.scores[rows],
    )
    assert (made.texts, made.names) == (lists.texts, lists.names)
    assert made.dense.tolist() == lists.dense.tolist()
    assert made.sparse.toarray().tolist() == lists.sparse.toarray().tolist()
    # An explicit zero is a value, as in the file.
    assert made.sparse.nnz == lists.sparse.nnz == 3
    mosesplug.write_nbest(tmp_path / "again.gz", made)
    again = mosesplug.read_nbest(tmp_path / "again.gz")
    assert again.dense.tolist() == lists.dense.tolist()
    assert (again.texts, again.scores.tolist()) == (lists.texts, lists.scores.tolist())


def test_written_lists_keep_all_bytes(path: Path, tmp_path: Path) -> None:
    mosesplug.write_nbest(tmp_path / "again", mosesplug.read_nbest(path), digits=6)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_lists_of_one_sentence(path: Path) -> None:
    lists = mosesplug.read_nbest(path)
    assert lists.sentence(2).texts == ["yes \udcff"]
    assert lists.sentence(2).sparse.toarray().tolist() == [[0, -2]]
    assert len(lists.sentence(1)) == 0
    assert lists.take([1, 0]).texts == ["a house", "the house"]
    with pytest.raises(UsageError, match="ascending order"):
        lists.take([2, 0])


def test_named_lists(tmp_path: Path) -> None:
    (tmp_path / "joshua").write_text("0 ||| a b ||| lm=-1 tm_0=2 ||| -1\n")
    lists = mosesplug.read_nbest(tmp_path / "joshua")
    assert (lists.names, lists.sparse) == (("lm", "tm_0"), None)
    assert mosesplug.read_nbest(tmp_path / "joshua", dense=["lm"]).names == ("lm", "tm_0")
    assert mosesplug.read_nbest(tmp_path / "joshua", dense=["lm"]).dense.shape == (1, 1)


def test_many_columns_are_sparse_unless_most_rows_have_them() -> None:
    values = np.zeros((4, 60))
    values[:, 7] = 1
    values[1, 8] = 1
    lists = mosesplug.NBest([0, 0, 1, 1], ["a"] * 4, csr_matrix(values))
    assert (lists.dense.shape, lists.names[:2]) == ((4, 1), ("F7", "F0"))
    few = mosesplug.NBest([0, 0, 1, 1], ["a"] * 4, csr_matrix(values[:, :10]))
    assert (few.dense.shape, few.sparse) == ((4, 10), None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": [1, 2]}, r"features has the shape \(2,\): give an array \[n_hyps, n_feat"),
        ({"features": [[1], [1, 2]]}, "features has rows of different lengths"),
        ({"features": [["a"], ["b"]]}, "features has the type <U1: give real numbers"),
        ({"features": [[1], [np.nan]]}, r"features\[1, 0\] \(F0\) is nan"),
        ({"features": [[1], [1e39]]}, r"features\[1, 0\] \(F0\) is 1e\+39"),
        ({"features": csr_matrix([[1], [np.inf]])}, r"features\[1, 0\] \(F0\) is inf"),
        ({"names": ["a", "b"]}, "2 names for 1 columns"),
        ({"names": ["a b"]}, r"names\[0\] is 'a b': give a text without blanks"),
        ({"names": "a"}, "names is a single text"),
        ({"features": [[1, 2, 3]] * 2, "names": ["a", "b", "a"]}, "names: 'a' is repeated"),
        ({"dense": ["a"]}, "dense names columns of a sparse matrix"),
        ({"features": csr_matrix([[1], [2]]), "dense": ["b"]}, r"dense\[0\]: features has no col"),
        ({"sentence_ids": [0]}, "sentence_ids has 1 entries for 2 hypotheses"),
        ({"sentence_ids": "01"}, "sentence_ids must be a sequence"),
        ({"sentence_ids": [[0], [1]]}, "sentence_ids: an id cannot be hashed"),
        ({"sentence_ids": np.zeros((2, 1))}, r"sentence_ids has the shape \(2, 1\)"),
        ({"sentence_ids": [0, -1]}, r"sentence_ids\[1\] is -1"),
        ({"sentence_ids": ["a", "b"]}, r"sentence_ids\[0\] is 'a'"),
        ({"hypotheses": ["a"]}, "hypotheses has 1 texts, but there must be 2"),
        ({"hypotheses": ["a", 1]}, r"hypotheses\[1\] is a int: give texts"),
        ({"hypotheses": ["a", "b\nc"]}, r"hypotheses\[1\] has a line break"),
        ({"scores": [1]}, r"scores has the shape \(1,\)"),
        ({"scores": ["a", "b"]}, "scores has the type <U1"),
        ({"scores": [1, np.inf]}, r"scores\[1\] is inf"),
    ],
)
def test_errors_name_argument_and_position(arguments: dict[str, Any], message: str) -> None:
    usable = {"sentence_ids": [0, 1], "hypotheses": ["a", "b"], "features": [[1], [2]]}
    with pytest.raises((UsageError, DataError), match=message):
        mosesplug.NBest(**(usable | arguments))


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("a ||| b", ["LM"], "hypothesis 0 has |||"),
        ("a", ["lm_score"], "cannot hold a dense feature 'lm_score'"),
    ],
)
def test_lists_that_a_file_cannot_hold(
    text: str, names: list[str], message: str, tmp_path: Path
) -> None:
    lists = mosesplug.NBest([0], [text], [[1.0]], names=names)
    with pytest.raises(DataError, match=message):
        mosesplug.write_nbest(tmp_path / "lists", lists)
    assert not (tmp_path / "lists").exists()


def test_a_sparse_feature_needs_an_underscore_in_a_file(tmp_path: Path) -> None:
    lists = mosesplug.NBest([0], ["a"], csr_matrix([[1.0, 1]]), names=["LM", "b"], dense=["LM"])
    with pytest.raises(DataError, match="cannot hold a sparse feature 'b'"):
        mosesplug.write_nbest(tmp_path / "lists", lists)
