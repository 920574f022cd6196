"""The score along a line, against decoding at every part of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from mosesplug.errors import DataError, UsageError
from mosesplug.results.views.line import LineSurface, find_changed_sentences, trace_line
from mosesplug.results.views.run import open_run
from mosesplug.tuning.weights import Weights
from tests.results.runs import LISTS, make_run
from tests.store.toys import Hypothesis


def random_lists(seed: int) -> list[list[Hypothesis]]:
    """Lists of one iteration with random features."""
    rng = np.random.default_rng(seed)
    words = np.array([b"the", b"red", b"house", b"is", b"old", b"a", b"dog"])
    return [
        [
            Hypothesis(
                sentence,
                b" ".join(rng.choice(words, 5)),
                tuple(rng.normal(size=2)),
                (("T_a", float(rng.normal())),) if rng.random() < 0.5 else (),
            )
            for sentence in range(3)
            for _ in range(6)
        ]
    ]


def score_at(line: LineSurface, step: float) -> float:
    return float(line.scores[np.searchsorted(line.thresholds, step, side="right")])


@pytest.mark.parametrize("direction", ["LM0", "TM0_0", "T_a"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_decoding(direction: str, seed: int, tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work", lists=random_lists(seed))) as run:
        merged = run.store.tuning_set()
        line = trace_line(run, merged, direction, Weights((0.3, -0.7), {"T_a": 0.4}))
        assert line.shift == pytest.approx({"LM0": 0.3, "TM0_0": -0.7, "T_a": 0.4}[direction])
        ends = [line.thresholds[0] - 1.0, *line.thresholds, line.thresholds[-1] + 1.0]
        for start, end in itertools.pairwise(ends):
            middle = 0.5 * (start + end)
            chosen = merged.first_best(line.origin + middle * line.direction)
            score = float(run.metric.score(merged.stats[chosen].sum(axis=0)))
            assert score_at(line, middle) == pytest.approx(score)
        low, high, best = line.best_interval(-2.0, 2.0)
        samples = np.linspace(-2.0, 2.0, 501)
        assert best >= max(score_at(line, step) for step in samples) - 1e-12
        assert score_at(line, 0.5 * (low + high)) == pytest.approx(best)


def test_start_with_tied_hypotheses_is_that_of_the_first(tmp_path: Path) -> None:
    lists = [
        [
            Hypothesis(0, b"the red house is old", (-2.0, 0.0)),
            Hypothesis(0, b"the house is red old", (-1.0, 0.0)),
            Hypothesis(1, b"she sees a small dog", (-1.0, 0.0)),
            Hypothesis(1, b"she sees one dog", (-2.0, 0.0)),
        ]
    ]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        merged = run.store.tuning_set()
        line = trace_line(run, merged, "LM0", Weights((0.0, 0.0)))
        best = float(run.metric.score(merged.stats[[0, 2]].sum(axis=0)))
    assert line.start == best
    assert line.start > max(score_at(line, -0.1), score_at(line, 0.1))


def test_moved_sentences(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        merged = run.store.tuning_set()
        line = trace_line(run, merged, "LM0")
        # At the result (0.25, 0.75): "she sees a small dog" by -0.75; at LM0 = 0.5 it loses.
        assert find_changed_sentences(run, merged, line, 0.0) == []
        (moved,) = find_changed_sentences(run, merged, line, 0.25)
    assert (moved.sentence, moved.before, moved.after) == (
        1,
        "she sees a small dog",
        "she sees one dog",
    )
    assert moved.before_score > moved.after_score


def test_between_iterations(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        merged = run.store.tuning_set()
        line = trace_line(run, merged, "1:2")
        assert line.origin.tolist() == [0.5, 0.5]
        assert (line.origin + line.direction).tolist() == pytest.approx([0.25, 0.75])
        with pytest.raises(DataError, match="same weights"):
            trace_line(run, merged, "2:2")
        with pytest.raises(DataError, match="no iteration 3"):
            trace_line(run, merged, "1:3")
        with pytest.raises(UsageError, match="leave out --weights"):
            trace_line(run, merged, "1:2", Weights((1.0, 1.0)))


def test_features_by_name(tmp_path: Path) -> None:
    lists = [[h._replace(sparse=(("LM0_1", 1.0),)) for h in LISTS[0]]]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        merged = run.store.tuning_set()
        with pytest.raises(UsageError, match="no feature LM0;"):
            trace_line(run, merged, "LM0")  # the name of a group of several, as far as names tell
        assert trace_line(run, merged, "LM0_1").direction.tolist() == [0.0, 0.0, 1.0]
