"""Added and derived features, against NumPy by hand."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.files import read_nbest
from formats.nbest.list_format import SentenceIds
from mosesplug.errors import UsageError
from mosesplug.learning.lists.blocks import read_list_blocks
from mosesplug.learning.lists.deriving import DeriveFeatures, count_chars, count_words
from mosesplug.learning.lists.steps import AddFeatures
from mosesplug.settings.features import parse_added_features, parse_derived_features
from mosesplug.settings.lists import ListSettings

LIST = """0 ||| the house ||| LM= -1.5 TM= 1 2 WT_a~b= 1 ||| 0
0 ||| a  häuschen ||| LM= -2 TM= 3 4 ||| 0
1 |||  ||| LM= -2.5 TM= 5 6 ||| 0
3 ||| she went home ||| LM= -0.1 TM= 7 8 ||| 0
"""


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("list")
    path.write_text(LIST)
    return path


def read(*files: Path | NBestList, **settings: object) -> list[NBestList]:
    options = ListSettings(**settings)  # type: ignore[arg-type]
    return [block for blocks in read_list_blocks(files, options) for block in blocks]


def dense(blocks: list[NBestList]) -> np.ndarray:
    return np.concatenate([block.dense for block in blocks])


def test_words_and_characters(lists: Path) -> None:
    block = read_nbest(lists)
    assert count_words(block).tolist() == [2, 2, 0, 3]
    assert count_chars(block).tolist() == [9, 11, 0, 13]


@given(st.lists(st.text(st.sampled_from("ab é\t家"), max_size=6), min_size=1))
def test_words_and_characters_of_any_texts(texts: list[str]) -> None:
    """Texts side by side in the buffer, as lists in memory have them."""
    import mosesplug

    found = mosesplug.NBest(range(len(texts)), texts, [[0.0]] * len(texts)).block
    stored = [found.text(row).decode() for row in range(len(texts))]
    assert count_words(found).tolist() == [len(text.split()) for text in stored]
    assert count_chars(found).tolist() == [len(text) for text in stored]


def test_derived_features_are_those_of_numpy(lists: Path) -> None:
    derive = (
        "len=words",
        "norm=LM/(len+1)",
        "x=log(exp(-TM_1)) ** 2 * sqrt(abs(LM)) - chars/3",
        '"q"=2'.replace('"', ""),
        "y=-LM_0+'norm'*q",
    )
    blocks = read(lists, derive=derive)
    lm = np.array([-1.5, -2, -2.5, -0.1], dtype=np.float32).astype(np.float64)
    tm = np.array([2.0, 4, 6, 8])
    words, chars = np.array([2, 2, 0, 3]), np.array([9, 11, 0, 13])
    norm = lm / (words + 1)
    x = np.log(np.exp(-tm)) ** 2 * np.sqrt(np.abs(lm)) - chars / 3
    expected = np.column_stack([words, norm, x, [2] * 4, -lm + norm * 2]).astype(np.float32)
    assert np.array_equal(dense(blocks)[:, 3:], expected)
    assert blocks[0].groups == (
        *(("LM", 1), ("TM", 2), ("len", 1), ("norm", 1), ("x", 1), ("q", 1), ("y", 1)),
    )
    assert sum(len(block) for block in blocks) == 4


@pytest.mark.parametrize("kind", ["text", "gz", "npy", "array", "ids", "texts", "two"])
def test_values_of_every_form(kind: str, lists: Path) -> None:
    """Those of two lists are one sequence, whose files may end anywhere."""
    again = Path("again")
    again.write_text(LIST)
    values = np.array([[-1.0], [2.5], [1e-3], [4.0], [5], [6], [7], [8]])
    texts = [f"{value}\n" for value in values[:, 0].tolist()]
    name = "LM2=values"
    match kind:
        case "text":
            Path("values").write_text("".join(texts[:6]))
            Path("rest").write_text("".join(texts[6:]))
            name = "LM2=values,rest"
        case "gz":
            Path("values").write_bytes(gzip.compress("".join(texts).encode()))
        case "npy":
            np.save("values.npy", values[:, 0])
            name = "LM2=values.npy"
        case "ids" | "texts":
            rows = [line.split(" ||| ")[:2] for line in LIST.splitlines()] * 2
            begins = [f"{a} ||| {b} ||| " if kind == "texts" else f"{a} ||| " for a, b in rows]
            Path("values").write_text("".join(a + b for a, b in zip(begins, texts, strict=True)))
        case "two":
            values = np.column_stack([values, -values])
            Path("values").write_text("".join(f"{a} {b}\n" for a, b in values.tolist()))
    added: tuple[object, ...] = (name,)
    if kind == "array":
        from mosesplug.settings.features import AddedFeature

        added = (AddedFeature("LM2", values=values[:, 0]),)
    blocks = read(lists, again, add_feature=added, derive=("x=2*LM2_0",))
    assert np.array_equal(dense(blocks)[:, 3:-1], values.astype(np.float32))
    assert np.array_equal(dense(blocks)[:, -1], 2 * values[:, 0].astype(np.float32))
    assert blocks[0].groups[-2:] == (("LM2", values.shape[1]), ("x", 1))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"derive": ("x=log(words)",)}, FormatError, "list:3: --derive x=log(words) is -inf here"),
        ({"derive": ("x=LM/words",)}, FormatError, "(LM is -2.5, words is 0). Change the expr"),
        ({"derive": ("x=sqrt(LM)",)}, FormatError, "list:1: --derive x=sqrt(LM) is nan here"),
        (
            {"derive": ("x=1e30*TM_0*1e9",)},
            FormatError,
            "list:1: --derive x=1e30*TM_0*1e9 is 1e+39",
        ),
        ({"derive": ("x=TM",)}, UsageError, "TM has 2 values in list: use one of TM_0 to TM_1"),
        (
            {"derive": ("x=1+Lm",)},
            UsageError,
            "character 3 of the expression: list: there is no feature",
        ),
        ({"derive": ("x=1+TM_",)}, UsageError, "TM_; known: LM, TM_0, TM_1. Did you mean TM_1?"),
        ({"derive": ("x='WT_a~b'",)}, UsageError, "WT_a~b is a sparse feature of list"),
        ({"derive": ("LM=words",)}, UsageError, "list has a feature LM already"),
        ({"derive": ("TM_1=words",)}, UsageError, "list has a feature TM_1 already"),
        ({"derive": ("WT_a~b=words",)}, UsageError, "list has a feature WT_a~b already"),
        ({"derive": ("x=y", "y=1")}, UsageError, "list: there is no feature y;"),
        ({"add_feature": ("LM=four",)}, UsageError, "--add-feature LM=four: list has a feature LM"),
        ({"add_feature": ("A=three",)}, FormatError, "list:4: this hypothesis has no value: three"),
        ({"add_feature": ("A=four,three",)}, FormatError, "three:1: a value without a hypothesis"),
        ({"add_feature": ("A=large",)}, FormatError, "large:2: 1e+39 is too large for a feature"),
        ({"add_feature": ("A=word",)}, FormatError, "word:2: 'x' is not a finite number"),
        ({"add_feature": ("A=other",)}, FormatError, "other:1: the sentence is '7', but '0' in li"),
        ({"add_feature": ("A=none",)}, FormatError, "none: cannot be read"),
        ({"add_feature": ("A=four", "A=four")}, UsageError, "has a feature A already"),
    ],
)
def test_errors_name_the_place(
    settings: dict[str, object], error: type[Exception], message: str, lists: Path
) -> None:
    texts = {"three": "1\n2\n3\n", "four": "1\n2\n3\n4\n", "large": "1\n1e39\n3\n4\n"}
    texts |= {"word": "1\nx\n", "other": "7 ||| 1\n"}
    for name, text in texts.items():
        Path(name).write_text(text)
    # Whole, so that all of the list is one block.
    with pytest.raises(error) as found:
        read(read_nbest(lists), **settings)
    assert message in str(found.value)


def test_lists_without_texts_have_no_words(lists: Path) -> None:
    from dataclasses import replace

    block = replace(read_nbest(lists), has_texts=False)
    step = DeriveFeatures(parse_derived_features(["x=words+chars"]))
    with pytest.raises(UsageError, match="--derive counts chars and words, but list has no texts"):
        step.apply(block)
    assert DeriveFeatures(parse_derived_features(["x=LM"])).apply(block).dense[0, 3] == -1.5


def test_derived_values_do_not_depend_on_blocks(lists: Path) -> None:
    whole = read_nbest(lists)
    step = DeriveFeatures(parse_derived_features(["x=exp(LM)*words/3"]))
    expected = [math.exp(v) * n / 3 for v, n in zip(whole.dense[:, 0], (2, 2, 0, 3), strict=True)]
    assert step.apply(whole).dense[:, 3].tolist() == np.float32(expected).tolist()
    parts = dense(read(lists, derive=("x=exp(LM)*words/3",)))
    assert np.array_equal(parts, step.apply(whole).dense)


def test_an_array_is_taken_in_pieces() -> None:
    import mosesplug

    block = mosesplug.NBest([0, 0, 1], ["a", "b", "c"], [[1.0], [2.0], [3.0]], names=["A"])
    settings = ListSettings(add_feature=parse_added_features(["B=unused"]))
    assert settings.changes.added_features == ("B",)
    (feature,) = settings.add_feature
    values = np.array([4.0, 5.0, 6.0])
    step = AddFeatures([type(feature)("B", values=values)], SentenceIds())  # type: ignore[call-arg]
    first = step.apply(block.take([0, 1]).block)
    second = step.apply(block.take([2]).block)
    step.finish()
    assert np.concatenate([first.dense[:, 1], second.dense[:, 1]]).tolist() == [4, 5, 6]
