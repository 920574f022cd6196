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
from mosesplug.metrics.characters import space_out, space_out_lines
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

__all__ = ["Chrf"]

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
