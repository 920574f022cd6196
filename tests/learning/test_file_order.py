"""Values of hypotheses belong to the order of the file, whatever order its reader makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.errors import FormatError
from formats.extras import fairseq
from formats.nbest import regroup
from mosesplug.learning.lists.blocks import read_list_blocks
from mosesplug.settings.lists import ListSettings

SENTENCES = (4, 0, 3, 1, 2)
"""As ``fairseq-generate`` orders them, by length."""
TEXTS = [f"h{sentence}{row}" for sentence in SENTENCES for row in range(3)]
VALUES = [10 * int(text[1]) + int(text[2]) for text in TEXTS]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "gen.out"
    path.write_text("".join(f"H-{t[1]}\t-0.5\t{t}\nP-{t[1]}\t-1\n" for t in TEXTS))
    return path


def read(files: list[Path], values: Path) -> dict[str, list[float]]:
    """The added feature of each text."""
    found: dict[str, list[float]] = {}
    settings = ListSettings(add_feature=(f"value={values}",))
    for blocks in read_list_blocks(files, settings):
        for block in blocks:
            assert [name for name, _ in block.groups] == ["score", "value"]
            assert (np.diff(block.sentence_ids) >= 0).all()
            for row in range(len(block)):
                found.setdefault(block.text(row).decode(), []).append(block.dense[row, 1])
    return found


@pytest.mark.parametrize("block_bytes", [1 << 20, 1])
@pytest.mark.parametrize("copies", [1, 2])
def test_values_in_file_order(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, copies: int
) -> None:
    for module in (regroup, fairseq):
        monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    values = tmp_path / "values"
    numbers = [value + 100 * copy for copy in range(copies) for value in VALUES]
    values.write_text("".join(f"{number}\n" for number in numbers))
    found = read([output] * copies, values)
    expected = {
        text: [n + 100 * c for c in range(copies)] for text, n in zip(TEXTS, VALUES, strict=True)
    }
    assert found == expected


def test_ids_beside_values_are_checked(output: Path, tmp_path: Path) -> None:
    values = tmp_path / "values"
    rows = [f"{t[1]} ||| {t} ||| {v}" for t, v in zip(TEXTS, VALUES, strict=True)]
    values.write_text("\n".join(rows) + "\n")
    assert read([output], values) == {t: [v] for t, v in zip(TEXTS, VALUES, strict=True)}
    rows[4] = rows[4].replace("h01", "h02")
    values.write_text("\n".join(rows) + "\n")
    with pytest.raises(FormatError, match=r"values:5: the hypothesis is 'h02', but 'h01' in"):
        read([output], values)


@pytest.mark.parametrize(("count", "message"), [(14, "has only 14"), (16, "values:16: a ")])
def test_a_wrong_number_of_values(output: Path, tmp_path: Path, count: int, message: str) -> None:
    values = tmp_path / "values"
    values.write_text("1\n" * count)
    with pytest.raises(FormatError, match=message):
        read([output], values)


def test_lists_that_have_been_read_are_in_their_own_order(output: Path) -> None:
    lists = mosesplug.read_nbest(output)
    assert lists.texts == sorted(TEXTS)
    assert lists.block.file_rows is None


def test_references_of_a_directory_with_ids(tmp_path: Path) -> None:
    archives = tmp_path / "archives.1"
    archives.mkdir()
    (archives / "words_text").write_text("u1-1 the house\nu1-2 the mouse\nu2-1 a b\nu2-2 a c\n")
    (archives / "acwt").write_text("u1-1 1\nu1-2 2\nu2-1 1\nu2-2 2\n")
    references = tmp_path / "text"
    references.write_text("u2 a b\nu1 the house\nu3 none\n")
    result = mosesplug.optimize([tmp_path], references=references, metric="WER")
    assert result.score == pytest.approx(1)


def test_sparse_features_of_json_lines(tmp_path: Path) -> None:
    path, references = tmp_path / "list.jsonl", tmp_path / "ref"
    path.write_text(
        '{"id": "u1", "hyp": "a b", "scores": {"lm": -1, "WT_a": 1}}\n'
        '{"id": "u1", "hyp": "a c", "scores": {"lm": -2, "OOV": 1}}\n'
    )
    references.write_text("u1 a c\n")
    result = mosesplug.optimize(
        [path], references=references, metric="WER", dense=["lm"], algorithm="kbmira"
    )
    assert len(result.weights) == 3
    assert mosesplug.read_nbest(path, dense=["lm"]).names == ("lm", "WT_a", "OOV")


def test_a_list_without_features_shows_itself(tmp_path: Path) -> None:
    path = tmp_path / "hyps"
    path.write_text("a ||| b\nc\n")
    shown = str(mosesplug.read_nbest(path, format="flat:2"))
    assert "a ||| b" in shown
    assert "NBest of 1 sentence, 2 hypotheses, 0 features" in shown
