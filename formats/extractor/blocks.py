"""Find the blocks of ``features.dat`` and ``scores.dat``.

Each block has a header and a range of rows. A header states how many rows follow. Memory is
allocated only for rows that the file really has, so a damaged number does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formats.errors import FormatError, quote
from formats.nbest.entry import BLANKS
from formats.words import Positions

_LONGEST_NUMBER = 18  # digits: so many fit an int64


@dataclass(frozen=True)
class BlockFile:
    """A file's text and the kind that it should have."""

    path: str
    kind: str
    text: bytes

    def error(self, position: int, message: str, remedy: str) -> FormatError:
        """Return the error about the line at a position."""
        line = self.text.count(b"\n", 0, position) + 1
        return FormatError(message, path=self.path, line=line, remedy=remedy)


@dataclass(frozen=True)
class Block:
    """One block of a file.

    Attributes:
        header, start, end: first byte of the header, first byte of the rows, end of the rows.
        title: the words after these numbers.
        is_binary: whether the rows are float32.
    """

    header: int
    start: int
    end: int
    sentence: int
    count: int
    width: int
    title: tuple[bytes, ...]
    is_binary: bool


def find_blocks(file: BlockFile) -> list[Block]:
    """Return every block of the file, its rows not read yet."""
    blocks: list[Block] = []
    kinds = {f"{file.kind}_{mode}_BEGIN_0".encode(): mode for mode in ("TXT", "BIN")}
    at = 0
    while at < len(file.text):
        behind = file.text.find(b"\n", at) + 1 or len(file.text)
        header = file.text[at:behind]
        if header.strip(BLANKS):
            block = _block(file, kinds, header.split(), at, behind)
            blocks.append(block)
            behind = file.text.find(b"\n", block.end) + 1 or len(file.text)
        at = behind
    if not blocks:
        raise FormatError(
            f"the file has no {file.kind.lower()} block",
            path=file.path,
            remedy="Check that the program that wrote it finished",
        )
    return blocks


def _block(
    file: BlockFile, kinds: Mapping[bytes, str], words: list[bytes], at: int, start: int
) -> Block:
    """Return the block with these header words at ``at`` and rows from ``start`` on."""
    mode = kinds.get(words[0])
    if mode is None:
        raise file.error(
            at,
            f"{quote(words[0])} is not the beginning of a block",
            f"A block begins with {' or '.join(begin.decode() for begin in kinds)}",
        )
    numbers = [_count(word) for word in words[1:4]]
    if len(numbers) < 3 or -1 in numbers:
        raise file.error(
            at,
            "the header does not give sentence, rows and columns as numbers",
            "Produce the file again",
        )
    sentence, count, width = numbers
    footer = f"{file.kind}_{mode}_END_0".encode()
    if mode == "BIN":
        end = start + 4 * count * width
        # The number of empty rows could not be checked against the bytes of the file.
        whole = file.text.startswith(footer, end) and (width > 0 or not count)
    else:
        end = file.text.find(b"\n" + footer, start - 1) + 1
        whole = end > 0
        n_lines = file.text.count(b"\n", start, end)
        if whole and n_lines != count:
            raise file.error(
                at,
                f"the header says {count} rows, but {n_lines} come before {footer.decode()}",
                "Produce the file again",
            )
    if not whole:
        raise file.error(
            at,
            f"no {footer.decode()} after the {count} rows of {width} numbers of the header",
            "The file is truncated or damaged: produce it again",
        )
    return Block(at, start, end, sentence, count, width, tuple(words[4:]), mode == "BIN")


def _count(word: bytes) -> int:
    """Return a number of the header, or -1."""
    return int(word) if word.isdigit() and len(word) <= _LONGEST_NUMBER else -1


def index_of(blocks: Sequence[Block]) -> tuple[Positions, Positions]:
    """Return sentences and offsets of the blocks."""
    counts = [block.count for block in blocks]
    return (
        np.array([block.sentence for block in blocks], dtype=np.int64),
        np.cumsum([0, *counts], dtype=np.int64),
    )
