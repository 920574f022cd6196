"""The exceptions of mosesplug; the CLI turns them into one line and an exit code.

::

    MosesplugError
    ├── UsageError            usage error                         (exit code 2)
    └── DataError             data, decoder or disk error         (exit code 1)
        ├── StoreError        the n-best store cannot be used
        │   ├── StoreMismatch     it was created from other input, references or configuration
        │   ├── StoreInUse        this process has it open already
        │   └── StoreFull         the disk is full
        ├── DecoderError      the decoder died, or its output cannot be used
        └── OptimizerError    the problem has no usable solution

``formats.FormatError`` (a malformed file) is separate from ``DataError``; exit code 1 too.
"""

from __future__ import annotations

from collections.abc import Iterable

from formats.errors import Message, OptionName, Spelling, spell_option

__all__ = [
    "DataError",
    "DecoderError",
    "Message",
    "MosesplugError",
    "OptimizerError",
    "OptionName",
    "Spelling",
    "StoreError",
    "StoreFull",
    "StoreInUse",
    "StoreMismatch",
    "UsageError",
    "count_noun",
    "explain_unknown_feature",
    "spell_option",
    "suggest",
]

_MOST_NAMES = 30
"""Most names of features in a message."""


class MosesplugError(Exception):
    """Base of all errors; the message is one line that says what to do.

    It names options as a ``Message`` does.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(Message(message))

    @property
    def template(self) -> str:
        """The message with options as fields, for the message of another error."""
        return Message(self.args[0]).template

    def spell(self, spelling: Spelling) -> None:
        """Spell the options that the error names."""
        self.args = (Message(self.args[0], spelling),)


class UsageError(MosesplugError):
    """A usage error: an unknown option, or options that exclude each other."""


class DataError(MosesplugError):
    """An error in the data, the decoder or the disk."""


class StoreError(DataError):
    """The n-best store cannot be used."""


class StoreMismatch(StoreError):
    """The store was created from other input, references, features or configuration."""


class StoreInUse(StoreError):
    """This process has the store open already."""


class StoreFull(StoreError):
    """The disk is full; finished iterations are kept."""


class DecoderError(DataError):
    """The decoder died, or its output cannot be used."""


class OptimizerError(DataError):
    """The problem has no usable solution (NaN features, nothing to tune)."""


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 sentence``, ``2 batches``, ``3 hypotheses``."""
    if number == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("is", "ch")) else "s"
    return f"{number} {noun.removesuffix('is')}{ending}"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests the most similar known word, or nothing."""
    from difflib import get_close_matches  # only for messages: every program imports this module

    similar = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f". Did you mean {similar[0]}?" if similar else ""


def explain_unknown_feature(name: str, known: Iterable[str]) -> str:
    """Return what is wrong with the name of a feature, and how to mend it.

    If there are many names, or if the name is a pattern, those with an underscore are shown as
    patterns such as ``WT_*``.

    Args:
        name: a name, or a pattern with ``*``.
        known: the names of features.
    """
    names = list(dict.fromkeys(known))
    shown = names
    if "*" in name or len(names) > _MOST_NAMES:
        parts = (name.partition("_") for name in names)
        shown = list(dict.fromkeys(f"{head}_*" if mark else head for head, mark, _ in parts))
    listed = ", ".join(shown[:_MOST_NAMES]) or "none"
    if len(shown) > _MOST_NAMES:
        listed += f", and {len(shown) - _MOST_NAMES} more"
    similar = suggest(name, shown if "*" in name else names)
    remedy = similar or ". Correct the name, or leave it out"
    return f"there is no feature {name}; known: {listed}{remedy}"
