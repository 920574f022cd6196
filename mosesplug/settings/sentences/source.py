"""The lengths of the source sentences, from a file or from a sequence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.text import read_lines
from mosesplug.errors import DataError

_TAG = re.compile(rb"</?[A-Za-z][^<>]*>")
"""Markup of the input, as Moses' ``-xml-input`` reads it; it is not translated."""


def count_source_words(lines: Sequence[bytes]) -> NDArray[np.int64]:
    """Return the words of each source sentence, int64; tags of markup are no words."""
    return np.array([len(_TAG.sub(b" ", line).split()) for line in lines], dtype=np.int64)


def read_source_lengths(path: Path) -> NDArray[np.int64]:
    """Return the words of each line of a file, int64 ``[n_lines]``.

    Raises:
        OSError: the file cannot be read.
    """
    return count_source_words(read_lines(path))


def check_source(lengths: NDArray[np.int64], sentence_ids: NDArray[np.int64]) -> None:
    """Check that each sentence that has hypotheses has a source sentence.

    Raises:
        DataError: one has none.
    """
    if (last := int(sentence_ids.max(initial=-1))) >= len(lengths):
        raise DataError(
            f"{{--source}} has {len(lengths)} sentences, but the data have sentence {last} "
            "(counted from 0). Give the file that was translated, one sentence a line"
        )
