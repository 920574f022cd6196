"""What a hypothesis is worth by itself, to whatever learns from one sentence or batch at a time.

Corpus metrics belong to all sentences together. A learner needs a gain for each hypothesis by
itself, and approximates it (Neubig & Watanabe 2016, section 6.1): by the metric of the batch alone,
by a smoothed metric of the sentence, or by the metric of the sentence in the context of what was
chosen before. What was chosen is kept as statistics in the learner's memory.

Where the batch is the corpus, as few as one sentence may be, an order without a match counts as a
share of one (``few_sentences``).
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
    """Gains of hypotheses, larger being better; the cost of one is the best gain less its own.

    All are in the unit of a sentence's score, 0 to 1 for BLEU: what a choice changes in the score
    of many sentences is multiplied by their number.

    Attributes:
        kind: which approximation.
        remember: whose statistics ``pseudo-corpus`` and ``background`` keep.
        decay: what the background keeps of itself at each sentence, ``nu`` of equation 57.
    """

    kind: CostKind = "background"
    remember: Remembered = "hope"
    decay: float = 0.999

    def memory(self, metric: Metric) -> dict[str, NDArray[np.float64]]:
        """What a learner remembers at first, by the name of the kind; nothing for most kinds.

        A background begins as one sentence with one of everything, as in Moses' ``kbmira``: of
        nothing, BLEU could not tell good hypotheses from bad ones.
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
        """What each hypothesis is worth, float64 ``[n_hyps]``.

        Args:
            batch: the hypotheses.
            metric: the corpus metric. The smoothed variants are of BLEU, alone or in a mixture;
                of another metric, its score of the sentence takes their place.
            memory: the learner's, as ``memory`` and ``remembered`` made it.
            rng: of the greedy search where the batch itself is the corpus.
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

    def chosen(
        self,
        batch: Batch,
        scores: NDArray[np.float64],
        gains: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """The hypotheses to remember, one of each sentence that has any, int64."""
        merits = {"one-best": scores, "hope": scores + gains, "oracle": gains}[self.remember]
        return first_of_largest(batch.offsets, merits)

    def remembered(
        self,
        batch: Batch,
        memory: Mapping[str, NDArray[np.float64]],
        rows: NDArray[np.int64],
    ) -> dict[str, NDArray[np.float64]]:
        """The memory after a batch (equation 57, and what is said below 56 and 58).

        Args:
            batch: the hypotheses.
            memory: the learner's.
            rows: int64; a hypothesis of each sentence that has any, in their order.
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
    """Statistics of a corpus with the batch in it; what each sentence adds; its sentences.

    Of sentences that are not remembered, the batch's own greedy oracles take part.
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


def first_of_largest(offsets: NDArray[np.int64], merits: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first row of largest merit of each sentence that has any, int64."""
    widths = np.diff(offsets)
    starts = offsets[:-1][widths > 0]
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    best = np.maximum.reduceat(merits, starts)
    rows = np.flatnonzero(merits == np.repeat(best, widths[widths > 0]))
    return rows[np.searchsorted(rows, starts)]
