"""Bins and pairs: their bounds, their indicators, and weights that record them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.nbest.block import NBestList
from formats.weights.any_format import read_weights
from mosesplug.errors import UsageError
from mosesplug.learning.lists.binning import learn_bins
from mosesplug.learning.lists.blocks import read_list
from mosesplug.settings.expressions import Bin, parse_definition
from mosesplug.settings.lists import ListSettings, make_list_settings

VALUES = (3.0, -1.0, 0.1, 0.1, 7.0, 0.1, 2.0, 5.0)


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """Two sentences of four hypotheses of 1 to 4 words, with one feature."""
    path = tmp_path / "list"
    lines = [
        f"{row // 4} ||| {'a ' * (row % 4 + 1)}||| F0= {value} ||| {-row}\n"
        for row, value in enumerate(VALUES)
    ]
    path.write_text("".join(lines))
    (tmp_path / "refs").write_text("a a\na a a\n")
    return path


def settings_of(*texts: str) -> ListSettings:
    return make_list_settings({"derive": texts})


def learn(lists: Path, *texts: str) -> ListSettings:
    return learn_bins([lists], settings_of(*texts))


def columns_of(block: NBestList, name: str) -> np.ndarray:
    names = [group for group, width in block.groups for _ in range(width)]
    return block.dense[:, [place for place, own in enumerate(names) if own == name]]


def test_bounds_are_quantiles_of_the_lists(lists: Path) -> None:
    """Sorted: -1, 0.1, 0.1, 0.1, 2, 3, 5, 7; bounds are values, and equal ones are one."""
    for count, bounds in ((2, (2.0,)), (4, (0.1, 2.0, 5.0)), (8, (0.1, 2.0, 3.0, 5.0, 7.0))):
        (feature,) = learn(lists, f"b=bin(F0, {count})").derive
        definition = feature.expression
        assert isinstance(definition, Bin)
        expected = tuple(float(np.float32(bound)) for bound in bounds)
        assert definition.bounds == expected
        assert definition.count == len(bounds) + 1


def test_indicators(lists: Path) -> None:
    block = read_list(lists, learn(lists, "b=bin(F0, 4)", "p=pair(bin(F0, 2), bin(words, [2, 4]))"))
    bins = np.digitize(np.float32(VALUES), np.float32([0.1, 2.0, 5.0]))
    np.testing.assert_array_equal(columns_of(block, "b"), np.eye(4)[bins])
    left = (np.array(VALUES) >= 2.0).astype(int)
    right = np.tile([0, 1, 1, 2], 2)
    np.testing.assert_array_equal(columns_of(block, "p"), np.eye(6)[3 * left + right])


def test_definitions_are_read_back_exactly(lists: Path) -> None:
    for text in ("bin(exp(F0)/words, 5)", "pair(bin(F0/3, 4), bin(-F0, [-1e-3, 2]))"):
        (learned,) = learn(lists, f"b={text}").derive
        again = parse_definition(learned.text)
        assert again == learned.expression
        assert learned.agrees(settings_of(f"b={learned.text}").derive[0])
        assert settings_of(f"b={text}").derive[0].agrees(learned)
    assert not settings_of("b=bin(words, 5)").derive[0].agrees(learned)


@pytest.mark.parametrize("name", ["w", "w.json", "w.yaml"])
def test_weights_record_bins(lists: Path, name: str) -> None:
    path = lists.parent / name
    derive = {"b": "bin(F0, 3)", "x": "F0*words"}
    fit = mosesplug.optimize(
        lists, references=lists.parent / "refs", algorithm="kbmira", derive=derive
    )
    fit.save(path)
    recorded = read_weights(path).changes.derived_features
    assert recorded == {"b": learn(lists, "b=bin(F0, 3)").derive[0].text, "x": "F0*words"}
    other = lists.parent / "other"
    other.write_text("".join(lists.read_text().splitlines(keepends=True)[:4]))
    expected = mosesplug.rerank(other, path)
    assert expected.lists.names == ("F0", *["b"] * 3, "x")
    # Bounds are those of the weights, not of these lists.
    again = mosesplug.rerank(other, path, derive={"b": "bin(F0, 3)"})
    assert (again.texts, again.lists.scores.tolist()) == (
        expected.texts, expected.lists.scores.tolist()
    )  # fmt: skip
    # A list that has the features keeps them.
    mosesplug.write_nbest(lists.parent / "with", expected.lists)
    assert mosesplug.rerank(lists.parent / "with", path).texts == expected.texts
    assert mosesplug.mbr(other, path).texts
    for wrong in ("bin(F0, 2)", "bin(words, 3)", "F0"):
        with pytest.raises(UsageError, match="give the same expression"):
            mosesplug.rerank(other, path, derive={"b": wrong})


def test_held_out_lists_and_starts_take_the_bounds(lists: Path) -> None:
    references = lists.parent / "refs"
    reading: mosesplug.ListKeywords = {"derive": {"b": "bin(F0, 3)"}}
    other = lists.parent / "other"
    other.write_text(lists.read_text().replace("F0= 3.0", "F0= 4.5").replace("F0= 2.0", "F0= 1.5"))
    fit = mosesplug.optimize(
        lists, references=references, held_out=mosesplug.HeldOut(other, references), **reading
    )
    fit.save(lists.parent / "w")
    again = mosesplug.optimize(
        other, references=references, initial=str(lists.parent / "w"), **reading
    )
    first, second = (each.weights.file.changes.derived_features for each in (fit, again))
    assert first == second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bin(F0, 1)", "the number of bins must be 2 to 50"),
        ("bin(F0, 51)", "the number of bins must be 2 to 50"),
        ("bin(F0, 2.5)", "the number of bins must be 2 to 50"),
        ("bin(F0)", "the , is missing"),
        ("bin(F0, [2, 1])", "the bounds of bins do not ascend"),
        ("bin(F0, [2, x])", "a finite number is missing"),
        ("bin(F0, [2, 3)", "the ] of the bounds is missing"),
        ("bin(F0, 3) + 1", "an operator is missing"),
        ("2 * bin(F0, 3)", "bin(...) makes several features"),
        ("pair(F0, bin(F0, 3))", "bin(EXPRESSION, N) is missing"),
        ("pair(bin(F0, 3))", "pair takes two bins"),
    ],
)
def test_definitions_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        settings_of(f"b={text}")
    assert message in str(error.value)


def test_bins_that_cannot_be_learned(lists: Path) -> None:
    with pytest.raises(UsageError, match=r"words\*0 has too few values"):
        learn(lists, "b=bin(words*0, 3)")
    with pytest.raises(UsageError, match="the bounds of bins are learned with weights"):
        read_list(lists, settings_of("b=bin(F0, 3)"))
    with pytest.raises(UsageError, match="has a feature F0 already"):
        read_list(lists, settings_of("F0=bin(F0, [1])"))
