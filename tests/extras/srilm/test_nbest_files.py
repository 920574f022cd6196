"""SRILM's files: values, names of utterances, and malformed text."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats.errors import FormatError
from mosesplug.extras.srilm.nbest_files import (
    WordRules,
    read_errors,
    read_nbest_file,
    read_references,
    read_scores,
    utterance_id,
)

UNIT = 1024 / 10000.5 / math.log(10)
"""A bytelog as a logarithm to base 10."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("srilm") / "file"


def test_plain_lists(file: Path) -> None:
    file.write_text("-10.5 -2e1 2 a b\n-11 -3 0\n")
    first, second = read_nbest_file(file)
    assert (first.scores, first.words) == ((-10.5, -20.0, 2.0), (b"a", b"b"))
    assert (second.scores, second.words) == ((-11.0, -3.0, 0.0), ())
    assert len(read_nbest_file(file, 1)) == 1


def test_joint_bytelogs(file: Path) -> None:
    """Pauses count as words; a parenthesis is enough to know the format."""
    for head in ("NBestList1.0\n", ""):
        file.write_text(f"{head}(-100) a -pau- b\n(-200)\n")
        first, second = read_nbest_file(file)
        assert first.scores == pytest.approx((-100 * UNIT, 0.0, 3.0))
        assert (first.words, second.words) == ((b"a", b"-pau-", b"b"), ())


def test_timed_words(file: Path) -> None:
    """Phones are inside the time of their word, and states end in a digit."""
    file.write_text(
        "NBestList2.0\n(-60) a ( st: 0.00 et: 0.30 g: -5 a: -10 )"
        " ah ( st: 0.00 et: 0.30 g: 0 a: -10 ) ah-1 ( st: 0.40 et: 0.50 g: 0 a: -4 )"
        " b ( st: 0.31 et: 0.60 g: -15 a: -30 )\n"
    )
    (found,) = read_nbest_file(file)
    assert found.scores == pytest.approx((-40 * UNIT, -20 * UNIT, 2.0))
    assert found.words == (b"a", b"b")


def test_scores_and_errors(file: Path) -> None:
    file.write_text("NBestList1.0\n(-100) a\n(50)\n")
    found = read_scores(file, 2, may_have_more=False)
    assert found.tolist() == pytest.approx([-100 * UNIT, 50 * UNIT])
    file.write_text("1.5 rest\n2\n3\n")
    assert read_scores(file, 2, may_have_more=True).tolist() == [1.5, 2.0]
    with pytest.raises(FormatError, match="3 lines for 2 hypotheses"):
        read_scores(file, 2, may_have_more=False)
    file.write_text("0.5 0.5 1 2 0 3 9\n0 1 5 5 0 0 8\n1 0 0 0 0 0 9\n")
    assert read_errors(file, 3, may_have_more=False).tolist() == [[3, 9], [5, 8], [0, 9]]


def test_names_and_words() -> None:
    assert utterance_id("dir.gz/u1.wav.score.gz") == "u1"
    assert utterance_id("u1.gz.score") == "u1.gz"
    assert utterance_id("u1.nbest.gz") == "u1"
    assert utterance_id(".gz") == ".gz"
    rules = WordRules(lower=True, separator=b"_", noise=frozenset({b"-pau-", b"um"}))
    words = ["Ünd_A".encode(), b"Um", b"-pau-", b"\xff"]
    assert rules.apply(words) == ["ünd".encode(), b"a", b"\xff"]


PIECES = [b"(", b")", b"1", b"-2.5", b"a", b"\n", b" ", b"st:", b"NBestList2.0\n", b"\xff", b"nan"]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
@example(b"NBestList1.0\n\n")
@example(b"NBestList2.0\n(1)\n")
def test_any_text_is_read_or_rejected(file: Path, text: bytes) -> None:
    file.write_bytes(text)

    def read_all_scores(path: Path) -> object:
        return read_scores(path, 2, may_have_more=True)

    def read_all_errors(path: Path) -> object:
        return read_errors(path, 1, may_have_more=True)

    for read in (read_nbest_file, read_references, read_all_scores, read_all_errors):
        with contextlib.suppress(FormatError):
            read(file)
