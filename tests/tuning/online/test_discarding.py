"""Runs that do not keep the lists of their epochs: the same weights, bounded disk space, resume."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mosesplug.api.run import open_run
from mosesplug.errors import DataError, UsageError
from mosesplug.events import EpochProgress, Event
from mosesplug.results.report.gather import gather_report_steps
from mosesplug.results.views.maintenance import verify_store
from mosesplug.results.views.run import open_run as open_stored_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import guarding, tune
from mosesplug.tuning.warning_signs import WarningSign
from mosesplug.tuning_set import TuningSet
from tests.results.pages import render_page

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Files = Callable[[Path], dict[str, bytes]]


def configure(toy: Toy, name: str, *, keeps: bool = False, sharding: Sharding | None = None) -> Any:
    """Two epochs on sparse features, in batches of 4 of 12 sentences."""
    return toy.configuration(
        name,
        flags="-sparse",
        online=OnlineSettings("process", keep_lists=keeps),
        optimization={
            "algorithm": "o-oro",
            "options": {"epochs": 2, "batch": 4},
            "sharding": sharding,
        },
        maximum_iterations=0,
        minimum_change=0.0,
    )


def list_stores(work: Path) -> list[Path]:
    return [work / "nbests.lmdb", *(path / "nbests.lmdb" for path in work.glob("shard.*"))]


def size_of_lists(work: Path) -> int:
    """Bytes of records, after a check that the stores are whole."""
    size = 0
    for path in list_stores(work):
        assert not [fault for checked in verify_store(path) for fault in checked.faults]
        with NBestStore.open(path) as store:
            records = store.iterations()
            size += sum(record.hypotheses for record in records)
    return size


def figures_of(work: Path) -> Any:
    summary = json.loads((work / "summary.json").read_text())
    for iteration in summary["iterations"]:
        # A hypothesis counts as new if no list in the store has it.
        del iteration["seconds"], iteration["new_hypotheses"]
    return summary["iterations"], summary["result"], summary["warnings"]


@pytest.mark.parametrize("sharding", [None, Sharding(shards=2)], ids=["alone", "shards"])
def test_the_same_run_without_its_lists(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch, sharding: Sharding | None
) -> None:
    """Killed inside of an epoch, before its result, and before its lists are removed, too.

    Warnings are those of the first lists.
    """

    def find_sign(*parts: TuningSet) -> list[WarningSign]:
        return [WarningSign("hypotheses", f"{sum(part.n_hyps for part in parts)} {{--strict}}")]

    monkeypatch.setattr(guarding, "find_list_signs", find_sign)
    work, kept = toy.directory / "whole", toy.directory / "kept"
    tune(configure(toy, "kept", keeps=True, sharding=sharding))
    tune(configure(toy, "whole", sharding=sharding))
    assert figures_of(work) == figures_of(kept)
    assert figures_of(work)[2] == ["180 --strict"]
    assert size_of_lists(work) == 0 < size_of_lists(kept)
    whole = left_by_run(work)

    def kill(event: Event) -> None:
        if isinstance(event, EpochProgress) and (event.iteration, event.batches) == moment:
            raise KeyboardInterrupt

    def killed(*given: Any) -> None:
        raise KeyboardInterrupt

    for number, method in enumerate(["", "record_result", "discard_lists"]):
        moment = (0, 0) if method else (2, 2)
        name = f"killed{number}"
        with monkeypatch.context() as patch:
            if method:
                patch.setattr(NBestStore, method, killed)
            with pytest.raises(KeyboardInterrupt):
                tune(configure(toy, name, sharding=sharding), kill)
        tune(replace(configure(toy, name, sharding=sharding), existing="continue"))
        assert size_of_lists(toy.directory / name) == 0
        left = left_by_run(toy.directory / name)
        assert left.keys() == whole.keys()
        for file, content in whole.items():
            assert left[file].replace(name.encode(), b"whole") == content, (number, file)


def test_what_needs_the_lists_names_the_option(toy: Toy) -> None:
    configuration = configure(toy, "work")
    tune(configuration)
    work = toy.directory / "work"
    with pytest.raises(DataError, match="has no lists: --no-keep-lists did not keep them"):
        open_run(work).hypotheses()
    with open_stored_run(work) as run:
        *_, data = gather_report_steps(run, ParallelText())
        assert "not kept (--no-keep-lists)" in render_page(data, "title")
        with pytest.raises(UsageError, match="TER: the lists of this run are not kept"):
            list(gather_report_steps(run, ParallelText(), watched=["TER"]))
    kept = replace(configuration, online=OnlineSettings("process"), existing="continue")
    for other in (kept, replace(kept, online=None)):
        with pytest.raises(UsageError, match="did not keep its lists: continue it with --online"):
            tune(other)
    tune(replace(kept, existing="overwrite"))
    with pytest.raises(UsageError, match="keeps its lists: continue it without --no-keep-lists"):
        tune(replace(configuration, existing="continue"))
