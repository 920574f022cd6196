"""Records of iterations, also those that are not what a run has stored, and changed settings."""

from __future__ import annotations

from typing import Any

import pytest

from mosesplug.errors import StoreError
from mosesplug.store import IterationRecord
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    IterationResult,
    IterationStart,
    list_changes,
    read_result,
    read_start,
)

WEIGHTS = Weights((0.5, -1.0), {"s_a": 2.0})
START = IterationStart(WEIGHTS, 5, {"algorithm": "mert"}, ("moses", "-f"), 1.5)
RESULT = IterationResult(WEIGHTS, 0.5, 0.1, 2.0, ({"step": 1},), average=WEIGHTS)


def stored(record: dict[str, Any], result: dict[str, Any]) -> IterationRecord:
    return IterationRecord(2, record, result, 1, 1, 1, 1, 0.5, "BLEU")


def test_records_survive_a_round_trip() -> None:
    record = stored(START.as_record(), RESULT.as_record())
    assert read_start(record) == START
    assert read_result(record) == RESULT


@pytest.mark.parametrize(
    "change",
    [
        *({"dense": value} for value in (None, 3, "text", [None], [float("nan")], [[1.0]])),
        *({"sparse": value} for value in (None, 3, [1], {1: 2.0}, {"a": "x"}, {"a": 1e999})),
        *({"settings": value} for value in (None, [1], {"a": 1}, {1: "a"})),
        *({"command": value} for value in (None, 3, [1])),
        {"seed": "x"},
        {"seconds_decoding": None},
    ],
    ids=str,
)
def test_missing_fields(change: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="corrupt record of iteration 2"):
        read_start(stored(START.as_record() | change, {}))


@pytest.mark.parametrize(
    "change",
    [
        {"optimum": "x"},
        {"largest_change": None},
        {"curve": 3},
        {"curve": [3]},
        {"heldout": [3]},
        {"heldout": [{"updates": 1}]},
        {"average": 3},
        {"shards": {"sentences": 1}},
        {"shards": 3},
    ],
    ids=str,
)
def test_invalid_results(change: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="corrupt record of iteration 2"):
        read_result(stored({}, RESULT.as_record() | change))
    with pytest.raises(StoreError, match="KeyError: 'seconds_optimising'"):
        read_result(stored({}, {}))


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ("A(x=1, y=(1, 2))", "A(x=1, y=(2, 1))", "y=(1, 2) -> y=(2, 1)"),
        ("A(x=1, y='b')", "A(x=2, y='c')", "x=1, y='b' -> x=2, y='c'"),
        ("A(x=1)", "A(x=1, y='c')", "not set -> y='c'"),
        ("A(x=1)", "B(x=1)", "A(x=1) -> B(x=1)"),
    ],
)
def test_options_that_changed_are_listed(before: str, now: str, change: str) -> None:
    earlier, later = {"algorithm": before, "epochs": "2"}, {"algorithm": now, "new": "3"}
    assert list_changes(earlier, later) == [f"algorithm: {change}"]
    assert list_changes({"threads (all)": "(1, 2)"}, {"threads (all)": "(2, 1)"}) == [
        "threads (all): (1, 2) -> (2, 1)"
    ]
