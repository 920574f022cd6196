"""The domain of each source sentence, from a file of labels or from a sequence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.text import read_lines
from mosesplug.errors import UsageError
from mosesplug.settings.sentences.counts import check_count, check_sentence_ids

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Labels are parts of file names and of names of features."""

_RULE = "Use letters, digits, dots, dashes and underscores"


@dataclass(frozen=True)
class Domains:
    """Which domain each source sentence belongs to.

    Attributes:
        names: the names of the domains, in the order of their first appearance; at least two.
        of_sentence: int64 ``[n_lines]``, the number of the domain of each source sentence.
    """

    names: tuple[str, ...]
    of_sentence: NDArray[np.int64]

    def take(self, sentence_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the domain of each sentence id.

        Raises:
            DataError: a sentence has no label.
        """
        check_sentence_ids("domains", "label", len(self.of_sentence), sentence_ids)
        return self.of_sentence[sentence_ids]

    def check_count(self, n_sentences: int) -> None:
        """Check that there is one label for each of the source sentences.

        Raises:
            DataError: there are more or fewer.
        """
        check_count("domains", "label", len(self.of_sentence), n_sentences)


def read_domains(path: Path) -> Domains:
    """Read a file with the label of a domain on each line.

    Raises:
        FormatError: a line is no label, or the file has fewer than two labels.
        OSError: the file cannot be read.
    """
    labels = [line.strip().decode("utf-8", "replace") for line in read_lines(path)]
    for number, label in enumerate(labels, start=1):
        if not _LABEL.fullmatch(label):
            raise FormatError(
                f"{label!r} is not the label of a domain", path=path, line=number, remedy=_RULE
            )
    if len(set(labels)) < 2:
        raise FormatError(
            "fewer than two domains", path=path, remedy="Label the sentences of two or more domains"
        )
    return _number(labels)


def make_domains(labels: Sequence[str]) -> Domains:
    """Return the domains of a sequence with the label of each source sentence.

    Raises:
        UsageError: a label cannot be used, or there is only one.
    """
    texts = [str(label) for label in labels]
    for number, label in enumerate(texts):
        if not _LABEL.fullmatch(label):
            raise UsageError(f"domains[{number}]: {label!r} is not the label of a domain. {_RULE}")
    if len(set(texts)) < 2:
        raise UsageError(
            "domains has fewer than two labels. Label sentences of two or more domains"
        )
    return _number(texts)


def _number(labels: Sequence[str]) -> Domains:
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return Domains(tuple(numbers), np.array([numbers[label] for label in labels], dtype=np.int64))
