"""A sample of the kill matrix, and that the comparison sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lmdb

from mosesplug.store.encoding import encode_value
from tests.long_running.injection import PHASES
from tests.long_running.kill_matrix import matrix
from tests.long_running.kills import SIGNALS
from tests.long_running.left_behind import differences, left_in
from tests.long_running.system import ROOT, make_toy

SAMPLE = ["online, processes", "ask and tell", "maintenance", "batch, runs", "batch, domains"]


def test_a_sample(tmp_path: Path) -> None:
    """Each signal once; ``python -m tests.long_running.kill_matrix`` does hundreds."""
    outcomes = matrix(
        make_toy(tmp_path / "system"),
        SAMPLE,
        tmp_path,
        runs=3,
        seed=3,
        outside=0.0,
        early=True,
    )
    assert {outcome.case.signal for outcome in outcomes} == set(SIGNALS)
    for outcome in outcomes:
        assert not outcome.problems, (outcome.case.name, outcome.kills, outcome.problems)
        assert outcome.met, outcome.kills


def test_every_phase_is_a_function_of_the_software() -> None:
    for (file, function), phase in PHASES.items():
        texts = [path.read_text() for path in (ROOT / "mosesplug").rglob(file)]
        texts += [path.read_text() for path in (ROOT / "formats").rglob(file)]
        assert any(f"def {function}(" in text for text in texts), (phase, file, function)


def left_by(directory: Path, **changes: Any) -> dict[str, Any]:
    """Files of a directory like that of a run."""
    files = {
        "run1.dense": b"LM0= 1\n",
        "run1.moses.ini": b"# weights\n# finished %s\n[weight]\n" % directory.name.encode(),
        "summary.json": json.dumps(
            {"finished": directory.name, "iterations": [{"score": 1, "seconds": directory.name}]}
        ).encode(),
        "features.list.err": str(directory).encode() + b"/model is loaded",
        "tuning.lock": directory.name.encode(),
        "server1.err": directory.name.encode(),
        **{name: value for name, value in changes.items() if isinstance(value, bytes)},
    }
    store = directory / "nbests.lmdb"
    store.mkdir(parents=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    record = {"score": 0.5, "seconds": directory.name, **changes.get("record", {})}
    with lmdb.open(str(store), max_dbs=2) as environment:
        database = environment.open_db(b"iterations")
        with environment.begin(write=True, db=database) as transaction:
            transaction.put(b"\0\0\0\1\2", encode_value(record))
    return left_in(directory)


def test_times_and_processes_may_differ_and_nothing_else(tmp_path: Path) -> None:
    expected = left_by(tmp_path / "one")
    assert differences(expected, left_by(tmp_path / "two")) == []
    other = {
        "run1.dense": b"LM0= 1.0\n",
        ".run2.dense.17.0123abcd": b"",
        "summary.json": b'{"finished": "", "iterations": [{"score": 2, "seconds": 0}]}',
        "record": {"score": 0.5000000000000001},
    }
    assert differences(expected, left_by(tmp_path / "six", **other)) == [
        "additional: .run2.dense.17.0123abcd",
        "other: nbests.lmdb/data.mdb: iterations 00 00 00 01 02",
        "other: run1.dense",
        "other: summary.json",
    ]
    assert differences(expected, {}) == [f"missing: {name}" for name in sorted(expected)]
