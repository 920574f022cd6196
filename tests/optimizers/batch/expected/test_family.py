"""What softmax, risk, linear BLEU and xBLEU have in common."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.extractor.reader import read_features, read_scores
from formats.weights.files import read_init_opt
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.metrics import metric
from mosesplug.optimizers.problem import Problem, Solution, corpus_score, no_progress
from mosesplug.optimizers.registry import algorithms
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.optimizers.batch.expected.small import bleu_lists
from tests.optimizers.problems import Accuracy, planted, planted_bleu, tuning_set, with_bleu

Floats = NDArray[np.float64]

FAMILY = {name: each for name, each in algorithms().items() if each.family == "expectation"}
ALL = pytest.mark.parametrize("name", FAMILY)


def solve(name: str, problem: Problem, initial: Floats, **options: Any) -> Solution:
    tuner = FAMILY[name]
    made = tuner.options(**options)
    return tuner.optimize(problem, initial, np.random.default_rng(0), made, no_progress)


def cosine(one: Floats, other: Floats) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def planted_sparse(seed: int, n_sparse: int = 30) -> tuple[Problem, Floats]:
    """Two dense features and many sparse ones decide together; also the hidden weights."""
    rng = np.random.default_rng(seed)
    n_sentences, n_hyps = 120, 12
    dense = rng.standard_normal((n_sentences * n_hyps, 2))
    hidden = rng.standard_normal(2 + n_sparse)
    held = rng.random((len(dense), n_sparse)) < 0.15
    sparse = SparseRows(
        np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64),
        np.nonzero(held)[1].astype(np.int32),
        np.ones(int(held.sum()), dtype=np.float32),
    )
    quality = dense @ hidden[:2] + held @ hidden[2:]
    ranks = quality.reshape(n_sentences, n_hyps).argsort(axis=1).argsort(axis=1).ravel()
    names = tuple(f"W_{column}" for column in range(n_sparse))
    won = np.round(10 * ranks / (n_hyps - 1)).astype(np.int64)
    made = tuning_set([n_hyps] * n_sentences, dense, won, sparse, names)
    return with_bleu(Problem(made, Accuracy())), hidden


@ALL
def test_l1_zeroes_weights_and_counts_the_rest(name: str) -> None:
    """The more, the stronger it is; the hidden weights that remain are the largest."""
    problem, hidden = planted_sparse(23)
    start = np.append(np.ones(2), np.zeros(30))
    # The losses have units of their own.
    strengths = {"softmax": (0.03, 0.1), "linear-bleu": (0.01, 0.03)}.get(name, (0.003, 0.005))
    remaining = []
    for l1 in strengths:
        solution = solve(name, problem, start, l1=l1)
        used = solution.weights != 0.0
        remaining.append(int(used.sum()))
        assert solution.notes[-1] == f"L1 left {used.sum()} of 32 tuned weights different from 0"
        assert np.abs(hidden[used]).mean() > np.abs(hidden[~used]).mean()
        assert cosine(solution.weights, hidden) > 0.6
    assert 32 > remaining[0] > remaining[1] > 0
    assert not solve(name, problem, start).notes


@ALL
def test_sparse_weights_are_tuned_and_count(name: str) -> None:
    problem, hidden = planted_sparse(23)
    start = np.append(np.ones(2), np.zeros(30))
    found = solve(name, problem, start)
    assert cosine(found.weights, hidden) > 0.95
    dense_only = solve(name, replace(problem, active=np.arange(32) < 2), start)
    assert not dense_only.weights[2:].any()
    assert found.score > dense_only.score + 0.1


@pytest.mark.parametrize(
    ("name", "factor"), [("softmax", 0.01), ("risk", 50.0), ("linear-bleu", 0.01), ("xbleu", 50.0)]
)
def test_inactive_weights_do_not_change_and_fix_the_scale(name: str, factor: float) -> None:
    problem, hidden = planted_bleu(24, n_sentences=100)
    active = np.array([True, False, True, False, True])
    start = np.where(active, 9.0, factor * hidden)
    found = solve(name, replace(problem, active=active), start)
    np.testing.assert_array_equal(found.weights[~active], start[~active])
    assert cosine(found.weights, hidden) > 0.97


@ALL
def test_inactive_weights_that_point_the_wrong_way(name: str) -> None:
    problem, hidden = planted_bleu(25)
    active = np.array([True, True, True, True, False])
    start = np.where(active, 0.1, -0.1 * hidden)
    found = solve(name, replace(problem, active=active), start)
    assert found.weights[4] == start[4]
    assert found.score > corpus_score(problem, start)


@ALL
def test_steps_decrease_and_report_the_objective(name: str) -> None:
    problem, _ = planted_bleu(26, noise=0.5)
    quenching = {} if name == "softmax" else {"quench_end": 100.0, "center": "zero"}
    history = solve(name, problem, np.ones(5), **quenching).history
    stages = np.array([step["stage"] for step in history])
    assert stages[-1] == (1 if name == "softmax" else 3)
    for stage in range(1, stages[-1] + 1):
        own = [step for step in history if step["stage"] == stage]
        values = [step["objective"] for step in own]
        assert len(values) > 2
        assert (np.diff(values) <= 0.0).all()
        assert own[-1]["gradient"] < 0.1 * own[0]["gradient"]
        assert {step["scale"] for step in own} == {10.0 ** (stage - 1)}


@ALL
def test_convergence_of_the_last_stage_is_reported(name: str) -> None:
    problem, _ = planted_bleu(27, n_sentences=40, noise=0.5)
    few = {"iterations": 2} if name == "softmax" else {"stage_iterations": 2}
    assert solve(name, problem, np.ones(5)).history[-1]["converged"] is True
    assert solve(name, problem, np.ones(5), **few).history[-1]["converged"] is False


@ALL
def test_starts_from_nothing_and_among_empty_lists(name: str) -> None:
    lists = bleu_lists(3, sizes=(0, 12, 1, 9, 0, 14, 7, 0), n_sparse=2)
    problem = Problem(lists, metric("BLEU"))
    found = solve(name, problem, np.zeros(5))
    assert np.abs(found.weights[:3]).sum() == pytest.approx(1.0)
    assert found.score > lists_average(problem)


def lists_average(problem: Problem) -> float:
    """BLEU of all hypotheses."""
    return float(problem.metric.score(problem.tuning_set.stats.sum(axis=0)))


@ALL
def test_lists_with_equal_features_are_rejected(name: str) -> None:
    lists = bleu_lists(4, sizes=(3, 4), n_sparse=0)
    same = np.repeat(np.ones((2, 3), dtype=np.float32), [3, 4], axis=0)
    problem = Problem(replace(lists, dense=same), metric("BLEU"))
    with pytest.raises(OptimizerError, match="same active features"):
        solve(name, problem, np.ones(3))


@pytest.mark.parametrize("name", ["linear-bleu", "xbleu"])
def test_rejects_other_metrics_than_bleu(name: str) -> None:
    assert FAMILY[name].needs_bleu
    with pytest.raises(UsageError, match="requires the metric BLEU, not accuracy"):
        solve(name, planted(1)[0], np.ones(5))


@pytest.fixture(scope="module")
def recorded(multi30k: Path) -> tuple[Problem, Floats]:
    """Every third sentence of recorded list 1, and its weights."""
    features = read_features(multi30k / "scores" / "run1.features.dat.gz")
    scores = read_scores(multi30k / "scores" / "run1.scores.dat.gz")
    made = TuningSet(
        FeatureSpace.of_names(name.rpartition("_")[0] for name in features.names),
        features.sentence_ids,
        features.offsets,
        features.dense,
        None,
        scores.stats,
        scores.stats[:, 1].astype(np.int32),
    )
    start = np.asarray(read_init_opt(multi30k / "mert-work" / "run1.init.opt").start)
    some = np.arange(0, made.n_sentences, 3)
    return Problem(made.take_sentences(some), metric("BLEU", "case:true")), start


@pytest.mark.parametrize(
    ("name", "gain"), [("softmax", 0.01), ("risk", 0.008), ("linear-bleu", 0.01), ("xbleu", 0.01)]
)
def test_defaults_gain_on_real_features(
    recorded: tuple[Problem, Floats], name: str, gain: float
) -> None:
    """Of all sentences, MERT goes from 0.3913 to 0.4098."""
    problem, start = recorded
    assert solve(name, problem, start).score > corpus_score(problem, start) + gain
