"""How the n-best lists of a decoder with known features are to be read."""

from __future__ import annotations

from collections.abc import Sequence

from formats.errors import FormatError
from formats.nbest.entry import Layout, Place, names_every_value

__all__ = ["choose_layout"]


def choose_layout(
    line: bytes, groups: Sequence[tuple[str, int]]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the ``names`` and ``dense`` that readers of ``formats.nbest`` need for a list.

    Args:
        line: the first line of the list.
        groups: name and width of each dense feature, in order.

    Returns:
        Names of the columns, if the list has no labels; names of the dense features, if it names
        every value or labels alone cannot tell dense features (an underscore marks a sparse one).
    """
    names = tuple(name for name, width in groups for _ in range(width))
    is_single = all(width == 1 for _, width in groups)
    if is_single and (names_every_value(line) or any("_" in name for name in names)):
        return (names, None) if _is_unlabelled(line, names) else (None, names)
    return (names, None) if _is_unlabelled(line, names) else (None, None)


def _is_unlabelled(line: bytes, names: Sequence[str]) -> bool:
    try:
        return not Layout.of_line(line, names, Place("", 1)).labelled
    except FormatError:
        return False  # reading the list reports the error with its place
