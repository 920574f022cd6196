"""Decoders that are a command: weights that they read, and lists that they write."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from formats.weights.any_format import parse_weights
from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.command import (
    WeightsFormat,
    format_decoder_weights,
    parse_command,
)
from mosesplug.decoders.description import DecoderCommand
from mosesplug.decoders.layout import arrange_groups, choose_layout
from mosesplug.decoders.lists.files import count_listed, pack, read_decoded

GROUPS = (WeightGroup("LM0", (0.1,)), WeightGroup("TM0", (-2.5e-9, None, 3.0)))
WEIGHTS = ModelWeights(GROUPS, {"WT_a~b": 0.1 + 0.2})


@pytest.mark.parametrize("kind", ["dense", "json"])
def test_weights_are_read_back(kind: WeightsFormat) -> None:
    found = parse_weights(format_decoder_weights(WEIGHTS, kind), "weights")
    assert found.format == kind
    assert found.groups == {"LM0": (0.1,), "TM0": (-2.5e-9, 3.0)}
    assert found.sparse == WEIGHTS.sparse


def test_weights_on_one_line() -> None:
    text = format_decoder_weights(WEIGHTS, "one-line")
    assert text == b"LM0= 0.1 TM0= -2.5e-09 3 WT_a~b 0.30000000000000004\n"
    assert json.loads(format_decoder_weights(WEIGHTS, "json"))["dense"]["TM0"] == [-2.5e-9, None, 3]
    with pytest.raises(ValueError, match="cannot be written as moses"):
        format_decoder_weights(WEIGHTS, "moses")


def test_placeholders_are_not_replaced_twice() -> None:
    words = parse_command("d '{weights}x{iteration}' {nbest} '{print $1}' '{}'", "--decode-command")
    call = DecoderCommand(words).call(
        weights=Path("/{input}"), input_file=Path("i"), nbest_file=Path("n"), nbest=7, iteration=3
    )
    assert call == ("d", "/{input}x3", "n", "{print $1}", "{}")


@pytest.mark.parametrize(
    ("line", "groups", "names", "dense"),
    [
        (b"0 ||| a ||| LM0= 1 TM0= 2 3 ||| 1", (("LM0", 1), ("TM0", 2)), None, None),
        (b"0 ||| a ||| 1 2 3 ||| 1", (("LM0", 1), ("TM0", 2)), ("LM0", "TM0", "TM0"), None),
        (b"0 ||| a ||| lm=1 tm=2 ||| 1", (("tm", 1), ("lm", 1)), None, ("tm", "lm")),
        (b"0 ||| a ||| lm_a= 1 tm= 2 ||| 1", (("tm", 1), ("lm_a", 1)), None, ("tm", "lm_a")),
        (b"0 ||| a ||| 1 2 ||| 1", (("tm", 1), ("lm_a", 1)), ("tm", "lm_a"), None),
        (b"no list", (("tm", 1),), None, None),
    ],
)
def test_layout(
    line: bytes,
    groups: tuple[tuple[str, int], ...],
    names: tuple[str, ...] | None,
    dense: tuple[str, ...] | None,
) -> None:
    assert choose_layout(line, groups) == (names, dense)


def test_named_features_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    text = b"\n0 ||| a ||| lm_a= 1 tm= 2 pair_x= 5 ||| 1\n1 ||| b ||| tm= 4 lm_a= 3 ||| 1\n"
    path.write_bytes(gzip.compress(text))
    packed = pack(path)  # it stays compressed once
    assert gzip.decompress(packed.read_bytes()) == text
    blocks = list(read_decoded(packed, (("tm", 1), ("lm_a", 1))))
    assert [row for block in blocks for row in block.dense.tolist()] == [[2, 1], [4, 3]]
    assert blocks[0].sparse_names == ("pair_x",)


def test_columns_are_arranged(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    path.write_bytes(b"0 ||| a ||| A= 1 B= 2 3 C= 4 ||| 1\n")
    (block,) = read_decoded(path, (("B", 2), ("C", 1), ("A", 1)))
    arranged = arrange_groups(block, (("B", 2), ("C", 1), ("A", 1)))
    assert arranged.dense.tolist() == [[2, 3, 4, 1]]
    assert arrange_groups(block, (("A", 1), ("B", 3))) is block


@pytest.mark.parametrize(
    ("text", "count"), [(b"", 0), (b"0 ||| a", 0), (b"0 ||| a\n4 ||| b\n5 |", 5), (b"x\n", 0)]
)
def test_listed_sentences_are_counted(tmp_path: Path, text: bytes, count: int) -> None:
    (tmp_path / "lists").write_bytes(text)
    assert count_listed(tmp_path / "lists") == count
    assert count_listed(tmp_path / "missing") == 0
