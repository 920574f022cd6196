"""Read utilities of hypotheses for minimum Bayes risk decoding.

Another program computed these numbers. A line, or a row of an array, belongs to one hypothesis, in
the order of the list. It holds either one number, the utility of the hypothesis; or one for each
hypothesis of the same sentence, the utility if that one is right. Arrays (``.npy``) are
``[hypotheses]``; ``[hypotheses, width]``, where columns beyond the number of hypotheses of a
sentence are ignored; or ``[sentences, width, width]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError, quote
from formats.npy import NPY, load_array
from formats.text import StrPath, open_text
from formats.words import Floats


class UtilityReader:
    """The utilities of a file, taken sentence by sentence in the order of the list."""

    def __init__(self, path: StrPath) -> None:
        self._path = fspath(path)
        self._array = _load_array(path)
        self._lines = _read_lines(path) if self._array is None else iter(())
        self._line = self._sentence = 0
        self._is_single: bool | None = None
        if self._array is not None:
            self._is_single = self._array.ndim == 1

    def take(self, count: int, place: str) -> Floats:
        """Return the utilities of the next sentence.

        They are float64 ``[count]`` or ``[count, count]``.

        Args:
            count: number of hypotheses of the sentence, at least 1.
            place: the file and line of its first hypothesis, for messages.

        Raises:
            FormatError: there are too few lines, or a line has another number of numbers, or one
                that is not finite.
        """
        first = self._line + 1
        rows = (
            self._take_lines(count, place) if self._array is None else self._take_rows(count, place)
        )
        self._line += count
        values = np.array(rows, dtype=np.float64)
        finite = np.isfinite(values.reshape(count, -1)).all(axis=1)
        if not finite.all():
            raise FormatError(
                "a utility is not a finite number",
                path=self._path, line=first + int(np.argmin(finite)), remedy=_REMEDY,
            )  # fmt: skip
        return values

    def finish(self) -> None:
        """Check that nothing is left."""
        taken = self._line if self._array is None or self._array.ndim < 3 else self._sentence
        left = self._array is not None and taken < len(self._array)
        if left or next(self._lines, None) is not None:
            raise FormatError(
                f"more utilities than the {self._line} hypotheses of the list",
                path=self._path, line=self._line + 1, remedy=_REMEDY,
            )  # fmt: skip

    def _take_lines(self, count: int, place: str) -> list[list[float]] | list[float]:
        rows: list[list[float]] = []
        for number in range(self._line + 1, self._line + count + 1):
            line = next(self._lines, None)
            if line is None:
                raise self._too_short(place)
            row = self._parse(line, number)
            wanted = 1 if self._is_single else count
            if self._is_single is None and count > 1:
                self._is_single = len(row) == 1
                wanted = 1 if self._is_single else count
            if len(row) != wanted:
                raise FormatError(
                    f"{len(row)} numbers for a hypothesis of a sentence with {count} ({place})",
                    path=self._path, line=number, remedy=_REMEDY,
                )  # fmt: skip
            rows.append(row)
        return [row[0] for row in rows] if self._is_single else rows

    def _take_rows(self, count: int, place: str) -> Floats:
        array = self._array
        if array is None:  # for type checkers: only arrays come here
            return np.zeros((0, 0))
        if array.ndim == 3:
            sentence = self._sentence
            self._sentence += 1
            if sentence >= len(array):
                raise self._too_short(place)
            rows = array[sentence, :count, :count]
        else:
            rows = array[self._line : self._line + count]
            if len(rows) < count:
                raise self._too_short(place)
            rows = rows[:, :count] if array.ndim == 2 else rows
        if array.ndim > 1 and rows.shape != (count, count):
            raise FormatError(
                f"the array has the shape {array.shape}, but a sentence has {count} hypotheses "
                f"({place})",
                path=self._path, remedy=_REMEDY,
            )  # fmt: skip
        return np.asarray(rows, dtype=np.float64)

    def _parse(self, line: bytes, number: int) -> list[float]:
        try:
            return list(map(float, line.split()))
        except ValueError:
            bad = next(token for token in line.split() if not _is_number(token))
            raise FormatError(
                f"{quote(bad)} is not a number", path=self._path, line=number, remedy=_REMEDY
            ) from None

    def _too_short(self, place: str) -> FormatError:
        return FormatError(
            f"the utilities end before the sentence that begins at {place}",
            path=self._path, remedy=_REMEDY,
        )  # fmt: skip


_REMEDY = "Give a line for each hypothesis: one number, or one for each hypothesis of its sentence"


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _read_lines(path: StrPath) -> Iterator[bytes]:
    with open_text(path) as file:
        yield from file


def _load_array(path: StrPath) -> NDArray[Any] | None:
    """Return the array of a file; None for a file of text."""
    with open_text(path) as file:
        is_array = file.peek(len(NPY)).startswith(NPY)  # type: ignore[attr-defined]
        return load_array(path, file, (1, 2, 3), _REMEDY) if is_array else None
