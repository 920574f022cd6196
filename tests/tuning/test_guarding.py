"""Signs that a run goes wrong are looked for in every regime, as early as they can be seen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mosesplug.errors import DataError
from mosesplug.events import Note
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.warning_signs import find_score_signs

pytestmark = pytest.mark.usefixtures("decoder_in_process")

_SHARDS = Sharding(2, mixing="average")
REGIMES = {
    "online": {"online": OnlineSettings("process")},
    "online, async": {
        "online": OnlineSettings("process"),
        "sharding": Sharding(2, asynchronous=True, async_order="fixed"),
    },
    "online, sharded": {"online": OnlineSettings("process"), "sharding": _SHARDS},
    "batch, sharded": {"sharding": _SHARDS},
}


def of_regime(toy: Any, regime: str, *, nbest: int = 15, **more: Any) -> Any:
    """One epoch, or iteration, on the toy system, whose reference is not its input."""
    lines = (toy.directory / "input").read_text().splitlines()
    (toy.directory / "reference").write_text("".join(f"so {line}\n" for line in lines))
    words = {"algorithm": "perceptron", "options": {"epochs": 1, "batch": 4}}
    settings: dict[str, Any] = {"maximum_iterations": 1, "minimum_change": 0.0, **REGIMES[regime]}
    optimization = {**words, "sharding": settings.pop("sharding", None)}
    decoding = {"decoding": {"nbest": nbest}} if nbest != 15 else {}
    return toy.configuration(optimization=optimization, **decoding, **settings, **more)


def warnings_of(log: Any) -> list[str]:
    return [note.text for note in log.of(Note) if note.is_warning]


@pytest.mark.parametrize("regime", REGIMES)
def test_lists_are_judged_in_every_regime(toy: Any, log: Any, regime: str) -> None:
    """Lists of one hypothesis: refused when they are there, told once, and in the summary."""
    work = toy.directory / "work"
    refused = (
        r"--strict: 12 of 12 sentences have one distinct .* \(the lists of iteration 1 are kept;"
    )
    with pytest.raises(DataError, match=rf"{refused} no moses.ini is written\)"):
        tune(of_regime(toy, regime, nbest=1, strict=True), log)
    assert not (work / "finished_step.txt").exists()
    assert not warnings_of(log)
    result = tune(of_regime(toy, regime, nbest=1, existing="continue"), log)
    told = [text for text in warnings_of(log) if "one distinct" in text]
    assert len(told) == 1
    assert told[0] in result.warnings
    assert told[0] in json.loads((work / "summary.json").read_text())["warnings"]
    tuned = (work / "moses.ini").read_bytes()
    with pytest.raises(DataError, match=rf"{refused} .*moses.ini is as it was\)"):
        tune(of_regime(toy, regime, nbest=1, existing="continue", strict=True), log)
    assert (work / "moses.ini").read_bytes() == tuned


def test_scores_are_judged_after_each_epoch(
    toy: Any, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A score that fell ends the run there and then, with what is before it."""
    # Scores that rise by less than 1 count as fallen, since those of the toy system do not fall.
    monkeypatch.setattr(
        "mosesplug.tuning.guarding.find_score_signs",
        lambda scores, signature, _, options: find_score_signs(scores, signature, -1.0, options),
    )
    configuration = of_regime(toy, "online, sharded", strict=True)
    optimization = replace(configuration.optimization, options={"epochs": 3, "batch": 6})
    configuration = replace(configuration, optimization=optimization, maximum_iterations=0)
    with pytest.raises(DataError, match=r"iteration 2 scores .* lists of iteration 2 are kept"):
        tune(configuration, log)
    assert (toy.directory / "work" / "finished_step.txt").read_text() == "1\n"


def test_texts_are_judged_before_the_epoch_is_over(
    toy: Any, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mosesplug.tuning.guarding._EARLY_SENTENCES", 8)
    monkeypatch.setattr("mosesplug.tuning.text_signs.side._FEW_TOKENS", 10)
    configuration = of_regime(toy, "online", strict=True)
    (toy.directory / "reference").write_text("anything else\n" * 12)
    with pytest.raises(
        DataError, match=r"--strict: .* \(the lists of 8 sentences are kept; no moses"
    ):
        tune(configuration, log)
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        opened = store.open_iteration()
    assert opened is not None
    assert len(opened.sentences) == 8
