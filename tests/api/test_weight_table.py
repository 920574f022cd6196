"""Test tables of weights, and the files that they are saved to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.weights.any_format import read_weights
from formats.weights.weight_format import FORMATS
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace

INI = "[feature]\nX name=LM0\nY name=TM0 num-features=2\n[weight]\nLM0= 1\nTM0= 1 1\n[other]\n5\n"


def make_table(**sparse: float) -> mosesplug.WeightTable:
    return mosesplug.WeightTable.of_mapping({"LM0": 0.1, "TM0": [1 / 3, -2]}, sparse)


def test_table_is_a_mapping() -> None:
    table = make_table(W_a=0.0, W_b=2.5)
    assert dict(table) == {"LM0": 0.1, "TM0": (1 / 3, -2), "W_a": 0.0, "W_b": 2.5}
    assert len(table) == 4
    assert table.vector.tolist() == [0.1, 1 / 3, -2, 0, 2.5]
    with pytest.raises(ValueError, match="read-only"):
        table.vector[0] = 1
    assert repr(table).splitlines() == [
        "feature  weight",
        "LM0      0.1",
        "TM0      0.333333 -2",
        "W_b      2.5",
        "and 1 more sparse features",
    ]
    html = table._repr_html_()
    assert '<td style="text-align:left">TM0</td>' in html
    assert "<p>and 1 more" in html


def test_features_that_are_not_tuned_are_omitted() -> None:
    space = FeatureSpace((("LM0", 1),), ("U0", "W_a"))
    table = mosesplug.WeightTable(
        space, np.array([1.0, 5.0, 2.0]), fixed=np.array([False, True, False])
    )
    assert dict(table) == {"LM0": 1.0, "W_a": 2.0}
    with pytest.raises(UsageError, match=r"vector has the shape \(2,\) for 3 features"):
        mosesplug.WeightTable(space, np.zeros(2))


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("sparse", "moses.ini")])
def test_every_format_keeps_the_numbers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    make_table(W_a=0.0, W_b=2.5).save(path, name)
    file = read_weights(path)
    assert file.format == ("dense" if name == "show-weights" else name)
    assert file.numbers or dict(file.groups) == {"LM0": (0.1,), "TM0": (1 / 3, -2)}
    assert not file.numbers or file.numbers == (0.1, 1 / 3, -2)
    beside = Path(f"{path}.sparse")
    assert (read_weights(beside) if beside.exists() else file).sparse == {"W_b": 2.5}
    make_table(W_a=0.0).save(path, name)
    assert not beside.exists()


def test_the_format_follows_from_the_name(tmp_path: Path) -> None:
    (tmp_path / "moses.ini").write_text(INI)
    make_table().save(tmp_path / "w.json")
    assert mosesplug.WeightTable.read(tmp_path / "w.json") == make_table()
    make_table().save(tmp_path / "run1.dense")
    assert (tmp_path / "run1.dense").read_text() == "LM0= 0.1\nTM0= 0.3333333333333333 -2\n"
    make_table().save(tmp_path / "tuned.ini", config=tmp_path / "moses.ini")
    text = (tmp_path / "tuned.ini").read_text()
    assert text == INI.replace("LM0= 1\nTM0= 1 1", "LM0= 0.1\nTM0= 0.3333333333333333 -2")
    # A table of a configuration replaces its weights.
    read = mosesplug.WeightTable.read(tmp_path / "tuned.ini")
    read.save(tmp_path / "again.ini")
    assert (tmp_path / "again.ini").read_text() == text
    mosesplug.WeightTable.of_mapping({}, {"W_a": 2}).save(tmp_path / "w")
    assert (tmp_path / "w").read_text() == "W_a 2\n"


def test_weights_that_a_format_cannot_hold_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "w"
    with pytest.raises(UsageError, match=r"moses.ini is made from another one: give config=FILE"):
        make_table().save(tmp_path / "moses.ini")
    with pytest.raises(UsageError, match=r"unknown format 'xml' of weights; known: moses.ini,"):
        make_table().save(path, "xml")
    with pytest.raises(DataError, match="all weights are 0"):
        mosesplug.WeightTable.of_mapping({"LM0": 0}).save(path)
    with pytest.raises(DataError, match="a weight is not finite"):
        mosesplug.WeightTable.of_mapping({"LM0": np.nan}).save(path)
    with pytest.raises(DataError, match="graph takes 'lm_score' for a sparse feature"):
        mosesplug.WeightTable.of_mapping({"lm_score": (1, 2)}).save(path, "graph")
    with pytest.raises(DataError, match="dense takes '#words' for a comment: use format='json'"):
        mosesplug.WeightTable.of_mapping({"#words": 1}).save(path)
    assert not path.exists()
    (tmp_path / "numbers").write_text("1 2 3\n")
    with pytest.raises(UsageError, match="has numbers without names"):
        mosesplug.WeightTable.read(tmp_path / "numbers")
