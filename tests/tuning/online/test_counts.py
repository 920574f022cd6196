"""Learning while decoding from features that enough sentences have, or the most frequent ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers.selection import count_sentences
from mosesplug.settings.online import HeldOutSet
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.workdir.records import read_result
from tests.tuning.online.interrupting import interrupt

from .test_online import online

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
MODES = (
    None,
    Sharding(2, "average"),
    Sharding(2, "select", keep=8),
    Sharding(2, asynchronous=True, async_order="fixed"),
)


def pair_modes(one: str, other: str) -> pytest.MarkDecorator:
    """Return a case of each mode; the two learners take turns, with and without shards."""
    cases = list(zip([one, other, one, other], MODES, strict=True))
    return pytest.mark.parametrize(("learner", "sharding"), cases)


def configure(
    toy: Toy, name: str, *, sharding: Sharding | None = None, select: str = "last", **more: Any
) -> Any:
    """A run that starts from a weight of one sparse feature."""
    start = toy.directory / "start.sparse"
    start.write_text("wt_hund 0.6\n")
    optimization: dict[str, Any] = {"sharding": sharding}
    for cut in {"sparse_max", "sparse_min_count"} & {*more}:
        optimization[cut] = more.pop(cut)
    run = online(toy, name, optimization=optimization, select=select, **more)
    decoder = replace(run.decoding.decoder, flags=("-sparse",))
    return replace(run, decoding=replace(run.decoding, decoder=decoder), sparse_weights=start)


def largest_counts(work: Path, epochs: int) -> dict[str, int]:
    """Sentences that have each feature, of all shards, in the epoch that has most."""
    stores = [*work.glob("shard.*/nbests.lmdb")] or [work / "nbests.lmdb"]
    largest: dict[str, int] = {}
    for epoch in range(1, epochs + 1):
        counts: dict[str, int] = {}
        for path in stores:
            with NBestStore.open(path) as store:
                lists = store.iteration_set(epoch).tuning_set
            for name, count in zip(lists.space.sparse, count_sentences(lists), strict=True):
                counts[name] = counts.get(name, 0) + int(count)
        largest |= {name: max(count, largest.get(name, 0)) for name, count in counts.items()}
    return largest


def learned(result: Any) -> set[str]:
    return {name for name, weight in result.weights.sparse.items() if weight}


def memory(work: Path) -> dict[str, Any]:
    """What the learner of a run remembers, as bytes."""
    with NBestStore.open(work / "nbests.lmdb") as store:
        state = read_result(store.iterations()[-1]).learner
    assert state is not None
    arrays = {"counts": state["counts"].tobytes(), "sparse": state["sparse"]}
    for number, shard in enumerate(state.get("shards", [state])):
        arrays |= {f"{number} {key}": value.tobytes() for key, value in shard["vectors"].items()}
    return arrays


@pair_modes("adagrad", "pegasos")
def test_rare_features_keep_their_weights(
    toy: Toy, learner: str, sharding: Sharding | None
) -> None:
    run = configure(toy, "work", learner=learner, sharding=sharding, sparse_min_count=10)
    result = tune(run)
    counts = largest_counts(toy.directory / "work", 2)
    kept = learned(result) - {"wt_hund"}
    assert kept
    assert min(counts[name] for name in kept) >= 10 > min(counts.values())
    interrupt(replace(run, working_directory=toy.directory / "killed"), 2, epoch=2)
    tune(replace(run, working_directory=toy.directory / "killed", existing="continue"))
    assert memory(toy.directory / "killed") == memory(toy.directory / "work")


@pair_modes("rda", "arow")
def test_the_most_frequent_features_of_the_first_epoch(
    toy: Toy, learner: str, sharding: Sharding | None
) -> None:
    """The others end with the weights that they began with, in means, too."""
    select = "average" if learner == "rda" else "last"
    run = configure(toy, "work", learner=learner, sharding=sharding, select=select, sparse_max=4)
    result = tune(run)
    counts = largest_counts(toy.directory / "work", 1)
    state = memory(toy.directory / "work")
    kept = np.frombuffer(state["counts"], dtype=np.int64)
    most = sorted(counts.values(), reverse=True)[:4]
    assert sorted(kept[kept > 0].tolist(), reverse=True) == most
    names = {name for name, count in zip(state["sparse"], kept, strict=True) if count}
    assert learned(result) <= names | {"wt_hund"}
    assert learned(result) - {"wt_hund"}
    if "wt_hund" not in names:
        start = result.iterations[0].weights.sparse["wt_hund"]
        assert result.weights.sparse["wt_hund"] == pytest.approx(start, rel=1e-12)
    interrupt(replace(run, working_directory=toy.directory / "killed"), 2, epoch=1)
    tune(replace(run, working_directory=toy.directory / "killed", existing="continue"))
    assert memory(toy.directory / "killed") == state


@pytest.mark.parametrize("sharding", MODES)
def test_counts_that_cut_nothing_change_nothing(toy: Toy, sharding: Sharding | None) -> None:
    settings: dict[str, Any] = {"learner": "pegasos", "epochs": 1, "sharding": sharding}
    cut = tune(configure(toy, "cut", sparse_max=10**6, **settings))
    whole = tune(configure(toy, "whole", **settings))
    assert cut.weights == whole.weights


def test_weights_within_the_first_epoch_are_refused(toy: Toy) -> None:
    text = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=1)
    run = configure(toy, "work", sparse_max=4, select="best-heldout", held_out=text)
    with pytest.raises(UsageError, match="chooses the features at the end of the first epoch"):
        tune(run)
