"""Test means of weights over updates."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers import algorithm
from mosesplug.optimizers.online.descent import PegasosOptions, pegasos_learner
from mosesplug.optimizers.online.epochs import Plan, StoredSource, run_epoch
from mosesplug.optimizers.online.learner import Learner, add_averaging, mean_weights
from mosesplug.optimizers.online.oro.learners import oro_learner
from mosesplug.optimizers.online.oro.options import HingeOptions
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.optimize import optimize_sharded
from tests.optimizers.problems import Accuracy, planted


@pytest.mark.parametrize(
    ("plain", "batch"),
    [(oro_learner(HingeOptions()), 4), (pegasos_learner(PegasosOptions()), 4)],
    ids=["oro", "pegasos"],
)
def test_average_is_the_mean_after_every_update(plain: Learner, batch: int) -> None:
    """Also of learners whose updates shrink and project all weights."""
    problem, _ = planted(4, n_sentences=30, noise=1.0)
    source, after = StoredSource(problem.tuning_set), []
    plan = Plan(3, batch, Accuracy(), np.ones(5, dtype=np.bool_))
    state = plain.init(np.full(5, 0.1))
    averaging = add_averaging(plain)
    with_mean = averaging.init(np.full(5, 0.1))
    for epoch in (1, 2):
        state = run_epoch(
            plain,
            state,
            source,
            plan,
            epoch,
            on_batch=lambda done: after.append(plain.weights(done.state)),
        ).state
        with_mean = run_epoch(averaging, with_mean, source, plan, epoch).state
    assert len(after) == 16
    np.testing.assert_array_equal(averaging.weights(with_mean), plain.weights(state))
    np.testing.assert_allclose(
        mean_weights(averaging, with_mean), np.mean(after, axis=0), rtol=1e-13
    )


L1 = {
    "adagrad": {"regularization": "3", "rate": "0.5"},
    "sgd": {"norm": "l1", "regularization": "0.3", "rate": "1"},
    "rda": {"regularization": "0.2", "rate": "1"},
}


@pytest.mark.parametrize(
    ("name", "sharding"),
    [
        ("adagrad", None),
        ("sgd", None),
        ("rda", None),
        ("rda", Sharding(2)),
        ("adagrad", Sharding(2, asynchronous=True)),
    ],
)
def test_means_keep_the_zeros_of_l1(name: str, sharding: Sharding | None) -> None:
    problem, _ = planted(4, n_sentences=30, noise=1.0)
    tuner, start = algorithm(name), np.full(5, 0.1)

    def learn(**more: str) -> NDArray[np.float64]:
        settings = {**L1[name], "epochs": "3", "batch": "4", "start_spread": "0", **more}
        optimizer, rng = tuner.bind(make_options(tuner, settings)), np.random.default_rng(1)
        if sharding is None:
            return optimizer.optimize(problem, start, rng).weights
        return optimize_sharded(problem, optimizer, sharding, start, rng).weights

    last, mean = learn(averaging="last"), learn(averaging="all")
    assert 0 < np.count_nonzero(last) < 5
    np.testing.assert_array_equal(mean != 0.0, last != 0.0)
    assert not np.allclose(mean / np.abs(mean).sum(), last / np.abs(last).sum())
