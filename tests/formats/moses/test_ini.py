"""moses.ini: what is read, and that only weights change."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.moses.decoder_flags import decoder_flags
from formats.moses.ini import (
    parse_moses_ini,
    read_moses_ini,
    with_weights,
)
from formats.weights.files import (
    ShowWeights,
    WeightGroup,
    read_dense,
    read_show_weights,
)

DATA = Path(__file__).parents[2] / "data"
VALID = sorted((DATA / "valid" / "moses_ini").glob("*.ini"))
INVALID = sorted((DATA / "invalid" / "moses_ini").glob("*.ini"))
PHRASE = DATA / "valid" / "moses_ini" / "phrase.ini"


def test_there_are_fixtures() -> None:
    assert len(VALID) >= 5
    assert len(INVALID) >= 5


def own_weights(path: Path) -> ShowWeights:
    """The weights of a configuration itself, as a decoder would list them."""
    return ShowWeights(
        tuple(
            WeightGroup(name, values)
            for name, values in read_moses_ini(path).weights.items()
            if "_" not in name and name != "UnknownWordPenalty0"
        ),
        untuneable=("UnknownWordPenalty0",),
    )


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_same_weights_give_the_same_bytes(path: Path) -> None:
    ini = read_moses_ini(path)
    assert b"".join(ini.lines) == path.read_bytes()
    assert with_weights(ini, own_weights(path)) == path.read_bytes()


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_file_is_rejected_with_file_line_and_reason(path: Path) -> None:
    expected = path.with_suffix(".error").read_text().strip()
    with pytest.raises(FormatError, match="^" + re.escape(f"{path}{expected}")):
        _ = (ini := read_moses_ini(path)).features, ini.weights


def test_sections_features_and_weights() -> None:
    ini = read_moses_ini(PHRASE)
    assert list(ini.sections) == [
        "input-factors", "mapping", "distortion-limit", "threads", "feature", "weight",
    ]  # fmt: skip
    assert [(value.text, value.line) for value in ini.section("mapping")] == [("0 T 0", 11)]
    assert [feature.name for feature in ini.features] == [
        "UnknownWordPenalty0", "WordPenalty0", "TranslationModel0", "Distortion0", "Distortion1",
        "LM0",
    ]  # fmt: skip
    model = ini.features[2]
    assert (model.kind, model.path) == ("PhraseDictionaryMemory", "phrase=table.gz")
    assert model.arguments["num-features"] == "4"
    assert ini.features[0].path is None
    assert ini.weights["TranslationModel0"] == (0.2, 0.2, 0.2, 0.2)
    assert ini.weights["UnknownWordPenalty0"] == (1,)


def changed(before: bytes, after: bytes) -> list[str]:
    diff = difflib.ndiff(before.decode().splitlines(), after.decode().splitlines())
    return [line for line in diff if line[0] in "+-"]


def test_only_numbers_change() -> None:
    ini = read_moses_ini(PHRASE)
    show = ShowWeights(
        (
            WeightGroup("TranslationModel0", (1 / 3, None, -1e-7, 4)),
            WeightGroup("LM0", (-0.5,)),
        ),
        untuneable=("UnknownWordPenalty0",),
    )
    assert changed(PHRASE.read_bytes(), with_weights(ini, show)) == [
        "- TranslationModel0=  0.2 0.2\t0.2 0.2   # four of them",
        "+ TranslationModel0=  0.333333 0.2\t-1e-07 4   # four of them",
        "- LM0= 0.5",
        "+ LM0= -0.5",
    ]
    exact = with_weights(ini, show, digits=None)
    assert b"TranslationModel0=  0.3333333333333333 0.2\t-1e-07 4" in exact
    assert with_weights(parse_moses_ini(exact, "x"), show) == with_weights(ini, show)


def test_flags_replace_sections_in_place() -> None:
    ini = read_moses_ini(PHRASE)
    flags = decoder_flags("-th 8 --search-algorithm 1 -mark-unknown -config no.ini -dl -1")
    assert flags == {
        "threads": ("8",),
        "search-algorithm": ("1",),
        "mark-unknown": ("true",),
        "distortion-limit": ("-1",),
    }
    after = with_weights(ini, own_weights(PHRASE), sections=flags)
    assert changed(PHRASE.read_bytes(), after) == [
        "- 6", "+ -1", "+ 8", "- 4 # of this machine", "- 5",
        "+ ", "+ [search-algorithm]", "+ 1", "+ ", "+ [mark-unknown]", "+ true",
    ]  # fmt: skip
    again = parse_moses_ini(after, "x")
    assert [value.text for value in again.section("threads")] == ["8"]
    assert again.weights == ini.weights
    assert with_weights(again, own_weights(PHRASE), sections=flags) == after


def test_flags_that_cannot_be_read() -> None:
    assert decoder_flags("") == {}
    assert decoder_flags("-xb '{{ }}' -b 0.1 0.2") == {
        "xml-brackets": ("{{ }}",), "beam-threshold": ("0.1", "0.2"),
    }  # fmt: skip
    with pytest.raises(FormatError, match="'2' comes before any flag"):
        decoder_flags("2 -threads")
    with pytest.raises(FormatError, match="No closing quotation"):
        decoder_flags("-xb '{{")
    for flag in ("-weight", "--weight-overwrite"):
        with pytest.raises(FormatError, match=r"-weight.* would override the tuned weights"):
            decoder_flags(f"-v 0 {flag} 'LM0= 1'")


def test_sparse_weights_go_to_their_file() -> None:
    path = DATA / "valid" / "moses_ini" / "sparse.ini"
    ini = read_moses_ini(path)
    after = with_weights(ini, own_weights(path), sparse_file="/run/run3.sparse-weights")
    assert changed(path.read_bytes(), after) == [
        "- old.sparse-weights", "+ /run/run3.sparse-weights", "- WT_auf~on= 0.5",
    ]  # fmt: skip
    ini = parse_moses_ini(b"[weight]\nWT_a= 1\nUnknown_Penalty= 1\n", "moses.ini")
    kept = ShowWeights((), untuneable=("Unknown_Penalty",))
    assert with_weights(ini, kept, sparse_file="s").startswith(b"[weight]\nUnknown_Penalty= 1\n\n")
    fresh = with_weights(read_moses_ini(PHRASE), own_weights(PHRASE), sparse_file="s")
    assert fresh.endswith(b"\n[weight-file]\ns\n")


def test_feature_without_weights_gets_a_line(tmp_path: Path) -> None:
    lm = WeightGroup("LM0", (0.25, 1))
    ini = parse_moses_ini(b"[weight]\n\n[feature]\nKENLM name=LM0", "moses.ini")
    assert with_weights(ini, ShowWeights((lm,))) == (
        b"[weight]\nLM0= 0.25 1\n\n[feature]\nKENLM name=LM0"
    )
    ini = parse_moses_ini(b"[feature]\nKENLM name=LM0", "moses.ini")
    assert with_weights(ini, ShowWeights((lm,))).endswith(b"LM0\n\n[weight]\nLM0= 0.25 1\n")
    with pytest.raises(FormatError, match="lacks LM0, and some of its weights are not tuned"):
        with_weights(ini, ShowWeights((WeightGroup("LM0", (None, 1)),)))


@pytest.mark.parametrize("last", ["[threads]\n4\n", "[threads]\n4", "[threads]\n4\n5\n"])
def test_new_sections_outlive_the_last_line(last: str) -> None:
    ini = parse_moses_ini(b"[feature]\nKENLM name=LM0\n" + last.encode(), "moses.ini")
    show = ShowWeights((WeightGroup("LM0", (0.25,)),))
    flags = decoder_flags("-mark-unknown -threads 8")
    assert with_weights(ini, show, sections=flags, sparse_file="s") == (
        b"[feature]\nKENLM name=LM0\n[threads]\n8\n\n[weight]\nLM0= 0.25\n"
        b"\n[mark-unknown]\ntrue\n\n[weight-file]\ns\n"
    )


def test_only_ascii_blanks_separate_words() -> None:
    text = "[feature]\nKENLM name=LM0 path=a\u00a0b\x1c\n[weight]\nWT_\u00a0~\u3000= 1\nLM0= 2\n"
    ini = parse_moses_ini(text.encode(), "moses.ini")
    assert [feature.path for feature in ini.features] == ["a\u00a0b\x1c"]
    assert ini.weights == {"WT_\u00a0~\u3000": (1,), "LM0": (2,)}
    show = ShowWeights((WeightGroup("LM0", (0.5,)),))
    assert with_weights(ini, show) == text.replace("LM0= 2", "LM0= 0.5").encode()


def test_other_number_of_weights_is_rejected() -> None:
    ini = read_moses_ini(PHRASE)
    show = ShowWeights((WeightGroup("TranslationModel0", (1, 2, 3)),))
    with pytest.raises(FormatError, match=r":28: TranslationModel0 has 4 weights, .* lists 3"):
        with_weights(ini, show)
    twice = parse_moses_ini(b"[weight]\nLM0= 1 2\nLM0= 3\n", "moses.ini")
    with pytest.raises(FormatError, match=r":2: LM0 has 2 weights, but the decoder lists 1"):
        with_weights(twice, ShowWeights((WeightGroup("LM0", (0.5,)),)))


def test_header() -> None:
    ini = parse_moses_ini(b"[weight]\r\nLM0= 1\r\n", "moses.ini")
    header = ("BLEU 0.41 on dev dev.de", "mert-moses dev.de\ndev.en")
    assert with_weights(ini, ShowWeights(()), header=header) == (
        b"# BLEU 0.41 on dev dev.de\r\n# mert-moses dev.de dev.en\r\n[weight]\r\nLM0= 1\r\n"
    )


@given(st.lists(st.floats(-100, 100), min_size=7, max_size=7))
def test_weights_survive_exactly(values: list[float]) -> None:
    show = own_weights(PHRASE).with_values(values)
    after = parse_moses_ini(with_weights(read_moses_ini(PHRASE), show, digits=None), "x")
    assert {group.name: after.weights[group.name] for group in show.groups} == {
        group.name: group.values for group in show.groups
    }
    assert len(after.lines) == len(PHRASE.read_bytes().splitlines())


def test_recorded_run_has_the_same_sections_and_weights(multi30k: Path) -> None:
    """Against what mert-moses.pl wrote: other places, same content (the model files moved)."""
    ini = read_moses_ini(multi30k / "model" / "moses.ini")
    show = read_show_weights(multi30k / "mert-work" / "features.list")
    for run in range(1, 8):
        recorded = read_moses_ini(multi30k / "mert-work" / f"run{run}.moses.ini")
        dense = read_dense(multi30k / "mert-work" / f"run{run}.dense")
        weights = show.with_values([value for _, values in dense for value in values])
        mine = parse_moses_ini(
            with_weights(ini, weights, sections=decoder_flags("-threads 2")), "mine"
        )
        assert sorted(mine.sections) == sorted(recorded.sections)
        assert mine.weights == recorded.weights
        for name in mine.sections:
            if name not in ("weight", "feature"):
                assert [value.text for value in mine.section(name)] == [
                    value.text for value in recorded.section(name)
                ]
        assert [feature.name for feature in mine.features] == [
            feature.name for feature in recorded.features
        ]
