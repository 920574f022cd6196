"""How the n-best lists of a decoder with known features are to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import Layout, Place, names_every_value


def choose_layout(
    line: bytes, groups: Sequence[tuple[str, int]]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the ``names`` and ``dense`` that ``formats.nbest`` needs to read a list.

    Args:
        groups: name and width of each dense feature, in order.

    Returns:
        Names of the columns, if the list has no labels; names of the dense features, if it names
        every value or labels alone cannot tell dense features (an underscore marks a sparse one).
    """
    names = tuple(name for name, width in groups for _ in range(width))
    is_single = all(width == 1 for _, width in groups)
    if is_single and (names_every_value(line) or any("_" in name for name in names)):
        return (names, None) if _is_unlabeled(line, names) else (None, names)
    return (names, None) if _is_unlabeled(line, names) else (None, None)


def arrange_groups(block: NBestList, groups: tuple[tuple[str, int], ...]) -> NBestList:
    """Return lists with dense features in another order, if they are the same ones.

    Args:
        groups: name and width of each dense feature.

    Returns:
        The lists as they are, if they have other features.
    """
    if block.groups == groups or sorted(block.groups) != sorted(groups):
        return block
    first, places = 0, {}
    for name, width in block.groups:
        places[name] = range(first, first + width)
        first += width
    columns = [column for name, _ in groups for column in places[name]]
    return replace(block, groups=groups, dense=np.ascontiguousarray(block.dense[:, columns]))


def _is_unlabeled(line: bytes, names: Sequence[str]) -> bool:
    try:
        return not Layout.of_line(line, names, Place("", 1)).has_labels
    except FormatError:
        return False  # reading the list reports the error with its place
