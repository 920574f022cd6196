"""Gains and costs of single hypotheses, for learners of sentences or batches.

Corpus metrics score all sentences together. A learner needs the gain of each hypothesis, and
approximates it (Neubig & Watanabe 2016, section 6.1) by the metric of the batch, by a smoothed
metric of the sentence, or by the metric of the sentence in the context of earlier choices, whose
statistics are kept in the learner's memory.

If the batch is the corpus, which may be one sentence, an n-gram order without a match counts as a
share of one match (``few_sentences``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.protocol import Metric, Smoothing
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.tuning_set import Batch

__all__ = ["CostKind", "Costs", "Remembered", "first_of_largest"]

CostKind = Literal["corpus", "lin-och", "moses", "nakov", "pseudo-corpus", "background"]
Remembered = Literal["one-best", "hope", "oracle"]

_SMOOTHINGS: dict[str, Smoothing] = {name: name for name in get_args(Smoothing)}


@dataclass(frozen=True)
class Costs:
    """Gains of hypotheses; the cost of a hypothesis is the best gain minus its own.

    The unit is that of a sentence score, 0 to 1 for BLEU: a change in the score of many sentences
    is multiplied by their number.

    Attributes:
        kind: the approximation.
        remember: the hypothesis whose statistics ``pseudo-corpus`` and ``background`` keep.
        decay: share of the background that remains at each sentence, ``nu`` of equation 57.
    """

    kind: CostKind = "background"
    remember: Remembered = "one-best"
    decay: float = 0.999

    def memory(self, metric: Metric) -> dict[str, NDArray[np.float64]]:
        """Return a learner's initial memory by kind; empty for most kinds.

        A background starts as one sentence with one of each statistic, as in Moses' ``kbmira``:
        with an empty one, BLEU could not separate good hypotheses from bad ones.
        """
        if self.kind == "background":
            return {self.kind: np.ones(metric.n_statistics + 1)}
        if self.kind == "pseudo-corpus":
            return {self.kind: np.zeros((0, metric.n_statistics + 1))}
        return {}

    def gains(
        self,
        batch: Batch,
        metric: Metric,
        memory: Mapping[str, NDArray[np.float64]],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Return the gain of each hypothesis, float64 ``[n_hyps]``.

        Args:
            batch: the hypotheses.
            metric: the corpus metric. Smoothed variants apply to BLEU, alone or in a mixture; other
                metrics score the sentence.
            memory: the learner's, from ``memory`` and ``update_memory``.
            rng: the random generator of the greedy search if the batch is the corpus.
        """
        stats = batch.stats.astype(np.float64)
        if (smoothing := _SMOOTHINGS.get(self.kind)) is not None:
            return metric.sentence_scores(stats, smoothing)
        remembered = memory.get(self.kind)
        if remembered is None:
            remembered = self.memory(metric).get(self.kind)
        if self.kind == "background" and remembered is not None:
            context = self.decay * remembered
            return metric.score(stats + context[:-1]) * float(context[-1] + 1.0)
        totals, own, n_sentences = _corpus(batch, metric, remembered, rng)
        owners = np.repeat(np.arange(batch.n_sentences), np.diff(batch.offsets))
        return FewSentences(metric).score(totals - own[owners] + stats) * n_sentences

    def choose(
        self,
        batch: Batch,
        scores: NDArray[np.float64],
        gains: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Return the hypotheses to remember, one per non-empty sentence, int64."""
        values = {"one-best": scores, "hope": scores + gains, "oracle": gains}[self.remember]
        return first_of_largest(batch.offsets, values)

    def update_memory(
        self,
        batch: Batch,
        memory: Mapping[str, NDArray[np.float64]],
        rows: NDArray[np.int64],
    ) -> dict[str, NDArray[np.float64]]:
        """Return the memory after a batch (equation 57, and the text below 56 and 58).

        Args:
            batch: the hypotheses.
            memory: the learner's.
            rows: int64; a hypothesis of each non-empty sentence, in their order.
        """
        if self.kind not in memory:
            return {}
        stats = batch.stats[rows].astype(np.float64)
        counted = np.column_stack([stats, np.ones(len(rows))])
        old = memory[self.kind]
        if self.kind == "background":
            for row in counted:
                old = self.decay * old + row
            return {self.kind: old}
        sentences = batch.sentence_ids[np.diff(batch.offsets) > 0]
        n_rows = max(len(old), int(sentences.max(initial=-1)) + 1)
        corpus = np.zeros((n_rows, old.shape[1]))
        corpus[: len(old)] = old
        corpus[sentences] = counted
        return {self.kind: corpus}


def _corpus(
    batch: Batch,
    metric: Metric,
    remembered: NDArray[np.float64] | None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return statistics of a corpus with the batch, of each sentence, and its size.

    Sentences that are not remembered take part with the batch's own greedy oracles.
    """
    own = np.zeros((batch.n_sentences, metric.n_statistics))
    filled = np.diff(batch.offsets) > 0
    own[filled] = batch.stats[corpus_oracles(batch, FewSentences(metric), rng).first]
    if remembered is None:
        return own.sum(axis=0), own, int(np.count_nonzero(filled))
    inside = np.flatnonzero(batch.sentence_ids < len(remembered))
    known = inside[remembered[batch.sentence_ids[inside], -1] > 0.0]
    own[known] = remembered[batch.sentence_ids[known], :-1]
    new = np.setdiff1d(np.flatnonzero(filled), known)
    totals = remembered[:, :-1].sum(axis=0) + own[new].sum(axis=0)
    return totals, own, int(remembered[:, -1].sum()) + len(new)


def first_of_largest(offsets: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first row of the largest value of each non-empty sentence, int64."""
    widths = np.diff(offsets)
    starts = offsets[:-1][widths > 0]
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    best = np.maximum.reduceat(values, starts)
    rows = np.flatnonzero(values == np.repeat(best, widths[widths > 0]))
    return rows[np.searchsorted(rows, starts)]
