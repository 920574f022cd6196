"""Make blocks of hypotheses that are parsed one at a time.

Formats whose speed does not matter are read in this way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from os import fspath

from formats.nbest.block import NBestList, from_entries
from formats.nbest.entry import FLOAT32_LIMIT, Layout, NBestEntry, Place, order_error
from formats.text import StrPath

HYPOTHESES = 10_000
"""Hypotheses of a block, before the rest of the last sentence."""


def collect_blocks(
    path: StrPath, entries: Iterable[tuple[int, NBestEntry]], *, size: int = HYPOTHESES
) -> Iterator[NBestList]:
    """Yield blocks of whole sentences.

    Args:
        entries: the number of the line of each hypothesis, and the hypothesis. All have the same
            dense features in the same order. Sentence ids never decrease.
        size: least number of hypotheses of a block but the last.

    Raises:
        FormatError: sentence ids decrease, dense features differ, or a value is not finite.
    """
    name, layout = fspath(path), Layout(True, ())
    block: list[NBestEntry] = []
    lines: list[int] = []
    for line, entry in entries:
        place = Place(name, line)
        groups = tuple((group, len(values)) for group, values in entry.dense)
        if not block:
            layout = Layout(True, groups)
        elif entry.sentence_id < block[-1].sentence_id:
            raise order_error(entry.sentence_id, block[-1].sentence_id, place)
        _check(entry, groups, layout, place)
        if len(block) >= size and entry.sentence_id != block[-1].sentence_id:
            yield from_entries(block, layout, name, lines)
            block, lines = [], []
        block.append(entry)
        lines.append(line)
    if block:
        yield from_entries(block, layout, name, lines)


def _check(
    entry: NBestEntry, groups: tuple[tuple[str, int], ...], layout: Layout, place: Place
) -> None:
    if groups != layout.groups:
        raise place.error(
            f"the dense features are {_spell(groups)}, but {_spell(layout.groups)} on"
            " the lines before",
            "Write the same features on each line, in the same order",
        )
    values = [value for _, numbers in entry.dense for value in numbers]
    values += [value for _, value in entry.sparse]
    for value in values:
        if not math.fabs(value) <= FLOAT32_LIMIT:
            raise place.error(
                f"the feature value {value} is not a finite 32-bit number",
                "Correct the line, or leave it out",
            )


def _spell(groups: tuple[tuple[str, int], ...]) -> str:
    """Return the features as messages show them."""
    return " ".join(name if n == 1 else f"{name}*{n}" for name, n in groups) or "none"
