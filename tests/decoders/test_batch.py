"""Weights of a batch, and lists as text."""

from __future__ import annotations

import pytest

from formats.weights import WeightGroup, parse_weight_overwrite
from mosesplug.decoders.batch import ModelWeights, parse_list
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


def test_a_list_of_one_sentence() -> None:
    text = b"7 ||| a b ||| LM0= -1 TM0= 2 3 W_a= 1 ||| -4.5\n7 |||  ||| LM0= 0 TM0= 0 0 ||| 0\n"
    found = parse_list(text, COLUMNS, "reply")
    assert found.sentence_ids.tolist() == [7, 7]
    assert [found.text(0), found.text(1)] == [b"a b", b""]
    assert found.dense.tolist() == [[-1, 2, 3], [0, 0, 0]]
    assert found.sparse_names == ("W_a",)
    assert found.scores.tolist() == [-4.5, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"0 ||| a ||| LM0= 1 TM0= 2 ||| 1\n", "features LM0 TM0, .* for LM0 TM0\\*2"),
        (b"0 ||| a ||| LM0= 1 TM0= 2 3 ||| nan\n", "reply:5: the score is not finite"),
        (b"a b c\n", "reply:5: 1 of the fields"),
        (b"0 ||| a ||| 1 2 3 ||| 1\n", "no labels"),
    ],
)
def test_a_list_that_cannot_be_used(text: bytes, message: str) -> None:
    with pytest.raises(DecoderError, match=message):
        parse_list(text, COLUMNS, "reply", 5)
