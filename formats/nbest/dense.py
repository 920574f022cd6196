"""Decide which features are dense in lists that name every value, such as Joshua's and cdec's.

These lists do not say it: Joshua writes its dense features in every line, cdec omits zeros. The
features are counted instead: if there are few, as in a system that MERT can tune, all are dense;
otherwise those in at least half of the lines. Lists that are used together are counted together.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from formats.nbest.entry import BLANKS, names_every_value
from formats.nbest.files import read_nbest_blocks
from formats.text import open_text

__all__ = ["FEW", "dense_features", "is_named"]

FEW = 50
"""Up to this number of features, all are dense: systems without sparse features have fewer."""

StrPath = str | PathLike[str]


def is_named(path: StrPath) -> bool:
    """Return whether the first line of a list has only ``name=value`` features.

    Not asked of what can be read once only, a pipe: that counts as Moses' format.

    Raises:
        FormatError: the file cannot be read.
    """
    if Path(path).exists() and not Path(path).is_file():
        return False
    with open_text(path) as file:
        first = next((line for line in file if line.strip(BLANKS)), b"")
    return names_every_value(first)


def dense_features(paths: Sequence[StrPath]) -> tuple[str, ...] | None:
    """Return the names of the dense features of some lists, in order of first appearance.

    Args:
        paths: the lists, at least one.

    Returns:
        The names, or None if the first list does not name every value.

    Raises:
        FormatError: a list cannot be parsed, or its form differs from that of the first.
    """
    if not is_named(paths[0]):
        return None
    counts: dict[str, int] = {}
    n_lines = 0
    for path in paths:
        for block in read_nbest_blocks(path, dense=()):
            n_lines += len(block)
            found = np.bincount(block.sparse_indices, minlength=len(block.sparse_names))
            for name, count in zip(block.sparse_names, found.tolist(), strict=True):
                counts[name] = counts.get(name, 0) + count
    if len(counts) <= FEW:
        return tuple(counts)
    return tuple(name for name, count in counts.items() if 2 * count >= n_lines)
