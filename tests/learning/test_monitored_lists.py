"""Lists of monitors: scored with the result, and never selecting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from mosesplug.errors import UsageError
from mosesplug.learning.optimize import bind_optimizer, optimize
from mosesplug.results.report.gains import list_gain
from mosesplug.results.scores.gains import find_gaming
from mosesplug.settings.learning import LearningSettings

N = 12


def write_lists(name: str, sign: int, seed: int) -> None:
    """Lists in which A tells right words, positive or negative."""
    rng = np.random.default_rng(seed)
    lines, references = [], []
    for sentence in range(N):
        words = ["a", "b", "c", f"d{sentence}"]
        references.append(" ".join(words) + "\n")
        for wrong in range(4):
            text = " ".join([*words[wrong:], *["x"] * wrong])
            values = f"A= {-sign * wrong} B= {rng.normal()}"
            lines.append(f"{sentence} ||| {text} ||| {values} ||| 0\n")
    Path(f"{name}.nbest").write_text("".join(lines))
    Path(f"{name}.ref").write_text("".join(references))


@pytest.fixture(autouse=True)
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, (name, sign) in enumerate((("own", 1), ("like", 1), ("other", -1))):
        write_lists(name, sign, seed)


MONITORS = ("like=like.nbest,like.ref", "other=other.nbest,other.ref")


def learn(**more: Any) -> mosesplug.Fit:
    return mosesplug.optimize(
        "own.nbest",
        references="own.ref",
        initial={"A": -0.1, "B": 0.1},
        options={"restarts": 1, "polish": 0},
        **more,
    )


def test_monitors_are_scored_as_held_out_lists_are() -> None:
    plain, fit = learn(), learn(monitor_nbest=MONITORS)
    assert dict(fit.weights) == dict(plain.weights)
    assert fit.held_out is None
    assert [gain.data for gain in fit.gains] == ["learned from", "monitor like", "monitor other"]
    for gain, name in zip(fit.gains[1:], ("like", "other"), strict=True):
        held_out = mosesplug.HeldOut(f"{name}.nbest", f"{name}.ref")
        expected = learn(held_out=held_out)
        assert gain.objective.start == expected.start_held_out
        assert gain.objective.end == expected.held_out
        assert gain.metrics == expected.gains[1].metrics
    assert fit.gains[1].objective.end > 0.9 > fit.gains[2].objective.end
    heading, _ = list_gain(fit.gains[2])
    assert heading == f"gain on the {N} sentences of monitor other:"
    pairs = {name: (f"{name}.nbest", f"{name}.ref") for name in ("like", "other")}
    assert learn(monitor_nbest=pairs).gains == fit.gains


def test_monitors_do_not_choose_among_runs_or_warn() -> None:
    held_out = mosesplug.HeldOut("like.nbest", "like.ref")
    more: dict[str, Any] = {"runs": 2, "select": "best-heldout", "held_out": held_out}
    plain, fit = learn(**more), learn(**more, monitor_nbest=MONITORS[1:])
    assert fit.result.learning.solution.score == plain.result.learning.solution.score
    assert dict(fit.weights) == dict(plain.weights)
    assert [gain.data for gain in fit.gains] == ["learned from", "held out", "monitor other"]
    assert find_gaming(fit.gains) == find_gaming(plain.gains)


def test_weights_of_sentences_do_not_apply_to_monitors() -> None:
    weights = np.arange(N)
    fit = learn(sentence_weights=weights, monitor_nbest=MONITORS[:1])
    lists = fit.result.monitors["monitor like"].problem.tuning_set
    rows = lists.first_best(fit.result.learning.solution.weights)
    totals = lists.stats[rows].sum(axis=0)
    metric = fit.result.data.problem.metric
    assert fit.gains[1].objective.end == pytest.approx(float(metric.score(totals)))


@pytest.mark.parametrize(
    ("monitors", "more", "message"),
    [
        (["own"], {}, "own: not of the form NAME=FILE,REFS"),
        ([MONITORS[0]] * 2, {}, "like: two monitors have this name"),
        (["like=none,like.ref"], {}, "monitor_nbest='like': none: No such file"),
        (MONITORS, {"domains": ["x"] * N}, "exclude each other"),
    ],
)
def test_wrong_monitors(monitors: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        learn(monitor_nbest=monitors, **more)


def test_the_files_are_inputs_of_the_command() -> None:
    settings = LearningSettings(
        nbest=(Path("own.nbest"),),
        references=Path("own.ref"),
        monitor_nbest=MONITORS,  # type: ignore[arg-type]
        algorithm="kbmira",
        options={"epochs": 2},
    )
    assert {"like.nbest", "other.ref"} <= {path.name for path in settings.input_paths}
    result = optimize(settings, bind_optimizer(settings))
    assert list(result.monitors) == ["monitor like", "monitor other"]
