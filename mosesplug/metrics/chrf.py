"""chrF (Popovic 2015): F-score of character n-grams up to six, equal to sacrebleu's.

Statistics of a hypothesis, in the order of Moses' ``CHRF``: for each order the matching n-grams,
the n-grams of the hypothesis and those of the reference; then both lengths in characters. The
score of their sum is the F-score of average precision and average recall,

    chrF = (1 + beta^2) P R / (beta^2 P + R)

averaged over the orders for which both sides have n-grams. Blanks do not count as characters.
A character is a Unicode code point in UTF-8, or a byte that is not part of valid UTF-8.

With ``smooth`` 0, statistics and scores are those of sacrebleu 2's ``CHRF`` with ``word_order=0,
whitespace=False, eps_smoothing=False`` and the same ``beta``: Moses' default is 3, sacrebleu's
is 2. With several references, the one with the best score for the hypothesis counts.

Moses' own scores cannot be reproduced: where its program should append a blank to each character,
it adds a number to the address of a string and counts the memory found there. It also treats bytes
as characters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug import __version__
from mosesplug.errors import UsageError
from mosesplug.kernels import kernel
from mosesplug.metrics.hypotheses import (
    HypothesisRanges,
    check_hypotheses,
    read_only,
    run_in_threads,
)
from mosesplug.metrics.ngrams import ReferenceNgrams, compile_ngrams, count_matches
from mosesplug.metrics.protocol import (
    Prepared,
    UnsmoothedMetric,
    check_references,
    reference_fingerprint,
)
from mosesplug.metrics.word_metric import check_totals
from mosesplug.metrics.words import ReferenceWords, compile_words

__all__ = ["Chrf", "space_out_lines"]

BLANK = 32


@kernel
def _character(text: NDArray[np.uint8], position: int, end: int) -> tuple[int, int]:
    """Return the byte length and code point of the character at ``position``; -1 if invalid."""
    lead = int(text[position])
    if lead < 0x80:
        return 1, lead
    if 0xC2 <= lead < 0xE0:
        size, least = 2, 0x80
    elif 0xE0 <= lead < 0xF0:
        size, least = 3, 0x800
    elif 0xF0 <= lead < 0xF5:
        size, least = 4, 0x10000
    else:
        return 1, -1
    if position + size > end:
        return 1, -1
    code = lead & (0xFF >> (size + 1))
    for offset in range(1, size):
        byte = int(text[position + offset])
        if byte & 0xC0 != 0x80:
            return 1, -1
        code = code << 6 | byte & 0x3F
    if not least <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return 1, -1
    return size, code


@kernel
def _is_space(code: int) -> bool:
    if code < 0x1680:
        return 9 <= code <= 13 or 28 <= code <= 32 or code in (0x85, 0xA0)
    return 0x2000 <= code <= 0x200A or code in (0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)


@kernel
def _write_spaced(
    text: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    spaced: NDArray[np.uint8],
    bounds: NDArray[np.int64],
) -> None:
    """Write every character, followed by a blank, to ``spaced``; write line ends to bounds."""
    place = 0
    for line in range(len(starts)):
        bounds[line] = place
        position = starts[line]
        while position < ends[line]:
            size, code = _character(text, position, ends[line])
            if not _is_space(code):
                spaced[place : place + size] = text[position : position + size]
                spaced[place + size] = BLANK
                place += size + 1
            position += size
    bounds[len(starts)] = place


def space_out(hypotheses: HypothesisRanges) -> HypothesisRanges:
    """Return the hypotheses with a blank after each character, and no other whitespace."""
    _, text, starts, ends = hypotheses
    spaced = np.empty(2 * int((ends - starts).sum()), dtype=np.uint8)
    bounds = np.empty(len(starts) + 1, dtype=np.int64)
    _write_spaced(text, starts, ends, spaced, bounds)
    spaced, bounds = read_only(spaced, np.uint8), read_only(bounds, np.int64)
    return HypothesisRanges(hypotheses.sentence_ids, spaced, bounds[:-1], bounds[1:])


def space_out_lines(lines: list[bytes]) -> list[bytes]:
    """Return the lines with a blank after each character, and no other whitespace."""
    ends = np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    text = np.frombuffer(b"".join(lines), dtype=np.uint8)
    spaced = space_out(
        HypothesisRanges(starts, *(read_only(a, a.dtype) for a in (text, starts, ends)))
    )
    whole = spaced.buffer.tobytes()
    return [whole[start:end] for start, end in zip(spaced.starts, spaced.ends, strict=True)]


ORDER = 6
"""Characters in the longest n-gram."""

N_COUNTS = 3 * ORDER


@kernel
def _scores(totals: NDArray[np.float64], beta: float, smooth: float) -> NDArray[np.float64]:
    """Return the F-score of each row of ``totals`` ``[m, 20]``: float64 ``[m]``."""
    scores = np.zeros(len(totals), dtype=np.float64)
    weight = beta * beta
    for row in range(len(totals)):
        precision = recall = 0.0
        orders = 0
        for order in range(ORDER):
            match, ours, theirs = totals[row, 3 * order : 3 * order + 3]
            if ours > 0 and theirs > 0:
                precision += (match + smooth) / (ours + smooth)
                recall += (match + smooth) / (theirs + smooth)
                orders += 1
        if precision > 0 and recall > 0:
            precision /= orders
            recall /= orders
            scores[row] = (1 + weight) * precision * recall / (weight * precision + recall)
    return scores


@dataclass(frozen=True, kw_only=True)
class ChrfReferences(Prepared):
    """References compiled for chrF, each as a separate text.

    Reference ``k`` of sentence ``s`` is text ``s * n_references + k``.

    Attributes:
        characters: vocabulary of each text.
        ngrams: n-grams of each text with their clipping limits.
        lengths: int64 ``[n_sentences * n_references]``; number of characters.
    """

    characters: ReferenceWords
    ngrams: ReferenceNgrams
    lengths: NDArray[np.int64]


@dataclass(frozen=True)
class Chrf(UnsmoothedMetric):
    """Corpus chrF.

    Attributes:
        lowercase: fold ``A`` to ``Z`` to ``a`` to ``z`` (``case:false``).
        beta: weight of recall relative to precision, above 0.
        smooth: added to all counts before division, as Moses does; at least 0.
    """

    lowercase: bool = False
    beta: float = 3.0
    smooth: float = 0.0

    name: ClassVar[str] = "CHRF"
    n_statistics: ClassVar[int] = N_COUNTS + 2
    statistics_names: ClassVar[tuple[str, ...]] = (
        *(
            f"{kind}{order}"
            for order in range(1, ORDER + 1)
            for kind in ("match", "total", "reference_total")
        ),
        "length",
        "reference_length",
    )

    def __post_init__(self) -> None:
        if not (0 < self.beta < math.inf):
            raise UsageError(f"beta of CHRF must be a number above 0, not {self.beta}")
        if not (0 <= self.smooth < math.inf):
            raise UsageError(f"smooth of CHRF must be a number of at least 0, not {self.smooth}")

    def signature(self) -> str:
        """Name, settings and version, in sacrebleu's spelling."""
        return f"CHRF|{self._settings()}"

    def _settings(self) -> str:
        case = "lc-ascii" if self.lowercase else "mixed"
        return (
            f"case:{case}|beta:{self.beta:.12g}|smooth:{self.smooth:.12g}|eff:yes|nc:{ORDER}|nw:0"
            f"|space:no|version:mosesplug-{__version__}"
        )

    def prepare(self, references: Sequence[Sequence[bytes]]) -> ChrfReferences:
        """Compile ``references[k][line]``; see ``Metric.prepare``."""
        n_sentences = check_references(references)
        lines = [line for sentence in zip(*references, strict=True) for line in sentence]
        characters = compile_words([space_out_lines(lines)], fold=self.lowercase)
        return ChrfReferences(
            n_sentences=n_sentences,
            n_references=len(references),
            signature=f"CHRF|nrefs:{len(references)}|{self._settings()}",
            fingerprint=reference_fingerprint(references),
            characters=characters,
            ngrams=compile_ngrams(characters, 1, ORDER),
            lengths=np.diff(characters.token_offsets),
        )

    def statistics(
        self,
        prepared: Prepared,
        sentence_ids: NDArray[np.int64],
        buffer: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        threads: int = 1,
    ) -> NDArray[np.int32]:
        """Return statistics of ``n`` hypotheses, int32 ``[n, 20]``; see ``Metric.statistics``."""
        expected = f"CHRF|nrefs:{prepared.n_references}|{self._settings()}"
        if not isinstance(prepared, ChrfReferences) or prepared.signature != expected:
            raise ValueError(
                f"references prepared for {prepared.signature} cannot serve {self.signature()}"
            )
        hypotheses = check_hypotheses(
            sentence_ids, buffer, starts, ends, n_sentences=prepared.n_sentences
        )
        n = len(hypotheses.sentence_ids)
        statistics = np.empty((n, self.n_statistics), dtype=np.int32)

        def fill(rows: slice) -> None:
            spaced = space_out(hypotheses.part(rows))
            best = self._compare(prepared, spaced, 0)
            for reference in range(1, prepared.n_references):
                other = self._compare(prepared, spaced, reference)
                better = self.score(other) > self.score(best)
                best[better] = other[better]
            statistics[rows] = best

        run_in_threads(fill, n, threads)
        return statistics

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return chrF of ``totals`` ``[..., 20]``: float64 ``[...]``, in 0 to 1."""
        totals = check_totals(self.name, self.n_statistics, totals)
        rows = read_only(totals.reshape(-1, self.n_statistics), np.float64)
        return _scores(rows, float(self.beta), float(self.smooth)).reshape(totals.shape[:-1])

    def _compare(
        self, references: ChrfReferences, spaced: HypothesisRanges, number: int
    ) -> NDArray[np.int32]:
        """Return statistics against one reference of each sentence, int32 ``[n, 20]``."""
        texts = spaced.sentence_ids * references.n_references + number
        counts = np.empty((len(texts), 2 * ORDER), dtype=np.int32)
        count_matches(
            references.characters,
            references.ngrams,
            1,
            ORDER,
            self.lowercase,
            spaced._replace(sentence_ids=read_only(texts, np.int64)),
            counts,
        )
        lengths = references.lengths[texts]
        rows = np.empty((len(texts), self.n_statistics), dtype=np.int32)
        rows[:, 0:N_COUNTS:3] = counts[:, 0::2]
        theirs = np.maximum(lengths[:, np.newaxis] - np.arange(ORDER), 0)
        # As in sacrebleu, orders for which the reference has no n-grams are ignored.
        rows[:, 1:N_COUNTS:3] = np.where(theirs > 0, counts[:, 1::2], 0)
        rows[:, 2:N_COUNTS:3] = theirs
        rows[:, N_COUNTS] = counts[:, 1]
        rows[:, N_COUNTS + 1] = lengths
        return rows
