"""Errors of risk and linear BLEU, and annealing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.metrics import metric
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.optimizers.batch.expected.algorithms import (
    LinearBleuOptions,
    RiskOptions,
    XbleuOptions,
    linearize,
)
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.batch.expected.small import bleu_lists
from tests.optimizers.problems import planted_bleu

expected_linear_bleu = algorithm("linear-bleu").optimize
risk = algorithm("risk").optimize
xbleu = algorithm("xbleu").optimize

PROBLEM = planted_bleu(41, n_sentences=120, noise=0.3)[0]


@pytest.mark.parametrize("error", ["lin-och", "moses", "nakov", "corpus", "pseudo-corpus"])
def test_every_error_lowers_risk_and_raises_bleu(error: Any) -> None:
    rng, options = np.random.default_rng(0), RiskOptions(error=error)
    assert risk(PROBLEM, np.ones(5), rng, options).score > corpus_score(PROBLEM, np.ones(5)) + 0.2


def test_error_in_the_corpus_of_the_first_best() -> None:
    """Equation 56, times the number of sentences."""
    lists = bleu_lists(42)
    problem = Problem(lists, metric("BLEU"))
    weights = np.random.default_rng(1).standard_normal(8)
    gains = problem.candidates.gains("pseudo-corpus", "error", np.random.default_rng(0))(weights)
    best = lists.first_best(weights)
    owners = np.repeat(np.arange(lists.n_sentences), np.diff(lists.offsets))
    for row in range(lists.n_hyps):
        corpus = np.where(owners[best] == owners[row], row, best)
        score = problem.metric.score(lists.stats[corpus].sum(axis=0))
        assert gains[row] == pytest.approx(len(best) * float(score))


def test_linear_bleu_of_given_precisions_is_that_of_the_paper() -> None:
    """But for the number of words, by which both terms are divided."""
    totals = 1000.0 * np.array([0.7, 1, 0.4, 0.9, 0.3, 0.8, 0.2, 0.7, 1.1])
    options = LinearBleuOptions(word_precision=0.8, precision_ratio=0.5, brevity_slope=0.0)
    found, paper = linearize(totals, options), LinearBleu.of_precisions(0.8, 0.5)
    assert found.word == paper.word / 1000.0
    np.testing.assert_allclose(found.ngrams, paper.ngrams / 1000.0)


def test_missing_matches_of_one_length() -> None:
    lists = bleu_lists(43)
    stats = lists.stats.copy()
    stats[:, 6] = 0
    problem = Problem(replace(lists, stats=stats), metric("BLEU"))
    rng = np.random.default_rng(0)
    with pytest.raises(OptimizerError, match=r"no n-gram of 4 words.*word_precision"):
        expected_linear_bleu(problem, np.ones(8), rng, LinearBleuOptions())
    options = LinearBleuOptions(word_precision=0.8)
    assert expected_linear_bleu(problem, np.ones(8), rng, options).weights.any()
    with pytest.raises(OptimizerError, match="no hypothesis has a match of 4 words"):
        xbleu(problem, np.ones(8), rng, XbleuOptions())


def test_a_ratio_of_zero_is_rejected() -> None:
    options = LinearBleuOptions(word_precision=0.8, precision_ratio=0.0)
    with pytest.raises(UsageError, match="precision_ratio must be above 0"):
        expected_linear_bleu(PROBLEM, np.ones(5), np.random.default_rng(0), options)


def test_a_temperature_keeps_weights_small_until_it_is_lowered() -> None:
    """Told by the objective: expected error, less temperature times entropy."""
    options = RiskOptions(temperature=4.0, temperature_end=1.0, quench_end=0.0)
    history = risk(PROBLEM, np.ones(5), np.random.default_rng(0), options).history
    ends = [
        [step for step in history if step["stage"] == stage][-1]["objective"] for stage in (1, 2, 3)
    ]
    assert [step["temperature"] for step in history if step["stage"] == 4][-1] == 0.0
    # Lists are 15 hypotheses long: nearly all the entropy there is, log 15.
    assert ends[0] < -4.0 * 0.98 * np.log(15.0)
    assert ends == sorted(ends)


def test_scale_is_learned_where_it_is_to_be() -> None:
    rng = np.random.default_rng(0)
    options = XbleuOptions(quench_end=0.0, learn_scale=True, stage_iterations=30)
    found = xbleu(PROBLEM, np.ones(5), rng, options)
    fixed = xbleu(PROBLEM, np.ones(5), rng, replace(options, learn_scale=False))
    assert found.history[-1]["scale"] > 1.5
    assert found.history[-1]["objective"] < fixed.history[-1]["objective"]
