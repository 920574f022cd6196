"""Weights of a batch, and lists as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from formats.nbest.block import concatenate, parse_block
from formats.nbest.entry import Layout
from formats.weights.files import WeightGroup, parse_weight_overwrite
from mosesplug.decoders.batch import ModelWeights, parse_lists, split_lists
from mosesplug.errors import DecoderError

COLUMNS = (("LM0", 1), ("TM0", 2))


def test_weights_are_spelled_with_all_their_digits() -> None:
    weights = ModelWeights(
        (
            WeightGroup("LM0", (0.1 + 0.2,)),
            WeightGroup("Fixed0", (None,)),
            WeightGroup("TM0", (1e-12, None, -3.0)),
        )
    )
    assert weights.overwrite() == "LM0= 0.30000000000000004 TM0= 1e-12 x -3"
    assert parse_weight_overwrite(weights.overwrite())["TM0"] == (1e-12, None, -3.0)
    assert weights.columns == (("LM0", 1), ("TM0", 2))


LINES = b"""
0 ||| a b ||| LM0= -1 TM0= 2 3 W_a= 1 W_c= 4 ||| -4.5 ||| 0-0
0 |||  ||| LM0= 0 TM0= 0 0 ||| 0
2 ||| c ||| LM0= -2 TM0= 5 6 W_b= 2 W_a= 3 ||| 1
"""


def test_there_is_one_list_per_sentence() -> None:
    one, two = parse_lists(LINES, [31, 30, 29], COLUMNS, "reply")
    assert [one.sentence_ids.tolist(), two.sentence_ids.tolist()] == [[31, 31], [29]]
    assert [one.text(0), one.text(1), two.text(0)] == [b"a b", b"", b"c"]
    assert [one.extra(0), two.extra(0)] == [b" 0-0", b""]
    assert one.dense.tolist() == [[-1, 2, 3], [0, 0, 0]]
    assert two.dense.tolist() == [[-2, 5, 6]]
    assert [one.scores.tolist(), two.scores.tolist()] == [[-4.5, 0], [1]]
    assert one.sparse_names == ("W_a", "W_c")
    assert sorted(two.sparse_names) == ["W_a", "W_b"]
    for part in (one, two):
        assert part.sparse_indptr[0] == 0
        assert part.sparse_indptr[-1] == len(part.sparse_indices) == len(part.sparse_data)
        assert part.sparse_indices.dtype == np.int32
    found = zip(two.sparse_indices.tolist(), two.sparse_data.tolist(), strict=True)
    assert {two.sparse_names[index]: value for index, value in found} == {"W_b": 2, "W_a": 3}
    assert parse_lists(b"\n", [4], COLUMNS, "reply") == []


def test_scores_from_outside_stay_with_their_hypotheses() -> None:
    block = parse_block(LINES, Layout(True, COLUMNS), "reply", 1)
    block = replace(block, outside=np.array([[0.1], [0.2], [0.3]]))
    parts = [part.outside for part in split_lists(block)]
    assert [part.tolist() for part in parts if part is not None] == [[[0.1], [0.2]], [[0.3]]]


def test_joined_lists_equal_the_lists_read() -> None:
    whole = parse_block(LINES, Layout(True, COLUMNS), "reply", 1)
    joined = concatenate(parse_lists(LINES, [0, 1, 2], COLUMNS, "reply"))
    assert joined.sentence_ids.tolist() == whole.sentence_ids.tolist()
    assert [joined.text(row) for row in range(3)] == [whole.text(row) for row in range(3)]
    assert joined.dense.tobytes() == whole.dense.tobytes()
    assert joined.lines.tolist() == whole.lines.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"0 ||| a ||| LM0= 1 TM0= 2 ||| 1\n", "features LM0 TM0, .* for LM0 TM0\\*2"),
        (b"\n0 ||| a ||| LM0= 1 TM0= 2 3 ||| nan\n", "reply:2: the score is not finite"),
        (b"a b c\n", "reply:1: the line has 1 fields"),
        (b"0 ||| a ||| 1 2 3 ||| 1\n", "no labels"),
        (b"2 ||| a ||| LM0= 1 TM0= 2 3 ||| 1\n", "list of sentence 2, but the batch has 2"),
        (
            b"1 ||| a ||| LM0= 1 TM0= 2 3 ||| 1\n0 ||| a ||| LM0= 1 TM0= 2 3 ||| 1\n",
            "reply:2: sentence ids go backwards",
        ),
    ],
)
def test_lists_that_cannot_be_used(text: bytes, message: str) -> None:
    with pytest.raises(DecoderError, match=message):
        parse_lists(text, [8, 9], COLUMNS, "reply")
