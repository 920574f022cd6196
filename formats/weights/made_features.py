"""Which features were not in the lists that weights were learned from, recorded beside the weights.

Weights are useful only for lists with the same features. A file of weights records in comments, or
under ``added`` and ``derived`` of JSON, which came from other files and which were computed::

    # added: LM
    # derived: lm_norm=lm/words
    lm= 0.5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from formats.weights.lines import decode, encode

__all__ = ["NOT_MADE", "MadeFeatures", "format_made_features", "parse_made_features"]

_ADDED, _DERIVED = b"# added:", b"# derived:"


@dataclass(frozen=True)
class MadeFeatures:
    """Features that were added to lists.

    Attributes:
        added: names of those with values from files or arrays.
        derived: the expression of those that were computed, by name.
    """

    added: tuple[str, ...] = ()
    derived: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return (*self.added, *self.derived)

    def __bool__(self) -> bool:
        return bool(self.added or self.derived)


NOT_MADE = MadeFeatures()
"""All features were in the lists."""


def parse_made_features(text: bytes) -> MadeFeatures:
    """Return the features that the comments of a file of weights record."""
    added: list[str] = []
    derived: dict[str, str] = {}
    if _ADDED not in text and _DERIVED not in text:
        return MadeFeatures()
    for line in map(bytes.strip, text.split(b"\n")):
        if line.startswith(_ADDED):
            added.append(decode(line.removeprefix(_ADDED).strip()))
        elif line.startswith(_DERIVED):
            name, _, expression = decode(line.removeprefix(_DERIVED)).partition("=")
            derived[name.strip()] = expression.strip()
    return MadeFeatures(tuple(added), derived)


def format_made_features(features: MadeFeatures) -> bytes:
    """Return the comment lines that record features; empty without features."""
    lines = [f"{_ADDED.decode()} {name}\n" for name in features.added]
    lines += [f"{_DERIVED.decode()} {name}={text}\n" for name, text in features.derived.items()]
    return encode("".join(lines))
