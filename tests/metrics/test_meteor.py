"""METEOR: the aligner against all alignments, and scores against published ones and NLTK's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.kernels import read_only
from mosesplug.metrics import meteor as module
from mosesplug.metrics import metric
from mosesplug.metrics.alignment import align_words
from mosesplug.testing.metrics import as_text
from tests.metrics.bleu.test_gleu import GUIDE, GUIDE_REFERENCES

Key = tuple[int, int, int]


def describe(links: Sequence[int]) -> Key:
    """What METEOR minimizes: minus the matches, the chunks, and the sum of distances."""
    pairs = [(i, j) for i, j in enumerate(links) if j >= 0]
    chunks = sum((i - 1, j - 1) not in pairs for i, j in pairs)
    return -len(pairs), chunks, sum(abs(i - j) for i, j in pairs)


def search_all(hypothesis: Sequence[int], reference: Sequence[int]) -> Key:
    """The best of all alignments, one by one."""
    alignments: list[list[int]] = [[]]
    for word in hypothesis:
        alignments = [
            [*links, j]
            for links in alignments
            for j in (-1, *(j for j, other in enumerate(reference) if other == word))
            if j < 0 or j not in links
        ]
    return min(map(describe, alignments))


@pytest.mark.parametrize("seed", range(60))
def test_alignments_are_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hypothesis = rng.integers(-1, 3, rng.integers(0, 7)).astype(np.int32)
    reference = rng.integers(0, 3, rng.integers(0, 7)).astype(np.int32)
    links = np.full(len(hypothesis), -9, dtype=np.int32)
    chunks = align_words(read_only(hypothesis), reference, links)
    found = describe(links.tolist())
    assert found == search_all(hypothesis.tolist(), reference.tolist())
    assert chunks == found[1]


def score(hypothesis: str, references: Sequence[str], settings: str = "") -> float:
    scorer = metric("METEOR", settings)
    prepared = scorer.prepare([[line.encode()] for line in references])
    rows = as_text([(0, hypothesis.encode())]).statistics(scorer, prepared)
    return float(scorer.score(rows[0]))


def test_published_examples() -> None:
    """Those of the encyclopedia, by the parameters of 2005.

    It has 0.9977 for equal sentences: the exception for them is of later versions.
    """
    mat = "the cat sat on the mat"
    assert score("the cat was sat on the mat", [mat]) == pytest.approx(0.9654, abs=5e-5)
    assert score(mat, [mat]) == 1.0
    assert score("on the mat sat the cat", [mat]) == pytest.approx(1 - 0.5 * (3 / 6) ** 3)


@pytest.mark.parametrize(("number", "expected"), [(1, 0.625), (2, 0.5114197530864197)])
def test_scores_of_nltk(number: int, expected: float) -> None:
    """``single_meteor_score`` of NLTK 3.10 without synonyms, where its alignment is the best."""
    pytest.importorskip("snowballstemmer", reason="the package of stemmers is not installed")
    reference = GUIDE_REFERENCES[number]
    assert score(GUIDE, [reference], "case:false,stems:porter") == pytest.approx(expected)


def test_fewer_chunks_than_nltk() -> None:
    """Its alignment from the right has six chunks in this example of its docstring: 0.6944."""
    pairs = 12 / 18, 12 / 16
    mean = pairs[0] * pairs[1] / (0.9 * pairs[0] + 0.1 * pairs[1])
    assert mean * (1 - 0.5 * (6 / 12) ** 3) == pytest.approx(0.6944, abs=5e-5)
    found = score(GUIDE, GUIDE_REFERENCES, "case:false")
    assert found == pytest.approx(mean * (1 - 0.5 * (4 / 12) ** 3))


def test_stems_have_a_weight_of_their_own() -> None:
    pytest.importorskip("snowballstemmer", reason="the package of stemmers is not installed")
    settings = "case:false,stems:english,alpha:0.85,beta:0.2,gamma:0.6,stem:0.6"
    scorer = metric("METEOR", settings)
    prepared = scorer.prepare([[b"The dogs ran home"]])
    rows = as_text([(0, b"the dog  ran away")]).statistics(scorer, prepared)
    assert rows.tolist() == [[2, 1, 1, 4, 4]]
    share = (2 + 0.6) / 4
    expected = share * (1 - 0.6 * (1 / 3) ** 0.2)
    assert float(scorer.score(rows[0])) == pytest.approx(expected)
    assert "|stems:english|stemmer:snowballstemmer-" in scorer.signature()


def test_sums_are_scored_as_meteor_does() -> None:
    """An equal sentence adds no chunk: ``meteor-1.5.jar`` has 2 chunks for both."""
    scorer = metric("METEOR")
    prepared = scorer.prepare([[b"a b c", b"d e f g"]])
    rows = as_text([(0, b"a b c"), (1, b"d e x g"), (1, b"e f g")]).statistics(scorer, prepared)
    assert rows.tolist() == [[3, 0, 0, 3, 3], [3, 0, 2, 4, 4], [3, 0, 1, 3, 4]]
    expected = 6 / 7 * (1 - 0.5 * (2 / 6) ** 3)
    assert float(scorer.score(rows[:2].sum(axis=0))) == pytest.approx(expected)


METEOR_JAR = os.environ.get("METEOR_JAR", "")


@pytest.mark.skipif(not METEOR_JAR, reason="METEOR_JAR does not name meteor-1.5.jar")
@pytest.mark.parametrize(
    ("modules", "parameters", "settings"),
    [
        ("exact", "0.9 3.0 0.5", "alpha:0.9,beta:3,gamma:0.5"),
        ("exact stem", "0.85 0.2 0.6", "case:false,stems:english,alpha:0.85,beta:0.2,gamma:0.6"),
    ],
)
def test_statistics_and_scores_of_the_program(
    recordings: Path, tmp_path: Path, modules: str, parameters: str, settings: str
) -> None:
    """One translation of 200 sentences against three others, and the first against itself."""
    texts = [
        (recordings / f"hindi-4ref/dev.en{number}").read_text().lower().splitlines()
        for number in range(4)
    ]
    # The program needs its large beam for long sentences only, and is slow with it.
    short = [row for row in zip(*texts, strict=True) if max(len(x.split()) for x in row) <= 16]
    rows = [*short[:180], *([*row[:3], row[0]] for row in short[:20])]
    *references, hypotheses = zip(*rows, strict=True)
    (tmp_path / "hypotheses").write_text("".join(f"{line}\n" for line in hypotheses))
    (tmp_path / "references").write_text("".join(f"{line}\n" for row in rows for line in row[:3]))
    weights = {"exact": "1", "exact stem": "1 0.6"}[modules]
    # The fourth parameter weights content and function words; the beam finds the best alignment.
    command = ["java", "-Xmx1G", "-jar", METEOR_JAR, "hypotheses", "references", "-r", "3"]
    command += ["-l", "en", "-x", "1000", "-m", modules, "-w", weights, "-p", f"{parameters} 0.5"]

    def call(*words: str) -> list[str]:
        return subprocess.run(
            [*command, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    theirs = np.array([line.split() for line in call("-ssOut")], dtype=np.float64)
    reported = [line.split()[-1] for line in call() if line.startswith(("Segment", "Final"))]
    scorer = metric("METEOR", settings + (",stem:0.6" if "stem" in modules else ""))
    prepared = scorer.prepare([[line.encode() for line in one] for one in references])
    text = as_text([(number, line.encode()) for number, line in enumerate(hypotheses)])
    ours = text.statistics(scorer, prepared)
    is_equal = (ours[:, 2] == 0) & (ours[:, :2].sum(axis=1) > 0)
    assert is_equal.any()
    columns = [theirs[:, [4, 6]].sum(1), theirs[:, [8, 10]].sum(1), theirs[:, 20] - is_equal]
    np.testing.assert_array_equal(ours, np.stack([*columns, theirs[:, 0], theirs[:, 1]], axis=1))
    scores = [*scorer.sentence_scores(ours.astype(np.float64)), scorer.score(ours.sum(axis=0))]
    np.testing.assert_allclose(scores, np.array(reported, dtype=np.float64), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("alpha:1.5", "alpha of METEOR must be at least 0 and at most 1, not 1.5"),
        ("gamma:-1", "gamma of METEOR must be at least 0 and at most 1, not -1"),
        ("beta:nan", "beta of METEOR must be at least 0, not nan"),
        ("exact:0", "exact of METEOR must be a number above 0, not 0"),
        ("exact:-1", "exact of METEOR must be a number above 0, not -1"),
        ("stems:english", "stems of METEOR are lower-case: add case:false or normalize:lower"),
        ("stems:englisch", "stems must be one of none, .*english"),
    ],
)
def test_settings_that_cannot_be_used(settings: str, message: str) -> None:
    if "stems" in settings:
        pytest.importorskip("snowballstemmer", reason="the package of stemmers is not installed")
    with pytest.raises(UsageError, match=message):
        metric("METEOR", settings)


def test_without_the_package_of_stemmers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "snowballstemmer", None)
    module._load_stemmers.cache_clear()
    with pytest.raises(UsageError, match=r"pip install 'mosesplug\[stems\]'"):
        metric("METEOR", "case:false,stems:english")
