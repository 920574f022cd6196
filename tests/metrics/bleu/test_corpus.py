"""BLEU against a naive count, sacrebleu, and what Moses' extractor wrote."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug import __version__
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import Bleu
from mosesplug.metrics.bleu.corpus import ReferenceLength

REFERENCE_LENGTHS: tuple[ReferenceLength, ...] = ("closest", "shortest", "average")


def statistics(
    metric: Bleu,
    references: Sequence[Sequence[bytes]],
    hypotheses: Sequence[tuple[int, bytes]],
) -> NDArray[np.int32]:
    """Statistics of (sentence, text) pairs."""
    ends = np.cumsum([len(text) for _, text in hypotheses], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    buffer = np.frombuffer(bytearray(b"".join(text for _, text in hypotheses)), dtype=np.uint8)
    ids = np.array([sentence for sentence, _ in hypotheses], dtype=np.int64)
    return metric.statistics(metric.prepare(references), ids, buffer, starts, ends)


def ngram_counts(tokens: list[bytes], order: int) -> Counter[tuple[bytes, ...]]:
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def naive_statistics(
    metric: Bleu, references: Sequence[Sequence[bytes]], sentence: int, text: bytes
) -> list[int]:
    """One row, by counting."""

    def tokens(line: bytes) -> list[bytes]:
        folded = line.lower() if metric.lowercase else line
        return [token for token in folded.split(b" ") if token]

    hypothesis = tokens(text)
    candidates = [tokens(lines[sentence]) for lines in references]
    row = []
    for order in (1, 2, 3, 4):
        limits: Counter[tuple[bytes, ...]] = Counter()
        for candidate in candidates:
            limits |= ngram_counts(candidate, order)
        counts = ngram_counts(hypothesis, order)
        row += [(counts & limits).total(), counts.total()]
    lengths = [len(candidate) for candidate in candidates]
    if metric.reference_length == "closest":
        row.append(min(lengths, key=lambda length: (abs(length - len(hypothesis)), length)))
    elif metric.reference_length == "shortest":
        row.append(min(lengths))
    else:
        row.append(int(sum(lengths) / len(lengths)))
    return row


WORDS = st.sampled_from(
    [b"a", b"A", b"b", b"ab", b"aB", b"the", b"The", b"\xc3\x84", b"\xc3\xa4", b"\xff\xfe", b"\t"]
)
LINES = st.one_of(
    st.lists(WORDS, max_size=12).map(b" ".join),
    st.binary(max_size=20).map(lambda line: line.replace(b"\n", b" ")),
    st.sampled_from([b"", b" ", b"  a  b ", b"a " * 30]),
)
METRICS = st.builds(Bleu, st.sampled_from(REFERENCE_LENGTHS), st.booleans())


@given(metric=METRICS, data=st.data())
def test_statistics_equal_naive_counts(metric: Bleu, data: st.DataObject) -> None:
    n_sentences = data.draw(st.integers(1, 4))
    lines = st.lists(LINES, min_size=n_sentences, max_size=n_sentences)
    references = data.draw(st.lists(lines, min_size=1, max_size=4))
    pairs = st.tuples(st.integers(0, n_sentences - 1), LINES)
    hypotheses = data.draw(st.lists(pairs, max_size=8))
    rows = statistics(metric, references, hypotheses)
    assert rows.dtype == np.int32
    assert rows.tolist() == [naive_statistics(metric, references, *pair) for pair in hypotheses]


def test_statistics_by_hand() -> None:
    references = [[b"the cat is on the mat"], [b"there is a cat on the mat"]]
    # Papineni et al. (2002), section 2.1: "the" is clipped at the two of one reference.
    [row] = statistics(Bleu(), references, [(0, b"the the the the the the the")])
    assert row.tolist() == [2, 7, 0, 6, 0, 5, 0, 4, 7]
    [row] = statistics(Bleu(), references, [(0, b"is on the mat")])
    assert row.tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 6]


@pytest.mark.parametrize(
    ("kind", "expected"), [("closest", [2, 4, 4]), ("shortest", [2, 2, 2]), ("average", [3, 3, 3])]
)
def test_reference_length_of_several_references(kind: ReferenceLength, expected: list[int]) -> None:
    references = [[b"a b c d"], [b"a b"], [b"a b c d"]]
    hypotheses = [(0, b"x x x"), (0, b"x x x x"), (0, b"x x x x x x")]
    assert statistics(Bleu(kind), references, hypotheses)[:, 8].tolist() == expected


def test_case_folding_is_ascii_only() -> None:
    references = [["The Ärger".encode()]]
    assert statistics(Bleu(), references, [(0, b"the \xc3\xa4rger")])[0, 0] == 0
    folded = statistics(
        Bleu(lowercase=True), references, [(0, b"tHE \xc3\xa4rger"), (0, b"THE \xc3\x84RGER")]
    )
    assert folded[:, 0].tolist() == [1, 2]


def test_only_blanks_separate_tokens() -> None:
    references = [[b"a\tb \xc2\xa0 c\r"]]
    [row] = statistics(Bleu(), references, [(0, b"a\tb \xc2\xa0 c\r")])
    assert row.tolist()[:4] == [3, 3, 2, 2]


def test_words_with_equal_hashes_are_distinguished() -> None:
    words = [b"w%d" % number for number in range(3000)]
    references = [[b" ".join(words)]]
    hypothesis = b" ".join(word + b"x" for word in words) + b" " + b" ".join(words)
    [row] = statistics(Bleu(), references, [(0, hypothesis)])
    assert row.tolist() == [3000, 6000, 2999, 5999, 2998, 5998, 2997, 5997, 3000]


def test_signature_names_every_setting() -> None:
    prepared = Bleu().prepare([[b"a"], [b"b"]])
    version = f"version:mosesplug-{__version__}"
    assert prepared.signature == (
        f"BLEU|nrefs:2|case:mixed|tok:none|reflen:closest|smooth:none|{version}"
    )
    variants = [Bleu(kind, fold) for kind in REFERENCE_LENGTHS for fold in (False, True)]
    assert len({metric.signature() for metric in variants}) == len(variants)
    assert Bleu("average", True).signature() == (
        f"BLEU|case:lc-ascii|tok:none|reflen:average|smooth:none|{version}"
    )


def test_fingerprints_of_different_references_differ() -> None:
    sets = [
        [[b"a", b"b"]],
        [[b"a"], [b"b"]],
        [[b"b", b"a"]],
        [[b"ab", b""]],
        [[b"a", b"b "]],
        [[b"", b""]],
        [[b""]],
    ]
    assert len({Bleu().prepare(references).fingerprint for references in sets}) == len(sets)
    assert Bleu().prepare(sets[0]).fingerprint == Bleu(lowercase=True).prepare(sets[0]).fingerprint


def test_references_of_other_settings_are_rejected() -> None:
    prepared = Bleu(lowercase=True).prepare([[b"a"]])
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match=r"prepared for BLEU.*lc-ascii"):
        Bleu().statistics(prepared, one, np.zeros(1, dtype=np.uint8), one, one)


def test_unknown_reference_length_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"'longest'.*closest, shortest, average"):
        Bleu("longest")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ([], "no reference"),
        ([[b"a", b"b"], [b"a"]], "reference 1 has 1 lines and reference 0 has 2"),
    ],
)
def test_unusable_references_are_rejected(references: list[list[bytes]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Bleu().prepare(references)


def test_references_without_lines_serve_no_hypothesis() -> None:
    prepared = Bleu().prepare([[]])
    none = np.zeros(0, dtype=np.int64)
    assert Bleu().statistics(prepared, none, np.zeros(0, np.uint8), none, none).shape == (0, 9)


# Scores.


@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)).map(sorted), min_size=4, max_size=4
    ),
    st.integers(0, 10**9),
)
def test_score_is_the_formula(pairs: list[list[int]], reference_length: int) -> None:
    row = [count for pair in pairs for count in pair] + [reference_length]
    if any(match == 0 for match, _ in pairs):
        expected = 0.0
    else:
        logarithm = sum(math.log(match / total) for match, total in pairs) / 4
        expected = math.exp(logarithm + min(0.0, 1 - reference_length / pairs[0][1]))
    score = float(Bleu().score(np.array(row)))
    assert score == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert score == float(Bleu().score(np.array(row, dtype=np.float64)))


def test_score_without_ngrams_is_zero() -> None:
    totals = np.array([[0] * 9, [3, 3, 2, 2, 1, 1, 0, 0, 3], [0, 0, 0, 0, 0, 0, 0, 0, 5]])
    assert Bleu().score(totals).tolist() == [0.0, 0.0, 0.0]
    assert sacrebleu.corpus_bleu(
        ["a b c"], [["a b c"]], tokenize="none", smooth_method="none"
    ).score == pytest.approx(0.0)


def test_score_keeps_the_leading_shape() -> None:
    totals = np.ones((2, 3, 9), dtype=np.int64)
    assert Bleu().score(totals).shape == (2, 3)
    assert Bleu().score(totals[0, 0]).shape == ()
    with pytest.raises(ValueError, match="9 statistics"):
        Bleu().score(totals[..., :8])


# Against sacrebleu.


def assert_equals_sacrebleu(
    hypotheses: list[bytes], references: list[list[bytes]], lowercase: bool = False
) -> None:
    theirs = sacrebleu.corpus_bleu(
        [line.decode() for line in hypotheses],
        [[line.decode() for line in lines] for lines in references],
        tokenize="none",
        smooth_method="none",
        lowercase=lowercase,
        force=True,
    )
    metric = Bleu(lowercase=lowercase)
    totals = statistics(metric, references, list(enumerate(hypotheses))).sum(axis=0)
    assert totals[0:8:2].tolist() == theirs.counts
    assert totals[1:8:2].tolist() == theirs.totals
    assert (totals[1], totals[8]) == (theirs.sys_len, theirs.ref_len)
    assert 100 * float(metric.score(totals)) == pytest.approx(theirs.score, rel=1e-12)


TEXT_LINES = st.lists(st.sampled_from(["a", "b", "C", "ä", "."]), min_size=1, max_size=12).map(
    lambda tokens: " ".join(tokens).encode()
)


@given(data=st.data())
def test_corpus_equals_sacrebleu(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    corpus = st.lists(TEXT_LINES, min_size=n, max_size=n)
    references = data.draw(st.lists(corpus, min_size=1, max_size=3))
    assert_equals_sacrebleu(data.draw(corpus), references)


def read_lines(path: Path) -> list[bytes]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        return file.read().removesuffix(b"\n").split(b"\n")


def test_recorded_output_equals_sacrebleu(multi30k: Path) -> None:
    references = [read_lines(multi30k / "text" / "dev.en")]
    runs = sorted((multi30k / "mert-work").glob("run*.out"))
    outputs = [path for path in runs if "best" not in path.name]
    assert len(outputs) == 7
    for path in outputs:
        assert_equals_sacrebleu(read_lines(path), references)


@pytest.mark.parametrize("lowercase", [False, True])
def test_three_references_equal_sacrebleu(recordings: Path, lowercase: bool) -> None:
    names = [recordings / "hindi-4ref" / f"dev.en{number}" for number in range(4)]
    texts = [read_lines(path) for path in names]
    for held_out in range(4):
        references = texts[:held_out] + texts[held_out + 1 :]
        assert_equals_sacrebleu(texts[held_out], references, lowercase)
