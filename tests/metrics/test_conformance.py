"""Conformance tests of every registered metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.metrics import Metric, Prepared, metric, metric_names

REFERENCES = [
    [b"the cat sat on the mat .", b"a b c d e", b"", b"one two three four five six"],
    [b"there is a cat on the mat", b"a b b c", b"nothing at all is here", b"1 2 3 4 5 6"],
]
HYPOTHESES = [
    (0, b"the cat sat on the mat ."),
    (0, b"a cat is on the the mat"),
    (0, b""),
    (1, b"  a  b  c d e f g h "),
    (1, b"x y z"),
    (2, b"nothing here"),
    (2, b" "),
    (3, b"one two three four 5 6"),
    (3, b"\xff\xfe \x00 one"),
]


ONE_REFERENCE = {"PER"}
"""Metrics that refuse several references."""


SUMS = (("BLEU,TER", "weights:0.6+0.4"), ("WER,CHRF,PER", ""))
"""Weighted sums, which are metrics like any other."""


@pytest.fixture(params=(*((name, "") for name in metric_names()), *SUMS), ids=lambda pair: pair[0])
def scorer(request: pytest.FixtureRequest) -> Metric:
    return metric(*request.param)


@pytest.fixture
def references(scorer: Metric) -> list[list[bytes]]:
    """As many references as the metric takes."""
    return REFERENCES[:1] if takes_one_reference(scorer) else REFERENCES


def takes_one_reference(scorer: Metric) -> bool:
    return not ONE_REFERENCE.isdisjoint(scorer.name.split(","))


@dataclass(frozen=True)
class Text:
    """Hypotheses as a metric takes them."""

    sentence_ids: NDArray[np.int64]
    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def as_text(hypotheses: Sequence[tuple[int, bytes]]) -> Text:
    ends = np.cumsum([len(text) for _, text in hypotheses], dtype=np.int64)
    return Text(
        sentence_ids=np.array([sentence for sentence, _ in hypotheses], dtype=np.int64),
        buffer=np.frombuffer(bytearray(b"".join(text for _, text in hypotheses)), dtype=np.uint8),
        starts=np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1],
        ends=ends,
    )


def statistics(
    scorer: Metric, prepared: Prepared, text: Text, threads: int = 1
) -> NDArray[np.int32]:
    return scorer.statistics(
        prepared, text.sentence_ids, text.buffer, text.starts, text.ends, threads=threads
    )


def test_shapes_and_names(scorer: Metric, references: list[list[bytes]]) -> None:
    prepared = scorer.prepare(references)
    assert (prepared.n_sentences, prepared.n_references) == (4, len(references))
    assert len(scorer.statistics_names) == len(set(scorer.statistics_names)) == scorer.n_statistics
    rows = statistics(scorer, prepared, as_text(HYPOTHESES))
    assert rows.dtype == np.int32
    assert rows.shape == (len(HYPOTHESES), scorer.n_statistics)
    assert scorer.score(rows).shape == (len(HYPOTHESES),)
    assert scorer.score(rows).dtype == np.float64


def test_no_hypotheses(scorer: Metric, references: list[list[bytes]]) -> None:
    rows = statistics(scorer, scorer.prepare(references), as_text([]), threads=2)
    assert rows.shape == (0, scorer.n_statistics)
    assert scorer.score(rows).shape == (0,)
    assert np.isfinite(scorer.score(rows.sum(axis=0)))


def test_signature_names_the_metric_and_the_references(
    scorer: Metric, references: list[list[bytes]]
) -> None:
    assert scorer.signature().startswith(f"{scorer.name}|")
    assert "version:mosesplug-" in scorer.signature()
    signatures = {scorer.prepare(references[:n]).signature for n in range(1, len(references) + 1)}
    assert len(signatures) == len(references)
    assert f"nrefs:{len(references)}" in scorer.prepare(references).signature


def test_same_references_have_the_same_fingerprint(
    scorer: Metric, references: list[list[bytes]]
) -> None:
    copies = [[bytes(bytearray(line)) for line in lines] for lines in references]
    others = [lines[::-1] for lines in references]
    assert scorer.prepare(references).fingerprint == scorer.prepare(copies).fingerprint
    assert scorer.prepare(references).fingerprint != scorer.prepare(others).fingerprint
    assert (
        metric("BLEU").prepare(REFERENCES).fingerprint
        != metric("BLEU").prepare(REFERENCES[::-1]).fingerprint
    )


def test_other_references_are_rejected(scorer: Metric, references: list[list[bytes]]) -> None:
    """What one metric prepared is of no use to another, nor to the same with other settings."""
    text = as_text(HYPOTHESES)
    for other in (*map(metric, metric_names()), metric(scorer.name, "case:false")):
        if other.signature() == scorer.signature():
            continue
        prepared = other.prepare(REFERENCES[:1])
        with pytest.raises(ValueError, match="cannot serve"):
            statistics(scorer, prepared, text)


def test_case_can_be_ignored(scorer: Metric) -> None:
    folded = metric(scorer.name, "case:false")
    mixed = folded.prepare([[b"The CAT sat on the Mat"]])
    lower = folded.prepare([[b"the cat sat on the mat"]])
    assert folded.signature() != scorer.signature()
    for output in (b"the cat sat on the mat", b"THE cat SAT on the mat", b"A mat"):
        text = as_text([(0, output)])
        row = statistics(folded, mixed, text)
        np.testing.assert_array_equal(row, statistics(folded, lower, text))
    same = as_text([(0, b"THE cat SAT on the mat")])
    assert folded.score(statistics(folded, lower, same)[0]) == pytest.approx(1.0)
    assert (
        scorer.score(statistics(scorer, scorer.prepare([[b"the cat sat on the mat"]]), same)[0]) < 1
    )


def test_each_hypothesis_is_scored_alone(scorer: Metric, references: list[list[bytes]]) -> None:
    prepared = scorer.prepare(references)
    together = statistics(scorer, prepared, as_text(HYPOTHESES))
    alone = [statistics(scorer, prepared, as_text([pair]))[0] for pair in HYPOTHESES]
    backwards = statistics(scorer, prepared, as_text(HYPOTHESES[::-1]))[::-1]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, backwards)


def test_threads_change_nothing(scorer: Metric, references: list[list[bytes]]) -> None:
    rng = np.random.default_rng(7)
    words = [b"the", b"cat", b"a", b"b", b"c", b"d", b"one", b"mat", b"x"]
    pairs = [
        (int(rng.integers(4)), b" ".join(rng.choice(words, size=rng.integers(12))))
        for _ in range(5000)
    ]
    prepared = scorer.prepare(references)
    one = statistics(scorer, prepared, as_text(pairs))
    for threads in (2, 3, 1000):
        np.testing.assert_array_equal(one, statistics(scorer, prepared, as_text(pairs), threads))


def test_read_only_unaligned_and_strided_input(
    scorer: Metric, references: list[list[bytes]]
) -> None:
    prepared = scorer.prepare(references)
    text = as_text(HYPOTHESES)
    expected = statistics(scorer, prepared, text)

    def unaligned(array: NDArray[np.int64]) -> NDArray[np.int64]:
        raw = np.frombuffer(b"\0" + array.tobytes(), dtype=np.uint8)[1:]
        view = raw.view(np.int64)
        assert not view.flags.aligned
        assert not view.flags.writeable
        return view

    buffer = text.buffer.copy()
    buffer.flags.writeable = False
    odd = Text(unaligned(text.sentence_ids), buffer, unaligned(text.starts), unaligned(text.ends))
    np.testing.assert_array_equal(statistics(scorer, prepared, odd), expected)
    strided = Text(
        np.repeat(text.sentence_ids, 2)[::2],
        np.repeat(text.buffer, 2)[::2],
        np.repeat(text.starts, 2)[::2],
        np.repeat(text.ends, 2)[::2],
    )
    np.testing.assert_array_equal(statistics(scorer, prepared, strided), expected)


def test_inputs_are_not_changed(scorer: Metric, references: list[list[bytes]]) -> None:
    prepared = scorer.prepare(references)
    text, untouched = as_text(HYPOTHESES), as_text(HYPOTHESES)
    rows = statistics(scorer, prepared, text)
    before = rows.copy()
    scorer.score(rows)
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_array_equal(text.buffer, untouched.buffer)
    np.testing.assert_array_equal(text.sentence_ids, untouched.sentence_ids)
    np.testing.assert_array_equal(text.starts, untouched.starts)
    np.testing.assert_array_equal(text.ends, untouched.ends)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_any_number_type_scores_the_same(
    scorer: Metric, references: list[list[bytes]], dtype: type[np.generic]
) -> None:
    rows = statistics(scorer, scorer.prepare(references), as_text(HYPOTHESES))
    converted = rows.astype(dtype)
    converted.flags.writeable = False
    np.testing.assert_array_equal(scorer.score(converted), scorer.score(rows))
    raw = np.frombuffer(b"\0" + converted.tobytes(), dtype=np.uint8)[1:]
    unaligned = raw.view(dtype).reshape(converted.shape)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(scorer.score(unaligned), scorer.score(rows))


def test_summed_rows_score_the_corpus(scorer: Metric, references: list[list[bytes]]) -> None:
    """Statistics are additive: two halves summed are the whole."""
    prepared = scorer.prepare(references)
    whole = statistics(scorer, prepared, as_text(HYPOTHESES)).sum(axis=0)
    halves = [
        statistics(scorer, prepared, as_text(part)).sum(axis=0)
        for part in (HYPOTHESES[:4], HYPOTHESES[4:])
    ]
    np.testing.assert_array_equal(whole, halves[0] + halves[1])
    assert scorer.score(whole) == scorer.score(halves[0] + halves[1])


def test_references_score_best_against_themselves(scorer: Metric) -> None:
    for lines in REFERENCES:
        prepared = scorer.prepare([lines])
        rows = statistics(scorer, prepared, as_text(list(enumerate(lines))))
        assert scorer.score(rows.sum(axis=0)) == pytest.approx(1.0, abs=1e-12)


def test_larger_is_better_and_scores_lie_in_0_to_1(scorer: Metric) -> None:
    reference = [b"a b c d e f g h", b"the cat sat on the mat ."]
    prepared = scorer.prepare([reference])
    outputs = [
        reference,
        [b"a b c d e f g x", b"the cat sat on the mat ."],
        [b"a b c d x f g y", b"the cat sat on a mat ."],
        [b"a b c d", b"the x"],
        [b"q r s", b"t"],
    ]
    values = [
        float(scorer.score(statistics(scorer, prepared, as_text(list(enumerate(out)))).sum(axis=0)))
        for out in outputs
    ]
    assert values == sorted(values, reverse=True)
    assert len(set(values[:4])) == 4
    assert all(0 <= value <= 1 for value in values)


def test_empty_output_scores_nothing(scorer: Metric) -> None:
    prepared = scorer.prepare(REFERENCES[1:])
    rows = statistics(scorer, prepared, as_text([(sentence, b"") for sentence in range(4)]))
    assert float(scorer.score(rows.sum(axis=0))) == 0.0
    np.testing.assert_array_equal(scorer.score(rows), 0.0)


def test_another_number_of_statistics_is_rejected(scorer: Metric) -> None:
    with pytest.raises(ValueError, match=rf"{scorer.n_statistics} statistics, not an array"):
        scorer.score(np.zeros((2, scorer.n_statistics + 1)))


def test_leading_axes_are_kept(scorer: Metric, references: list[list[bytes]]) -> None:
    rows = statistics(scorer, scorer.prepare(references), as_text(HYPOTHESES[:6]))
    cube = rows.reshape(2, 3, -1)
    np.testing.assert_array_equal(scorer.score(cube), scorer.score(rows).reshape(2, 3))


@pytest.mark.parametrize("sentence", [-1, 4, 2**40])
def test_sentence_without_reference_is_rejected(
    scorer: Metric, references: list[list[bytes]], sentence: int
) -> None:
    prepared = scorer.prepare(references)
    with pytest.raises(DataError, match=rf"sentence {sentence} has no reference.* 4 lines"):
        statistics(scorer, prepared, as_text([(0, b"a"), (sentence, b"a")]))


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (0, 5), (3, 2)])
def test_ranges_outside_the_buffer_are_rejected(
    scorer: Metric, references: list[list[bytes]], start: int, end: int
) -> None:
    prepared = scorer.prepare(references)
    text = Text(
        np.zeros(1, dtype=np.int64), np.zeros(4, np.uint8), np.array([start]), np.array([end])
    )
    with pytest.raises(ValueError, match="outside the buffer of 4 bytes"):
        statistics(scorer, prepared, text)


def test_arrays_of_different_length_are_rejected(
    scorer: Metric, references: list[list[bytes]]
) -> None:
    prepared = scorer.prepare(references)
    text = as_text(HYPOTHESES)
    with pytest.raises(ValueError, match="equally long"):
        statistics(scorer, prepared, Text(text.sentence_ids[1:], text.buffer, *(text.starts,) * 2))


def test_unusable_references_are_rejected(scorer: Metric) -> None:
    with pytest.raises(DataError, match="no reference translation"):
        scorer.prepare([])
    differing = [REFERENCES[0], [b"a"]]
    refusal = "reference 1 has 1 lines and reference 0 has 4"
    if takes_one_reference(scorer):
        differing, refusal = REFERENCES, "PER supports one reference, .* are 2"
    with pytest.raises(DataError, match=refusal):
        scorer.prepare(differing)
