"""Travatar's measure ``bleu``, with its variants.

Statistics of a hypothesis, for each n-gram order: clipped matches, n-grams of the hypothesis,
n-grams of the reference. Variants: other orders, additive smoothing from the second order on, the
F-measure in place of the precision, the arithmetic mean, no brevity penalty, PINC, and the mean of
the sentences' scores (``scope=sentence``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats
from mosesplug.extras.travatar.measure import (
    Average,
    Measure,
    Texts,
    parse_choice,
    parse_integer,
    parse_real,
    parse_settings,
    refuse_settings,
)
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.hypotheses import check_hypotheses, run_in_threads
from mosesplug.metrics.ngrams import compile_ngrams, count_matches
from mosesplug.metrics.plain import ORDER
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.words import compile_words

_SETTINGS = ("order", "smooth", "prec", "factor", "scope", "mean", "inverse", "brev")


@dataclass(frozen=True)
class CorpusBleu(Measure):
    """BLEU of summed counts.

    Attributes:
        settings: as in ``-eval``, after the colon.
        order: words in the longest n-gram.
        smooth: added to the counts of all orders but the first.
        precision_weight: share of the precision; the rest is that of the recall.
        arithmetic: whether orders are averaged by the arithmetic mean.
        inverse: whether n-grams that do not match count.
        brevity: whether short output is penalized.
    """

    settings: str = ""
    order: int = ORDER
    smooth: float = 0.0
    precision_weight: float = 1.0
    arithmetic: bool = False
    inverse: bool = False
    brevity: bool = True
    factor: int = 0

    @property
    def name(self) -> str:
        """The measure's name."""
        return "bleu"

    @property
    def spelling(self) -> str:
        """The measure with its settings as in ``-eval``."""
        return f"bleu:{self.settings}" if self.settings else "bleu"

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Name of each statistic."""
        kinds = ("match", "total", "reference_total")
        return tuple(f"{kind}{n}" for n in range(1, self.order + 1) for kind in kinds)

    def count(self, texts: Texts, threads: int = 1) -> Floats:
        """Return the statistics of each hypothesis, float64 ``[n, 3 * order]``."""
        texts = texts.factor(self.factor)
        words = compile_words([texts.references], fold=False)
        ngrams = compile_ngrams(words, 1, self.order)
        hypotheses = check_hypotheses(*texts.ranges, n_sentences=len(texts.references))
        n = len(texts.sentence_ids)
        counts = np.empty((n, 2 * self.order), dtype=np.int32)

        def fill(rows: slice) -> None:
            part = hypotheses.part(rows)
            count_matches(words, ngrams, 1, self.order, False, part, counts[rows])

        run_in_threads(fill, n, threads)
        lengths = np.diff(words.token_offsets)[texts.sentence_ids]
        stats = np.empty((n, 3 * self.order))
        stats[:, 0::3] = counts[:, 0::2]
        stats[:, 1::3] = counts[:, 1::2]
        stats[:, 2::3] = np.maximum(lengths[:, None] - np.arange(self.order), 0)
        return stats

    def score(self, totals: NDArray[Any]) -> Floats:
        """Return the score of summed statistics ``[..., 3 * order]``: float64 ``[...]``."""
        totals = np.asarray(totals, dtype=np.float64)
        added = np.where(np.arange(self.order) > 0, self.smooth, 0.0)
        matches, system, reference = (totals[..., kind::3] + added for kind in range(3))
        weight = self.precision_weight
        whole = weight * system + (1.0 - weight) * reference
        shares = np.zeros(matches.shape)
        np.divide(matches, whole, out=shares, where=(system > 0.0) & (whole > 0.0))
        if self.inverse:
            shares = 1.0 - shares
        if self.arithmetic:
            found = shares.mean(axis=-1)
        else:
            found = np.prod(shares, axis=-1) ** (1.0 / self.order)
        if not self.brevity:
            return np.asarray(found)
        length, wanted = totals[..., 1], totals[..., 2]
        excess = np.zeros(length.shape)
        np.divide(wanted, length, out=excess, where=length > 0.0)
        penalty = np.where(length > 0.0, np.exp(np.minimum(0.0, 1.0 - excess)), wanted <= 0.0)
        return np.asarray(found * penalty)

    def convert(self, stats: Floats) -> tuple[Metric, NDArray[Any]]:
        """Return mosesplug's BLEU if this is the usual one."""
        if replace(self, settings="", factor=0) != CorpusBleu():
            return self, stats
        columns = [column for order in range(ORDER) for column in (3 * order, 3 * order + 1)]
        return Bleu(), stats[:, [*columns, 2]]


def bleu(settings: str) -> Measure:
    """Return BLEU with settings such as ``order=4,smooth=1,scope=sentence``."""
    parsed = parse_settings("bleu", settings)
    refuse_settings("bleu", parsed, _SETTINGS)
    corpus = CorpusBleu(
        settings,
        order=parse_integer(parsed, "order", ORDER, 1),
        smooth=parse_real(parsed, "smooth", 0.0),
        precision_weight=parse_real(parsed, "prec", 1.0),
        arithmetic=parse_choice(parsed, "mean", ("geom", "arith")) == "arith",
        inverse=parse_choice(parsed, "inverse", ("false", "true")) == "true",
        brevity=parse_choice(parsed, "brev", ("true", "false")) == "true",
        factor=parse_integer(parsed, "factor", 0, 0),
    )
    if parse_choice(parsed, "scope", ("corpus", "sentence")) == "corpus":
        return corpus

    def count(texts: Texts, threads: int) -> Floats:
        scores = corpus.score(corpus.count(texts, threads))
        return np.column_stack([scores, np.ones(len(scores))])

    return Average(corpus.spelling, count)
