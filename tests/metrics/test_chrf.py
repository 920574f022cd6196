"""chrF against sacrebleu, and against counts made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.chrf import CHRF

from mosesplug.metrics import Chrf
from mosesplug.metrics.characters import space_out_lines
from mosesplug.metrics.chrf import split_punctuation

SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"


def rows_of(
    scorer: Chrf, hypotheses: Sequence[bytes], references: Sequence[Sequence[bytes]]
) -> NDArray[np.int32]:
    ends = np.cumsum([len(text) for text in hypotheses], dtype=np.int64)
    return scorer.statistics(
        scorer.prepare(references),
        np.arange(len(hypotheses)),
        np.frombuffer(bytearray(b"".join(hypotheses)), dtype=np.uint8),
        np.concatenate([[0], ends[:-1]]),
        ends,
    )


def random_text(rng: np.random.Generator, n_lines: int) -> list[str]:
    characters = list("aaabbcd  \t\u3000é日😀.")
    return ["".join(rng.choice(characters, size=rng.integers(40))) for _ in range(n_lines)]


@pytest.mark.parametrize("beta", [1, 2, 3])
@pytest.mark.parametrize("n_references", [1, 3])
@pytest.mark.parametrize("words", [0, 2])
def test_statistics_and_score_are_those_of_sacrebleu(
    beta: int, n_references: int, words: int
) -> None:
    rng = np.random.default_rng(beta)
    hypotheses, *references = (random_text(rng, 200) for _ in range(1 + n_references))
    scorer, theirs = Chrf(beta=beta, word_order=words), CHRF(beta=beta, word_order=words)
    width = 3 * (6 + words)
    rows = rows_of(
        scorer,
        [text.encode() for text in hypotheses],
        [[text.encode() for text in lines] for lines in references],
    )
    statistics = np.array(theirs._extract_corpus_statistics(hypotheses, references))
    # Theirs: n-grams of the hypothesis, of the reference, and of both.
    ordered = statistics.reshape(-1, 6 + words, 3)[:, :, [2, 0, 1]].reshape(-1, width)
    np.testing.assert_array_equal(rows[:, :width], ordered)
    score = theirs.corpus_score(hypotheses, references).score / 100
    assert float(scorer.score(rows.sum(axis=0))) == pytest.approx(score, rel=1e-12)
    sentences = [
        theirs.sentence_score(text, list(group)).score / 100
        for text, *group in zip(hypotheses, *references, strict=True)
    ]
    np.testing.assert_allclose(scorer.score(rows), sentences, rtol=1e-12)


def test_words_of_chrf_plus_plus() -> None:
    assert split_punctuation(b"(hi) you, 'tis . -- a.b x!!") == [
        *("(hi", ")", "you", ",", "'", "tis", ".", "-", "-", "a.b", "x!", "!")
    ]
    scorer = Chrf(word_order=2)
    row = rows_of(scorer, [b"a b, c"], [[b"a b c"]])[0]
    assert row[18:24].tolist() == [3, 4, 3, 1, 3, 2]
    assert scorer.statistics_names[18:24:3] == ("match_words1", "match_words2")
    assert "|nw:2|" in scorer.signature()


def test_hand_computed_counts() -> None:
    row = rows_of(Chrf(), [b"ab ab"], [[b"a b a c d"]])[0]
    assert row[:6].tolist() == [3, 4, 5, 2, 3, 4]
    assert row[6:12].tolist() == [1, 2, 3, 0, 1, 2]
    assert row[12:].tolist() == [0, 0, 1, 0, 0, 0, 4, 5]


def test_too_short_a_reference_takes_orders_out() -> None:
    row = rows_of(Chrf(), [b"abcdefgh"], [[b"abc"]])[0]
    assert row[:9].tolist() == [3, 8, 3, 2, 7, 2, 1, 6, 1]
    assert row[9:].tolist() == [0] * 9 + [8, 3]
    precision = np.mean([3 / 8, 2 / 7, 1 / 6])
    assert float(Chrf(beta=1).score(row)) == pytest.approx(2 * precision / (precision + 1))


def test_smoothing_adds_to_all_counts() -> None:
    row = np.zeros(20)
    row[:3] = 1, 3, 2
    assert float(Chrf(beta=1, smooth=1).score(row)) == pytest.approx(2 * 0.5 * 2 / 3 / (7 / 6))


def test_more_recall_matters_more_with_beta() -> None:
    rows = rows_of(Chrf(), [b"abcdef", b"abcdefghijklmnopqr"], [[b"abcdefghijkl"] * 2])
    assert np.argmax(Chrf(beta=0.1).score(rows)) == 0
    assert np.argmax(Chrf(beta=3).score(rows)) == 1


def as_sacrebleu_sees(line: bytes) -> list[bytes]:
    """Code points other than whitespace; bytes that are no UTF-8 are one each."""
    text = line.decode("utf-8", "surrogateescape")
    return [c.encode("utf-8", "surrogateescape") for c in "".join(text.split())]


@given(st.lists(st.one_of(st.binary(), st.text().map(str.encode))))
@example([SPACES.encode(), b"a" + SPACES.encode() + b"b"])
@example([b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98"])
@example([b"\xe3\x80", b"\x80"])
def test_characters(lines: list[bytes]) -> None:
    spaced = space_out_lines(lines)
    assert [line.split(b" ")[:-1] for line in spaced] == [as_sacrebleu_sees(x) for x in lines]
    assert all(line == b"" or line.endswith(b" ") for line in spaced)


def test_every_character_of_unicode() -> None:
    points = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    text = "".join(points)
    (spaced,) = space_out_lines([text.encode()])
    assert spaced.decode().replace(" ", "") == "".join(text.split())
