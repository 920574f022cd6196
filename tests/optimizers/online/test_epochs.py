"""Test epochs: order, sums, and unusable results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.algorithms import optimize_online
from mosesplug.optimizers.online.epochs import (
    BatchProgress,
    Plan,
    StoredSource,
    make_step,
    run_epoch,
    split_into_batches,
)
from mosesplug.optimizers.online.learner import (
    Change,
    Learner,
    LearnerState,
    Step,
    add_averaging,
    mean_weights,
)
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.problem import Problem, no_progress
from mosesplug.tuning_set import Batch, TuningSet
from tests.optimizers.problems import Accuracy, planted, tuning_set


def plan_of(n_features: int, batch: int = 4, seed: int = 3) -> Plan:
    return Plan(seed, batch, Accuracy(), np.ones(n_features, dtype=np.bool_))


def scripted(values_at: Callable[[int], NDArray[np.float64]]) -> Learner:
    """A learner that adds ``values_at(number of the step)`` for any batch."""

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        values = values_at(step.number)
        report = {"loss": float(step.number), "violations": 2.0}
        return Change(np.arange(len(values)), values, report=report)

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        state.vectors["weights"][change.columns] += change.values
        return replace(state, updates=state.updates + 1)

    return Learner(
        fills={"weights": 0.0},
        init=lambda weights: LearnerState({"weights": np.array(weights, dtype=np.float64)}),
        change=change,
        apply=apply,
        weights=lambda state: state.vectors["weights"].copy(),
    )


@given(
    sizes=st.lists(st.integers(0, 3), max_size=12),
    batch=st.integers(1, 5),
    seed=st.integers(0, 2**62),
    epoch=st.integers(1, 100),
)
def test_every_sentence_with_hypotheses_once(
    sizes: list[int], batch: int, seed: int, epoch: int
) -> None:
    made = tuning_set(sizes, np.zeros((sum(sizes), 1)), np.zeros(sum(sizes)))
    found = split_into_batches(StoredSource(made).sentences, plan_of(1, batch, seed), epoch)
    filled = [place for place, size in enumerate(sizes) if size]
    assert sorted(int(each) for part in found for each in part) == filled
    assert [len(part) for part in found[:-1]] == [batch] * (len(found) - 1)


def test_order_depends_on_seed_and_epoch_alone() -> None:
    sentences = np.arange(40)
    orders = {
        (seed, epoch): np.concatenate(
            split_into_batches(sentences, plan_of(1, 4, seed), epoch)
        ).tolist()
        for seed in (1, 2)
        for epoch in (1, 2)
    }
    assert len({tuple(order) for order in orders.values()}) == 4
    again = np.concatenate(split_into_batches(sentences, plan_of(1, 4, 2), 1)).tolist()
    assert again == orders[2, 1]


def test_steps_are_numbered_and_have_separate_random_numbers() -> None:
    plan = plan_of(2)
    steps = [make_step(plan, epoch, place, 3, 2) for epoch in (1, 2) for place in range(3)]
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6]
    order = np.random.default_rng([plan.seed, 1]), np.random.default_rng([plan.seed, 2])
    drawn = {float(rng.random()) for rng in (*order, *(step.rng for step in steps))}
    assert len(drawn) == 8
    assert make_step(plan, 2, 1, 3, 2).rng.random() == make_step(plan, 2, 1, 3, 2).rng.random()


def test_features_that_appear_later_are_active() -> None:
    plan = replace(plan_of(2), active=np.array([True, False]))
    assert make_step(plan, 1, 0, 1, 4).active.tolist() == [True, False, True, True]


def test_tally_of_first_hypotheses_and_reports() -> None:
    problem, _ = planted(2, n_sentences=10)
    made = problem.tuning_set
    done: list[BatchProgress] = []
    learner = scripted(lambda number: np.zeros(5))
    result = run_epoch(
        learner, learner.init(np.ones(5)), StoredSource(made), plan_of(5), 1, on_batch=done.append
    )
    np.testing.assert_array_equal(result.tally.totals, made.stats[made.offsets[:-1]].sum(axis=0))
    assert result.tally.means == {
        "loss": 2.0,
        "violations": 6.0,
    }  # a mean and a sum of three batches
    assert [(each.place, each.of, each.tally.batches) for each in done] == [
        (0, 3, 1),
        (1, 3, 2),
        (2, 3, 3),
    ]


def test_sees_the_present_weights_and_lets_the_space_grow() -> None:
    seen: list[NDArray[np.float64]] = []

    @dataclass(frozen=True)
    class Growing:
        sentences: NDArray[np.int64] = field(default_factory=lambda: np.arange(3))

        def batch(
            self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
        ) -> TuningSet:
            seen.append(weights())
            return tuning_set([1], np.ones((1, 2 + len(seen))), np.ones(1))

    learner = add_averaging(scripted(lambda number: np.ones(2)))
    state = run_epoch(learner, learner.init(np.zeros(2)), Growing(), plan_of(2, 1), 1).state
    assert [each.tolist() for each in seen] == [[0, 0], [1, 1, 0], [2, 2, 0, 0]]
    assert mean_weights(learner, state).tolist() == [2.0, 2.0, 0.0, 0.0, 0.0]


def solve(
    values_at: Callable[[int], NDArray[np.float64]],
    averaging: Literal["last", "all", "best"],
    epochs: int = 4,
    progress: Any = no_progress,
) -> Any:
    """One sentence, one batch an epoch: the first feature is good, and chosen where positive.

    The second is fixed, so that the weights keep their scale.
    """
    made = tuning_set([2], np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([10, 0]))
    optimize = optimize_online(lambda options: scripted(values_at))
    options = OnlineOptions(epochs=epochs, batch=1, averaging=averaging)
    problem = Problem(made, Accuracy(), active=np.array([True, False]))
    return optimize(problem, np.array([1.0, 0.0]), np.random.default_rng(0), options, progress)


def turns_bad(number: int) -> NDArray[np.float64]:
    return np.array([1.0 if number < 3 else -5.0, 0.0])


def test_which_weights_are_the_result() -> None:
    """Weights after each epoch: 2, 3, -2, -7; the score is 1 while they are positive."""
    last, best, mean = (solve(turns_bad, averaging) for averaging in ("last", "best", "all"))
    assert (last.weights[0], last.score) == (-7.0, 0.0)
    assert (best.weights[0], best.score) == (2.0, 1.0)
    assert (mean.weights[0], mean.score) == (-1.0, 0.0)
    assert [entry["score"] for entry in best.history] == [1.0, 1.0, 0.0, 0.0]
    assert [entry["score"] for entry in mean.history] == [1.0, 1.0, 1.0, 0.0]  # 2, 2.5, 1, -1
    assert [entry["updates"] for entry in last.history] == [1, 2, 3, 4]
    assert [entry["norm"] for entry in last.history] == [2.0, 3.0, 2.0, 7.0]
    assert {"loss", "violations", "active", "epoch"} <= set(last.history[0])


def test_epochs_report_progress() -> None:
    told: list[tuple[int, int, str]] = []
    solve(turns_bad, "last", epochs=2, progress=lambda *each: told.append(each))
    assert told == [(1, 2, "epochs"), (2, 2, "epochs")]


def test_falls_back_to_the_last_weights_that_are_not_all_zero() -> None:
    found = solve(lambda number: np.array([[1.0, -2.0, 0.0][number - 1], 0.0]), "last", epochs=3)
    assert found.weights.tolist() == [2.0, 0.0]


def test_rejects_weights_that_are_all_zero() -> None:
    with pytest.raises(OptimizerError, match="all zero"):
        solve(lambda number: np.array([-1.0 if number == 1 else 0.0, 0.0]), "best")


def test_updates_that_are_not_finite_are_rejected() -> None:
    with pytest.raises(OptimizerError, match="epoch 2"):
        solve(lambda number: np.array([np.nan if number == 2 else 0.1, 0.0]), "last")


def test_results_are_normalized_where_no_weight_is_fixed() -> None:
    made = tuning_set([2], np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([10, 0]))
    optimize = optimize_online(lambda options: scripted(lambda number: np.array([2.0, 1.0])))
    found = optimize(
        Problem(made, Accuracy()), np.ones(2), np.random.default_rng(0), OnlineOptions(epochs=1)
    )
    assert found.weights.tolist() == [0.6, 0.4]
    assert found.history[0]["norm"] == pytest.approx(np.hypot(3.0, 2.0))
