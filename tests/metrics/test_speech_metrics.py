"""CER, MER and normalizations against tables of distances, and against numbers of jiwer's."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.metrics import Cer, Mer, Metric, Wer, metric
from mosesplug.metrics.normalization import Normalization
from tests.metrics.edits import edits_of_jiwer, table


def count(scorer: Metric, hypothesis: str, *references: str) -> list[int]:
    text = np.frombuffer(hypothesis.encode("utf-8", "surrogateescape"), dtype=np.uint8)
    prepared = scorer.prepare(
        [[reference.encode("utf-8", "surrogateescape")] for reference in references]
    )
    rows = scorer.statistics(prepared, np.array([0]), text, np.array([0]), np.array([len(text)]))
    found: list[int] = rows[0].tolist()
    return found


words = st.lists(st.sampled_from("abcd"), max_size=9)
characters = st.text(st.sampled_from("ab cäß漢🙂\u00a0\u0301 "), max_size=40)


@given(words, words)
def test_mer_counts_the_edits_of_an_alignment(hypothesis: list[str], reference: list[str]) -> None:
    found = count(Mer(), " ".join(hypothesis), " ".join(reference))
    assert found == edits_of_jiwer(reference, hypothesis)
    assert sum(found[1:]) == table(reference, hypothesis)[-1][-1]


@pytest.mark.parametrize(
    ("name", "hypothesis", "rate"),
    [
        # As jiwer 4.0 has it: wer("", "") is 0, wer("", "peaceful silence") is 2.
        *((name, "", 0.0) for name in ("WER", "CDER", "PER", "CER", "MER", "TER", "TER-SACREBLEU")),
        *((name, "silence", 1.0) for name in ("WER", "CDER", "PER", "MER", "TER", "TER-SACREBLEU")),
        ("WER", "peaceful silence", 2.0),
        ("PER", "peaceful silence", 2.0),
        ("CER", "abcde", 5.0),
        # A share of at most 1.
        ("MER", "peaceful silence", 1.0),
    ],
)
def test_words_for_an_empty_reference_are_errors(name: str, hypothesis: str, rate: float) -> None:
    scorer = metric(name)
    found = scorer.sentence_scores(np.array([count(scorer, hypothesis, "")]))
    assert 1.0 - float(found[0]) == rate
    # A corpus counts them, too, as sclite does.
    more = count(scorer, "a b c d", "a b c d")
    totals = np.array([more, count(scorer, hypothesis, "")]).sum(axis=0)
    assert (float(scorer.score(totals)) < 1.0) == (rate > 0.0)


@given(characters, characters, st.booleans())
def test_cer_is_edit_distance_of_characters(hypothesis: str, reference: str, keep: bool) -> None:
    texts = [text.strip() if keep else "".join(text.split()) for text in (reference, hypothesis)]
    mine, other = texts
    found = count(Cer(blanks="keep" if keep else "remove"), hypothesis, reference)
    assert found == [table(mine, other)[-1][-1], len(mine)]


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 200, 500])
def test_cer_of_long_sentences(length: int) -> None:
    """A column of distances has 64 characters a word: test the carry from word to word."""
    rng = np.random.default_rng(length)
    for changes in (0, 3, length):
        reference = rng.choice(list("abcdefgh"), size=length)
        hypothesis = reference.copy()
        hypothesis[rng.integers(length, size=changes)] = "a"
        other = "".join(np.delete(hypothesis, rng.integers(length)).tolist()) + "hhab"
        mine = "".join(reference.tolist())
        assert count(Cer(), other, mine) == [table(mine, other)[-1][-1], length]


def test_wer_of_long_sentences_is_the_same_by_both_kernels() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        reference, hypothesis = (
            " ".join(rng.choice(list("abcdefg"), size=rng.integers(60, 140))) for _ in range(2)
        )
        # With two references, Moses' choice among them needs the plain recurrence.
        assert count(Wer(), hypothesis, reference) == count(Wer(), hypothesis, reference, "q")


@pytest.mark.parametrize(
    ("reference", "hypothesis", "wer", "mer", "cer"),
    [
        # The example of jiwer's documentation, computed by hand: one substitution of two words.
        ("hello world", "hello duck", 1 / 2, 1 / 2, 5 / 11),
        # One hit and two insertions: WER exceeds MER.
        ("a", "a b c", 2.0, 2 / 3, 4.0),
        # One deletion, one insertion, two hits, and no substitution.
        ("x a b", "a b y", 2 / 3, 1 / 2, 3 / 5),
        ("this is a test", "this test", 2 / 4, 2 / 4, 5 / 14),
        ("ab cd", "abcd", 1.0, 1.0, 1 / 5),
        # Each blank is a character; words are between blanks, or between two of any kind.
        ("a dog barked", "a  dog barked", 0.0, 0.0, 1 / 12),
        ("came to", "came\u00a0to", 1.0, 1.0, 1 / 7),
        (" came to\u3000", "came to", 1 / 2, 0.0, 0.0),
    ],
)
def test_rates_computed_by_hand(
    reference: str, hypothesis: str, wer: float, mer: float, cer: float
) -> None:
    for scorer, rate in ((Wer(), wer), (Mer(), mer), (Cer(), cer)):
        row = np.array(count(scorer, hypothesis, reference))
        assert 1 - float(scorer.score(row)) == pytest.approx(rate, abs=1e-15), scorer.name


@pytest.mark.parametrize(("name", "expected"), [("MER", [2, 0, 0, 0]), ("CER", [0, 3])])
def test_the_best_reference_counts(name: str, expected: list[int]) -> None:
    assert count(metric(name), "a b", "a c", "x a b y", "a b") == expected


@pytest.mark.parametrize("scorer", [Cer(), Mer()], ids=lambda scorer: scorer.name)
def test_scores_of_empty_sentences(scorer: Metric) -> None:
    assert float(scorer.score(np.array(count(scorer, "", "")))) == 1.0
    assert float(scorer.score(np.array(count(scorer, "", "a b")))) == 0.0


@pytest.mark.parametrize(
    ("steps", "text", "expected"),
    [
        ((), "Don't STOP !", "Don't STOP !"),
        (("lower",), "Don't ÄÖ STOP !", "don't äö stop !"),
        (("punct",), "Don't STOP ! 「漢」 $1", "Dont STOP  漢 $1"),
        (("nfkc",), "ＡＢＣ ﬁn e\u0301", "ABC fin é"),
        (("nfkc", "lower", "punct"), "ＡＢＣ！", "abc"),
    ],
)
def test_normalizations(steps: tuple[str, ...], text: str, expected: str) -> None:
    assert Normalization(steps).lines([text.encode()]) == [expected.encode()]
    scorer = Wer(normalization=Normalization(steps))
    assert count(scorer, text, expected) == [0, len(expected.split())]


def test_bytes_outside_utf8_are_kept() -> None:
    normalization = Normalization(("lower", "nfkc", "punct"))
    assert normalization.lines([b"\xffA\xc3."]) == [b"\xffa\xc3"]
    assert count(Cer(), "\udcff\udcfe", "\udcff\udcfd") == [1, 2]


def test_punctuation_is_that_of_unicode() -> None:
    text = "".join(map(chr, (*range(0x20, 0x2100), *range(0x3000, 0x3040))))
    (kept,) = Normalization(("punct",)).lines([text.encode()])
    assert kept.decode() == "".join(c for c in text if unicodedata.category(c)[0] != "P")


def test_normalized_metrics_have_signatures_of_their_own() -> None:
    assert Wer().signature().count("normalize") == 0
    assert "|normalize:lower+punct|" in metric("WER", "normalize:punct+lower").signature()
    plain, removing = metric("CER"), metric("CER", "blanks:remove")
    assert "|blanks:keep|" in plain.signature()
    assert "|blanks:remove|" in removing.signature()


def test_blanks_around_deleted_punctuation_are_one() -> None:
    """As jiwer has it with ``RemovePunctuation`` and ``RemoveMultipleSpaces``."""
    scorer = Cer(normalization=Normalization(("punct",)))
    assert count(scorer, "a b c", "- a , b  c .") == [0, 5]
