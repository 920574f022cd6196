"""What every online learner must do, so that one serves every regime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.epochs import (
    BatchProgress,
    Plan,
    StoredSource,
    make_step,
    run_epoch,
    split_into_batches,
)
from mosesplug.optimizers.online.learner import Learner, LearnerState, grow_state
from mosesplug.optimizers.registry import Algorithm, algorithms
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.optimizers.problems import Accuracy, tuning_set


def variant(name: str, **settings: Any) -> Algorithm:
    """A learner with other settings than its defaults."""
    found = algorithms()[name]
    make = found.learner
    assert make is not None
    return replace(
        found,
        name=" ".join([name, *settings.values()]),
        learner=lambda options: make(replace(options, **settings)),
    )


ONLINE = [
    *(each for each in algorithms().values() if each.learner is not None),
    variant("mira", constraints="working-set"),
    variant("mira", constraints="cutting-plane", choice="best-oracle"),
    variant("mira", cost="pseudo-corpus"),
    variant("perceptron", cost="corpus"),
]

pytestmark = pytest.mark.parametrize("tuner", ONLINE, ids=lambda each: each.name)

N_DENSE, N_SPARSE, N_EARLY = 3, 8, 3
START = np.append([0.3, -0.2, 0.5], np.zeros(N_SPARSE))
SIZES = [6, 1, 9, 0, 7, 6, 8, 1, 5, 9, 6, 7]


def learner_of(tuner: Algorithm) -> Learner:
    assert tuner.learner is not None
    return tuner.learner(tuner.options())


def lists(seed: int = 5, n_used: int = N_SPARSE, space: FeatureSpace | None = None) -> TuningSet:
    """Lists of some sizes, with sparse features among the first ``n_used``."""
    rng = np.random.default_rng(seed)
    n_hyps = sum(SIZES)
    dense = rng.standard_normal((n_hyps, N_DENSE)).astype(np.float32)
    owned = [
        np.sort(rng.choice(n_used, rng.integers(0, min(4, n_used) + 1), replace=False))
        for _ in range(n_hyps)
    ]
    indptr = np.append(0, np.cumsum([len(row) for row in owned])).astype(np.int64)
    data = rng.integers(1, 4, indptr[-1]).astype(np.float32)
    sparse = SparseRows(indptr, np.concatenate(owned).astype(np.int32), data)
    won = rng.integers(0, 11, n_hyps)
    made = tuning_set(SIZES, dense, won, sparse, tuple(f"s_{k}" for k in range(N_SPARSE)))
    return made if space is None else replace(made, space=space)


def plan_of(active: NDArray[np.bool_] | None = None) -> Plan:
    active = np.ones(len(START), dtype=np.bool_) if active is None else active
    active.flags.writeable = False
    return Plan(seed=7, batch=3, metric=Accuracy(), active=active)


def arrays_of(state: LearnerState) -> Mapping[str, NDArray[np.float64]]:
    return {**{f"vector {name}": each for name, each in state.vectors.items()}, **state.memory}


def bytes_of(state: LearnerState) -> dict[str, bytes]:
    return {name: np.asarray(each).tobytes() for name, each in arrays_of(state).items()}


def copied(state: LearnerState, writeable: bool = True) -> LearnerState:
    """The state after a journey through bytes."""

    def each(array: NDArray[np.float64]) -> NDArray[np.float64]:
        there = np.frombuffer(np.asarray(array).tobytes(), np.float64).reshape(np.shape(array))
        return there.copy() if writeable else there

    return replace(
        state,
        vectors={name: each(array) for name, array in state.vectors.items()},
        memory={name: each(array) for name, array in state.memory.items()},
    )


def learn(
    learner: Learner,
    made: TuningSet,
    plan: Plan | None = None,
    on_batch: Callable[[BatchProgress], None] = lambda done: None,
) -> LearnerState:
    """The state after an epoch."""
    source = StoredSource(made)
    state = learner.init(START.copy())
    return run_epoch(learner, state, source, plan or plan_of(), 1, on_batch=on_batch).state


def test_learns_something(tuner: Algorithm) -> None:
    learner = learner_of(tuner)
    found = learner.weights(learn(learner, lists()))
    assert found.shape == START.shape
    assert np.isfinite(found).all()
    assert (found[N_DENSE:] != 0.0).any()


def test_state_is_plain_arrays_with_a_fill_for_each_vector(tuner: Algorithm) -> None:
    learner = learner_of(tuner)
    state = learn(learner, lists())
    assert set(state.vectors) == set(learner.fills)
    for vector in state.vectors.values():
        assert vector.dtype == np.float64
        assert vector.shape == START.shape
    for array in state.memory.values():
        assert array.dtype == np.float64


def test_resuming_inside_an_epoch_gives_the_same_bytes(tuner: Algorithm) -> None:
    learner, made, kept = learner_of(tuner), lists(), {}

    def keep(done: BatchProgress) -> None:
        kept[done.place] = copied(done.state), done.tally

    whole = learn(learner, made, on_batch=keep)
    for place in (0, 1):
        state, tally = kept[place]
        again = run_epoch(
            learner_of(tuner),
            state,
            StoredSource(made),
            plan_of(),
            1,
            first=place + 1,
            so_far=tally,
        )
        assert bytes_of(again.state) == bytes_of(whole)
        assert again.state.updates == whole.updates
        assert again.tally.means == kept[max(kept)][1].means


def test_change_writes_no_input_and_reads_unaligned_ones(tuner: Algorithm) -> None:
    def shifted(array: Any) -> Any:
        raw = b"\0" + array.tobytes()
        return np.frombuffer(raw, array.dtype, offset=1).reshape(array.shape)

    learner, made, plan = learner_of(tuner), lists(), plan_of()
    assert made.sparse is not None
    odd = replace(
        made,
        offsets=shifted(made.offsets),
        dense=shifted(made.dense),
        stats=shifted(made.stats),
        lengths=shifted(made.lengths),
        sparse=SparseRows(*(shifted(each) for each in vars(made.sparse).values())),
    )
    assert not odd.dense.flags.aligned
    state = copied(learn(learner, made), writeable=False)  # writing raises
    changes = [
        learner.change(state, batch, make_step(plan, 2, 0, 4, len(START))) for batch in (made, odd)
    ]
    assert changes[0].columns.tobytes() == changes[1].columns.tobytes()
    assert changes[0].values.tobytes() == changes[1].values.tobytes()


def test_changes_are_ascending_and_of_active_features(tuner: Algorithm) -> None:
    learner, made = learner_of(tuner), lists()
    active = np.arange(len(START)) % 2 == 0
    change = learner.change(
        learner.init(START.copy()), made, make_step(plan_of(active), 1, 0, 4, len(START))
    )
    assert (np.diff(change.columns) > 0).all()
    assert active[change.columns].all()
    assert {"loss", "violations"} <= set(change.report)
    assert all(np.isfinite(value) for value in change.report.values())
    for values in (change.values, *change.more.values()):
        assert values.shape == change.columns.shape


def test_weights_that_overflow_are_an_error(tuner: Algorithm) -> None:
    learner, batch = learner_of(tuner), lists()
    state = learner.init(START.copy())
    change = learner.change(state, batch, make_step(plan_of(), 1, 0, 1, len(START)))
    infinite = replace(change, values=np.full(len(change.values), np.inf))
    with pytest.raises(OptimizerError, match="overflow"):
        learner.apply(state, infinite, make_step(plan_of(), 1, 0, 1, len(START)))


def test_inactive_features_keep_their_weights(tuner: Algorithm) -> None:
    learner = learner_of(tuner)
    active = np.ones(len(START), dtype=np.bool_)
    active[[1, 5]] = False
    start = START.copy()
    start[5] = 0.25
    state = run_epoch(
        learner, learner.init(start.copy()), StoredSource(lists()), plan_of(active), 1
    ).state
    found = learner.weights(state)
    np.testing.assert_array_equal(found[~active], start[~active])
    assert (found[active] != start[active]).any()


def test_sparse_features_are_learned_by_name(tuner: Algorithm) -> None:
    """Another order of the columns gives each name the same weight, as exactly as solvers end."""
    made, order = lists(), np.random.default_rng(1).permutation(N_SPARSE)
    assert made.sparse is not None
    space = FeatureSpace(made.space.groups, tuple(made.space.sparse[k] for k in order))
    places = np.argsort(order).astype(np.int32)
    moved = SparseRows(made.sparse.indptr, places[made.sparse.indices], made.sparse.data)
    learner = learner_of(tuner)
    wanted = learner.weights(learn(learner, made))
    found = learner.weights(learn(learner, replace(made, space=space, sparse=moved)))
    columns = [space.columns[name] for name in made.space.names]
    np.testing.assert_allclose(found[columns], wanted, atol=1e-5)


def test_growing_spaces_give_the_same_result(tuner: Algorithm) -> None:
    names = tuple(f"s_{k}" for k in range(N_SPARSE))
    early = lists(3, n_used=N_EARLY)
    short = replace(early, space=FeatureSpace(early.space.groups, names[:N_EARLY]))
    late, learner, plan = lists(4), learner_of(tuner), plan_of()
    width = N_DENSE + N_EARLY

    whole = learner.init(START.copy())
    whole = learner.update(whole, early, make_step(plan, 1, 0, 2, len(START)))
    whole = learner.update(whole, late, make_step(plan, 1, 1, 2, len(START)))

    state = learner.init(START[:width].copy())
    narrow = replace(plan, active=plan.active[:width])
    state = learner.update(state, short, make_step(narrow, 1, 0, 2, width))
    state = grow_state(state, len(START), learner.fills)
    state = learner.update(state, late, make_step(narrow, 1, 1, 2, len(START)))
    np.testing.assert_allclose(learner.weights(state), learner.weights(whole), rtol=1e-12)


def test_changes_computed_on_old_weights_can_be_applied_later(tuner: Algorithm) -> None:
    learner, made, plan = learner_of(tuner), lists(), plan_of()
    source = StoredSource(made)

    def run() -> LearnerState:
        state = learner.init(START.copy())
        old = copied(state, writeable=False)
        batches = split_into_batches(source.sentences, plan, 1)
        steps = [
            make_step(plan, 1, place, len(batches), len(START)) for place in range(len(batches))
        ]
        changes = [
            learner.change(old, made.take_sentences(batch), step)
            for batch, step in zip(batches, steps, strict=True)
        ]
        for change, step in zip(reversed(changes), steps, strict=True):
            state = learner.apply(state, change, step)
        assert state.updates == len(batches)
        return state

    state = run()
    assert np.isfinite(learner.weights(state)).all()
    assert bytes_of(run()) == bytes_of(state)


def test_weights_only_read_the_state(tuner: Algorithm) -> None:
    learner = learner_of(tuner)
    state = copied(learn(learner, lists()), writeable=False)
    weights = learner.weights(state)
    assert weights.flags.writeable
    for vector in state.vectors.values():
        assert not np.shares_memory(weights, vector)


@pytest.mark.parametrize(
    "sizes", [[], [0, 0], [1, 0, 1], [3, 3]], ids=["no sentences", "empty", "single", "equal"]
)
def test_an_empty_choice_is_accepted(tuner: Algorithm, sizes: list[int]) -> None:
    """Weights stay what they were, but for regularization."""
    learner = learner_of(tuner)
    n_hyps = sum(sizes)
    dense = np.tile(np.array([[1.0, 2.0, -1.0]]), (n_hyps, 1))
    sparse = SparseRows(
        np.zeros(n_hyps + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    )
    names = tuple(f"s_{k}" for k in range(N_SPARSE))
    batch = tuning_set(sizes, dense, np.full(n_hyps, 5), sparse, names)
    state = learner.update(
        learner.init(START.copy()), batch, make_step(plan_of(), 1, 0, 2, len(START))
    )
    found = learner.weights(state)
    assert np.isfinite(found).all()
    for array in arrays_of(state).values():
        assert np.isfinite(array).all()
    if found.any():
        direction = found / np.linalg.norm(found)
        np.testing.assert_allclose(direction, START / np.linalg.norm(START), atol=1e-2)
