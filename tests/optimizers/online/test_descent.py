"""Gradients of mini-batches by finite differences, and what gradient learners have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.optimizers.online.descent import (
    AdagradOptions,
    PegasosOptions,
    SgdOptions,
    adagrad_learner,
    pegasos_learner,
    sgd_learner,
)
from mosesplug.optimizers.online.dual_averaging import RdaOptions, rda_learner
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step, grow_state
from mosesplug.tuning_set import Batch, SparseRows
from tests.optimizers.online.eager import N_FEATURES, gradients, lazily, step_of
from tests.optimizers.problems import Accuracy, tuning_set

LOSSES = ["logistic", "hinge", "squared", "softmax", "expected-error", "cross-entropy"]
MAKERS: list[tuple[type[Any], Callable[[Any], Learner]]] = [
    (SgdOptions, sgd_learner),
    (AdagradOptions, adagrad_learner),
    (PegasosOptions, pegasos_learner),
    (RdaOptions, rda_learner),
]
LEARNERS = pytest.mark.parametrize("made", MAKERS, ids=lambda each: each[0].__name__)
FEW = {"candidate_pairs": 40, "kept_pairs": 6}


def sparse_batch(seed: int = 0, n_sparse: int = 20) -> Batch:
    """Five sentences, one of them empty; some features are the same all over a sentence."""
    rng = np.random.default_rng(seed)
    sizes = [6, 0, 5, 1, 8]
    held = rng.random((sum(sizes), n_sparse)) < 0.2
    held[:6, 3] = True
    rows, columns = np.nonzero(held)
    dense = rng.standard_normal((sum(sizes), 3))
    dense[:, 1] = 0.1
    sparse = SparseRows(
        np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64),
        columns.astype(np.int32),
        rng.standard_normal(len(rows)).astype(np.float32),
    )
    sparse.data[columns == 3] = 0.1
    names = tuple(f"S_{column}" for column in range(n_sparse))
    return tuning_set(sizes, dense, rng.permutation(sum(sizes)), sparse, names, possible=20)


def batch_step(batch: Batch, number: int = 1, active: NDArray[np.bool_] | None = None) -> Step:
    """A step on the batch; the same random numbers each time."""
    mask = np.ones(len(batch.space), dtype=np.bool_) if active is None else active
    return Step(number, 1, 4, Accuracy(), mask, np.random.default_rng(7))


@pytest.mark.parametrize("loss", LOSSES)
@LEARNERS
def test_gradient_by_finite_differences(made: tuple[Any, Any], loss: str) -> None:
    options, learner_of = made
    learner = learner_of(options(loss=loss, **FEW))
    batch = sparse_batch()
    weights = 0.3 * np.random.default_rng(1).standard_normal(len(batch.space))

    def loss_at(point: NDArray[np.float64]) -> float:
        return float(learner.change(learner.init(point), batch, batch_step(batch)).report["loss"])

    change = learner.change(learner.init(weights), batch, batch_step(batch))
    found = np.zeros(len(weights))
    found[change.columns] = change.values
    step = 1e-6
    slopes = [
        (loss_at(weights + step * axis) - loss_at(weights - step * axis)) / (2 * step)
        for axis in np.eye(len(weights))
    ]
    if options is AdagradOptions:  # its loss is a sum; what is reported is the mean
        n_terms = 18 if loss in LOSSES[:3] else 4
        found /= n_terms
    np.testing.assert_allclose(found, slopes, atol=1e-6)
    assert np.abs(found).max() > 1e-3


def bleu_batch() -> Batch:
    """The sparse batch with statistics of BLEU: two n-grams fewer for each longer order."""
    batch = sparse_batch()
    rng = np.random.default_rng(3)
    lengths = rng.integers(8, 14, batch.n_hyps)
    counts = lengths[:, None] - 2 * np.arange(4)
    matches = rng.integers(0, counts + 1)
    stats = np.empty((batch.n_hyps, 9), dtype=np.int32)
    stats[:, 0:-1:2], stats[:, 1:-1:2], stats[:, -1] = matches, counts, 11
    return replace(batch, stats=stats)


@pytest.mark.parametrize("cost", ["corpus", "background"])
@LEARNERS
def test_expected_bleu_of_a_batch(made: tuple[Any, Any], cost: str) -> None:
    """The loss by its definition, and its gradient by finite differences."""
    options, learner_of = made
    learner = learner_of(options(loss="xbleu", cost=cost))
    batch = bleu_batch()
    where = replace(batch_step(batch), metric=Bleu())
    weights = 0.3 * np.random.default_rng(1).standard_normal(len(batch.space))

    def loss_at(point: NDArray[np.float64]) -> float:
        scores = batch.model_scores(point)
        context = np.ones(10) * 0.999 if cost == "background" else np.zeros(10)
        totals, size = context[:-1].copy(), 4 + context[-1]
        for start, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
            if end > start:
                shares = np.exp(scores[start:end] - scores[start:end].max())
                totals += shares / shares.sum() @ batch.stats[start:end]
        precision = np.exp(np.mean(np.log(totals[0:-1:2] / totals[1:-1:2])))
        # Far from the reference length, the smooth brevity penalty is the usual one.
        brevity = min(1.0, float(np.exp(1.0 - totals[-1] / totals[1])))
        return float(size * (1.0 - precision * brevity) / 4)

    change = learner.change(learner.init(weights), batch, where)
    assert change.report["loss"] == pytest.approx(loss_at(weights), rel=1e-6)
    found = np.zeros(len(weights))
    found[change.columns] = change.values / (4 if options is AdagradOptions else 1)
    step = 1e-5
    slopes = [
        (loss_at(weights + step * axis) - loss_at(weights - step * axis)) / (2 * step)
        for axis in np.eye(len(weights))
    ]
    np.testing.assert_allclose(found, slopes, atol=1e-6)
    assert np.abs(found).max() > 1e-3


def test_expected_bleu_needs_bleu() -> None:
    batch = sparse_batch()
    learner = sgd_learner(SgdOptions(loss="xbleu"))
    with pytest.raises(UsageError, match="loss=xbleu requires the metric BLEU"):
        learner.change(learner.init(np.ones(len(batch.space))), batch, batch_step(batch))


@LEARNERS
def test_constant_features_have_no_gradient(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    batch = sparse_batch()
    for loss in LOSSES:
        learner = learner_of(options(loss=loss, **FEW))
        weights = np.random.default_rng(1).standard_normal(len(batch.space))
        change = learner.change(learner.init(weights), batch, batch_step(batch))
        assert change.values[change.columns == 1] == 0.0


@LEARNERS
def test_inactive_features_are_ignored(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    batch = sparse_batch()
    active = np.arange(len(batch.space)) % 2 == 0
    learner = learner_of(options(**FEW))
    step = batch_step(batch, active=active)
    change = learner.change(learner.init(np.ones(len(active))), batch, step)
    assert active[change.columns].all()
    state = learner.update(learner.init(np.ones(len(active))), batch, step)
    np.testing.assert_array_equal(learner.weights(state)[~active], 1.0)


@LEARNERS
def test_change_writes_nothing(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    batch = sparse_batch()
    learner = learner_of(options(minimum_count=2, **FEW))
    state = learner.update(learner.init(np.ones(len(batch.space))), batch, batch_step(batch))
    for array in (*state.vectors.values(), *state.memory.values()):
        array.flags.writeable = False
    one = learner.change(state, batch, batch_step(batch, 2))
    other = learner.change(state, batch, batch_step(batch, 2))
    np.testing.assert_array_equal(one.values, other.values)
    learner.weights(state)


@LEARNERS
def test_a_batch_without_pairs_changes_nothing(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    batch = replace(sparse_batch(), stats=np.full((20, 2), 5, dtype=np.int32))
    for loss in LOSSES:
        learner = learner_of(options(loss=loss))
        state = learner.update(learner.init(np.ones(len(batch.space))), batch, batch_step(batch))
        assert np.isfinite(learner.weights(state)).all()


@LEARNERS
def test_sentences_of_a_feature_are_counted_once(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    batch = sparse_batch()
    learner = learner_of(options(loss="softmax", minimum_count=2))
    state = learner.init(np.zeros(len(batch.space)))
    change = learner.change(state, batch, batch_step(batch))
    assert batch.sparse is not None
    owner = np.repeat(np.arange(batch.n_hyps), np.diff(batch.sparse.indptr))
    sentence = np.searchsorted(batch.offsets, owner, side="right") - 1
    for column, count in zip(change.columns, change.more["sentences"], strict=True):
        if column < 3:
            assert count == 2  # dense: let in at once
        else:
            assert count == len(set(sentence[batch.sparse.indices == column - 3]))


@pytest.mark.parametrize(
    "made", [MAKERS[0], MAKERS[1], MAKERS[3]], ids=lambda each: each[0].__name__
)
def test_rare_features_keep_their_weights(made: tuple[Any, Any]) -> None:
    """No regularizer pulls at them either; Pegasos, which shrinks all weights, is no such case."""
    options, learner_of = made
    batch = sparse_batch()
    learner = learner_of(options(loss="softmax", minimum_count=9, regularization=0.05))
    state = learner.init(np.ones(len(batch.space)))
    for number in (1, 2):
        state = learner.update(state, batch, batch_step(batch, number))
    found = learner.weights(state)
    assert (found[[0, 2]] != 1.0).all()
    np.testing.assert_array_equal(found[3:], 1.0)


@LEARNERS
def test_at_the_end_of_an_epoch_weights_are_complete_and_may_be_replaced(
    made: tuple[Any, Any],
) -> None:
    options, learner_of = made
    learner = learner_of(options(regularization=0.05))
    batch_gradients = gradients(5, 20)
    state: LearnerState = learner.init(np.linspace(-1.0, 1.0, N_FEATURES))
    for number, gradient in enumerate(batch_gradients, start=1):
        columns = np.flatnonzero(gradient)
        state = learner.apply(state, Change(columns, gradient[columns]), step_of(number))
        if number % 10 == 0:
            np.testing.assert_array_equal(state.vectors["weights"], learner.weights(state))
    mixed = np.random.default_rng(2).standard_normal(N_FEATURES)
    mixed[::4] = 0.0
    state = replace(state, vectors={**state.vectors, "weights": mixed.copy()})
    nothing = Change(np.zeros(0, dtype=np.int64), np.zeros(0))
    state = learner.apply(state, nothing, step_of(21))
    after = learner.weights(state)
    # One step of regularization later: nearly the same, none of the old weights is left.
    np.testing.assert_allclose(after, mixed, atol=0.2)
    np.testing.assert_array_equal(after[::4], 0.0)


@LEARNERS
def test_new_features_join_a_run(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    learner = learner_of(options(minimum_count=1, **FEW))
    small, large = sparse_batch(1, 20), sparse_batch(2, 25)
    state = learner.update(learner.init(np.ones(23)), small, batch_step(small))
    before = learner.weights(state)
    state = grow_state(state, len(large.space), learner.fills)
    np.testing.assert_array_equal(learner.weights(state), np.append(before, np.zeros(5)))
    state = learner.update(state, large, batch_step(large, 2))
    assert learner.weights(state)[23:].any()


@LEARNERS
def test_a_run_resumes_from_its_state(made: tuple[Any, Any]) -> None:
    options, learner_of = made
    learner = learner_of(options(regularization=0.05))
    start = np.linspace(-1.0, 1.0, N_FEATURES)
    expected = lazily(learner, start, gradients(6, 30))[-1]
    state = learner.init(start)
    for number, gradient in enumerate(gradients(6, 30), start=1):
        kept = replace(
            state,
            vectors={name: vector.copy() for name, vector in state.vectors.items()},
            memory={name: array.copy() for name, array in state.memory.items()},
        )
        for vector in state.vectors.values():
            vector += 17.0
        columns = np.flatnonzero(gradient)
        change = Change(columns, gradient[columns])
        state = learner_of(options(regularization=0.05)).apply(kept, change, step_of(number))
    np.testing.assert_array_equal(learner.weights(state), expected)


@LEARNERS
@pytest.mark.parametrize("cost", ["background", "pseudo-corpus"])
def test_choices_are_remembered(made: tuple[Any, Any], cost: str) -> None:
    options, learner_of = made
    batch = sparse_batch()
    learner = learner_of(options(cost=cost, remember="one-best", **FEW))
    weights = np.random.default_rng(1).standard_normal(len(batch.space))
    state = learner.update(learner.init(weights), batch, batch_step(batch))
    kept = state.memory[cost]
    best = batch.first_best(weights)
    if cost == "background":
        assert kept[-1] == pytest.approx(5.0, abs=0.02)  # four sentences, one to begin with
    else:
        np.testing.assert_array_equal(kept[[0, 2, 3, 4], :-1], batch.stats[best])
    later = learner.update(state, batch, batch_step(batch, 2))
    assert later.memory[cost].shape == kept.shape


@LEARNERS
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("start", [1.0, 1e100])
def test_huge_steps_give_an_error_or_finite_weights(
    made: tuple[Any, Any], loss: str, start: float
) -> None:
    options, learner_of = made
    learner = learner_of(replace(options(loss=loss, **FEW), **too_large(options)))
    batch = sparse_batch()
    state = learner.init(np.full(len(batch.space), start))
    for number in range(1, 30):
        try:
            state = learner.update(state, batch, batch_step(batch, number))
        except OptimizerError:
            assert loss == "squared"  # the others' gradients are bounded
            return
    assert np.isfinite(learner.weights(state)).all()


def too_large(options: type[Any]) -> dict[str, float]:
    """Settings of which nothing good comes."""
    return {"regularization": 1e-30} if options is PegasosOptions else {"rate": 1e30}
