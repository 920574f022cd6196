"""Make the characters of text words, for metrics that compare characters.

A character is a Unicode code point in UTF-8, or a byte that is not part of valid UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel, read_only
from mosesplug.metrics.hypotheses import HypothesisRanges

BLANK = 32
GAP = 10

BlankTreatment = Literal["remove", "merge", "keep"]
"""Whitespace between words is no character, one character, or a character for each of its own."""

REMOVE, MERGE, KEEP = range(3)
_TREATMENTS: dict[BlankTreatment, int] = {"remove": REMOVE, "merge": MERGE, "keep": KEEP}


@kernel
def _character(text: NDArray[np.uint8], position: int, end: int) -> tuple[int, int]:
    """Return the byte length and code point (-1 if invalid) of a character."""
    lead = int(text[position])
    if lead < 0x80:
        return 1, lead
    if 0xC2 <= lead < 0xE0:
        size, least = 2, 0x80
    elif 0xE0 <= lead < 0xF0:
        size, least = 3, 0x800
    elif 0xF0 <= lead < 0xF5:
        size, least = 4, 0x10000
    else:
        return 1, -1
    if position + size > end:
        return 1, -1
    code = lead & (0xFF >> (size + 1))
    for offset in range(1, size):
        byte = int(text[position + offset])
        if byte & 0xC0 != 0x80:
            return 1, -1
        code = code << 6 | byte & 0x3F
    if not least <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return 1, -1
    return size, code


@kernel
def _is_space(code: int) -> bool:
    if code < 0x1680:
        return 9 <= code <= 13 or 28 <= code <= 32 or code in (0x85, 0xA0)
    return 0x2000 <= code <= 0x200A or code in (0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)


@kernel
def _write_spaced(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    blanks: int,
    spaced: NDArray[np.uint8],
    bounds: NDArray[np.int64],
) -> None:
    """Write each character and a blank to ``spaced``, and line ends to ``bounds``."""
    place = 0
    for line in range(len(starts)):
        bounds[line] = place
        position = starts[line]
        first = position  # of the characters that are not written yet
        while position < ends[line]:
            size, code = _character(text, position, ends[line])
            position += size
            if _is_space(code):
                continue
            if blanks != KEEP or place == bounds[line]:
                if blanks == MERGE and place > bounds[line] and first < position - size:
                    spaced[place] = GAP
                    spaced[place + 1] = BLANK
                    place += 2
                first = position - size
            while first < position:
                size, _ = _character(text, first, ends[line])
                for offset in range(size):
                    byte = text[first + offset]
                    spaced[place + offset] = GAP if byte == BLANK else byte
                spaced[place + size] = BLANK
                place += size + 1
                first += size
    bounds[len(starts)] = place


def space_out(
    hypotheses: HypothesisRanges, *, blanks: BlankTreatment = "remove"
) -> HypothesisRanges:
    """Return hypotheses with a blank after each character.

    Args:
        blanks: what becomes of the whitespace between words. A line feed stands for a blank, and
            for whitespace that is merged.
    """
    _, text, starts, ends = hypotheses
    spaced = np.empty(2 * int((ends - starts).sum()), dtype=np.uint8)
    bounds = np.empty(len(starts) + 1, dtype=np.int64)
    _write_spaced(text, starts, ends, _TREATMENTS[blanks], spaced, bounds)
    spaced, bounds = read_only(spaced, np.uint8), read_only(bounds, np.int64)
    return HypothesisRanges(hypotheses.sentence_ids, spaced, bounds[:-1], bounds[1:])


def space_out_lines(lines: Sequence[bytes], *, blanks: BlankTreatment = "remove") -> list[bytes]:
    """Return the lines with a blank after each character; see ``space_out``."""
    ends = np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    text = np.frombuffer(b"".join(lines), dtype=np.uint8)
    spaced = space_out(
        HypothesisRanges(starts, *(read_only(a, a.dtype) for a in (text, starts, ends))),
        blanks=blanks,
    )
    whole = spaced.buffer.tobytes()
    return [whole[start:end] for start, end in zip(spaced.starts, spaced.ends, strict=True)]
