"""Test weights as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.weights.json_file import (
    JsonWeights,
    format_flat_json,
    format_json_weights,
    parse_json_weights,
)
from formats.weights.list_changes import ListChanges

numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1)


@given(
    st.dictionaries(names, st.lists(st.none() | numbers, min_size=1).map(tuple), min_size=1),
    st.dictionaries(names, numbers),
)
def test_round_trip(dense: dict[str, tuple[float | None, ...]], sparse: dict[str, float]) -> None:
    made = ListChanges(tuple(dense), {name: f"log({name})" for name in sparse}, "A:2.0 B")
    made = replace(made, templates="t.toml", templates_digest="0123abcd")
    text = format_json_weights(dense.items(), sparse, made)
    assert parse_json_weights("w.json", text) == JsonWeights(dense, sparse, made)
    parsed = json.loads(text)
    divided = [parsed[key] for key in ("length_exponent", "length_features", "length_by")]
    assert divided == [2.0, ["A"], "B"]
    text = format_flat_json(dense.items(), {})
    assert parse_json_weights("w.json", text) == JsonWeights(dense, {}, is_flat=True)
    assert json.loads(text).keys() == dense.keys()


@pytest.mark.parametrize(
    ("text", "exponent"),
    [
        (b'{"dense": {"A": 1}, "length_exponent": 1}', "1.0"),
        (b'{"dense": {"A": 1}, "length_exponent": "A,B:0.5 C"}', "A,B:0.5 C"),
        (b'{"A": 1, "length_exponent": 0.5}', "0.5"),
        (b'{"dense": {"A": 1}, "length_exponent": 2, "length_by": "chars"}', "2.0 chars"),
    ],
)
def test_exponents_as_they_may_be_written(text: bytes, exponent: str) -> None:
    parsed = parse_json_weights("w.json", text)
    assert dict(parsed.dense) == {"A": (1.0,)}
    assert parsed.changes == ListChanges(length_exponent=exponent)


def test_names_that_are_not_utf_8_survive_a_round_trip() -> None:
    name = b"WT_\xff".decode("utf-8", "surrogateescape")
    text = format_json_weights([], {name: 1.0})
    assert parse_json_weights("w.json", text) == JsonWeights({}, {name: 1.0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"dense": {"A": 1}', r"w.json:1: not JSON: Expecting ',' delimiter"),
        (b'{"dense": {"A": NaN}}', "w.json: a weight of 'A' is not a finite number"),
        (b'{"dense": {"A": 1e999}}', "a weight of 'A' is not a finite number"),
        (b'{"dense": {"A": true}}', "a weight of 'A' is not a finite number"),
        (b'{"dense": {"A": 1' + b"0" * 400 + b"}}", "a weight of 'A' is not a finite number"),
        (b'{"dense": {"A": []}}', "'A' has no weight"),
        (b'{"dense": {"A": 1, "A": 2}}', "the name 'A' is repeated"),
        (b'{"dense": {"A B": 1}}', "'A B' is not the name of a feature"),
        (b'{"dense": [1]}', "dense is not an object"),
        (b'{"A": {"B": 1}}', "unknown key 'A'"),
        (b'{"dense": {"A": 1}, "B": 1}', "unknown key 'B'"),
        (b'{"A": true}', "a weight of 'A' is not a finite number"),
        (b'{"A": "1"}', "unknown key 'A'"),
        (b'{"dense": {"A": 1}, "added": "A"}', "added is not a list of names"),
        (b'{"dense": {"A": 1}, "derived": {"A": 1}}', "derived has no expression of 'A'"),
        (b'{"dense": {}}', "the file has no weights"),
        (b'{"dense": ' + b"[" * 100_000, "not JSON"),
        (b'{"dense": {"\xff": 1}}', "not JSON"),
    ],
)
def test_invalid_files_are_rejected(text: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_json_weights("w.json", text)
