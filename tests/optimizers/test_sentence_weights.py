"""Weights of sentences: a sentence of weight 2 stands for two of it, in every algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers import algorithm
from mosesplug.optimizers.batch.ranking.classifiers import ClassifierOptions, fit_pairs
from mosesplug.optimizers.batch.ranking.pairs import PairSampling, RankedPairs, sample_pairs
from mosesplug.optimizers.online.oro.dual import solve_simplex
from mosesplug.optimizers.online.oro.options import OOroOptions
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.optimizers.problem import Problem, no_progress, sentence_scores
from mosesplug.optimizers.registry import Algorithm
from mosesplug.settings.sharding import Sharding
from mosesplug.testing.problems import planted_for
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning_set import TuningSet

N = 24
COUNTS = np.random.default_rng(5).integers(0, 4, N)
"""Integral weights, some of them 0."""

START = np.full(5, 0.2)

DETERMINISTIC: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 0, "polish": 0},
    "rank-all": {},
    "cross-entropy": {},
    "softmax": {},
    "risk": {"temperature": 0.1},
    "linear-bleu": {},
    "xbleu": {"temperature": 0.1},
    "margin": {"solver_tolerance": 1e-9, "sweeps": 4000},
    "cutting-plane": {"epsilon": 1e-9},
    "mse": {"examples": "all"},
}
"""Objectives that no random choice and no order changes; with settings that say so."""

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *DETERMINISTIC.items(),
    ("rank-all", {"pair_loss": "hinge"}),
    ("margin", {"violations": "all", "solver_tolerance": 1e-7, "sweeps": 4000, "oracles": "best"}),
    ("cutting-plane", {"slack_variables": "n", "epsilon": 1e-9}),
    ("mse", {"examples": "oracles"}),
    ("softmax", {"oracles": "single", "error_margin": 0.0}),
]


def weighed(tuner: Algorithm, counts: NDArray[Any]) -> Problem:
    problem = planted_for(tuner, 3, noise=1.0, n_sentences=N, n_hyps=8)
    lists = problem.tuning_set.weigh(counts.astype(np.float64))
    return replace(problem, tuning_set=lists)


def repeated(tuner: Algorithm, counts: NDArray[Any]) -> Problem:
    problem = planted_for(tuner, 3, noise=1.0, n_sentences=N, n_hyps=8)
    lists = problem.tuning_set.take_sentences(np.repeat(np.arange(N), counts))
    return replace(problem, tuning_set=lists)


def learn(tuner: Algorithm, problem: Problem, **options: Any) -> tuple[NDArray[np.float64], float]:
    rng = np.random.default_rng(0)
    solution = tuner.optimize(problem, START, rng, tuner.options(**options), no_progress)
    return solution.weights, solution.score


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_integral_weights_repeat_sentences(name: str, options: dict[str, Any]) -> None:
    tuner = algorithm(name)
    weights, score = learn(tuner, weighed(tuner, COUNTS), **options)
    expected, expected_score = learn(tuner, repeated(tuner, COUNTS), **options)
    np.testing.assert_allclose(weights, expected, rtol=2e-4, atol=2e-6)
    assert score == pytest.approx(expected_score, abs=1e-12)
    plain, _ = learn(tuner, repeated(tuner, np.ones(N, dtype=np.int64)), **options)
    assert not np.allclose(plain, expected, rtol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_sampled_pairs_of_a_sentence_are_examples_with_its_weight(seed: int) -> None:
    """The classifier of pro: pairs are drawn once, and count as often as the sentence."""
    rng = np.random.default_rng(seed)
    problem = weighed(algorithm("pro"), COUNTS)
    lists = problem.tuning_set
    scores = sentence_scores(problem, "moses")
    sampling = PairSampling(200, 10, 0.05)
    pairs = sample_pairs(lists.offsets, scores, lambda top, n: rng.integers(0, top, n), sampling)
    of_row = np.repeat(COUNTS, np.diff(lists.offsets))
    copies = of_row[pairs.better]
    written_out = RankedPairs(np.repeat(pairs.better, copies), np.repeat(pairs.worse, copies))
    plain = replace(problem, tuning_set=lists.weigh(None))
    for classifier in ("logistic", "hinge"):
        options = ClassifierOptions(classifier=classifier)
        weights, fit = fit_pairs(problem, START, pairs, options, rng)
        expected, other = fit_pairs(plain, START, written_out, options, rng)
        np.testing.assert_allclose(weights, expected, rtol=2e-3)
        assert fit.loss == pytest.approx(other.loss, rel=2e-3)


def test_statistics_of_sentences_are_weighted_in_sums() -> None:
    problem = planted_for(algorithm("mert"), 3, n_sentences=N)
    lists = problem.tuning_set
    assert lists.weigh(np.ones(N)).weighted_stats is lists.stats
    whole = lists.weigh(COUNTS.astype(np.float64)).weighted_stats
    assert whole.dtype == np.int32
    assert whole.tolist() == (lists.stats * np.repeat(COUNTS, 15)[:, None]).tolist()
    half = lists.weigh(COUNTS / 2).weighted_stats
    assert half.dtype == np.float64
    np.testing.assert_array_equal(half * 2, whole)
    large = lists.weigh(np.full(N, 1e9)).weighted_stats
    assert large.dtype == np.float64
    assert large.min() >= 0.0


def test_parts_of_lists_keep_their_weights() -> None:
    lists = planted_for(algorithm("mert"), 3, n_sentences=N).tuning_set
    weights = np.linspace(0.0, 2.0, N)
    lists = lists.weigh(weights)

    def of(part: TuningSet) -> list[float]:
        assert part.sentence_weights is not None
        return [float(weight) for weight in part.sentence_weights]

    assert of(lists.view_sentences(3, 7)) == weights[3:7].tolist()
    assert of(lists.take_sentences(np.array([5, 2]))) == weights[[5, 2]].tolist()
    assert of(lists.drop_weightless()) == weights[1:].tolist()
    assert lists.drop_weightless().sentence_ids.tolist() == list(range(1, N))
    assert lists.total_weight == pytest.approx(weights.sum())


def test_corpus_oracles_weigh_statistics() -> None:
    """Of two sentences, the heavy one decides which ratio of points is the best."""
    problem = planted_for(algorithm("mert"), 3, noise=1.0, n_sentences=6, n_hyps=4)
    counts = np.array([3, 1, 2, 1, 1, 4])
    lists = problem.tuning_set.weigh(counts.astype(np.float64))
    copies = problem.tuning_set.take_sentences(np.repeat(np.arange(6), counts))
    own = corpus_oracles(lists, problem.metric, np.random.default_rng(0))
    other = corpus_oracles(copies, problem.metric, np.random.default_rng(0))
    assert own.score == pytest.approx(other.score)


def test_one_bound_of_all_multipliers_has_no_place_for_weights() -> None:
    """A repeated constraint shares the multiplier of its copy: the step stays the same."""
    rng = np.random.default_rng(3)
    planes, gains = rng.normal(size=(4, 3)), rng.uniform(0.1, 1.0, 4)
    copies = np.repeat(np.arange(4), [3, 1, 1, 2])
    steps = [
        solve_simplex(own @ own.T, gains[rows], 0.3) @ own
        for rows in (np.arange(4), copies)
        for own in (planes[rows],)
    ]
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-8)
    tuner = algorithm("o-oro")
    with pytest.raises(UsageError, match="leave exact_dual out"):
        learn(tuner, weighed(tuner, COUNTS), exact_dual=True)
    assert OOroOptions().exact_dual is False


def test_an_algorithm_that_cannot_weigh_sentences_says_which_can() -> None:
    tuner = replace(algorithm("mert"), name="plain", weighs_sentences=False)
    with pytest.raises(UsageError, match="plain cannot weight sentences; choose one of mert, kb"):
        learn(tuner, weighed(tuner, COUNTS))


def test_the_exact_optimum_is_that_of_repeated_sentences() -> None:
    tuner = algorithm("mert")
    active = np.arange(5) < 2
    plain, own, others = (
        replace(problem, active=active)
        for problem in (
            repeated(tuner, np.ones(N, dtype=np.int64)),
            weighed(tuner, COUNTS),
            repeated(tuner, COUNTS),
        )
    )
    weights, score = learn(tuner, own, method="exact")
    expected, expected_score = learn(tuner, others, method="exact")
    np.testing.assert_allclose(weights, expected)
    assert score == pytest.approx(expected_score, abs=1e-12)
    assert not np.allclose(learn(tuner, plain, method="exact")[0], expected)


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_one_shard_learns_online_as_without_shards(workers: str) -> None:
    tuner = algorithm("perceptron")
    problem = weighed(tuner, COUNTS)
    optimizer = tuner.bind(tuner.options(epochs=2, averaging="last"))
    whole = optimizer.optimize(problem, START, np.random.default_rng(0))
    sharding = Sharding(shards=1, workers=workers, mixing="average")  # type: ignore[arg-type]
    one = optimize_sharded(problem, optimizer, sharding, START, np.random.default_rng(0))
    assert one.weights.tobytes() == whole.weights.tobytes()
    assert one.score == whole.score
