"""TER: Moses' and sacrebleu's, against what the two programs count."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sacrebleu.metrics.ter import TER

from mosesplug.metrics import Metric, Ter, TerSacrebleu

EDITS = Path(__file__).parents[2] / "data" / "ter" / "edits.txt"


class Case(NamedTuple):
    """A reference and a hypothesis, and the edits that each program counts."""

    moses: int
    sacrebleu: int
    reference: str
    hypothesis: str


def cases() -> list[Case]:
    lines = [line for line in EDITS.read_text().splitlines() if not line.startswith("#")]
    fields = [list(map(str.strip, line.split("|"))) for line in lines]
    return [Case(int(m), int(s), reference, text) for m, s, reference, text in fields]


def rows_of(
    scorer: Metric, hypotheses: list[str], references: list[list[str]]
) -> NDArray[np.int32]:
    texts = [text.encode() for text in hypotheses]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return scorer.statistics(
        scorer.prepare([[line.encode() for line in lines] for lines in references]),
        np.arange(len(texts)),
        np.frombuffer(bytearray(b"".join(texts)), dtype=np.uint8),
        np.concatenate([[0], ends[:-1]]),
        ends,
    )


def random_text(rng: np.random.Generator, n_lines: int) -> list[str]:
    words = list("abcdefgh")
    return [" ".join(rng.choice(words, size=rng.integers(16))) for _ in range(n_lines)]


def test_the_cases_tell_the_programs_apart() -> None:
    differences = [case.moses - case.sacrebleu for case in cases()]
    assert min(differences) < 0 < max(differences)
    assert any(len(case.reference.split()) > 40 for case in cases())


def test_edits_of_moses() -> None:
    expected = [case.moses for case in cases()]
    rows = rows_of(
        Ter(), [case.hypothesis for case in cases()], [[case.reference for case in cases()]]
    )
    assert (rows[:, 0] // 100).tolist() == expected
    assert (rows[:, 0] % 100).max() == 0


def test_edits_of_sacrebleu() -> None:
    expected = [case.sacrebleu for case in cases()]
    rows = rows_of(
        TerSacrebleu(),
        [case.hypothesis for case in cases()],
        [[case.reference for case in cases()]],
    )
    assert rows[:, 0].tolist() == expected


def test_statistics_and_score_of_sacrebleu() -> None:
    rng = np.random.default_rng(5)
    hypotheses, *references = (random_text(rng, 60) for _ in range(4))
    rows = rows_of(TerSacrebleu(), hypotheses, references)
    theirs = TER(case_sensitive=True)
    statistics = theirs._extract_corpus_statistics(hypotheses, references)
    np.testing.assert_allclose(rows / 3, statistics, rtol=1e-12)
    score = theirs.corpus_score(hypotheses, references).score
    assert float(TerSacrebleu().score(rows.sum(axis=0))) == pytest.approx(1 - score / 100)


@pytest.mark.parametrize(
    ("scorer", "hypothesis", "edits"),
    [
        # One block moved: one shift.
        (Ter(), "d e f a b c", 1),
        (TerSacrebleu(), "d e f a b c", 1),
        (Ter(), "a b c d e f", 0),
        (Ter(), "a b x d e f g", 2),
        (Ter(), "", 6),
        (TerSacrebleu(), "", 6),
    ],
)
def test_edits_counted_by_hand(scorer: Metric, hypothesis: str, edits: int) -> None:
    row = rows_of(scorer, [hypothesis], [["a b c d e f"]])[0]
    unit = 100 if isinstance(scorer, Ter) else 1
    assert row[:2].tolist() == [edits * unit, 6 * unit]


def test_units_of_moses() -> None:
    """100 times edits, average reference length and rate, each cut to an integer."""
    references = [["a b c d"], ["a b c x y z"], ["q"]]
    assert rows_of(Ter(), ["a b c"], references).tolist() == [[100, 366, 27]]


def test_the_closest_reference_counts() -> None:
    references = [["q r s t"], ["a b c d e"]]
    assert rows_of(TerSacrebleu(), ["a b c d"], references).tolist() == [[2, 9]]
    assert rows_of(Ter(), ["a b c d"], references).tolist() == [[100, 450, 22]]


@pytest.mark.parametrize(
    ("scorer", "totals", "score"),
    [
        (Ter(), [300, 1000, 30], 0.7),
        (Ter(), [1500, 1000, 150], -0.5),
        (Ter(), [200, 0, 100], 0.0),
        (Ter(), [0, 0, 0], 1.0),
        (TerSacrebleu(), [3, 12], 0.75),
        (TerSacrebleu(), [3, 0], 0.0),
        (TerSacrebleu(), [0, 0], 1.0),
    ],
)
def test_scores(scorer: Metric, totals: list[int], score: float) -> None:
    assert float(scorer.score(np.array(totals))) == pytest.approx(score, abs=1e-15)


def test_blocks_move_at_most_25_words() -> None:
    """Blocks beyond 25 words are out of reach for Moses, and within sacrebleu's."""
    filler = [f"w{i}" for i in range(30)]
    reference = " ".join(["a", *filler])
    moved = " ".join([*filler, "a"])
    assert rows_of(Ter(), [moved], [[reference]])[0, 0] == 200
    assert rows_of(TerSacrebleu(), [moved], [[reference]])[0, 0] == 1
