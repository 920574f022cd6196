"""Check the hypotheses of a metric, and distribute them to threads.

Kernels do not check bounds, so all hypotheses pass ``check_hypotheses`` first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.kernels import read_only

SMALLEST_SHARE = 1000
"""Minimum number of hypotheses for which another thread pays off."""


class HypothesisRanges(NamedTuple):
    """Hypotheses as ranges of one text; those that are checked have read-only arrays.

    Attributes:
        sentence_ids: int64 ``[n]``; lines of the references.
        buffer: uint8; the text.
        starts: int64 ``[n]``; first byte of each hypothesis.
        ends: int64 ``[n]``; one past its last byte, at least ``starts``.
    """

    sentence_ids: NDArray[np.int64]
    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of_lines(cls, lines: Sequence[bytes], sentence_ids: NDArray[np.int64]) -> HypothesisRanges:
        """Return one hypothesis for each line."""
        ends = np.cumsum([0, *map(len, lines)], dtype=np.int64)
        buffer = np.frombuffer(b"".join(lines), dtype=np.uint8)
        return cls(sentence_ids, buffer, ends[:-1], ends[1:])

    def lines(self) -> list[bytes]:
        """Return the text of each hypothesis."""
        text = self.buffer.tobytes()
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [text[start:end] for start, end in pairs]

    def part(self, rows: slice | NDArray[np.int64]) -> HypothesisRanges:
        """Return some of the hypotheses, in the same text."""
        return HypothesisRanges(
            self.sentence_ids[rows], self.buffer, self.starts[rows], self.ends[rows]
        )

    def first_of_lists(self) -> HypothesisRanges:
        """Return the first hypothesis of each sentence."""
        return self.part(np.flatnonzero(np.diff(self.sentence_ids, prepend=-1)))


def rewrite_texts(
    hypotheses: HypothesisRanges, rewrite: Callable[[Iterable[bytes]], list[bytes]]
) -> HypothesisRanges:
    """Return hypotheses with other texts; each distinct text is rewritten once."""
    numbers: dict[bytes, int] = {}
    rows = [numbers.setdefault(line, len(numbers)) for line in hypotheses.lines()]
    lines = rewrite(numbers)
    bounds = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line) for line in lines], out=bounds[1:])
    return HypothesisRanges(
        hypotheses.sentence_ids,
        read_only(np.frombuffer(b"".join(lines), dtype=np.uint8), np.uint8),
        read_only(bounds[:-1][rows], np.int64),
        read_only(bounds[1:][rows], np.int64),
    )


def check_hypotheses(
    sentence_ids: NDArray[np.int64],
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    n_sentences: int,
) -> HypothesisRanges:
    """Check and convert the arguments of ``Metric.statistics`` for kernels.

    Raises:
        DataError: a sentence id is not below ``n_sentences``, the lines of the references.
        ValueError: the arrays have different lengths, or a range is outside the buffer.
    """
    hypotheses = HypothesisRanges(
        read_only(sentence_ids, np.int64),
        read_only(buffer, np.uint8),
        read_only(starts, np.int64),
        read_only(ends, np.int64),
    )
    ids, text, first, last = hypotheses
    if not ids.shape == first.shape == last.shape == (len(first),):
        raise ValueError("sentence_ids, starts and ends must be one-dimensional and equally long")
    if not len(ids):
        return hypotheses
    if first.min() < 0 or last.max() > len(text) or np.any(last < first):
        raise ValueError(f"a hypothesis lies outside the buffer of {len(text)} bytes")
    for sentence in (int(ids.min()), int(ids.max())):
        if not 0 <= sentence < n_sentences:
            raise DataError(
                f"sentence {sentence} has no reference: the references have {n_sentences} lines, "
                "for sentences counted from 0. Check that n-best list and references belong "
                "together"
            )
    return hypotheses


def run_in_threads(work: Callable[[slice], None], n: int, threads: int) -> None:
    """Call ``work`` on all parts of ``range(n)``, in at most ``threads`` threads."""
    shares = max(1, min(threads, n // SMALLEST_SHARE))
    bounds = [n * share // shares for share in range(shares + 1)]
    parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    if shares == 1:
        work(parts[0])
        return
    with ThreadPoolExecutor(shares) as pool:
        # Consuming the results raises the exceptions of threads here.
        list(pool.map(work, parts))
