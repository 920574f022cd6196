"""Lists whose repeated lines are parsed once, against the plain reader."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest import files as nbest_files
from formats.nbest.block import NBestList, concatenate
from formats.nbest.files import read_nbest
from mosesplug.moses_tools import distinct_lists, known_lines
from mosesplug.moses_tools.distinct_lists import read_distinct

DATA = Path(__file__).parents[1] / "data"
VALID = sorted((DATA / "valid" / "nbest").glob("*.nbest*"))
INVALID = sorted((DATA / "invalid" / "nbest").glob("*.nbest*"))
GOOD = "0 ||| a ||| LM= 1 ||| -1\n0 ||| b ||| LM= 2 ||| -2\n3 ||| c ||| LM= 1 ||| -1\n"


@pytest.fixture(autouse=True)
def kernels_for_small_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_lists, "FEW_BYTES", -1)


def rows_of(block: NBestList) -> list[tuple[object, ...]]:
    """Return the fields of each hypothesis that the extractor uses."""
    found: list[tuple[object, ...]] = []
    for row in range(len(block)):
        entries = slice(*block.sparse_indptr[row : row + 2])
        names = [block.sparse_names[index] for index in block.sparse_indices[entries]]
        sparse = tuple(zip(names, block.sparse_data[entries].tolist(), strict=True))
        dense = block.dense[row].tobytes()
        found.append((int(block.sentence_ids[row]), block.text(row), dense, sparse))
    return found


def check_lists(paths: list[Path]) -> int:
    """Compare with ``read_nbest``; return the number of lines that were parsed."""
    found = list(read_distinct(paths))
    blocks = [each.new for each in found if each.new is not None]
    distinct = [row for block in blocks for row in rows_of(block)]
    expected = [row for path in paths for row in rows_of(read_nbest(path))]
    assert [distinct[row] for each in found for row in each.rows.tolist()] == expected
    return len(distinct)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_list_twice_is_one_list(path: Path) -> None:
    assert check_lists([path, path]) <= 2 * len(read_nbest(path))


def test_lines_that_differ_in_their_scores_are_the_same(tmp_path: Path) -> None:
    first, second, third = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    first.write_text(GOOD)
    second.write_text(GOOD.replace("||| -1", "||| 25.5").replace("b", "long word"))
    third.write_text(GOOD.replace("LM= 1", "LM= 1.0") + "3 ||| c ||| LM= 1 ||| 0")
    assert check_lists([first, second, third]) == 3 + 1 + 2
    found = list(read_distinct([first, second, third]))
    rows = np.concatenate([each.rows for each in found])
    assert rows.tolist() == [0, 1, 2, 0, 3, 2, 4, 1, 5, 2]
    lines = [line for each in found if each.new is not None for line in each.new.lines.tolist()]
    assert lines == [1, 2, 3, 2, 1, 3]
    assert list(read_distinct([first, first]))[-1].new is None


@pytest.mark.parametrize(
    "odd",
    [
        "\n",
        " 3 ||| c ||| LM= 1 ||| -1\n",
        "3 ||| c ||| LM= 1 ||| -1e-05\n",
        "3 ||| c ||| LM= 1 ||| -.5\n",
        "3 ||| c ||| LM= 1 ||| 12345678901234567890\n",
        "3 ||| c ||| LM= 1\n",
        "3 ||| c ||| LM= 1 ||| -1 ||| 0-0\n",
        "3 ||| c ||| LM= 1 ||| -1\r\n",
        "3 ||| c ||| LM= 1 WT_x= 2 ||| -1\n",
        "3 ||| c|||LM= 1 ||| -1\n",
        "3 |||c ||| LM= 1 ||| -1\n",
        "3||| c ||| LM= 1 ||| -1\n",
        "3 ||| | || c ||  \t||| LM= 1 ||| -1\n",
        "3 ||| c ||| LM= 1e-05 ||| -1\n",
        "3 ||| c ||| LM= +1e+05 ||| -1\n",
    ],
)
def test_unusual_lines(tmp_path: Path, odd: str) -> None:
    """Lines in another form are read, and the lines behind them."""
    paths = [tmp_path / "1", tmp_path / "2", tmp_path / "3"]
    for path in paths:
        path.write_text(GOOD + odd + "3 ||| d ||| LM= 4 ||| -1\n")
    check_lists(paths)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_errors_are_those_of_the_plain_reader(tmp_path: Path, path: Path) -> None:
    good = tmp_path / "good"
    good.write_text(GOOD)
    with pytest.raises(FormatError) as expected:
        read_nbest(path)
    with pytest.raises(FormatError) as found:
        list(read_distinct([good, path]))
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    "bad",
    [
        "1 ||| a ||| LM= 1 ||| 1\n",
        "3 ||| d ||| LM= 4 ||| 1-1\n",
        "x\n",
        "3 ||| |||| ||| LM= 1 ||| 1\n",
    ],
)
def test_errors_behind_repeated_lines(tmp_path: Path, bad: str) -> None:
    paths = [tmp_path / "1", tmp_path / "2"]
    paths[0].write_text(GOOD + "3 ||| d ||| LM= 4 ||| 1\n")
    paths[1].write_text(GOOD + bad)
    with pytest.raises(FormatError) as expected:
        read_nbest(paths[1])
    with pytest.raises(FormatError) as found:
        list(read_distinct(paths))
    assert (str(found.value), found.value.line) == (str(expected.value), 4)


LINES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["", "a", "a b", "c" * 30]), st.integers(-2, 2)),
    min_size=1,
    max_size=30,
)


@given(lists=st.lists(LINES, min_size=2, max_size=4), compress=st.booleans())
def test_any_lists(
    tmp_path_factory: pytest.TempPathFactory,
    lists: list[list[tuple[int, str, int]]],
    compress: bool,
) -> None:
    directory = tmp_path_factory.mktemp("lists")
    paths = []
    for number, lines in enumerate(lists):
        text = "".join(f"{i} ||| {t} ||| LM= {v} ||| {number}\n" for i, t, v in sorted(lines))
        paths.append(directory / str(number))
        paths[-1].write_bytes(gzip.compress(text.encode()) if compress else text.encode())
    distinct = len({line for lines in lists for line in lines})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nbest_files.read_text_blocks, "__defaults__", (100,))
        patch.setattr(known_lines, "_LEAST_BYTES", 0)
        assert check_lists(paths) == distinct


def test_equal_hashes_cost_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel in plain Python, with the same hash for all lines."""
    for name in ("find_score", "is_known", "number_lines"):
        monkeypatch.setattr(known_lines, name, getattr(known_lines, name).py_func)
    monkeypatch.setattr(known_lines, "hash_range", lambda *_: np.uint64(7))
    paths = [tmp_path / "1", tmp_path / "2"]
    paths[0].write_text(GOOD)
    paths[1].write_text(GOOD.replace("a", "e"))
    assert check_lists(paths) == 4


def test_small_lists_are_parsed_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    path = tmp_path / "list"
    path.write_text(GOOD)
    found = list(read_distinct([path, path]))
    assert [each.rows.tolist() for each in found] == [[0, 1, 2], [3, 4, 5]]
    blocks = [each.new for each in found if each.new is not None]
    assert rows_of(concatenate(blocks)) == 2 * rows_of(read_nbest(path))
