"""Weight files, against Moses' recorded ones and round trips."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.text import write_atomic
from formats.weights.any_format import read_weights
from formats.weights.files import (
    InitOpt,
    ShowWeights,
    WeightGroup,
    format_dense,
    format_init_opt,
    format_sparse,
    format_weight,
    format_weights_txt,
    parse_weight_overwrite,
    read_dense,
    read_init_opt,
    read_show_weights,
    read_sparse,
    read_weights_txt,
    weight_overwrite,
)

DATA = Path(__file__).parents[2] / "data"
VALID = DATA / "valid" / "weights"
INVALID = sorted((DATA / "invalid" / "weights").glob("*.error"))
READERS: dict[str, Callable[[Path], object]] = {
    ".show": read_show_weights,
    ".dense": read_dense,
    ".sparse-weights": read_sparse,
    ".init.opt": read_init_opt,
    ".weights.txt": read_weights_txt,
    ".equals": read_weights,
    ".yaml": read_weights,
    ".tsv": read_weights,
}

finite = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"[A-Za-zé][A-Za-z0-9]{0,8}", fullmatch=True)


def test_there_are_fixtures() -> None:
    assert len(INVALID) > 10
    assert len(list(VALID.iterdir())) > 8


@pytest.mark.parametrize("error", INVALID, ids=lambda path: path.stem)
def test_invalid_file_is_rejected_with_file_line_and_reason(error: Path) -> None:
    path = error.with_suffix("")
    reader = next(read for suffix, read in READERS.items() if path.name.endswith(suffix))
    with pytest.raises(FormatError, match="^" + re.escape(f"{path}{error.read_text().strip()}")):
        reader(path)


def test_show_weights() -> None:
    show = read_show_weights(VALID / "plain.show")
    assert [group.name for group in show.groups] == [
        "LexicalReordering0", "Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0",
        "TranslationModel0",
    ]  # fmt: skip
    assert show.values == (0.3,) * 7 + (0.5, -1, 0.2) + (0.2,) * 4
    assert show.names[:7] == ("LexicalReordering0",) * 6 + ("Distortion0",)
    assert show.untuneable == show.unchanged_features == ("UnknownWordPenalty0",)
    assert show.sparse == ()
    assert read_show_weights((VALID / "plain.show").read_bytes()) == show


def test_show_weights_with_untuneable_components() -> None:
    show = read_show_weights(VALID / "untuneable_components.show")
    assert show.groups == (
        WeightGroup("OSM0", (None, 0.5, None)),
        WeightGroup("Glue0", (None,)),
        WeightGroup("TranslationModel0", (0.2, None, 0.3, 0.4)),
    )
    assert show.names == ("OSM0",) + ("TranslationModel0",) * 3
    assert show.unchanged_features == ("UnknownWordPenalty0", "Glue0")
    assert weight_overwrite(show) == (
        "OSM0= x 0.500000 x TranslationModel0= 0.200000 x 0.300000 0.400000"
    )
    moved = show.with_values((1, 2, 3, 4))
    assert moved.values == (1, 2, 3, 4)
    assert moved.groups[0].values == (None, 1, None)
    with pytest.raises(ValueError, match="3 weights for 4 columns"):
        show.with_values((1, 2, 3))


def test_show_weights_among_other_output() -> None:
    assert read_show_weights(VALID / "sparse_producers.show").sparse == ("WT", "PL", "TWI")
    chatter = read_show_weights(VALID / "chatter.show")
    assert (chatter.names, chatter.values) == (("LM0", "WordPenalty0"), (0.5, -1))
    assert chatter.sparse == chatter.untuneable == ()
    assert read_show_weights(VALID / "exponents.show").values == (1e5, -0.0025, 0.5, 7)


def test_dense_in_both_spellings() -> None:
    expected = (("LM0", (0.5,)), ("TM0", (0.1, -0.2, 1e-05)))
    one_a_line = VALID / "one_value_a_line.dense"
    assert read_dense(VALID / "groups.dense") == read_dense(one_a_line) == expected
    assert format_dense(expected) == (VALID / "groups.dense").read_bytes()
    assert format_dense(expected, one_value_a_line=True) == (
        one_a_line.read_bytes().replace(b"\n\n", b"\n")
    )


def test_other_files() -> None:
    sparse = read_sparse(VALID / "sparse.sparse-weights")
    assert sparse == {"WT_ä~a": 0.5, "PL_1,1": -1e-05}
    assert format_sparse(sparse) == "WT_ä~a 0.5\nPL_1,1 -1e-05\n".encode()
    init = read_init_opt(VALID / "three.init.opt")
    assert init == InitOpt((0.3, -1, 0.5), (0, -1, 0), (1, 0, 1))
    assert format_init_opt(init) == (VALID / "three.init.opt").read_bytes()
    weights = read_weights_txt(VALID / "one_line.weights.txt")
    assert weights == (0.0880137, 0.0311806, -0.129123)
    assert format_weights_txt(weights) == (VALID / "one_line.weights.txt").read_bytes()


def test_weights_that_are_not_finite_are_not_written() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="a weight is"):
            format_weight(value)
    assert [format_weight(1 / 3, digits) for digits in (6, 3, None)] == [
        "0.333333", "0.333", "0.3333333333333333",
    ]  # fmt: skip
    assert format_weight(-1.0) == "-1"


def test_weight_overwrite_is_read_back_and_rejected() -> None:
    assert parse_weight_overwrite("A= x 1e-3 B= -2") == {"A": (None, 0.001), "B": (-2,)}
    assert parse_weight_overwrite("") == {}
    assert parse_weight_overwrite("LM\u00a0= 1") == {"LM\u00a0": (1,)}
    for text, message in {
        "1 A= 2": "'1' comes before any name",
        "A= 1 A= 2": "the feature A appears twice",
        "A= B= 1": "the feature A has no value",
        "A= nan": "the weight of A is 'nan'",
    }.items():
        with pytest.raises(FormatError, match=message):
            parse_weight_overwrite(text)


@given(st.dictionaries(names, st.lists(finite, min_size=1, max_size=3), min_size=1))
def test_dense_survives_exactly(
    tmp_path_factory: pytest.TempPathFactory, weights: dict[str, list[float]]
) -> None:
    path = tmp_path_factory.mktemp("weights") / "run1.dense"
    groups = tuple((name, tuple(values)) for name, values in weights.items())
    for one_value_a_line in (False, True):
        write_atomic(path, format_dense(groups, one_value_a_line=one_value_a_line))
        assert read_dense(path) == groups


@given(st.dictionaries(names.map("x_{}".format), finite), st.lists(finite, min_size=1))
def test_sparse_and_init_survive_exactly(
    tmp_path_factory: pytest.TempPathFactory, sparse: dict[str, float], values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("weights") / "file"
    write_atomic(path, format_sparse(sparse))
    assert read_sparse(path) == sparse
    init = InitOpt(tuple(values), (0,) * len(values), (1,) * len(values))
    write_atomic(path, format_init_opt(init))
    assert read_init_opt(path) == init
    write_atomic(path, format_weights_txt(values, digits=None))
    assert read_weights_txt(path) == tuple(values)


small = st.integers(-(10**7), 10**7).map(lambda n: n / 10**6)


@given(st.dictionaries(names, st.lists(st.one_of(st.none(), small), min_size=1, max_size=4)))
def test_weight_overwrite_survives(groups: dict[str, list[float | None]]) -> None:
    show = ShowWeights(tuple(WeightGroup(name, tuple(v)) for name, v in groups.items()))
    tuneable = {group.name: group.values for group in show.groups if group.is_tuneable}
    assert parse_weight_overwrite(weight_overwrite(show)) == tuneable


def test_recorded_files(multi30k: Path) -> None:
    work = multi30k / "mert-work"
    show = read_show_weights(work / "features.list")
    for run in range(2, 8):
        dense = work / f"run{run}.dense"
        assert format_dense(read_dense(dense), one_value_a_line=True, digits=6) == (
            dense.read_bytes()
        )
        init = work / f"run{run}.init.opt"
        assert format_init_opt(read_init_opt(init), digits=6) == init.read_bytes()
        assert [name for name, _ in read_dense(dense)] == [group.name for group in show.groups]
    for run in range(1, 8):
        weights = work / f"run{run}.weights.txt"
        assert format_weights_txt(read_weights_txt(weights)) == weights.read_bytes()
        assert len(read_weights_txt(weights)) == len(show.names)
    sparse = read_show_weights(multi30k / "sparse" / "features.list")
    assert sparse.sparse == ("WT", "PL", "TWI")
