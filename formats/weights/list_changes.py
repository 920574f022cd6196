"""Record in files of weights how the lists were changed.

Features may be added or derived, and scores divided by a power of the length.

Weights are useful only for lists with the same features and the same division of scores. A file of
weights records in comments, or under ``added``, ``derived`` and ``length_exponent`` of JSON, which
features came from other files, which were computed, and by what power of the length scores were
divided::

    # added: LM
    # derived: lm_norm=lm/words
    # length-exponent: 0.8
    lm= 0.5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from formats.weights.lines import decode, encode

__all__ = ["UNCHANGED", "ListChanges", "format_list_changes", "parse_list_changes"]

_ADDED, _DERIVED, _LENGTH = b"# added:", b"# derived:", b"# length-exponent:"


@dataclass(frozen=True)
class ListChanges:
    """The changes made to lists before weights were learned from them.

    Attributes:
        added_features: names of the features with values from files or arrays.
        derived_features: the expression of each feature that was computed, by name.
        length_exponent: ``[NAME,...:]X [LENGTH]``: the features (all without names) were divided by
            the length to the power of X; empty if they were not. The length is the number of words,
            or a feature.
    """

    added_features: tuple[str, ...] = ()
    derived_features: Mapping[str, str] = field(default_factory=dict)
    length_exponent: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features that were not in the lists."""
        return (*self.added_features, *self.derived_features)

    def __bool__(self) -> bool:
        return bool(self.added_features or self.derived_features or self.length_exponent)


UNCHANGED = ListChanges()
"""All features were in the lists, and nothing was divided."""


def parse_list_changes(text: bytes) -> ListChanges:
    """Return the changes that the comments of a file of weights record."""
    added: list[str] = []
    derived: dict[str, str] = {}
    exponent = ""
    if not any(mark in text for mark in (_ADDED, _DERIVED, _LENGTH)):
        return UNCHANGED
    for line in map(bytes.strip, text.split(b"\n")):
        if line.startswith(_ADDED):
            added.append(decode(line.removeprefix(_ADDED).strip()))
        elif line.startswith(_DERIVED):
            name, _, expression = decode(line.removeprefix(_DERIVED)).partition("=")
            derived[name.strip()] = expression.strip()
        elif line.startswith(_LENGTH):
            exponent = decode(line.removeprefix(_LENGTH).strip())
    return ListChanges(tuple(added), derived, exponent)


def format_list_changes(changes: ListChanges) -> bytes:
    """Return the comment lines that record changes; empty without changes."""
    lines = [f"{_ADDED.decode()} {name}\n" for name in changes.added_features]
    lines += [
        f"{_DERIVED.decode()} {name}={text}\n" for name, text in changes.derived_features.items()
    ]
    if changes.length_exponent:
        lines.append(f"{_LENGTH.decode()} {changes.length_exponent}\n")
    return encode("".join(lines))
