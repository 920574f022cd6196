"""Settings and the outcome of a run in words, without Python's values."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mosesplug.results.views.configuration import describe_configuration, describe_outcome
from mosesplug.results.views.run import open_run
from mosesplug.tuning.workdir.records import IMPORTED, IterationStart, read_start
from tests.results.runs import make_run

STORED = {
    "algorithm": "mert MertOptions(restarts=0, method='powell', tolerance=1e-05, both=(1, None))",
    "active features": "None",
    "ranges": "(('LM0', 0.0, None), ('TM0', -1.0, 1.0))",
    "earlier iterations": "-1",
    "historic bests": "False",
    "online": "True",
    "decoder flags": "-threads 2 (of 4)",
    "forest": "Graphs(edges=50, every=1)",
    "held-out text": "dir/test.src, dir/test-1.ref, every 0",
    "transformation": "sed-e s/a/b/",
}


def test_settings_are_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        start = replace(read_start(run.records[-1]), settings=STORED)
        monkeypatch.setattr(IterationStart, "of_record", lambda record: start)
        facts = describe_configuration(run)
    assert facts["seed"] == "7"
    assert facts["algorithm"] == "mert"
    assert facts["mert restarts"] == "0"
    assert facts["mert method"] == "powell"
    assert facts["mert tolerance"] == "1e-05"
    assert facts["mert both"] == "1, none"
    assert facts["ranges"] == "(LM0, 0.0, none), (TM0, -1.0, 1.0)"
    assert facts["earlier iterations"] == "all"
    assert facts["online"] == "yes"
    assert facts["forest"] == "edges 50, every 1"
    # Plain texts stay as they are.
    for name in ("decoder flags", "held-out text", "transformation"):
        assert facts[name] == STORED[name]
    assert facts["not in use"] == "active features, historic bests"
    assert not re.search(r"None|True|False|Options\(|'", "\n".join(facts.values()))


def test_outcome_of_a_run(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    with open_run(work) as run:
        outcome = describe_outcome(run)
        assert (outcome.algorithm, outcome.warnings) == ("mert", ())
        assert outcome.reason.startswith("not yet")
        assert outcome.weights == "those found in iteration 2"
    document = {
        "algorithm": "kbmira",
        "reason": "no weight changed",
        "warnings": ["few references"],
        "result": {
            "selected": "average",
            "decoded_in_iteration": None,
            "score": 0.5,
            "score_of": "lists",
            "weights": {"LM0_0": 0.5, "TM0_0": 0.5},
        },
    }
    (work / "summary.json").write_text(json.dumps(document))
    with open_run(work) as run:
        outcome = describe_outcome(run)
    assert outcome.algorithm == "kbmira"
    assert outcome.reason == "no weight changed"
    assert outcome.warnings == ("few references",)
    assert outcome.weights == (
        "the average of the weights of all iterations; BLEU 0.5000 in the merged lists"
    )
    (work / "summary.json").write_text(json.dumps({**document, "online": True}))
    with open_run(work) as run:
        assert describe_outcome(run).weights.startswith("the average of the weights after all upd")


def test_of_imported_lists_only_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        start = replace(read_start(run.records[-1]), settings={IMPORTED: "run2.gz"}, command=())
        monkeypatch.setattr(IterationStart, "of_record", lambda record: start)
        facts, outcome = describe_configuration(run), describe_outcome(run)
    assert facts[IMPORTED] == "run2.gz"
    assert facts.keys().isdisjoint({"seed", "decoder", "algorithm"})
    assert (outcome.algorithm, outcome.reason) == ("", "")
