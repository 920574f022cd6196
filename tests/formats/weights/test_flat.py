"""Test weights as pairs, tables and YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.weights.any_format import parse_weights, read_weights
from formats.weights.flat import format_pairs, format_tsv, parse_pairs, parse_tsv
from formats.weights.list_changes import (
    ListChanges,
    format_list_changes,
    parse_list_changes,
)
from formats.weights.weight_format import find_weight_format
from formats.weights.yaml_file import format_yaml, is_yaml, parse_yaml

numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1)
plain = names.filter(lambda name: not name.startswith("#"))


@example({"[": 1.0})
@example({"[weight]": 1.0})
@given(st.dictionaries(plain, numbers, min_size=1))
def test_pairs_and_tables_survive_exactly(weights: dict[str, float]) -> None:
    assert parse_pairs("w", format_pairs(weights)) == weights
    assert parse_tsv("w", format_tsv(weights)) == weights
    assert parse_weights(format_pairs(weights), "w").format == "equals"
    table = parse_weights(format_tsv(weights), "w")
    assert table.format == "tsv"
    assert {**table.single_values, **table.fixed_weights} == weights


@given(
    st.dictionaries(names, st.lists(st.none() | numbers, min_size=1).map(tuple), min_size=1),
    st.dictionaries(names, numbers),
)
def test_yaml_survives_exactly(
    dense: dict[str, tuple[float | None, ...]], sparse: dict[str, float]
) -> None:
    sparse = {name: value for name, value in sparse.items() if name not in dense}
    text = format_yaml(dense.items(), sparse)
    expected = {**dense, **{name: (value,) for name, value in sparse.items()}}
    assert parse_yaml("w", text).weights == expected
    assert parse_weights(text, "w").format == "yaml"


@given(
    st.dictionaries(names, st.lists(st.none() | numbers, min_size=1), min_size=1),
    st.dictionaries(names, numbers),
)
def test_other_readers_of_yaml_find_the_same(
    dense: dict[str, list[float | None]], sparse: dict[str, float]
) -> None:
    yaml = pytest.importorskip("yaml")
    sparse = {name: value for name, value in sparse.items() if name not in dense}
    found = yaml.safe_load(format_yaml(dense.items(), sparse))
    single = {n: v[0] if len(v) == 1 and v[0] is not None else v for n, v in dense.items()}
    assert found == {**single, **sparse}


def test_changes_of_lists_are_keys_of_yaml() -> None:
    made = ListChanges(("LM",), {"a b": 'x/"y z"'}, "LM,a:1.25 chars")
    text = format_yaml([("LM", (1.0,))], {}, made)
    assert text.decode().splitlines()[1:] == [
        'added: ["LM"]',
        'derived: {"a b": "x/\\"y z\\""}',
        "length_exponent: 1.25",
        'length_features: ["LM", "a"]',
        'length_by: "chars"',
    ]
    parsed = parse_weights(text, "w")
    assert (parsed.groups, parsed.changes) == ({"LM": (1.0,)}, made)
    # Features may have the names of keys whose values are no numbers.
    assert parse_weights(b"added: 1\nderived: 2\n", "w").groups == {"added": (1,), "derived": (2,)}
    for line, message in (
        ("derived: {1: 2}", "the value of derived is not JSON"),
        ('derived: {"a": 2}', "derived has no expression of 'a'"),
        ('length_by: "a"', "length_exponent is missing"),
        ("length_exponent: x", "the weight of length_exponent is 'x'"),
    ):
        with pytest.raises(FormatError, match=message):
            parse_weights(f"LM: 1\n{line}\n".encode(), "w")


def test_yaml_as_people_write_it() -> None:
    text = b"""\
---
# scales of the second pass
lm:   -1e-5   # the language model
'it''s': .5
"a\\u00e4": +2
b:c: [1, ~,  null, 2.5E+3]
 # indented comments
tm.x-1: 3
...
"""
    assert parse_yaml("w", text).weights == {
        "lm": (-1e-5,),
        "it's": (0.5,),
        "aä": (2.0,),
        "b:c": (1.0, None, None, 2500.0),
        "tm.x-1": (3.0,),
    }


def test_names_of_yaml_are_texts_to_every_reader() -> None:
    texts = dict.fromkeys(("no", "NULL", "1", "ab", "a:b", "-", "é", "x_y", "1e5"), 1.0)
    assert format_yaml([], texts).decode().splitlines() == [
        *('"no": 1.0', '"NULL": 1.0', '"1": 1.0', "ab: 1.0", '"a:b": 1.0', '"-": 1.0'),
        *('"é": 1.0', "x_y: 1.0", '"1e5": 1.0'),
    ]
    assert (
        format_yaml([], {"a": 1e-5, "b": 1e22, "c": -0.0}) == b"a: 1.0e-05\nb: 1.0e+22\nc: -0.0\n"
    )


def test_sparse_features_that_end_in_a_colon_are_no_yaml() -> None:
    assert not is_yaml([b"WT_a~: 0.5", b"WT_a~b 1"])
    assert parse_weights(b"WT_a~: 0.5\nWT_a~b 1\n", "w").sparse == {"WT_a~:": 0.5, "WT_a~b": 1}


@given(
    st.lists(plain),
    st.dictionaries(plain.map(lambda n: n.replace("=", "")), plain),
    st.sampled_from(["", "0.75", "a,b:1.5 c"]),
)
def test_changes_of_lists_survive_as_comments(
    added: list[str], derived: dict[str, str], exponent: str
) -> None:
    known = {name: text for name, text in derived.items() if name}
    made = ListChanges(tuple(added), known, exponent, "a b.toml", "0123abcd")
    text = format_list_changes(made)
    assert parse_list_changes(text + b"LM0= 1\n") == made
    assert parse_weights(text + b"LM0= 1\n", "w").changes == made
    assert parse_weights(text + b"LM0=1\n", "w").changes == made
    assert parse_weights(text + b"LM0: 1\n", "w").changes == made


def test_names_of_formats() -> None:
    paths = ("w.json", "w.yaml", "w.yml", "w.tsv", "moses.ini", "run1.dense", "w", "")
    expected = ["json", "yaml", "yaml", "tsv", "moses.ini", "dense", "dense", "dense"]
    assert [find_weight_format(None, path) for path in paths] == expected
    assert find_weight_format("lines", "w.json") == "graph"
    assert find_weight_format("json-flat", Path("w.yaml")) == "json-flat"
    with pytest.raises(
        ValueError, match=r"unknown format 'xml' of weights; known: moses.ini, dense"
    ):
        find_weight_format("xml")


@pytest.mark.parametrize("text", [b"a=1 b\n", b"a=1 b= 2\n", b"=1\n"])
def test_other_words_are_rejected(text: bytes) -> None:
    with pytest.raises(FormatError, match=r"f: .* is not a line of a file of weights"):
        parse_weights(text, "f")


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("flat.json", "json-flat", {"lm": 0.5, "TM0_1": 0.1, "TM0_2": 0.3, "WT_a~b": -7}),
        ("scales.yaml", "yaml", {"lm": 0.5, "TM0_1": 0.1, "TM0_2": 0.3, "WT_:~b": -7}),
        ("pairs.equals", "equals", {"lm": 0.5, "qe_score": 0.001, "WT_=~b": -7}),
        ("table.tsv", "tsv", {"lm": 0.5, "TM0_1": 0.1, "TM0_2": -3}),
        ("made.dense", "dense", {"LM": 0.5, "lm_norm": 2}),
    ],
)
def test_valid_files(name: str, found: str, expected: dict[str, float]) -> None:
    file = read_weights(Path(__file__).parents[2] / "data" / "valid" / "weights" / name)
    assert file.format == found
    assert file.single_values == expected
    assert file.changes.names == (("LM", "lm_norm") if name == "made.dense" else ())
