"""Bounds of weights as users write them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mosesplug
from mosesplug.cli.main import main
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.bounds import describe_moves, make_bounds
from mosesplug.settings.intervals import parse_bounds

SPACE = FeatureSpace((("LM0", 1), ("TM0", 3)), ("WT_a:b",))
INF = np.inf


@pytest.mark.parametrize(
    ("texts", "low", "high", "is_open"),
    [
        (["LM0:0..1"], [0, -INF, -INF, -INF, -INF], [1, INF, INF, INF, INF], []),
        (["TM0:0.."], [-INF, 0, 0, 0, -INF], [INF] * 5, []),
        (["TM0:..-1e-1"], [-INF] * 5, [INF, -0.1, -0.1, -0.1, INF], []),
        (["TM0_1:>0"], [-INF, -INF, 0, -INF, -INF], [INF] * 5, [2]),
        (["LM0:=1"], [1, -INF, -INF, -INF, -INF], [1, INF, INF, INF, INF], []),
        (["TM0:>=0,<=1,-1..1"], [-INF, 0, -INF, -1, -INF], [INF, INF, 1, 1, INF], []),
        (["WT_a:b:-inf..2"], [-INF] * 5, [INF, INF, INF, INF, 2], []),
        (["TM0:0..", "TM0_0:..1"], [-INF, 0, 0, 0, -INF], [INF, 1, INF, INF, INF], []),
        (["LM0:-0..1", "LM0:>0"], [0, -INF, -INF, -INF, -INF], [1, INF, INF, INF, INF], [0]),
    ],
)
def test_bounds(texts: list[str], low: list[float], high: list[float], is_open: list[int]) -> None:
    bounds = make_bounds(parse_bounds(texts), SPACE)
    assert bounds is not None
    assert bounds.low.tolist() == low
    assert bounds.high.tolist() == high
    assert np.flatnonzero(bounds.above).tolist() == is_open
    assert not np.signbit(bounds.low[bounds.low == 0.0]).any()


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["LM0"], "no feature is named; write NAME:MIN..MAX"),
        ([":0..1"], "no feature is named"),
        (["LM1:0..1"], "there is no feature LM1; known: LM0, TM0, WT_a:b"),
        (["LM0:2..1"], "no weight is at least 2 and at most 1"),
        (["LM0:inf..inf"], "no weight is at least inf"),
        (["LM0:nan..1"], "'nan' is not a number"),
        (["LM0:x..1"], "'x' is not a number"),
        (["LM0:.."], "'..' is not an interval"),
        (["LM0:1"], "'1' is not an interval"),
        (["LM0:"], "'' is not an interval"),
        (["LM0:=inf"], "'=inf' is not finite"),
        (["LM0:>"], "'' is not a number"),
        (["TM0:0..1,0..1"], "2 intervals for TM0, which has 3 values"),
        (["LM0:0..1", "LM0:2..3"], "no weight of LM0 is inside all of its bounds"),
        (["LM0:>1", "LM0:..1"], "no weight of LM0 is inside"),
        (["LM0:=0", "TM0:=0", "WT_a:b:=0"], "fixes all weights at 0"),
    ],
)
def test_rejected_bounds(texts: list[str], why: str) -> None:
    with pytest.raises((UsageError, ValueError)) as error:
        make_bounds(parse_bounds(texts), SPACE)
    assert why in str(error.value)


@given(st.text(max_size=20))
def test_any_text_is_bounds_or_rejected(text: str) -> None:
    with contextlib.suppress(ValueError):
        make_bounds(parse_bounds([f"LM0:{text}"]), SPACE)


def test_a_fixed_weight_is_not_tuned() -> None:
    active = SPACE.select(["TM0"])
    with pytest.raises(UsageError, match="fixes the weight of TM0_2 at 1, but --active names it"):
        make_bounds(parse_bounds(["TM0_2:=1"]), SPACE, active)
    assert make_bounds(parse_bounds(["LM0:=1"]), SPACE, active) is not None


def test_moved_starting_weights_are_named() -> None:
    bounds = make_bounds(parse_bounds(["TM0:0..1"]), SPACE)
    assert bounds is not None
    start = np.array([3.0, -1.0, 0.5, 2.0, 0.0])
    assert describe_moves(bounds, start, SPACE.labels) == [
        "starting weights are moved into their bounds: TM0_0 from -1 to 0, TM0_2 from 2 to 1"
    ]
    assert describe_moves(bounds, bounds.project(start), SPACE.labels) == []


ROWS = np.random.default_rng(0).standard_normal((120, 3))
IDS = np.repeat(np.arange(12), 10)
SCORES = ROWS @ [1.0, 0.5, -0.7]


@pytest.mark.parametrize(
    "bounds",
    [["a:0.5..1", "b:>0", "c:=-0.2"], {"a": (0.5, 1), "b": ">0", "c": -0.2}],
    ids=["texts", "mapping"],
)
def test_bounds_of_the_api(bounds: object) -> None:
    fit = mosesplug.optimize(
        features=ROWS, sentence_ids=IDS, scores=SCORES, names=["a", "b", "c"], bounds=bounds
    )
    assert 0.5 <= fit.weights["a"] <= 1.0
    assert fit.weights["b"] > 0.0
    assert fit.weights["c"] == -0.2
    assert any("moved into their bounds: a from 0.33" in each for each in fit.warnings)
    for runs in (
        fit,
        mosesplug.optimize(
            features=ROWS,
            sentence_ids=IDS,
            scores=SCORES,
            names=["a", "b", "c"],
            bounds=bounds,
            runs=2,
            select="average",
            held_out=0.2,
        ),
    ):
        assert runs.weights["c"] == -0.2


@pytest.mark.parametrize("limit", [(1,), "0..1..2", None, (1, "x"), object()])
def test_bounds_of_the_api_that_cannot_be_used(limit: object) -> None:
    with pytest.raises(UsageError, match="bound"):
        mosesplug.optimize(
            features=ROWS,
            sentence_ids=IDS,
            scores=SCORES,
            names=["a", "b", "c"],
            bounds={"a": limit},
        )


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"{n} ||| {' '.join('ab'[: 1 + k % 2] * (k + 1))} ||| A= {row[0]:.4f} B= {row[1]:.4f} ||| 0"
        for n in range(12)
        for k, row in enumerate(ROWS[10 * n : 10 * n + 4])
    ]
    nbest, refs = tmp_path / "lists", tmp_path / "refs"
    nbest.write_text("\n".join(lines) + "\n")
    refs.write_text("a a a\n" * 12)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["optimize", str(nbest), "--refs", str(refs), "--metric", "WER", *words])
        found = capsys.readouterr()
        return int(ended.value.code or 0), found.out, found.err

    code, weights, said = run("--bound", "A:=1", "--bound", "B:-2..-1")
    assert code == 0
    values = {line.split("=")[0]: float(line.split("=")[1]) for line in weights.splitlines()}
    assert values["A"] == 1.0
    assert -2.0 <= values["B"] <= -1.0
    assert "warning: starting weights are moved into their bounds: A from 0.5 to 1" in said
    code, _, said = run("--bound", "A:0..1", "--algorithm", "rampion")
    assert code == 2
    assert "rampion cannot keep bounds of weights; choose one of mert, kbmira" in said
    code, _, said = run("--bound", "A:0..1", "--algorithm", "mira", "--shards", "2")
    assert code == 2
    assert "--shards" in said or "without shards" in said
