"""The perceptron against equation 59 by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mosesplug.optimizers.online.algorithms import optimize_online
from mosesplug.optimizers.online.margins import PerceptronOptions, perceptron_learner
from tests.optimizers.online.batches import random_batch, step_over
from tests.optimizers.problems import planted, tuning_set

OPTIONS = PerceptronOptions(cost="lin-och", rate=1.0)


def test_equation_59_by_hand() -> None:
    """The first sentence errs; the second one's best is an oracle; the third is empty."""
    features = np.array([[1.0, 0.0, 4.0], [0.0, 2.0, 4.0], [0.0, 1.0, 4.0], [3.0, 0, 1], [0, 0, 2]])
    batch = tuning_set([3, 2, 0], features, np.array([2, 9, 9, 7, 1]))
    learner = perceptron_learner(replace(OPTIONS, rate=0.5))
    weights = np.array([1.0, -1.0, 0.25])
    change = learner.change(learner.init(weights), batch, step_over(3))
    # Of the two oracles (rows 1 and 2) the model prefers row 2: -1 + 1 against -2 + 1.
    np.testing.assert_array_equal(change.columns, [0, 1])
    np.testing.assert_array_equal(change.values, [-0.25, 0.25])
    # The oracles are 0 - -1 and 3.25 - 0.5 above the lowest scores.
    spreads = {"spread": (1.0 + 2.75) / 2, "squared_spread": (1.0 + 2.75**2) / 2}
    assert change.report == {"loss": (2.0 - 0.0) / 2, "violations": 1.0, **spreads}
    fixed = step_over(3, active=np.array([False, True, True]))
    change = learner.change(learner.init(weights), batch, fixed)
    np.testing.assert_array_equal(change.columns, [1])


def test_the_default_rate_depends_on_the_source_of_lists() -> None:
    batch = tuning_set([2], np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 5]))
    learner = perceptron_learner(PerceptronOptions(cost="lin-och"))
    for stored, rate in ((True, 0.01), (False, 0.001)):
        where = replace(step_over(2), uses_stored_lists=stored)
        change = learner.change(learner.init(np.zeros(2)), batch, where)
        np.testing.assert_allclose(change.values, [-rate, rate])


def test_a_tie_that_an_oracle_loses_is_learned() -> None:
    """At weights of 0 the decoder takes the first hypothesis; the loss is 0, and yet it errs."""
    batch = tuning_set([2], np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 5]))
    learner = perceptron_learner(OPTIONS)
    change = learner.change(learner.init(np.zeros(2)), batch, step_over(2))
    np.testing.assert_array_equal(change.values, [-1.0, 1.0])
    assert (change.report["loss"], change.report["violations"]) == (0.0, 1.0)


def test_finds_weights_that_separate() -> None:
    """Where some weights make no error, it ends with a pass without update (Collins 2002)."""
    problem, _ = planted(1, n_sentences=12, n_hyps=6, n_features=3)
    options = replace(OPTIONS, batch=1, epochs=80, averaging="last")
    solution = optimize_online(perceptron_learner)(
        problem, np.ones(3), np.random.default_rng(0), options
    )
    assert solution.history[-1]["violations"] == 0.0
    assert solution.score == 1.0


def test_averaging_is_the_default() -> None:
    assert PerceptronOptions().averaging == "all"


def test_only_differing_features_change() -> None:
    batch = random_batch(2, [4, 5], n_sparse=40)
    learner = perceptron_learner(OPTIONS)
    change = learner.change(learner.init(np.zeros(43)), batch, step_over(43))
    assert change.report["violations"] >= 1.0
    assert 0 < len(change.columns) < 43
    assert change.values.all()
