"""The weights and scores in what a row leaves, and those that are kept in ``values.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.golden.results import numbers
from tests.golden.rows import Row

__all__ = ["ROWS", "VALUES", "Values", "read_values", "row_values"]

Values = dict[str, list[float]]
"""Numbers by the name of the file that they are from."""

VALUES = Path(__file__).with_name("values.json")
ROWS = (
    "tune-mert",
    "tune-pro",
    "tune-sparse-kbmira",
    "tune-sparse-xbleu",
    "tune-heldout",
    "online-mira",
    "online-server",
    "shards-line-search",
    "async-fixed",
    "online-shards-average",
    "forest-mert",
    "script-mira",
    "optimize-graphs",
    "tools-kbmira-pro",
    "sentence-weights",
)
"""The rows that the test suite runs."""

_SCORES = ("weights", "score", "first_best_score", "optimum", "dev", "heldout")
_WEIGHTS = re.compile(r"\.dense$|\.sparse|(^|/)w\d+$")


def row_values(row: Row, left: Mapping[str, bytes]) -> Values:
    """The numbers in a row's weight files, summaries and exact stdout."""
    exact = {f"stdout.{number}" for number, each in enumerate(row.commands, 1) if each.exact}
    found = {}
    for name, data in left.items():
        if name.endswith("summary.json"):
            found[name] = list(_scores(json.loads(data)))
        elif name in exact or _WEIGHTS.search(name):
            found[name] = [float(number) for number in numbers(data)]
    return {name: values for name, values in found.items() if values}


def _scores(data: Any, name: str = "") -> Iterator[float]:
    """The scores and weights of a summary."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _scores(value, name if name == "weights" else key)
    elif isinstance(data, list):
        for value in data:
            yield from _scores(value, name)
    elif name in _SCORES and isinstance(data, (int, float)):
        yield float(data)


def read_values() -> dict[str, Values]:
    """The kept values by row."""
    kept: dict[str, Values] = json.loads(VALUES.read_text())
    return kept
