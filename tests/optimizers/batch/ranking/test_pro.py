"""PRO, alone and before MERT, against hidden weights and recorded lists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.extractor.reader import read_features, read_scores
from formats.weights.files import read_init_opt
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.metrics import metric
from mosesplug.metrics.bleu.sentence import sentence_bleu_lin_och, sentence_bleu_moses
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.batch.ranking.classifiers import fit_pairs
from mosesplug.optimizers.batch.ranking.pairs import PairSampling, differences, sample_pairs
from mosesplug.optimizers.batch.ranking.pro import ProMertOptions, ProOptions
from mosesplug.optimizers.problem import Problem, corpus_score, sentence_scores
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.optimizers.problems import Accuracy, planted, tuning_set

mert = algorithm("mert").optimize
pro = algorithm("pro").optimize
pro_mert = algorithm("pro+mert").optimize

BOTH = ProMertOptions(restarts=2, polish=2)


def run(
    problem: Problem, initial: NDArray[np.float64], seed: int = 0, **options: object
) -> NDArray[np.float64]:
    made = replace(ProOptions(), **options)  # type: ignore[arg-type]
    return pro(problem, initial, np.random.default_rng(seed), made).weights


def planted_sparse(seed: int, n_sparse: int = 30) -> tuple[Problem, NDArray[np.float64]]:
    """Two dense features and many sparse ones decide together; also the hidden weights."""
    rng = np.random.default_rng(seed)
    n_sentences, n_hyps = 200, 12
    n_rows = n_sentences * n_hyps
    dense = rng.standard_normal((n_rows, 2))
    hidden = rng.standard_normal(2 + n_sparse)
    held = rng.random((n_rows, n_sparse)) < 0.15
    rows, columns = np.nonzero(held)
    sparse = SparseRows(
        np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64),
        columns.astype(np.int32),
        np.ones(len(rows), dtype=np.float32),
    )
    quality = dense @ hidden[:2] + held @ hidden[2:]
    ranks = quality.reshape(n_sentences, n_hyps).argsort(axis=1).argsort(axis=1).ravel()
    won = np.round(10 * ranks / (n_hyps - 1)).astype(np.int64)
    names = tuple(f"W_{column}" for column in range(n_sparse))
    made = tuning_set([n_hyps] * n_sentences, dense, won, sparse, names)
    return Problem(made, Accuracy()), hidden


def cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_direction_of_hidden_weights() -> None:
    problem, hidden = planted(21, n_sentences=300)
    weights = run(problem, np.ones(5))
    assert cosine(weights, hidden) > 0.99
    assert np.abs(weights).sum() == pytest.approx(1.0)


def test_initial_weights_do_not_matter() -> None:
    problem, _ = planted(22, noise=0.5)
    np.testing.assert_array_equal(run(problem, np.ones(5)), run(problem, -7.0 * np.ones(5)))


def test_sparse_weights_are_tuned_and_count() -> None:
    problem, hidden = planted_sparse(23)
    start = np.append(np.ones(2), np.zeros(30))
    weights = run(problem, start)
    assert cosine(weights, hidden) > 0.95
    dense_only = replace(problem, active=np.arange(32) < 2)
    assert corpus_score(problem, weights) > corpus_score(problem, run(dense_only, start)) + 0.1


def test_inactive_weights_do_not_change_and_fix_the_scale() -> None:
    problem, hidden = planted(24, n_sentences=300)
    active = np.array([True, False, True, False, True])
    for scale in (0.01, 1.0, 50.0):
        start = np.where(active, 9.0, scale * hidden)
        weights = run(replace(problem, active=active), start)
        np.testing.assert_array_equal(weights[~active], start[~active])
        assert cosine(weights, hidden) > 0.99


def test_inactive_weights_that_point_the_wrong_way() -> None:
    problem, hidden = planted(25)
    active = np.array([True, True, True, True, False])
    start = np.where(active, 0.0, -0.1 * hidden)
    weights = run(replace(problem, active=active), start)
    assert weights[4] == start[4]
    assert corpus_score(problem, weights) > corpus_score(problem, np.where(active, 1.0, start))


def test_a_smaller_prior_gives_larger_weights_of_the_same_direction() -> None:
    problem, _ = planted(26, noise=0.3)
    # One inactive feature that never differs keeps the result from being normalized.
    dense = np.column_stack([problem.tuning_set.dense, np.ones(problem.tuning_set.n_hyps)])
    made = tuning_set([15] * 60, dense, problem.tuning_set.stats[:, 0])
    fixed = Problem(made, Accuracy(), active=np.arange(6) < 5)
    weights = [run(fixed, np.zeros(6), prior_precision=each) for each in (1000.0, 1.0)]
    assert np.linalg.norm(weights[0]) < np.linalg.norm(weights[1])
    assert cosine(*weights) > 0.9


def test_number_of_pairs() -> None:
    problem, _ = planted(27)
    options = ProOptions(candidate_pairs=40, kept_pairs=7)
    solution = pro(problem, np.ones(5), np.random.default_rng(0), options)
    assert solution.history[0]["pairs"] == 60 * 7
    assert solution.history[0]["converged"]


def test_rejects_hypotheses_of_equal_scores() -> None:
    made = tuning_set([3, 3], np.arange(12.0).reshape(6, 2), np.full(6, 4))
    problem = Problem(made, Accuracy())
    for least in (0.05, 0.0):
        with pytest.raises(OptimizerError, match="minimum_difference"):
            run(problem, np.ones(2), minimum_difference=least)
    same = tuning_set([3, 3], np.ones((6, 2)), np.arange(6))
    with pytest.raises(OptimizerError, match="separate good hypotheses from bad"):
        run(Problem(same, Accuracy()), np.ones(2))


def test_smoothing_a_missing_brevity_penalty_is_rejected() -> None:
    problem, _ = planted(32)
    with pytest.raises(UsageError, match="accuracy"):
        run(problem, np.ones(5), smooth_brevity_penalty=True)


def test_the_smoothing_decides_which_hypothesis_is_better() -> None:
    """The first shares no word with the reference, the second one word, but is too long."""
    stats = np.array([[0, 8, 0, 7, 0, 6, 0, 5, 8], [1, 11, 0, 10, 0, 9, 0, 8, 8]])
    moses, plus_one = (
        score(stats.astype(np.float64)) for score in (sentence_bleu_moses, sentence_bleu_lin_och)
    )
    assert moses[0] > moses[1]
    assert plus_one[0] < plus_one[1]
    lists = replace(tuning_set([2], np.array([[1.0], [0.0]]), np.zeros(2)), stats=stats)
    problem = Problem(lists, metric("BLEU", "case:true"))
    signs = [
        np.sign(run(problem, np.ones(1), sentence_bleu=kind, minimum_difference=0.0)[0])
        for kind in ("moses", "lin-och")
    ]
    assert signs == [1.0, -1.0]


def test_l1_is_optimal_on_the_pairs_in_both_directions() -> None:
    """No slope of the loss exceeds the factor, and it is the factor where a weight is not 0."""
    problem, _ = planted(33, n_sentences=20)
    scores = sentence_scores(problem, "moses")
    rng = np.random.default_rng(1)
    pairs = sample_pairs(
        problem.tuning_set.offsets, scores, lambda top, n: rng.integers(0, top, n), PairSampling()
    )
    options = ProOptions(l1=100.0, prior_precision=2.0)
    weights, fit = fit_pairs(problem, np.ones(5), pairs, options, rng)
    assert fit.has_converged
    rows = differences(problem.tuning_set, pairs).toarray()
    both = np.concatenate([rows, -rows])
    labels = np.repeat([1.0, 0.0], len(rows))
    slope = both.T @ (1.0 / (1.0 + np.exp(-(both @ weights))) - labels) + 2.0 * weights
    used = weights != 0.0
    assert 0 < used.sum() < 5
    np.testing.assert_allclose(slope[used], -100.0 * np.sign(weights[used]), rtol=1e-4)
    assert (np.abs(slope[~used]) <= 100.0).all()
    optimizer = algorithm("pro")
    solution = optimizer.optimize(problem, np.ones(5), np.random.default_rng(1), options)
    assert solution.notes == (f"L1 left {used.sum()} of 5 tuned weights different from 0",)
    with pytest.raises(OptimizerError, match="regularization is too strong"):
        optimizer.optimize(problem, np.ones(5), rng, ProOptions(l1=1e6))


def test_before_mert_nothing_is_lost() -> None:
    problem, _ = planted(28, noise=1.0)
    problem = replace(problem, minima=-np.ones(5), maxima=np.ones(5))
    rng = np.random.default_rng
    alone = pro(problem, np.ones(5), rng(0), ProOptions())
    both = pro_mert(problem, np.ones(5), rng(0), BOTH)
    assert both.score >= alone.score
    assert both.score == corpus_score(problem, both.weights)
    starts = [step["start_score"] for step in both.history if step.get("climb") == "start"]
    assert starts[1] == pytest.approx(alone.score)


def test_mert_tunes_a_factor_of_the_sparse_weights() -> None:
    problem, _ = planted_sparse(29)
    start = np.append(np.ones(2), np.zeros(30))
    alone = pro(problem, start, np.random.default_rng(0), ProOptions())
    both = pro_mert(problem, start, np.random.default_rng(0), BOTH)
    assert cosine(both.weights[2:], alone.weights[2:]) == pytest.approx(1.0)
    assert both.score >= alone.score - 1e-6
    assert both.score == corpus_score(problem, both.weights)
    assert np.abs(both.weights[:2]).sum() == pytest.approx(1.0)


def test_inactive_sparse_weights_do_not_change_before_mert() -> None:
    problem, hidden = planted_sparse(30)
    active = np.arange(32) % 2 == 0
    solution = pro_mert(replace(problem, active=active), hidden, np.random.default_rng(0), BOTH)
    np.testing.assert_array_equal(solution.weights[~active], hidden[~active])
    assert solution.score == corpus_score(problem, solution.weights)
    only_dense = pro_mert(
        replace(problem, active=np.arange(32) < 2), hidden, np.random.default_rng(0), BOTH
    )
    factor = only_dense.weights[2] / hidden[2]  # all dense weights are active: they are normalized
    np.testing.assert_allclose(only_dense.weights[2:], factor * hidden[2:])


def test_historic_bests_start_mert_after_pro() -> None:
    problem, _ = planted_sparse(31)
    best = np.append([3.0, -2.0], np.zeros(30))
    started = replace(problem, starts=(best,))
    solution = pro_mert(
        started, np.append(np.ones(2), np.zeros(30)), np.random.default_rng(0), BOTH
    )
    n_starts = sum(step.get("climb") == "start" for step in solution.history)
    assert n_starts == 3 + BOTH.restarts


def recorded_problem(multi30k: Path) -> Problem:
    """Recorded list 1 with Moses' own features and statistics."""
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
    return Problem(made, metric("BLEU", "case:true"), threads=2)


def test_recorded_list(multi30k: Path) -> None:
    """PRO ranks by sentences, and still comes near what MERT finds on the corpus (0.4098)."""
    problem = recorded_problem(multi30k)
    start = np.asarray(read_init_opt(multi30k / "mert-work" / "run1.init.opt").start)
    before = corpus_score(problem, start)
    plain, other = (run(problem, start, seed) for seed in range(2))
    scores = [corpus_score(problem, weights) for weights in (plain, other)]
    assert min(scores) > before + 0.005
    assert abs(scores[0] - scores[1]) < 0.002
    smoothed = run(problem, start, smooth_brevity_penalty=True)
    lengths = [
        problem.tuning_set.stats[problem.tuning_set.first_best(weights), 1].sum()
        for weights in (plain, smoothed)
    ]
    assert lengths[1] > lengths[0]  # Nakov et al. (2012): it mends short translations
    options = ProMertOptions(restarts=0, polish=0)
    both = pro_mert(problem, start, np.random.default_rng(0), options)
    alone = mert(problem, start, np.random.default_rng(0), MertOptions(restarts=0, polish=0))
    assert both.score >= max(alone.score, *scores[:1])
