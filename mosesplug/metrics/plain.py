"""Count matches of a few hypotheses in plain Python before kernels are compiled.

Compiling the kernels of a metric takes seconds, as long as plain Python takes for thousands of
sentences. An ``Allowance`` says how much of that a process may do before it compiles. Counts are
integers, and scores are computed by the same operations in the same order, so that both ways give
the same bytes.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.hypotheses import HypothesisRanges

ORDER = 4
"""Words in the longest n-gram of BLEU."""

HYPOTHESES = 4000
"""Hypotheses of one set of references that are counted without kernels."""

ROWS = 50_000
"""Rows of summed statistics that a process scores without kernels."""

CALL = 100
"""Fixed cost of a call, as a number of rows."""


_thread = threading.local()


@contextmanager
def kernels_only(wanted: bool = True) -> Iterator[None]:
    """Let this thread use no allowance: it calls kernels so that they are compiled."""
    before = getattr(_thread, "kernels_only", False)
    _thread.kernels_only = wanted
    try:
        yield
    finally:
        _thread.kernels_only = before


class Allowance:
    """Work that this process may still do without kernels.

    Threads can exceed it slightly.
    """

    def __init__(self, amount: float) -> None:
        self._left = amount

    def take(self, amount: float) -> bool:
        """Return whether that much is left, and take it; else nothing is left from now on."""
        if getattr(_thread, "kernels_only", False):
            return False
        self._left = self._left - amount if amount <= self._left else -1.0
        return self._left >= 0.0


@dataclass(frozen=True)
class ReferenceLines:
    """The references of a metric, as text.

    Attributes:
        references: ``references[k][line]``, tokenized.
        fold: fold ``A`` to ``Z`` to ``a`` to ``z``.
        allowance: hypotheses (or other units) that may be counted without kernels.
    """

    references: Sequence[Sequence[bytes]]
    fold: bool
    allowance: Allowance

    def __reduce__(self) -> Any:
        """Lose no allowance by copying: a copy in another process compiles its kernels."""
        return type(self), (self.references, self.fold, Allowance(-1.0))

    def split(self, sentence: int) -> list[list[bytes]]:
        """Return the words of each reference of a sentence."""
        return [split_words(lines[sentence], self.fold) for lines in self.references]

    def count_words(self) -> NDArray[np.int64]:
        """Count the words of each reference, int64 ``[n_sentences, n_references]``."""
        counts = [[_count_words(line) for line in lines] for lines in self.references]
        return np.array(counts, dtype=np.int64).T


def split_words(line: bytes, fold: bool = False) -> list[bytes]:
    """Return the words between blanks (byte 32)."""
    return [word for word in (line.lower() if fold else line).split(b" ") if word]


def _count_words(line: bytes) -> int:
    stripped = line.strip(b" ")
    if b"  " in stripped:
        return len(split_words(stripped))
    return stripped.count(b" ") + 1 if stripped else 0


def split_hypotheses(hypotheses: HypothesisRanges) -> Iterator[tuple[int, bytes]]:
    """Yield sentence id and text of each hypothesis."""
    ids, buffer, starts, ends = hypotheses
    for sentence, start, end in zip(ids.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield sentence, buffer[start:end].tobytes()


def count_ngrams(
    hypotheses: Iterable[tuple[int, Sequence[Hashable]]],
    references: Callable[[int], Iterable[Sequence[Hashable]]],
    longest: int,
) -> list[list[int]]:
    """Count clipped matches and n-grams of each order, as ``ngrams.count_matches``.

    Args:
        hypotheses: the number of the references, and the tokens of each hypothesis.
        references: returns the tokens of each reference of that number.
    """
    limits: dict[int, Counter[Any]] = {}
    rows = []
    for number, tokens in hypotheses:
        if number not in limits:
            known: Counter[Any] = Counter()
            for reference in references(number):
                known |= Counter(_ngrams(reference, longest))
            limits[number] = known
        limit = limits[number]
        counts = [0] * (2 * longest)
        matches = Counter(filter(limit.__contains__, _ngrams(tokens, longest)))
        for ngram, occurrences in matches.items():
            counts[2 * len(ngram) - 2] += min(occurrences, limit[ngram])
        counts[1::2] = [max(len(tokens) - order, 0) for order in range(longest)]
        rows.append(counts)
    return rows


def _ngrams(tokens: Sequence[Hashable], longest: int) -> Iterator[Any]:
    """Return all n-grams: tuples of words, or strings."""
    if isinstance(tokens, str):
        return (
            tokens[start : start + order]
            for order in range(1, longest + 1)
            for start in range(len(tokens) - order + 1)
        )
    return itertools.chain.from_iterable(
        zip(*(tokens[skipped:] for skipped in range(order)), strict=False)
        for order in range(1, longest + 1)
    )


def bleu_of_rows(totals: NDArray[Any]) -> NDArray[np.float64]:
    """Return BLEU of each row of ``totals [m, 9]``, float64; see ``bleu_score_row``."""
    columns = np.asarray(totals, dtype=np.float64).T
    matches = columns[0] * columns[2] * columns[4] * columns[6]
    ngrams = columns[1] * columns[3] * columns[5] * columns[7]
    scores = np.zeros(len(totals))
    some = (matches > 0.0) & (ngrams > 0.0)
    scores[some] = np.sqrt(np.sqrt(matches[some] / ngrams[some]))
    short = some & (columns[8] > columns[1])
    scores[short] *= exponentials(1.0 - columns[8, short] / columns[1, short])
    return scores


def exponentials(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exponentials, ``[n]``, as kernels do; NumPy's may differ by a bit."""
    return np.array([math.exp(value) for value in values.tolist()], dtype=np.float64)
