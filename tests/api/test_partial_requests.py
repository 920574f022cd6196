"""Requests for mini-batches and held-out texts give the bytes of runs with a decoder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mosesplug import Tuner
from mosesplug.errors import DataError, UsageError
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from tests.api.toy_requests import decode, decode_any, decode_batch, figures, left_by, open_tuner
from tests.tuning.conftest import ToySystem

ONLINE: dict[str, Any] = {
    "algorithm": "adagrad",
    "options": {"epochs": 2, "batch": 5},
    "online": True,
    "max_iterations": None,
}


def test_mini_batches_give_the_bytes_of_an_online_run(toy: ToySystem) -> None:
    """Also if the run is reopened before every step; lists are told once, and whole."""
    optimization = {"algorithm": "adagrad", "options": ONLINE["options"]}
    online: dict[str, Any] = {"online": OnlineSettings("process"), "maximum_iterations": 0}
    tune(toy.configuration("decoded", optimization=optimization, minimum_change=1e-5, **online))
    asked = []
    with open_tuner("told", **ONLINE) as tuner:
        while (request := tuner.ask()) is not None:
            assert request.sentences is not None
            asked.append((request.iteration, request.batch, len(request.sentences)))
            tuner.tell(request, decode_batch(request))
        assert "all 2 epochs" in tuner.reason
    assert asked == [(e, b, n) for e in (1, 2) for b, n in ((1, 5), (2, 5), (3, 2))]
    assert figures("told") == figures("decoded")
    stores = [Path(name) / "nbests.lmdb" for name in ("decoded", "told")]
    with NBestStore.open(stores[0]) as first, NBestStore.open(stores[1]) as second:
        for epoch in (1, 2):
            lists = [store.iteration_set(epoch).tuning_set for store in (first, second)]
            assert lists[0].dense.tobytes() == lists[1].dense.tobytes()
            assert lists[0].stats.tobytes() == lists[1].stats.tobytes()
    left = left_by("told")
    assert not any("batch" in name for name in left)
    with open_tuner("parts", **ONLINE) as tuner:
        assert tuner.ask_again() is None
        first_request = tuner.ask()
        assert "mini-batch 1, 5 sentences" in repr(first_request)
    while True:
        with Tuner.open("parts") as tuner:
            if tuner.ask() is None:
                break
        with Tuner.open("parts") as tuner:
            request = tuner.ask_again()
            assert request is not None
            assert request.sentences is not None
            told = decode_batch(request)
            short = Path("short.nbest")
            last = f"{request.sentences[-1]} "
            kept = [n for n in told.read_text().splitlines(True) if not n.startswith(last)]
            short.write_text("".join(kept))
            with pytest.raises(DataError, match=r"1 of . sentences have no hypotheses"):
                tuner.tell(request, short)
            with pytest.raises(DataError, match="is not in the mini-batch, which has"):
                tuner.tell(request, decode(request))
            tuner.tell(request, told)
        with Tuner.open("parts") as tuner:
            assert tuner.ask_again() is None
            if (following := tuner.ask()) is not None:
                with pytest.raises(UsageError, match=r"is open: a request takes lists only once"):
                    tuner.tell(request, told)
                assert tuner.ask() is following
    assert left_by("parts") == left


def held_out_texts(toy: ToySystem) -> dict[str, Any]:
    """Two texts of the toy system, as settings of a held-out set and of monitors."""
    for name, lines in (("one", slice(0, 4)), ("two", slice(5, 8))):
        for file in ("input", "reference0", "reference1"):
            kept = Path(file).read_text().splitlines(keepends=True)[lines]
            Path(file.replace("input", name).replace("reference", f"{name}.ref")).write_text(
                "".join(kept)
            )
    texts = {name: (toy.directory / name, toy.directory / f"{name}.ref") for name in ("one", "two")}
    return {
        "heldout": str(texts["one"][0]),
        "heldout_refs": str(texts["one"][1]),
        "monitor": {"two": texts["two"], "same": texts["one"]},
        "held_out": HeldOutSet(*texts["one"]),
        "monitors": (Monitor("two", *texts["two"]), Monitor("same", *texts["one"])),
    }


@pytest.mark.parametrize("regime", ["batch", "online", "online held out"])
def test_held_out_texts_are_asked_for(toy: ToySystem, regime: str) -> None:
    """The scores are those of a run with a decoder, also if it is reopened before every step."""
    values, more = held_out_texts(toy), {"maximum_iterations": 2, "minimum_change": 1e-5}
    held_out, monitors = values.pop("held_out"), values.pop("monitors")
    settings = {"monitor": {"two": values["monitor"]["two"]}, "select": "average"}
    settings["max_iterations"] = 2
    more |= {"monitors": monitors[:1], "select": "average"}
    if regime != "batch":
        options = {"epochs": 2 if regime == "online" else 1, "batch": 5}
        settings |= ONLINE | {"options": options}
        more |= {"online": OnlineSettings("process"), "maximum_iterations": 0}
        more["optimization"] = {"algorithm": "adagrad", "options": options}
    if regime == "online held out":
        settings |= values | {"heldout_every": 2, "select": None}
        more |= {"held_out": replace(held_out, every=2), "monitors": monitors, "select": None}
    tune(toy.configuration("decoded", **more))
    asked = []
    with open_tuner("told", **settings) as tuner:
        while (request := tuner.ask()) is not None:
            asked.append(request.source_path is not None)
            tuner.tell(request, decode_any(request))
        monitors = tuner.result.held_out
    assert figures("told") == figures("decoded")
    summaries = [json.loads(Path(name, "summary.json").read_text()) for name in ("decoded", "told")]
    assert summaries[0]["result"] == summaries[1]["result"]
    assert summaries[0]["result"]["monitors"].keys() == settings["monitor"].keys()
    assert settings["monitor"].keys() <= {row["text"] for row in monitors}
    again = []
    with open_tuner("parts", **settings):
        pass
    while len(again) <= len(asked):
        with Tuner.open("parts") as tuner:
            assert tuner.ask_again() is None
            request = tuner.ask()
        if request is None:
            break
        with Tuner.open("parts") as tuner:
            waiting = tuner.ask_again()
            assert waiting is not None
            assert (waiting.source_path, waiting.batch) == (request.source_path, request.batch)
            assert "Request of" in repr(waiting)
            tuner.tell(request, decode_any(waiting))
        again.append(request.source_path is not None)
    assert again == asked
    assert left_by("parts") == left_by("told")
    assert not any(name.startswith("text.") for name in left_by("parts"))
