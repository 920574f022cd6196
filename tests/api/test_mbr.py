"""``mosesplug.mbr``: against the definition, with all forms of utilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from formats.nbest.files import read_nbest
from mosesplug.cli.main import main
from mosesplug.metrics import metric
from mosesplug.results.choices.mbr import pairwise_scores
from tests.api.examples import write_example_files

LISTS = [
    ["a small house", "the small house", "the house", "the small house"],
    ["yes yes yes yes", "yes"],
    ["no"],
]
SCORES = [[-1.0, -2.0, -0.5, -3.0], [-0.25, -0.5], [-1.0]]


def make_lists() -> mosesplug.NBest:
    ids = [number for number, texts in enumerate(LISTS) for _ in texts]
    texts = [text for texts in LISTS for text in texts]
    scores = [score for scores in SCORES for score in scores]
    return mosesplug.NBest(ids, texts, np.array(scores)[:, None], names=["LM"], scores=scores)


def overlap(hypotheses: list[str], references: list[str]) -> list[float]:
    pairs = zip(hypotheses, references, strict=True)
    return [len({*one.split()} & {*two.split()}) / len(two.split()) for one, two in pairs]


def matrices() -> list[np.ndarray[Any, Any]]:
    return [
        np.array([[overlap([one], [two])[0] for two in texts] for one in texts]) for texts in LISTS
    ]


def expect(scale: float) -> tuple[list[str], list[float]]:
    """Return the choice and the expected utilities by the definition."""
    chosen, every = [], []
    for texts, scores, utilities in zip(LISTS, SCORES, matrices(), strict=True):
        weights = np.exp(scale * (np.array(scores) - max(scores)))
        gains = utilities @ (weights / weights.sum())
        best = max(range(len(texts)), key=lambda row: (round(gains[row], 9), scores[row]))
        chosen.append(texts[best])
        every += sorted(gains.tolist(), reverse=True)
    return chosen, every


def pad(width: int) -> np.ndarray[Any, Any]:
    padded = np.full((len(LISTS), width, width), np.nan)
    for sentence, utilities in enumerate(matrices()):
        n = len(utilities)
        padded[sentence, :n, :n] = utilities
    return padded


UTILITIES = {
    "function": overlap,
    "matrices": matrices(),
    "lists": [matrix.tolist() for matrix in matrices()],
    "sentences": pad(4),
    "rows": np.concatenate([pad(4)[s, : len(texts)] for s, texts in enumerate(LISTS)]),
}


@pytest.mark.parametrize("form", UTILITIES)
@pytest.mark.parametrize("scale", [0.0, 1.0, 3.0])
def test_expected_utilities(form: str, scale: float) -> None:
    found = mosesplug.mbr(make_lists(), utility=UTILITIES[form], scale=scale)
    chosen, gains = expect(scale)
    assert found.texts == chosen
    assert found.lists.scores.tolist() == pytest.approx(gains)
    assert found.rows.tolist() == [0, 4, 6]
    weighted = mosesplug.mbr(make_lists(), {"LM": scale}, utility=UTILITIES[form])
    assert weighted.texts == chosen


def test_single_utilities_and_metrics() -> None:
    found = mosesplug.mbr(make_lists(), utility=[0, 1, 3, 2, 5, 6, 7])
    assert found.texts == ["the house", "yes", "no"]
    assert found.lists.scores.tolist() == [3, 2, 1, 0, 6, 5, 7]
    by_name = mosesplug.mbr(make_lists(), utility="CHRF beta:2", scale=0)
    by_metric = mosesplug.mbr(make_lists(), utility=metric("CHRF", "beta:2"), scale=0)
    assert by_name.lists.scores.tolist() == by_metric.lists.scores.tolist()
    own = pairwise_scores(metric("CHRF", "beta:2"), [text.encode() for text in LISTS[0]])
    assert by_name.lists.scores[0] == pytest.approx(own.mean(axis=1).max())


def test_lists_without_scores_count_all_alike() -> None:
    assert mosesplug.mbr(LISTS, utility=overlap).texts == expect(0.0)[0]
    assert mosesplug.mbr(LISTS, scale=0).texts[0] == "the small house"
    for method in ("consensus", "list", "lattice"):
        with pytest.raises(mosesplug.UsageError, match="give weights, or scale=0"):
            mosesplug.mbr(LISTS, method=method)  # type: ignore[arg-type]


def test_transform_changes_what_is_compared() -> None:
    seen = []

    def utility(hypotheses: list[str], references: list[str]) -> list[float]:
        seen.append(sorted({*hypotheses}))
        return overlap(hypotheses, references)

    found = mosesplug.mbr([["a@@ b", "c"]], utility=utility, transform="bpe")
    assert seen == [["ab", "c"]]
    assert found.texts == ["a@@ b"]


@pytest.mark.parametrize("method", ["consensus", "list", "lattice"])
def test_choices_are_those_of_the_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    method: str,
) -> None:
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    path = "run1.best100.out.gz"
    assert read_nbest(path).has_texts
    flags = {"consensus": [], "list": ["--list-mbr"], "lattice": ["--lattice-mbr"]}[method]
    with pytest.raises(SystemExit):
        main(["mbr", "--nbest", path, "--weights", "run1.dense", "--scale", "2", *flags])
    printed = capsys.readouterr().out.splitlines()
    found = mosesplug.mbr(path, "run1.dense", method=method, scale=2)  # type: ignore[arg-type]
    assert found.texts == printed


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        ([1.0] * 6, "utility has 6 entries, and there are more hypotheses"),
        ([1.0] * 8, "utility has 8 entries for 7 hypotheses"),
        (matrices()[:2], "utility has 2 entries, and there are more sentences"),
        ([*matrices(), np.eye(1)], "utility has 4 entries for 3 sentences"),
        ([np.eye(4), np.eye(3), np.eye(1)], r"utility\[1\] has the shape \(3, 3\), but .* 2 hyp"),
        ([np.eye(4), np.eye(1), np.eye(1)], r"utility\[1\] has the shape \(1, 1\), but .* 2 hyp"),
        (np.eye(7)[:, :3], r"utility\[0\] has the shape \(3,\), but the sentence has 4 hyp"),
        ([1.0, 2.0, np.nan, 1, 1, 1, 1], r"utility\[0\] has a number that is not finite"),
        (["a"] * 7, r"utility\[0\] has the type"),
        (lambda hypotheses, references: [1.0], r"returned the shape \(1,\) for 9 pairs"),
        (lambda hypotheses, references: [np.nan] * len(hypotheses), "returned nan for 'a small"),
        ("WORD", "unknown metric"),
        ({"a": 1}, "utility is a dict"),
        (3, "utility is a int"),
    ],
)
def test_wrong_utilities(utility: Any, message: str) -> None:
    with pytest.raises((mosesplug.UsageError, mosesplug.DataError), match=message):
        mosesplug.mbr(make_lists(), utility=utility)


def test_wrong_arguments() -> None:
    with pytest.raises(mosesplug.UsageError, match="method is 'best'"):
        mosesplug.mbr(make_lists(), method="best")  # type: ignore[arg-type]
    with pytest.raises(mosesplug.UsageError, match="scale is -1"):
        mosesplug.mbr(make_lists(), scale=-1)
    with pytest.raises(mosesplug.UsageError, match="sparse_weights requires weights"):
        mosesplug.mbr(make_lists(), sparse_weights="w")
