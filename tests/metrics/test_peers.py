"""Every metric against its peer, on text full of blanks, controls and marks.

sacrebleu is called. jiwer, which is no dependency, is spelled out (``table`` is the textbook's
recurrence); ``odd_text.json`` has what jiwer 4.0 and Moses' extractor counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.metrics import Metric, metric
from tests.metrics.edits import edits_of_jiwer, table

RECORDS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "peers" / "odd_text.json").read_text()
)

BLANKS = (
    " \t\r\v\f\x1c\x1d\x1e\x1f\u0085\u00a0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
WORDS = (
    "a",
    "b",
    "B",
    "ab",
    "äß",
    "漢字",
    "🙂",
    "e\u0301",
    "\u200b",
    "&amp;",
    "it's",
    "3,5.",
    "<s>",
)
LINES = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text(BLANKS, min_size=1, max_size=2), st.just(" ")),
    max_size=16,
).map("".join)


@st.composite
def corpora(draw: st.DrawFn, most: int = 3) -> tuple[list[str], list[list[str]]]:
    """Hypotheses and references, ``[reference][line]``."""
    n = draw(st.integers(1, 4))
    lines = st.lists(LINES, min_size=n, max_size=n)
    return draw(lines), draw(st.lists(lines, min_size=1, max_size=most))


Corpus = tuple[list[str], list[list[str]]]


def count(scorer: Metric, hypotheses: Sequence[str], references: list[list[str]]) -> NDArray[Any]:
    """Return the statistics of each hypothesis."""
    texts = [text.encode() for text in hypotheses]
    ends = np.cumsum([0, *map(len, texts)])
    prepared = scorer.prepare([[line.encode() for line in lines] for lines in references])
    text = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return scorer.statistics(prepared, np.arange(len(texts)), text, ends[:-1], ends[1:])


def score(scorer: Metric, corpus: Corpus) -> float:
    return float(scorer.score(count(scorer, *corpus).sum(axis=0)))


@given(corpora())
def test_ter_is_that_of_sacrebleu(corpus: Corpus) -> None:
    theirs = sacrebleu.TER(case_sensitive=True).corpus_score(*corpus).score
    assert 1.0 - score(metric("TER-SACREBLEU"), corpus) == pytest.approx(theirs / 100, rel=1e-12)


@given(corpora(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 2]))
def test_chrf_is_that_of_sacrebleu(corpus: Corpus, beta: int, words: int) -> None:
    theirs = sacrebleu.CHRF(beta=beta, word_order=words).corpus_score(*corpus).score
    ours = score(metric("CHRF", f"beta:{beta},words:{words}"), corpus)
    assert ours == pytest.approx(theirs / 100, rel=1e-12)


@given(corpora(), st.sampled_from(["13a", "intl", "zh", "char"]))
def test_tokenized_bleu_is_that_of_sacrebleu(corpus: Corpus, tokenizer: str) -> None:
    theirs = sacrebleu.BLEU(tokenize=tokenizer, smooth_method="none", force=True)
    ours = score(metric("BLEU", f"tokenize:{tokenizer}"), corpus)
    assert ours == pytest.approx(theirs.corpus_score(*corpus).score / 100, rel=1e-12)


@given(corpora())
def test_bleu_is_that_of_sacrebleu_where_words_are_between_ascii_blanks(corpus: Corpus) -> None:
    hypotheses, references = corpus
    other = str.maketrans(dict.fromkeys(BLANKS, " "))
    hypotheses = [line.translate(other) for line in hypotheses]
    references = [[line.translate(other) for line in lines] for lines in references]
    theirs = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    ours = score(metric("BLEU"), (hypotheses, references))
    assert ours == pytest.approx(theirs.corpus_score(hypotheses, references).score / 100, rel=1e-12)


def words_of_jiwer(text: str) -> list[str]:
    """``RemoveMultipleSpaces``, ``Strip`` and ``ReduceToListOfListOfWords``."""
    return [word for word in re.sub(r"\s\s+", " ", text).strip().split(" ") if word]


@given(corpora(most=1))
def test_mer_and_cer_are_those_of_jiwer(corpus: Corpus) -> None:
    hypotheses, (references,) = corpus
    pairs = list(zip(references, hypotheses, strict=True))
    edits = [edits_of_jiwer(words_of_jiwer(one), words_of_jiwer(other)) for one, other in pairs]
    assert count(metric("MER"), *corpus).tolist() == edits
    letters = [
        [table(one.strip(), other.strip())[-1][-1], len(one.strip())] for one, other in pairs
    ]
    assert count(metric("CER"), *corpus).tolist() == letters


@pytest.mark.parametrize("name", ["MER", "CER"])
def test_what_jiwer_counted(name: str) -> None:
    corpus = [each["hypothesis"] for each in RECORDS], [[each["reference"] for each in RECORDS]]
    assert count(metric(name), *corpus).tolist() == [each["jiwer"][name] for each in RECORDS]


@pytest.mark.parametrize("name", ["BLEU", "PER", "WER", "CDER", "TER"])
def test_what_moses_counted(name: str) -> None:
    """Words are between ASCII blanks, whatever other blanks there are."""
    corpus = [each["hypothesis"] for each in RECORDS], [[each["reference"] for each in RECORDS]]
    assert count(metric(name), *corpus).tolist() == [each["moses"][name] for each in RECORDS]
