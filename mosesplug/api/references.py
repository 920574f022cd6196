"""References that a caller has as texts, by sentence, or in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from os import PathLike
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.references import read_reference, read_references
from mosesplug.api.arrays import SentenceNumbers, encode_texts
from mosesplug.errors import DataError, UsageError

__all__ = ["arrange_references", "load_references"]

_FORMS = "{} must be a file, a text for each sentence, or several sequences of texts"


def load_references(references: Any, what: str = "references") -> list[list[bytes]]:
    """Return references as ``[reference][line]``.

    Args:
        references: a file or the prefix of several; several ``Path`` objects; a sequence of texts,
            one for each sentence; or several such sequences, one for each reference.
        what: the argument, for messages.

    Raises:
        UsageError: it is nothing of this.
        FormatError: a file cannot be read, or is empty.
        DataError: there is no text, one has a line break, or the references differ in length.
    """
    if isinstance(references, str | PathLike):
        return read_references(references)
    if hasattr(references, "columns"):
        raise UsageError(f"{what} is a data frame: give its column, or a list of its columns")
    if isinstance(references, Mapping | bytes | Set) or not hasattr(references, "__len__"):
        raise UsageError(_FORMS.format(what))
    references = list(references)
    if not references:
        raise DataError(f"{what}: there is no reference translation")
    if all(isinstance(each, Path) for each in references):
        return _read_files(references)
    if all(isinstance(each, str | bytes) for each in references):
        return [encode_texts(references, what)]
    if any(isinstance(each, str | bytes | Mapping) for each in references):
        raise UsageError(_FORMS.format(what))
    found = [encode_texts(each, f"{what}[{place}]") for place, each in enumerate(references)]
    for place, lines in enumerate(found):
        if len(lines) != len(found[0]):
            raise DataError(
                f"{what}[{place}] has {len(lines)} sentences, and {what}[0] has {len(found[0])}: "
                "give [reference][sentence]"
            )
    if not found[0]:
        raise DataError(f"{what}: there is no reference translation")
    return found


def arrange_references(
    references: Mapping[Any, Any], sentences: SentenceNumbers
) -> list[list[bytes]]:
    """Return references given by sentence id as ``[reference][sentence]``.

    Args:
        references: a text, or a sequence of texts, for each sentence id.
        sentences: the sentences that need references.

    Raises:
        DataError: a sentence has no reference, or they differ in number.
    """
    every = []
    for number, sentence in enumerate(sentences.ids):
        if sentence not in references:
            row = int((sentences.numbers == number).argmax())
            raise DataError(
                f"references has no entry for the sentence id {sentence!r} of hypothesis {row}"
            )
        found = references[sentence]
        if not isinstance(found, str | bytes | Sequence):
            raise UsageError(f"references[{sentence!r}] is {found!r}: give one or several texts")
        texts = [found] if isinstance(found, str | bytes) else found
        every.append(encode_texts(texts, f"references[{sentence!r}]"))
        if not every[-1] or len(every[-1]) != len(every[0]):
            raise DataError(
                f"references[{sentence!r}] has {len(every[-1])} texts, and that of "
                f"{sentences.ids[0]!r} has {len(every[0])}: give each sentence the same number"
            )
    return [list(lines) for lines in zip(*every, strict=True)]


def _read_files(paths: Sequence[Path]) -> list[list[bytes]]:
    if len(paths) == 1:
        found = read_references(paths[0])
    else:
        found = [read_reference(path) for path in paths]
    if not found[0]:
        raise FormatError(
            "there is no reference in it",
            path=paths[0],
            remedy="Give the reference translation, one sentence a line",
        )
    return found
