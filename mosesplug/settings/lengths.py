"""Length exponents as users write them: ``0:2``, ``lm,rev:0:2``, ``1.3``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mosesplug.errors import UsageError
from mosesplug.settings.spellings import spell_range

WORDS = "words"
"""The length that is the number of words."""

LARGEST = 10.0
"""Largest absolute exponent."""


@dataclass(frozen=True)
class LengthRange:
    """A range of exponents of the length.

    Attributes:
        low, high: least and greatest exponent; equal for a known one.
        names: features or groups that are divided; none: all.
        by: ``words``, or the feature that is the length.
    """

    low: float
    high: float
    names: tuple[str, ...] = ()
    by: str = WORDS

    def at(self, exponent: float | None) -> LengthRange | None:
        """Return one exponent of the range; None without one."""
        return None if exponent is None else replace(self, low=exponent, high=exponent)

    def explain(self) -> str:
        """Return what is divided by what, in words."""
        what = f"{', '.join(self.names)}: values" if self.names else "scores"
        power = f"{self.low:.6g}" if self.low == self.high else f"({self.low:g} to {self.high:g})"
        return f"{what} are divided by {self.by}**{power}"

    def __str__(self) -> str:
        names = f"{','.join(self.names)}:" if self.names else ""
        ends = f"{self.low!r}" if self.low == self.high else f"{self.low!r}:{self.high!r}"
        return names + ends


def parse_length_range(text: str | float | LengthRange, by: str = WORDS) -> LengthRange:
    """Return the range of a text ``MIN:MAX`` or ``NAME,...:MIN:MAX``; a range stays.

    One number instead of ``MIN:MAX`` is a known exponent.

    Raises:
        UsageError: the text has another form.
    """
    if isinstance(text, LengthRange):
        return text
    *names, last = spell_range(str(text)).split(":")
    numbers = [last]
    if names and _is_number(names[-1]):
        numbers.insert(0, names.pop())
    if not all(map(_is_number, numbers)) or (names and not all(":".join(names).split(","))):
        raise UsageError(
            f"{{--length-exponent}} {text}: write MIN:MAX, one number, or NAME,NAME:MIN:MAX"
        )
    low, high = float(numbers[0]) + 0.0, float(numbers[-1]) + 0.0
    if not -LARGEST <= low <= high <= LARGEST:
        raise UsageError(
            f"{{--length-exponent}} {text}: the exponents must ascend, from -{LARGEST:g} to "
            f"{LARGEST:g}"
        )
    chosen = tuple(":".join(names).split(",")) if names else ()
    return LengthRange(low, high, chosen, by)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
