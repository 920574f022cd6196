"""Weights near the learned ones, and the front of those that no others beat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mosesplug
from mosesplug.results.scores.trade_offs import find_front, measure_trade_offs
from tests.results.pages import check_whole

POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


@given(POINTS)
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    front = find_front(np.array(points, dtype=np.float64))
    best = {
        (x, y)
        for x, y in points
        if not any((a >= x and b >= y) and (a, b) != (x, y) for a, b in points)
    }
    assert {points[row] for row in front} == best
    assert len(front) == len(best)
    assert [points[row][0] for row in front] == sorted((x for x, _ in best), reverse=True)


def _fit(**more: object) -> mosesplug.Fit:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 2))
    return mosesplug.optimize(
        features=features,
        sentence_ids=np.repeat(np.arange(12), 5),
        names=["lm", "tm"],
        scores={"GOOD": features[:, 0], "BAD": features[:, 1] - features[:, 0]},
        metric="GOOD",
        initial={"lm": 0.2, "tm": 0.8},
        **more,
    )


def test_points_are_the_weights_that_their_labels_name() -> None:
    fit = _fit()
    found = measure_trade_offs(fit.result)
    assert found is not None
    assert found.metrics == ("GOOD", "BAD")
    assert found.sentences == "12 sentences learned from"
    start, learned, *others = found.points
    assert start.scores == tuple(gain.start for gain in fit.gains[0].metrics)
    assert learned.scores == tuple(gain.end for gain in fit.gains[0].metrics)
    kinds = [point.kind for point in others]
    assert kinds.count("between") == 19
    # Of the other weight alone, or of none.
    assert kinds.count("changed") in (8, 16)
    assert max(point.scores[0] for point in found.points) >= learned.scores[0]
    half = next(point for point in others if point.label.startswith("50%"))
    norms = fit.weights.vector / np.abs(fit.weights.vector).sum()
    lists = fit.result.data.problem.tuning_set
    chosen = lists.first_best(0.5 * np.array([0.2, 0.8]) + 0.5 * norms)
    assert half.scores[0] == pytest.approx(lists.stats[chosen, 0].mean())


def test_held_out_sentences_are_preferred() -> None:
    found = measure_trade_offs(_fit(held_out=0.25).result)
    assert found is not None
    assert found.sentences == "3 held-out sentences"


def test_the_page(tmp_path: Path) -> None:
    fit = _fit(folds=3)
    page = fit.write_html(tmp_path / "page.html", title="<b>gains & losses</b>").read_text()
    check_whole(page)
    assert "&lt;b&gt;gains &amp; losses&lt;/b&gt;" in page
    assert "gain on 12 sentences, each with weights of the other folds" in page
    assert page.count('<svg class="scatter"') == 1
    assert 'class="learned' in page
    for gain in fit.gains:
        for each in gain.metrics:
            assert f">{each.end:.4f}</td>" in page


def test_a_page_without_watched_metrics(tmp_path: Path) -> None:
    fit = mosesplug.optimize(
        features=[[1.0, 0.0], [0.0, 1.0]], sentence_ids=[0, 0], scores=[1.0, 0.0], names=["a", "b"]
    )
    page = fit.write_html(tmp_path / "page.html").read_text()
    check_whole(page)
    assert "Trade-offs" not in page
    assert "Gains" not in page
