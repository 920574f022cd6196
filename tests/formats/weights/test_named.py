"""Test weights that a user names by a file or writes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.weights.named import find_weight_file, read_named_weights


@pytest.mark.parametrize("text", ["LM0= 0.5 TM0= 0.1 0.3", "LM0=0.5 TM0_1=0.1 TM0_2=0.3"])
def test_written_weights_are_those_of_a_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text(text.replace("TM0=", "\nTM0="))
    written = read_named_weights(text)
    assert written.groups == {"LM0": (0.5,), "TM0": (0.1, 0.3)}
    assert written.groups == read_named_weights(str(tmp_path / "weights")).groups


def test_many_written_weights_may_be_longer_than_a_path() -> None:
    text = " ".join(f"feature{number}=0.{number}" for number in range(500))
    assert find_weight_file(text) is None
    assert len(read_named_weights(text).groups) == 500


def test_file_with_an_equals_sign_in_its_name_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lm=1").write_text("LM0= 0.5\n")
    assert find_weight_file("lm=1") == Path("lm=1")
    assert read_named_weights("lm=1").groups == {"LM0": (0.5,)}


def test_error_of_written_weights_quotes_them() -> None:
    with pytest.raises(FormatError, match=r"^'lm=0\.5 tm=x'"):
        read_named_weights("lm=0.5 tm=x")
