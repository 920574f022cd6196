"""The weight of each source sentence, from a file of numbers or from a sequence."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.text import read_lines
from mosesplug.errors import UsageError, count_noun
from mosesplug.settings.sentences.counts import check_count, check_sentence_ids

LARGEST = 1e6
"""Largest weight: with larger ones, sums of statistics lose the sentences of weight 1."""

_RULE = f"Give numbers from 0 to {LARGEST:.0f}"


@dataclass(frozen=True)
class SentenceWeights:
    """How often each source sentence counts.

    Attributes:
        values: float64 ``[n_lines]``, from 0 to ``LARGEST``, not all 0.
    """

    values: NDArray[np.float64]

    def __iter__(self) -> Iterator[float]:
        """Iterate over the values, as a settings file lists them."""
        return iter(self.values.tolist())

    @property
    def text(self) -> str:
        """How many there are, and a checksum; ``--continue`` compares them."""
        return f"{len(self.values)} {zlib.crc32(self.values.tobytes()):08x}"

    @property
    def positive(self) -> NDArray[np.int64]:
        """The sentences of weight above 0, int64, ascending."""
        return np.flatnonzero(self.values)

    def take(self, sentence_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of each sentence id.

        Raises:
            DataError: a sentence has no weight.
        """
        check_sentence_ids("sentence-weights", "weight", len(self.values), sentence_ids)
        return np.asarray(self.values[sentence_ids])

    def check_count(self, n_sentences: int) -> None:
        """Check that there is one weight for each of the source sentences.

        Raises:
            DataError: there are more or fewer.
        """
        check_count("sentence-weights", "weight", len(self.values), n_sentences)


def describe_weights(weights: NDArray[np.float64]) -> str:
    """Return the range of weights in words, and how many are 0."""
    used = weights[weights > 0.0]
    text = f"sentence weights from {used.min():g} to {used.max():g}"
    if zeros := len(weights) - len(used):
        text += f" ({count_noun(zeros, 'sentence')} with weight 0 left out)"
    return text


def read_sentence_weights(path: Path | SentenceWeights) -> SentenceWeights:
    """Read a file with a number on each line; return weights as they are.

    Raises:
        FormatError: a line is no number from 0 to ``LARGEST``, or all numbers are 0.
        OSError: the file cannot be read.
    """
    if isinstance(path, SentenceWeights):
        return path
    values = []
    for number, line in enumerate(read_lines(path), start=1):
        text = line.strip().decode("utf-8", "replace")
        value = _parse(text)
        if value is None:
            raise FormatError(
                f"{text!r} is not a weight of a sentence", path=path, line=number, remedy=_RULE
            )
        values.append(value)
    if not any(values):
        raise FormatError(
            "no sentence has a weight above 0",
            path=path,
            remedy="Give a weight for each source sentence, some of them above 0",
        )
    return SentenceWeights(np.array(values, dtype=np.float64))


def parse_sentence_weights(
    value: str | PathLike[str] | SentenceWeights | Iterable[object],
) -> Path | SentenceWeights:
    """Return the path of a file, or the weights of a sequence.

    Raises:
        UsageError: see ``make_sentence_weights``.
    """
    if isinstance(value, SentenceWeights):
        return value
    return Path(value) if isinstance(value, str | PathLike) else make_sentence_weights(value)


def make_sentence_weights(values: Iterable[object]) -> SentenceWeights:
    """Return the weights of a sequence with the weight of each source sentence.

    Raises:
        UsageError: a weight cannot be used, or all are 0.
    """
    weights = []
    for number, value in enumerate(values):
        weight = _parse(value)
        if weight is None:
            raise UsageError(
                f"sentence_weights[{number}]: {value!r} is not a weight of a sentence. {_RULE}"
            )
        weights.append(weight)
    if not any(weights):
        raise UsageError("sentence_weights has no weight above 0. Give some sentences a weight")
    return SentenceWeights(np.array(weights, dtype=np.float64))


def _parse(value: object) -> float | None:
    try:
        weight = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return weight if 0.0 <= weight <= LARGEST else None
