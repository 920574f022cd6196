"""Spellings of names and ranges that are accepted beside the documented one."""

from __future__ import annotations

import re

__all__ = ["list_spellings", "spell_bounds", "spell_range"]

_PAIRS = (("heldout", "held-out"), ("refs", "references"))

_NUMBER = r"(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf)?"
_INTERVAL = re.compile(rf"(?<=[:,])({_NUMBER}):({_NUMBER})(?=,|$)")


def spell_range(text: str) -> str:
    """Return a range ``A..B`` as ``A:B``, and any other text as it is."""
    return text.replace("..", ":")


def spell_bounds(text: str) -> str:
    """Return ``NAME:A:B,C:D`` as ``NAME:A..B,C..D``, other texts as they are."""
    return _INTERVAL.sub(r"\1..\2", text)


def list_spellings(name: str) -> list[str]:
    """Return the other spellings of a name: ``held-out-refs`` of ``heldout-refs``."""
    found = [name]
    for pair in _PAIRS:
        found = [spelled for each in found for spelled in _vary(each, pair)]
    return found[1:]


def _vary(name: str, pair: tuple[str, str]) -> list[str]:
    """Return a name with either of two words in the place of the other."""
    words = f"-{name}-"
    found = [name]
    for one, other in (pair, pair[::-1]):
        if f"-{one}-" in words:
            found.append(words.replace(f"-{one}-", f"-{other}-")[1:-1])
    return found
