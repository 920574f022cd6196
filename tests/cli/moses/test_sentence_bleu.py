"""The sentence BLEU programs against recorded scores and C++ arithmetic."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from formats.text import read_bytes, read_lines
from mosesplug.cli.moses.sentence_bleu import main, main_nbest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with references, made the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref").write_text("a b c d e\nf g h i j\n\n")
    (tmp_path / "other").write_text("x\nf g h i\ny\n")
    return tmp_path


def scores(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: bytes,
    *words: str,
    nbest: bool = False,
) -> str:
    """Return the output of a program, or its error message."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    with pytest.raises(SystemExit) as caught:
        (main_nbest if nbest else main)(list(words))
    said = capsys.readouterr()
    if caught.value.code == 0:
        assert said.err == ""
        return said.out
    assert said.out == ""
    assert caught.value.code == (2 if "at least one" in said.err else 1)
    return said.err


def test_lines(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # 5/5 4/4 3/3 2/2; (5/5 3/4 2/3 1/2)^(1/4) exp(1 - 5/4); an empty line, nothing to match.
    found = scores(monkeypatch, capsys, b"a b c d e\nf g h j\n\n", "ref")
    assert found == "1\n0.550695\n1\n"
    # The reference length is 4 now, and i has a bigram.
    found = scores(monkeypatch, capsys, b"a b c d e\r\nf g h j", "ref", "other")
    assert found == "1\n0.707107\n"
    assert scores(monkeypatch, capsys, b"", "ref") == ""
    assert scores(monkeypatch, capsys, b"\n", "ref") == "0\n"


def test_lists(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = b"7 ||| a b c d e\n7 ||| f g h j ||| LM= 1 ||| 3\n8 ||| f g h j ||| x\n9 |||  ||| x\n"
    found = scores(monkeypatch, capsys, text, "ref", nbest=True)
    assert found.splitlines()[0] == "1"
    assert found.splitlines()[2:] == ["0.550695", "1"]
    assert 0 < float(found.splitlines()[1]) < 0.5


@pytest.mark.parametrize(
    ("text", "words", "nbest", "message"),
    [
        (b"a\n", [], False, "sentence-bleu: name at least one reference"),
        (b"a\nb\nc\nd\n", ["ref"], False, "the input has 4 sentences, but the references have 3"),
        (b"a\n", ["absent"], False, "absent: cannot be read"),
        (b"0 ||| a\n", [], True, "sentence-bleu-nbest: name at least one reference"),
        (b"0 ||| a\n2 ||| b\n", ["ref"], True, "line 2 of the input has sentence 2 after 0"),
        (b"1 ||| a\n0 ||| b\n", ["ref"], True, "line 2 of the input has sentence 0 after 1"),
        (b"0 a\n", ["ref"], True, "line 1 of the input is not a line of an n-best list"),
        (b"x ||| a\n", ["ref"], True, "line 1 of the input is not a line"),
        (b"9" * 5000 + b" ||| a\n", ["ref"], True, "line 1 of the input is not a line"),
        (b"\n", ["ref"], True, "line 1 of the input is not a line"),
    ],
)
def test_refusals(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: bytes,
    words: list[str],
    nbest: bool,
    message: str,
) -> None:
    assert message in scores(monkeypatch, capsys, text, *words, nbest=nbest)


def test_recorded(
    multi30k: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = multi30k / "scores" / "first100"
    text = read_bytes(f"{first}.1best")
    expected = read_bytes(f"{first}.sentence-bleu.txt").decode()
    assert scores(monkeypatch, capsys, text, f"{first}.ref") == expected
    listed = b"".join(b"%d ||| %s ||| x\n" % p for p in enumerate(read_lines(f"{first}.1best")))
    assert scores(monkeypatch, capsys, listed, f"{first}.ref", nbest=True) == expected
