"""Learners of hope and fear whose oracles are given, as bold updates give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.online.arow import ArowOptions, arow_learner
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.online.margins import (
    MiraOptions,
    RelativeMarginOptions,
    RmCpOptions,
    mira_learner,
    rm_cp_learner,
    rm_pa_learner,
)
from mosesplug.tuning_set import Batch
from tests.optimizers.online.batches import full_rows, random_batch, step_over

LEARNERS: dict[str, Callable[[], Learner]] = {
    "mira": lambda: mira_learner(MiraOptions(cost="lin-och", slack=0.05)),
    "mira, oracles": lambda: mira_learner(
        MiraOptions(cost="lin-och", slack=0.05, choice="best-oracle")
    ),
    "mira, working sets": lambda: mira_learner(
        MiraOptions(cost="lin-och", slack=0.05, constraints="working-set")
    ),
    "arow": lambda: arow_learner(ArowOptions(cost="lin-och")),
    "arow, closed form": lambda: arow_learner(ArowOptions(cost="lin-och", update="closed-form")),
    # A wide bound, so that margins alone move the weights.
    "rm-pa": lambda: rm_pa_learner(RelativeMarginOptions(cost="lin-och", margin_bound=50.0)),
    "rm-cp": lambda: rm_cp_learner(RmCpOptions(cost="lin-och", margin_bound=50.0)),
}


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Learner:
    return LEARNERS[request.param]()


def with_oracles(batch: Batch, rows: list[int]) -> Batch:
    return replace(batch, oracles=np.array(rows, dtype=np.int64))


def step_of(learner: Learner, batch: Batch, start: NDArray[np.float64]) -> NDArray[np.float64]:
    change = learner.change(learner.init(start), batch, step_over(len(batch.space)))
    step = np.zeros(len(start))
    step[change.columns] = change.values
    return step


def start_of(batch: Batch) -> NDArray[np.float64]:
    return np.random.default_rng(3).normal(0.0, 0.2, len(batch.space))


def test_without_given_ones_learners_choose(learner: Learner) -> None:
    batch = random_batch(0, [5, 0, 1, 4])
    start = start_of(batch)
    expected = step_of(learner, batch, start)
    assert expected.any()
    assert (step_of(learner, with_oracles(batch, [-1] * 4), start) == expected).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_given_oracle_gains_on_the_fear(learner: Learner, seed: int) -> None:
    """The best hypothesis is the last row, and by far the least likely: hopes are others."""
    batch = random_batch(seed, [6])
    gains = batch.stats[:, 0] / batch.stats[:, 1]
    oracle = int(np.argmax(gains))
    rows, start = full_rows(batch), start_of(batch)
    start -= 3.0 * rows[oracle] / (rows[oracle] @ rows[oracle])
    step = step_of(learner, with_oracles(batch, [oracle]), start)
    scores = rows @ start
    rival = int(np.argmax(scores - gains))
    assert rival != oracle
    assert step @ (rows[oracle] - rows[rival]) > 0.0


def test_reports_have_the_spread(learner: Learner) -> None:
    """It is the score of the reference above the lowest one, before the update."""
    batch = with_oracles(random_batch(3, [6]), [4])
    start = start_of(batch)
    change = learner.change(learner.init(start), batch, step_over(len(batch.space)))
    scores = full_rows(batch) @ start
    assert change.report["spread"] == pytest.approx(scores[4] - scores.min())
    assert change.report["squared_spread"] == pytest.approx((scores[4] - scores.min()) ** 2)


def test_mira_moves_towards_the_given_row() -> None:
    batch = random_batch(1, [0, 4, 5])
    start, rows = start_of(batch), full_rows(batch)
    gains: NDArray[Any] = batch.stats[:, 0] / batch.stats[:, 1]
    weights = start.copy()
    for first, last, oracle in ((0, 4, 2), (4, 9, 4)):
        fear = first + int(np.argmax((rows @ weights - gains)[first:last]))
        along = rows[oracle] - rows[fear]
        loss = gains[oracle] - gains[fear] - weights @ along
        if loss > 0.0 and along.any():
            weights += min(0.05, loss / (along @ along)) * along
    step = step_of(LEARNERS["mira"](), with_oracles(batch, [-1, 2, 4]), start)
    np.testing.assert_allclose(step, weights - start, atol=1e-14)
    assert step.any()
