"""Test means of weights over updates."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.optimizers.online.averaging import add_averaging, mean_weights
from mosesplug.optimizers.online.epochs import Plan, StoredSource, run_epoch
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.online.oro.hinge import oro_learner
from mosesplug.optimizers.online.oro.options import HingeOptions
from mosesplug.optimizers.online.pegasos import PegasosOptions, pegasos_learner
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
