"""Spellings of ranges that are accepted beside the documented one."""

from __future__ import annotations

import re

_NUMBER = r"(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf)?"
_INTERVAL = re.compile(rf"(?<=[:,])({_NUMBER}):({_NUMBER})(?=,|$)")


def spell_range(text: str) -> str:
    """Return a range ``A..B`` as ``A:B``, and any other text as it is."""
    return text.replace("..", ":")


def spell_bounds(text: str) -> str:
    """Return ``NAME:A:B,C:D`` as ``NAME:A..B,C..D``, other texts as they are."""
    return _INTERVAL.sub(r"\1..\2", text)
