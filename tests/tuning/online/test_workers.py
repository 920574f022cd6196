"""Test several decoders at once for one learner: staleness and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.events import Note
from mosesplug.optimizers import algorithms
from mosesplug.optimizers.online.epochs import (
    Plan,
    split_into_batches,
)
from mosesplug.settings.online import HeldOutSet, OnlineSettings
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from tests.tuning.online.interrupting import interrupt
from tests.tuning.online.stale_runs import (
    BATCH,
    EPOCHS,
    SEED,
    Files,
    Log,
    Toy,
    by_hand,
    decoded_with,
    kept,
    orders_in,
    stale,
    uneven,
)

pytestmark = pytest.mark.usefixtures("decoder_in_process")

LEARNERS = sorted(each.name for each in algorithms().values() if each.learner is not None)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns(toy: Toy, learner: str) -> None:
    result = tune(stale(toy, shards=2, learner=learner, options={"epochs": 1, "batch": 4}))
    assert np.isfinite(result.weights.dense).all()
    assert any(result.weights.dense)
    assert result.iterations[0].sentences == 12
    assert result.iterations[0].curve[0]["updates"] == 3


@pytest.mark.parametrize("order", ["fixed", "arrival"])
def test_one_worker_is_learning_without(toy: Toy, order: AsyncOrder, left_by_run: Files) -> None:
    tune(stale(toy, "one", 1, order))
    tune(stale(toy, "plain", optimization={"sharding": None}))
    one, plain = (kept(toy.directory / name, left_by_run) for name in ("one", "plain"))
    assert one == plain


def test_in_order_the_timing_changes_nothing(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for seed in (1, 2):
        with uneven(monkeypatch, seed):
            tune(stale(toy, f"work{seed}"))
        found.append(kept(toy.directory / f"work{seed}", left_by_run))
    assert found[0] == found[1]


def test_gradients_are_those_of_the_weights_that_lists_were_decoded_with(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, batch t has the weights after update t - S, in decoding and in learning."""
    found = decoded_with(monkeypatch)
    result = tune(stale(toy))
    order = [(place, max(0, place - 2)) for place in range(6)]
    seen, mean, state = by_hand(toy, toy.directory / "work", [order] * EPOCHS)
    plan = Plan(SEED, BATCH, toy.configuration().metric, np.ones(6, dtype=np.bool_))
    expected: dict[tuple[int, ...], list[list[float]]] = {}
    batches = [split_into_batches(np.arange(12), plan, epoch) for epoch in (1, 2)]
    for weights, sentences in zip(seen, [*batches[0], *batches[1]], strict=True):
        expected.setdefault(tuple(sentences.tolist()), []).append(weights.tolist())
    assert found == expected
    weights = dict(zip(result.names, result.weights.dense, strict=True)) | result.weights.sparse
    assert weights == {name: value for name, value in mean.items() if name in weights}
    assert len(result.weights.sparse) > 5
    assert state.updates == 12


def test_by_arrival_the_order_is_kept_with_the_lists(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed or not: what is recorded is what was done, and leads to the same weights."""
    found = decoded_with(monkeypatch)

    with uneven(monkeypatch, 3) as decoded:
        interrupt(stale(toy, order="arrival"), 4, epoch=2)
        with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
            opened = store.open_iteration()
            assert opened is not None
            before = [tuple(pair) for pair in opened.progress["order"].tolist()]
        decoded.clear()
        result = tune(stale(toy, order="arrival", existing="continue"))
    assert len(before) == 4
    assert len(decoded) == 2
    orders = orders_in(toy.directory / "work")
    assert orders[1][:4] == before
    assert [sorted(place for place, _ in order) for order in orders] == [list(range(6))] * 2
    assert all(version <= place for order in orders for place, (_, version) in enumerate(order))
    assert any(place != number for order in orders for number, (place, _) in enumerate(order))
    seen, mean, _ = by_hand(toy, toy.directory / "work", orders)
    weights = dict(zip(result.names, result.weights.dense, strict=True)) | result.weights.sparse
    assert weights == {name: value for name, value in mean.items() if name in weights}
    used = [vector for vectors in found.values() for vector in vectors]
    assert all(vector.tolist() in used for vector in seen)


def test_patience_ends_an_epoch_deterministically(toy: Toy, left_by_run: Files) -> None:
    """What others were decoding then is not kept."""
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=1, patience=1)
    more: dict[str, Any] = {"learner": "sgd", "options": {"rate": 0.0, "regularization": 0.0}}
    found = []
    for name in ("one", "two"):
        result = tune(stale(toy, name, held_out=held_out, **more))
        assert [updates for updates, _ in result.iterations[0].heldout] == [0, 1, 2]
        assert result.iterations[0].sentences == 2 * BATCH
        found.append(kept(toy.directory / name, left_by_run))
    assert found[0] == found[1]


@pytest.mark.usefixtures("forked_workers")
def test_processes_leave_the_bytes_of_threads(toy: Toy, left_by_run: Files) -> None:
    more: dict[str, Any] = {"options": {"epochs": 1}}
    tune(stale(toy, "threads", **more))
    elsewhere = Sharding(3, asynchronous=True, async_order="fixed", workers="processes")
    tune(stale(toy, "processes", optimization={"sharding": elsewhere}, **more))
    found = [kept(toy.directory / name, left_by_run) for name in ("threads", "processes")]
    assert found[0] == found[1]


def test_the_mode_of_learning_may_change_between_epochs(toy: Toy) -> None:
    """The learner keeps its whole state, as without workers."""
    tune(stale(toy, options={"epochs": 1}))
    plain: dict[str, Any] = {"sharding": None}
    tune(stale(toy, options={"epochs": 2}, optimization=plain, existing="continue"))
    more = {"options": {"epochs": 3}, "existing": "continue"}
    result = tune(stale(toy, shards=2, order="arrival", **more))
    assert [each.curve[0]["updates"] for each in result.iterations] == [6, 12, 18]


@pytest.mark.parametrize(
    ("shards", "word"), [(1, "as without it"), (2, ""), (6, "all 6 mini-batches")]
)
def test_weights_that_are_never_stale_or_never_fresh_are_reported(
    toy: Toy, log: Log, shards: int, word: str
) -> None:
    tune(stale(toy, shards=shards, options={"epochs": 1}), log)
    assert [word in note.text for note in log.of(Note)] == ([True] if word else [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"workers": "processes"}, "--online-decoder process"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "--online-decoder process"),
        ({"workers": "processes", "directory": "/"}, "--shard-directory"),
    ],
)
def test_rejected(toy: Toy, more: dict[str, Any], why: str) -> None:
    sharding = Sharding(2, asynchronous=True, **more)
    with pytest.raises(UsageError, match=why):
        tune(stale(toy, online=OnlineSettings(), optimization={"sharding": sharding}))
    assert not (toy.directory / "work" / "nbests.lmdb").exists()
