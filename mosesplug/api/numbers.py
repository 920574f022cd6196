"""Check numbers that callers give: one of an argument, and arrays of them."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.options import options_by_field


def convert_numbers(values: Any, what: str) -> NDArray[Any]:
    """Return real numbers as an array; missing ones of masked arrays are NaN.

    Args:
        values: an array, a data frame, or nested sequences.

    Raises:
        UsageError: rows of different lengths, or a value that is not a real number.
    """
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
    except ValueError:
        raise UsageError(f"{what} has rows of different lengths") from None
    if array.dtype.kind == "O" and array.ndim:
        # Such as data frames whose columns differ in type.
        for place, value in np.ndenumerate(array):
            if not isinstance(value, Real | np.bool_):
                where = ", ".join(map(str, place))
                raise UsageError(f"{what}[{where}] is {value!r}: give real numbers")
        try:
            return array.astype(np.float64)
        except OverflowError:
            raise UsageError(f"{what} has an integer that is too large") from None
    if array.dtype.kind not in "biufO":
        raise UsageError(f"{what} has the type {array.dtype}: give real numbers")
    return array


def check_column(values: Any, what: str, count: int) -> NDArray[np.float64]:
    """Return a column of real numbers, float64 ``[count]``."""
    column = convert_numbers(values, what)
    if column.shape != (count,):
        raise UsageError(
            f"{what} has the shape {column.shape}: give one number for each of {count} hypotheses"
        )
    column = column.astype(np.float64)
    if not np.isfinite(column).all():
        row = int(np.argmin(np.isfinite(column)))
        raise DataError(f"{what}[{row}] is {column[row]}: give finite numbers")
    return column


def check_integer(value: Any, argument: str, least: int) -> int:
    """Return the integer of an argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise UsageError(f"{argument} is {value!r}: give an integer of at least {least}")
    return number


def check_number(value: Any, argument: str, least: float) -> float:
    """Return the number of an argument."""
    number = float(value) if isinstance(value, Real) else float("nan")
    if not number >= least:
        raise UsageError(f"{argument} is {value!r}: give a number of at least {least:g}")
    return number


def check_declared(cls: type, argument: str, value: Any) -> Any:
    """Return the number of an argument that a settings class declares."""
    option = options_by_field(cls)[argument]
    least = option.minimum or 0
    if option.kind == "integer":
        return check_integer(value, argument, int(least))
    return check_number(value, argument, least)
