"""Numbers of feature names, with hashes that share slots of the table."""

from __future__ import annotations

import random

import numpy as np
import pytest

from formats.nbest import fields
from formats.words import PAD, pad_with_newlines


@pytest.mark.parametrize("bits", [1, 3, 16])
@pytest.mark.parametrize("n_names", [0, 1, 2, 40])
def test_names_are_numbered_by_first_appearance(
    bits: int, n_names: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "_SLOT_BITS", bits)
    draw = random.Random(n_names)
    tokens = [f"name{draw.randrange(n_names)}".encode() for _ in range(5 * n_names)]
    ends = np.cumsum([len(token) + 1 for token in tokens], dtype=np.int64) - 1 + PAD
    starts = ends - np.array([len(token) for token in tokens], dtype=np.int64)
    text = pad_with_newlines(b"".join(token + b" " for token in tokens))

    numbered = fields.number_names(text, starts, ends)

    assert numbered is not None
    names, indices = numbered
    assert names == tuple(token.decode() for token in dict.fromkeys(tokens))
    assert [names[index].encode() for index in indices.tolist()] == tokens
    assert indices.dtype == np.int32
