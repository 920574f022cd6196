"""Numbers from outside for hypotheses, block by block in the order of the lists.

The numbers of all lists of a command are one sequence: those of the first list in the order of its
lines, then those of the second. The reader of a format may put the sentences of a list into another
order (``NBestList.file_rows``); the numbers of that list are then held in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.scores import ScoreRows, read_score_blocks


class ValueColumn:
    """The rows of some files, or of an array, that no block has taken yet.

    Args:
        paths: files, one after the other as one sequence.
        values: ``[n]`` or ``[n, k]`` in the place of files.
        ids: numbers of sentence ids that are texts, as the reader of the lists has them.
        check: called with rows before they are used, to reject some.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        values: NDArray[Any] | None,
        ids: SentenceIds,
        *,
        place: str,
        what: str,
        option: str,
        check: Callable[[ScoreRows], None],
    ) -> None:
        self._place, self._what, self._option, self._check = place, what, option, check
        self._ids = ids
        self._spelled: tuple[bytes, ...] = ()
        self._blocks = _read_blocks(paths, values, place)
        self._rest: ScoreRows | None = None
        self._width: int | None = None
        self._taken = 0
        self._held = _HeldRows("")

    def take(self, block: NBestList) -> NDArray[np.float64]:
        """Return the values of the next hypotheses, float64 ``[len(block), k]``.

        Ids and texts that the files repeat are compared with those of the hypotheses.

        Raises:
            FormatError: there are too few values, or they belong to another list.
        """
        if block.file_rows is not None:
            return self._take_out_of_order(block, block.file_rows)
        parts = []
        row = 0
        while row < len(block):
            rows = self._next(len(block) - row)
            if rows is None:
                raise self._too_few(block, row, self._taken + row)
            self._compare(rows, block, row)
            parts.append(rows.values)
            row += len(rows)
        self._taken += len(block)
        return np.concatenate(parts)

    def _take_out_of_order(
        self, block: NBestList, file_rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the values of hypotheses that are not in the order of their file."""
        if self._held.path != block.path or self._held.has_given(file_rows):
            self._held = _HeldRows(block.path)
        held = self._held
        while held.n_rows <= file_rows.max():
            rows = self._next(int(file_rows.max()) + 1 - held.n_rows)
            if rows is None:
                row = int(np.argmax(file_rows >= held.n_rows))
                raise self._too_few(block, row, self._taken)
            held.add(rows)
            self._taken += len(rows)
        parts = []
        for row, file_row in enumerate(file_rows.tolist()):
            part = held.give(file_row)
            self._compare(part, block, row)
            parts.append(part.values)
        return np.concatenate(parts)

    def _too_few(self, block: NBestList, row: int, n_values: int) -> FormatError:
        return FormatError(
            f"this hypothesis has no {self._what}: {self._place} has only {n_values}",
            path=block.path,
            line=int(block.lines[row]),
            remedy=f"Give {self._option} one line for each hypothesis, in the order of the lists",
        )

    def finish(self) -> None:
        """Check that no value is left."""
        rows = self._next(1)
        if rows is not None:
            raise FormatError(
                f"a {self._what} without a hypothesis: the lists have {self._taken}",
                path=rows.path,
                line=rows.first,
                remedy=f"Give {self._option} one line for each hypothesis, in the order of the "
                "lists",
            )

    def _next(self, count: int) -> ScoreRows | None:
        """Return up to ``count`` rows; None at the end."""
        rows = self._rest if self._rest is not None else next(self._blocks, None)
        self._rest = None
        if rows is None:
            return None
        width = rows.values.shape[1]
        if self._width not in (None, width):
            raise FormatError(
                f"{width} numbers, but {self._place} has {self._width}",
                path=rows.path,
                line=rows.first,
                remedy="Give files with the same columns",
            )
        self._width = width
        self._check(rows)
        if len(rows) > count:
            self._rest = _take_rows(rows, count, len(rows))
            rows = _take_rows(rows, 0, count)
        return rows

    def _compare(self, rows: ScoreRows, block: NBestList, start: int) -> None:
        """Check ids and texts of the file against the hypotheses from ``start`` on."""
        if rows.ids is None:
            return
        own = block.sentence_ids[start : start + len(rows)].tolist()
        if len(self._ids) != len(self._spelled):
            self._spelled = tuple(
                name.encode("utf-8", "surrogateescape") for name in self._ids.names
            )
        for place, (number, spelled) in enumerate(zip(own, rows.ids, strict=True)):
            expected = self._spelled[number] if number < len(self._spelled) else b"%d" % number
            if spelled != expected:
                raise self._other_list("sentence", spelled, expected, rows, block, start, place)
            if rows.texts is not None and block.has_texts:
                text = block.text(start + place)
                if rows.texts[place] != text:
                    raise self._other_list(
                        "hypothesis", rows.texts[place], text, rows, block, start, place
                    )

    def _other_list(
        self,
        what: str,
        text: bytes,
        expected: bytes,
        rows: ScoreRows,
        block: NBestList,
        start: int,
        place: int,
    ) -> FormatError:
        return FormatError(
            f"the {what} is {quote(text)}, but {quote(expected)} in "
            f"{block.path}:{block.lines[start + place]}",
            path=rows.path,
            line=rows.first + place,
            remedy=f"Give the {self._what}s of these lists, in their order",
        )


class _HeldRows:
    """Rows of one list, in the order of its file, and which of them were given away."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._parts: list[ScoreRows] = []
        self._starts: list[int] = []
        self._given: set[int] = set()
        self.n_rows = 0

    def add(self, rows: ScoreRows) -> None:
        """Add the next rows of the file."""
        self._parts.append(rows)
        self._starts.append(self.n_rows)
        self.n_rows += len(rows)

    def has_given(self, file_rows: NDArray[np.int64]) -> bool:
        """Return whether one of these has been given: then another list has begun."""
        return int(file_rows[0]) in self._given

    def give(self, file_row: int) -> ScoreRows:
        """Return one row."""
        self._given.add(file_row)
        part = bisect_right(self._starts, file_row) - 1
        place = file_row - self._starts[part]
        return _take_rows(self._parts[part], place, place + 1)


def _read_blocks(
    paths: Sequence[Path], values: NDArray[Any] | None, place: str
) -> Iterator[ScoreRows]:
    if values is not None:
        table = np.asarray(values, dtype=np.float64)
        yield ScoreRows(place, 1, table[:, np.newaxis] if table.ndim == 1 else table)
    for path in paths:
        yield from read_score_blocks(path)


def _take_rows(rows: ScoreRows, begin: int, end: int) -> ScoreRows:
    return ScoreRows(
        rows.path,
        rows.first + begin,
        rows.values[begin:end],
        None if rows.ids is None else rows.ids[begin:end],
        None if rows.texts is None else rows.texts[begin:end],
    )
