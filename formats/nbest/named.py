"""Parse features fields that name every value, as Joshua and cdec write: ``lm_0=-27.1 Glue=3``.

Features are identified by name, not by position: a line may have them in any order, and missing
ones are 0. The name does not tell dense from sparse features either (Joshua's language model is
``lm_0``): the caller names the dense ones (``formats.nbest.dense`` finds them), all others are
sparse.
"""

from __future__ import annotations

import numpy as np

from formats.decimals import parse_numbers
from formats.nbest.entry import FLOAT32_LIMIT, Layout
from formats.nbest.tokens import ParsedFeatures, number_names, split_tokens
from formats.words import Bytes, Positions

__all__ = ["parse_named"]


def parse_named(
    padded: Bytes, begins: Positions, ends: Positions, layout: Layout
) -> ParsedFeatures | None:
    """Parse features fields into a dense matrix and sparse rows.

    Args:
        padded: the text with ``PAD`` bytes before and after it.
        begins: int64 ``[n]``; first byte of each field, ascending.
        ends: int64 ``[n]``; one past its last byte.
        layout: the dense features, one value each.

    Returns:
        The features, or None if a line is not a sequence of names with one value each.
    """
    tokens = split_tokens(padded, begins, ends)
    n_lines = len(tokens.offsets) - 1
    is_label = tokens.is_label
    if (tokens.offsets % 2).any() or not is_label[::2].all() or is_label[1::2].any():
        return None
    data = parse_numbers(padded, tokens.starts[1::2], tokens.ends[1::2])
    if not (np.abs(data) < FLOAT32_LIMIT).all() or (tokens.ends - tokens.starts < 1).any():
        return None
    numbered = number_names(padded, tokens.starts[::2], tokens.ends[::2] - 1)
    if numbered is None or "" in numbered[0]:
        return None
    names, indices = numbered
    owners = np.repeat(np.arange(n_lines), np.diff(tokens.offsets) // 2)
    if (np.diff(np.sort(owners * len(names) + indices)) == 0).any():
        return None  # a feature twice in one line
    known = {name: column for column, (name, _) in enumerate(layout.groups)}
    columns = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    of_value = columns[indices] if len(names) else np.zeros(0, dtype=np.int64)
    is_dense = of_value >= 0
    dense = np.zeros((n_lines, len(known)), dtype=np.float32)
    dense[owners[is_dense], of_value[is_dense]] = data[is_dense]
    rest = np.flatnonzero(columns < 0)
    rank = np.full(len(names), -1, dtype=np.int32)
    rank[rest] = np.arange(len(rest))
    counts = np.bincount(owners[~is_dense], minlength=n_lines)
    return ParsedFeatures(
        dense,
        tuple(names[place] for place in rest.tolist()),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        rank[indices[~is_dense]],
        data[~is_dense].astype(np.float32),
    )
