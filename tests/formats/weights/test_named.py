"""Test weights that a user names by a file or writes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.weights.named import find_weight_files, read_named_weights


@pytest.mark.parametrize("text", ["LM0= 0.5 TM0= 0.1 0.3", "LM0=0.5 TM0_1=0.1 TM0_2=0.3"])
def test_written_weights_are_those_of_a_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text(text.replace("TM0=", "\nTM0="))
    written = read_named_weights(text)
    assert written.groups == {"LM0": (0.5,), "TM0": (0.1, 0.3)}
    assert written.groups == read_named_weights(str(tmp_path / "weights")).groups


def test_many_written_weights_may_be_longer_than_a_path() -> None:
    text = " ".join(f"feature{number}=0.{number}" for number in range(500))
    assert find_weight_files(text) == ()
    assert len(read_named_weights(text).groups) == 500


def test_file_with_an_equals_sign_in_its_name_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lm=1").write_text("LM0= 0.5\n")
    assert find_weight_files("lm=1") == (Path("lm=1"),)
    assert read_named_weights("lm=1").groups == {"LM0": (0.5,)}


def test_error_of_written_weights_quotes_them() -> None:
    with pytest.raises(FormatError, match=r"^'lm=0\.5 tm=x'"):
        read_named_weights("lm=0.5 tm=x")


def test_companion_file_is_read_unless_another_is_named(tmp_path: Path) -> None:
    dense, other = tmp_path / "w", tmp_path / "other"
    dense.write_text("LM0= 0.5\n")
    Path(f"{dense}.sparse").write_text("WT_a~b 2\n")
    other.write_text("WT_a~b 3\n")
    assert read_named_weights(dense).all_sparse == {"WT_a~b": 2.0}
    for named in (read_named_weights(f"{dense}+{other}"), read_named_weights(dense, other)):
        assert (named.dense, named.all_sparse) == ((0.5,), {"WT_a~b": 3.0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM0= 0.5\nWT_a~b 7\n", "holds sparse weights itself"),
        ('{"dense": {"LM0": 0.5}, "sparse": {"WT_a~b": 7}}', "holds sparse weights itself"),
        ("[weight]\nLM0= 0.5\n", r"does not name it in \[weight-file\]"),
    ],
)
def test_companion_file_that_contradicts_is_an_error(
    text: str, message: str, tmp_path: Path
) -> None:
    path, beside = tmp_path / "w", tmp_path / "w.sparse"
    path.write_text(text)
    beside.write_text("WT_a~b 2\n")
    with pytest.raises(FormatError, match=f"{message}.*SPARSE"):
        read_named_weights(path)
    assert read_named_weights(f"{path}+{beside}").all_sparse == {"WT_a~b": 2.0}
    beside.write_text("WT_a~b 7\n")
    if "[" not in text:  # equal weights contradict nothing
        assert read_named_weights(path).all_sparse == {"WT_a~b": 7.0}


def test_companion_file_that_a_configuration_names(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    path.write_text("[weight-file]\nmoses.ini.sparse\n[weight]\nLM0= 0.5\n")
    (tmp_path / "moses.ini.sparse").write_text("WT_a~b 2\n")
    assert read_named_weights(path).all_sparse == {"WT_a~b": 2.0}
