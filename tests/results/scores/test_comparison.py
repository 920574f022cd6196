"""Scores and comparisons of translations, as a script calls them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.references import read_references
from mosesplug.results.scores.comparison import compare_systems, parse_systems
from mosesplug.results.scores.scoring import prepare_metrics, score_translation

REFERENCE = "the red house is old\nshe sees a small dog today\nthey went home now\n"
WORSE = "the red house is old\nshe sees one dog today\nthey went home\n"


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("reference", REFERENCE), ("same", REFERENCE), ("worse", WORSE)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("texts")
def test_scores() -> None:
    metrics = prepare_metrics(["BLEU", "WER"], read_references("reference"))
    (bleu, wer), _ = score_translation(Path("same"), metrics, samples=20)
    assert (bleu.metric, bleu.score, bleu.interval) == ("BLEU", 1.0, (1.0, 1.0))
    assert (wer.metric, wer.score, wer.sentences) == ("WER", 0.0, (0.0, 0.0, 0.0))
    (bleu, wer), _ = score_translation(Path("worse"), metrics, samples=0)
    assert bleu.interval is None
    assert bleu.score < 1.0
    assert wer.score == pytest.approx(3 / 15)
    assert wer.sentences == pytest.approx((0.0, 2 / 6, 1 / 4))


@pytest.mark.usefixtures("texts")
def test_comparisons() -> None:
    (metric,) = prepare_metrics(["WER"], read_references("reference"))
    systems = parse_systems(["base=same", "new=worse", "several=same,worse"])
    base, new, several = compare_systems(systems, metric, samples=20, trials=20)
    assert (base.system, base.difference, base.p_bootstrap) == ("base", None, None)
    assert new.difference == pytest.approx(3 / 15)
    assert new.wins is not None
    assert new.wins < 0.5
    assert (several.runs, several.p_bootstrap) == (2, None)
    assert several.difference == pytest.approx(1.5 / 15)
    assert several.p_randomization is not None
    assert 0.0 < several.p_randomization <= 1.0


@pytest.mark.usefixtures("texts")
def test_interval_of_a_difference_agrees_with_resampling_by_hand() -> None:
    (metric,) = prepare_metrics(["WER"], read_references("reference"))
    systems = parse_systems(["same", "worse", "several=same,worse"])
    base, new, several = compare_systems(systems, metric, samples=200, trials=1, seed=7)
    errors, words = np.array([0, 2, 1]), np.array([5, 6, 4])
    draws = np.random.default_rng(7).choice(3, size=(200, 3))
    rates = [errors[drawn].sum() / words[drawn].sum() for drawn in draws]  # the baseline has none
    assert new.difference_interval == pytest.approx(tuple(np.percentile(rates, [2.5, 97.5])))
    assert (base.difference_interval, several.difference_interval) == (None, None)
    swapped = compare_systems(systems[1::-1], metric, samples=200, trials=1, seed=7)[1]
    low, high = new.difference_interval or (0.0, 0.0)
    assert swapped.difference_interval == pytest.approx((-high, -low))
