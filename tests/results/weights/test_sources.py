"""Weights by their names, mixed, compared and converted; over iterations, and in use."""

from __future__ import annotations

import math
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.moses.ini import parse_moses_ini
from formats.weights.any_format import parse_weights
from formats.weights.files import ShowWeights, WeightGroup
from formats.weights.weight_format import FORMATS, Format
from mosesplug.errors import DataError, UsageError
from mosesplug.results.views.run import open_run
from mosesplug.results.weights.algebra import (
    combine,
    compute_norm,
    normalize,
)
from mosesplug.results.weights.comparison import compare_weights
from mosesplug.results.weights.convert import convert_weights
from mosesplug.results.weights.history import (
    count_sparse_use,
    read_file_history,
    read_run_history,
)
from mosesplug.results.weights.sources import ResolvedWeights, resolve_weights
from mosesplug.tuning.weights import Weights
from tests.results.runs import make_run
from tests.store.toys import Hypothesis

SHOW = ShowWeights((WeightGroup("TM0", (0.1, None, 0.2)), WeightGroup("LM0", (0.7,))), ("U0",))

INI = b"""\
[feature]
UnknownWordPenalty
A name=LM0
B name=TM0 tuneable-components=true,false,true
[weight]
LM0= 3 # kept
TM0= 1 9 2
"""

numbers = st.floats(-1e9, 1e9).filter(lambda value: value == 0.0 or abs(value) > 1e-9)


def point(
    *dense: float, show: ShowWeights | None = SHOW, sparse: dict[str, float] | None = None
) -> ResolvedWeights:
    """A point with the features of ``SHOW``, or without names."""
    named = ShowWeights(()) if show is None else show.with_values(dense)
    return ResolvedWeights("it", "dense", named, Weights(dense, sparse or {}))


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "work")
    Path("a.dense").write_text("LM0= 0.5\nTM0= 0.1 0.3\n")
    Path("s").write_text("S_a 2\n")
    for name, expected in {
        "a.dense": {"LM0_0": 0.5, "TM0_0": 0.1, "TM0_1": 0.3},
        "a.dense+s": {"LM0_0": 0.5, "TM0_0": 0.1, "TM0_1": 0.3, "S_a": 2},
        "LM0= 1 TM0= 2 x": {"LM0_0": 1, "TM0_0": 2},
        # The second iteration is decoded with what the first found; the result comes of the last.
        "work:1": {"LM0_0": 0.5, "TM0_0": 0.5},
        "work:2": {"LM0_0": 0.2, "TM0_0": 0.6},
        "work/nbests.lmdb": {"LM0_0": 0.25, "TM0_0": 0.75},
        "work+s": {"LM0_0": 0.25, "TM0_0": 0.75, "S_a": 2},
    }.items():
        assert resolve_weights(name).by_name == expected
    with pytest.raises(DataError, match="no iteration 3"):
        resolve_weights("work:3")
    with pytest.raises(UsageError, match=r"there are no weights b\.dense"):
        resolve_weights("b.dense")
    Path("s.z").write_text("S_a b\n")
    with pytest.raises(FormatError, match=r"s\.z:1"):
        resolve_weights("a.dense+s.z")


def test_a_working_directory_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "run1.dense").write_text("LM0= 1\nTM0= 1\nTM0= 2\n")
    (tmp_path / "run1.sparse-weights").write_text("S_a 4\n")
    (tmp_path / "run2.dense").write_text("LM0= 0.5\nTM0= -0.25 0.25\n")
    assert resolve_weights(f"{tmp_path}:1").by_name == {
        "LM0_0": 1,
        "TM0_0": 1,
        "TM0_1": 2,
        "S_a": 4,
    }
    with pytest.raises(DataError, match=r"no moses.ini yet: name an iteration"):
        resolve_weights(str(tmp_path))
    # The features of a moses.ini have another order.
    (tmp_path / "moses.ini").write_text("[weight]\nTM0= 1 2\nLM0= 1\n")
    assert resolve_weights(str(tmp_path)).by_name == {"TM0_0": 1, "TM0_1": 2, "LM0_0": 1}
    series = read_file_history(tmp_path)
    assert series is not None
    assert series.dense == ("LM0_0", "TM0_0", "TM0_1")
    assert series.of("LM0_0") == (0.25, 0.5, 0.25)
    assert series.of("S_a") == (1, 0, 0)
    assert read_file_history(tmp_path / "none") is None


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=2, max_size=5))
def test_means_are_those_of_numpy(rows: list[tuple[float, float, float]]) -> None:
    points = [point(*row, sparse={"S_a": row[0]}) for row in rows]
    shares = [1 / len(rows)] * len(rows)
    matrix = np.array(rows)
    norms = np.abs(matrix).sum(axis=1)
    if matrix.mean(axis=0).any():
        found = combine(points, shares, "mean", normalized=False)
        scale = np.abs(matrix).max()
        assert np.allclose(found.weights.dense, matrix.mean(axis=0), rtol=0, atol=1e-14 * scale)
        assert math.isclose(
            found.weights.sparse["S_a"], matrix[:, 0].mean(), rel_tol=1e-9, abs_tol=1e-14 * scale
        )
    if norms.all() and np.abs((matrix / norms[:, None]).mean(axis=0)).max() > 1e-9:
        found = combine(points, shares, "mean", normalized=True)
        assert np.allclose(found.weights.dense, (matrix / norms[:, None]).mean(axis=0), atol=1e-14)


def test_mixtures() -> None:
    a, b = point(1, 2, 1), point(0, 3, 3, sparse={"S_a": 4})
    at_0 = combine([a, b], (1, 0), "at 0", normalized=False)
    assert at_0.weights == Weights((1, 2, 1), {"S_a": 0})
    assert combine([a, b], (0, 1), "at 1", normalized=False).weights == b.weights
    assert combine([a, b], (2, -1), "at -1", normalized=False).weights.dense == (2, 1, -1)
    half = combine([a, b], (0.5, 0.5), "half", normalized=True)
    assert half.weights.dense == pytest.approx((0.125, 0.5, 0.375))
    assert half.weights.sparse == {"S_a": pytest.approx(1 / 3)}
    # Equal points are their mean, exactly.
    third = point(1 / 3, 0.1, 0.7)
    assert combine([third] * 49, [1 / 49] * 49, "mean", normalized=False).weights == third.weights
    # By name in any order; numbers without names by position.
    turned = ShowWeights((WeightGroup("LM0", (3.0,)), WeightGroup("TM0", (0.0, 3.0))))
    other = ResolvedWeights("turned", "dense", turned, Weights((3, 0, 3)))
    for second in (other, point(0, 3, 3, show=None)):
        found = combine([a, second], (0.5, 0.5), "half", normalized=False)
        assert found.weights.dense == (0.5, 2.5, 2)
        assert found.show.groups[0].values == (0.5, None, 2.5)
    with pytest.raises(DataError, match="all weights are 0"):
        combine([a, point(-1, -2, -1)], (0.5, 0.5), "mean", normalized=True)
    with pytest.raises(DataError, match="1 dense weights, but it has 3"):
        combine([a, point(1, show=None)], (0.5, 0.5), "mean", normalized=True)
    strange = ResolvedWeights(
        "b", "dense", ShowWeights((WeightGroup("X", (1.0,) * 3),)), Weights((1, 1, 1))
    )
    with pytest.raises(DataError, match="b has no weight of TM0_0, which it has"):
        combine([a, strange], (0.5, 0.5), "mean", normalized=True)


def test_norms() -> None:
    a = point(3, -4, 0, sparse={"S_a": 14})
    assert (compute_norm(a), compute_norm(a, "l2"), compute_norm(a, "max")) == (7, 5, 4)
    assert normalize(a).weights == Weights((3 / 7, -4 / 7, 0), {"S_a": 2})
    assert normalize(a, "l2").weights.dense == (0.6, -0.8, 0)
    assert normalize(a, "max").weights.sparse == {"S_a": 3.5}
    with pytest.raises(DataError, match="all dense weights are 0"):
        normalize(point(0, 0, 0, sparse={"S_a": 1}))
    with pytest.raises(DataError, match="no dense weights"):
        normalize(ResolvedWeights("s", "sparse", ShowWeights(()), Weights((), {"S_a": 1})))
    with pytest.raises(DataError, match="not finite"):
        normalize(point(1e-320, 0, 0, sparse={"S_a": 1e300}))


def test_differences() -> None:
    a, b = point(1, 2, -1, sparse={"S_a": 4}), point(1, 4, -4, sparse={"S_b": 1})
    rows = compare_weights(a, b).features
    assert [(row.feature, row.difference, row.change) for row in rows] == [
        ("S_a", -4, -1),
        ("LM0_0", -3, -3),
        ("TM0_1", 2, 1),
        ("S_b", 1, None),
        ("TM0_0", 0, 0),
    ]
    assert (rows[0].b, rows[3].a) == (None, None)
    assert compare_weights(a, b).cosine == pytest.approx(13 / math.sqrt(22 * 34))
    large = point(1e200, 2e200, -1e200, sparse={"S_a": 4e200})
    assert compare_weights(a, large).cosine == pytest.approx(1)
    assert compare_weights(point(0, 0, 0), b).cosine is None


def test_nonzero_weights_in_common() -> None:
    a = point(1, 0, -1, sparse={"S_a": 4, "S_b": 0, "S_c": 1})
    b = point(0, 0, -4, sparse={"S_b": 1, "S_c": 1e-9})
    assert [astuple(row) for row in compare_weights(a, b).nonzero] == [
        ("dense", 2, 1, 1),
        ("sparse", 2, 2, 1),
    ]
    (dense,) = compare_weights(point(1, 2, 3), point(1, 2, 0)).nonzero
    assert astuple(dense) == ("dense", 3, 2, 2)


@pytest.mark.parametrize("to", [name for name in FORMATS if name not in ("sparse", "graph")])
@given(dense=st.tuples(numbers, numbers, numbers).filter(any), sparse=numbers)
def test_every_format_keeps_the_numbers(
    to: Format, dense: tuple[float, float, float], sparse: float
) -> None:
    config = parse_moses_ini(INI, "moses.ini")
    found = convert_weights(
        point(*dense, sparse={"S_a": sparse}), to, config=config, sparse_output=Path("s")
    )
    read = parse_weights(found.text, "written")
    assert read.format == to
    if read.numbers:
        assert read.numbers == dense
        assert "the order of the numbers is TM0*2 LM0" in found.notes
    elif to in ("dense", "equals", "tsv"):
        assert read.groups == {"TM0": dense[:2], "LM0": dense[2:]}
        assert found.notes == ("not tuned, and left out: U0, components of TM0",)
    else:
        groups = {group.name: group.values for group in read.show.groups}
        assert groups == {"TM0": (dense[0], None, dense[1]), "LM0": (dense[2],)}
    beside = read.sparse if found.sparse is None else parse_weights(found.sparse, "s").sparse
    assert beside == {"S_a": sparse}


def test_notes_list_weights_that_a_format_cannot_hold() -> None:
    with_sparse, nameless = point(1, 2, 3, sparse={"S_a": 4}), point(1, 2, 3, show=None)
    config = parse_moses_ini(INI, "moses.ini")
    for to in ("dense", "show-weights", "overwrite", "init.opt", "weights.txt", "moses.ini"):
        with pytest.raises(UsageError, match="--sparse-output FILE"):
            convert_weights(with_sparse, to, config=config)
    for to in ("dense", "show-weights", "overwrite", "moses.ini", "graph"):
        with pytest.raises(UsageError, match="--names-from FILE"):
            convert_weights(nameless, to, config=config)
    with pytest.raises(UsageError, match="3 dense weights, which a file of sparse weights cannot"):
        convert_weights(with_sparse, "sparse")
    with pytest.raises(FormatError, match="no weight of TM0_2"):
        convert_weights(with_sparse, "graph")
    with pytest.raises(UsageError, match="--config FILE"):
        convert_weights(point(1, 2, 3), "moses.ini")
    with pytest.raises(DataError, match="all weights are 0"):
        convert_weights(point(0, 0, 0), "dense")
    lone = ResolvedWeights("s", "sparse", ShowWeights(()), Weights((), {"S_a": 1}))
    with pytest.raises(UsageError, match=r"no dense weights for weights\.txt"):
        convert_weights(lone, "weights.txt", sparse_output=Path("s"))
    assert convert_weights(lone, "sparse").text == b"S_a 1\n"


def test_a_configuration_keeps_every_other_byte(tmp_path: Path) -> None:
    ini = parse_moses_ini(INI, "moses.ini")
    found = convert_weights(point(0.125, 0.25, 1e-7), "moses.ini", config=ini)
    expected = INI.replace(b"LM0= 3", b"LM0= 1e-07").replace(b"TM0= 1 9 2", b"TM0= 0.125 9 0.25")
    assert found.text == expected
    # Sparse weights that it has, and the point has not, would go on counting.
    sparse = tmp_path / "s"
    sparse.write_text("S_a 1\n")
    text = INI + b"S_b= 2\n[weight-file]\n" + str(sparse).encode() + b"\n"
    ini = parse_moses_ini(text, "moses.ini")
    with pytest.raises(UsageError, match=r"moses\.ini has 2 sparse weights, but it has none"):
        convert_weights(point(1, 2, 3), "moses.ini", config=ini)
    same = convert_weights(point(1, 2, 3, sparse={"S_a": 1, "S_b": 2}), "moses.ini", config=ini)
    assert same == convert_weights(
        point(1, 2, 3, sparse={"S_a": 1, "S_b": 2}), "moses.ini", config=ini
    )
    assert same.sparse is None
    assert same.text == text
    other = convert_weights(
        point(1, 2, 3, sparse={"S_b": 5}), "moses.ini", config=ini, sparse_output=sparse
    )
    assert other.sparse == b"S_b 5\n"
    assert b"S_b= 2" not in other.text
    for strange, message in {
        ShowWeights((WeightGroup("TM0", (1.0, 2.0)),)): "no weights of LM0",
        ShowWeights((*SHOW.groups, WeightGroup("X", (1.0,)))): "no feature X",
    }.items():
        it = ResolvedWeights("it", "dense", strange, Weights(strange.values))
        with pytest.raises(DataError, match=message):
            convert_weights(it, "moses.ini", config=parse_moses_ini(INI, "moses.ini"))


def test_over_iterations_and_in_use(tmp_path: Path) -> None:
    lists = (
        [
            Hypothesis(0, b"a", (-1.0, -2.0), (("S_a", 1.0), ("S_b", 1.0))),
            Hypothesis(0, b"b", (-2.0, -2.0), (("S_a", 1.0), ("S_c", 0.0))),
            Hypothesis(2, b"c", (-1.0, -1.0)),
        ],
        # The first has been there before.
        [
            Hypothesis(0, b"a", (-1.0, -2.0), (("S_a", 1.0), ("S_b", 1.0))),
            Hypothesis(1, b"d", (-1.0, 0.0), (("S_a", -2.0),)),
        ],
    )
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        series = read_run_history(run, "work")
        *_, use = count_sparse_use(run)
    assert series.dense == ("LM0_0", "TM0_0")
    assert series.of("LM0_0") == pytest.approx((0.5, 0.25, 0.25))
    assert series.of("S_a") == (0, 0, 0)
    assert use.hypotheses == 4
    assert use.shares == {"S_a": 0.75, "S_b": 0.25, "S_c": 0.0}
