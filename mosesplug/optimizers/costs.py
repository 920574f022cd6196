"""Gains and costs of single hypotheses, for learners of sentences or batches.

Corpus metrics score all sentences together. A learner needs the gain of each hypothesis, and
approximates it (Neubig & Watanabe 2016, section 6.1) by the metric of the batch, by a smoothed
metric of the sentence, or by the metric of the sentence in the context of earlier choices, whose
statistics are kept in the learner's memory.

If the batch is the corpus, which may be one sentence, an n-gram order without a match counts as a
share of one match (``few_sentences``).

A score is a number between 0 and 1 for a text of any size. Gains that are compared with model
scores are this number times the size of the text, in sentences or in words: Chiang et al. (2008)
and the program of Eidelman et al. (2013) count source words, Moses' ``kbmira`` words of the
reference. The unit decides how much a model score must change to make up for a bad hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import SentenceValues
from mosesplug.errors import UsageError
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.protocol import Metric, Smoothing
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.options import Opt
from mosesplug.tuning_set import Batch

__all__ = ["CostKind", "CostUnit", "Costs", "Remembered", "UnitOfCosts", "first_of_largest"]

CostKind = Literal["corpus", "lin-och", "moses", "nakov", "pseudo-corpus", "background"]
Remembered = Literal["one-best", "hope", "oracle"]
CostUnit = Literal["sentence", "source", "reference"]

UnitOfCosts = Annotated[
    CostUnit,
    Opt(
        "unit of costs: sentences, words of the source, or of the reference",
        details="With source or reference, costs are multiplied by the number of words, so other "
        "settings of losses and bounds suit them. source needs the source sentences (tune --input, "
        "optimize --source or --from), reference the metric BLEU.",
        source="source: Chiang et al. 2008, and kbest_cut_mira of cdec; reference: Cherry & Foster "
        "2012, as kbmira",
    ),
]
"""The option ``cost_unit`` of learners of costs."""

NEEDS_SOURCE = (
    "cost_unit=source needs the source sentences, a line of text for each. Give them (optimize "
    "{--source} FILE, tune {--input} FILE), or choose cost_unit=reference"
)
"""The message if their lengths are unknown."""

_SMOOTHINGS: dict[str, Smoothing] = {name: name for name in get_args(Smoothing)}


@dataclass(frozen=True)
class Costs:
    """Gains of hypotheses; the cost of a hypothesis is the best gain minus its own.

    A gain is the score of a text times its size: of the sentence by itself, or of a text in which
    it stands (the batch, earlier choices). By default, the size is the number of sentences.

    Attributes:
        kind: the approximation.
        remember: the hypothesis whose statistics ``pseudo-corpus`` and ``background`` keep.
        decay: share of the background that remains at each sentence, ``nu`` of equation 57.
        unit: what the size of a text counts: sentences, words of the source, or words of the
            reference.
    """

    kind: CostKind = "background"
    remember: Remembered = "one-best"
    decay: float = 0.999
    unit: CostUnit = "sentence"

    def memory(self, metric: Metric) -> dict[str, NDArray[np.float64]]:
        """Return a learner's initial memory by kind; empty for most kinds.

        Rows are statistics, and the size of their text, both times the weight of the sentence. A
        background starts as one sentence, of one word, with one of each statistic, as in Moses'
        ``kbmira``: with an empty one, BLEU could not separate good hypotheses from bad ones.
        """
        if self.kind == "background":
            return {self.kind: np.ones(metric.n_statistics + 1)}
        if self.kind == "pseudo-corpus":
            return {self.kind: np.zeros((0, metric.n_statistics + 1))}
        return {}

    def sizes(
        self, batch: Batch, metric: Metric, source_lengths: NDArray[np.int64] | None = None
    ) -> SentenceValues:
        """Return the size of each sentence in the unit, at least 1.

        A sentence with several references has the mean length of those that its hypotheses are
        compared with.

        Args:
            batch: the hypotheses.
            metric: the corpus metric.
            source_lengths: int64, words of each source sentence, by sentence id; None: unknown.

        Raises:
            UsageError: the unit is the source, whose lengths are unknown, or the reference, and
                the statistics of the metric have no length of it.
        """
        if self.unit == "source":
            if source_lengths is None:
                raise UsageError(NEEDS_SOURCE)
            return np.maximum(source_lengths[batch.sentence_ids], 1).astype(np.float64)
        sizes = np.ones(batch.n_sentences)
        if self.unit == "reference":
            if not metric.has_bleu_statistics:
                raise UsageError(
                    f"cost_unit=reference needs the metric BLEU, not {metric.name}: choose "
                    "cost_unit=source or sentence"
                )
            widths = np.diff(batch.offsets)
            lengths = batch.stats[:, -1].astype(np.float64)
            filled = widths > 0
            sums = np.add.reduceat(lengths, batch.offsets[:-1][filled]) if filled.any() else 0.0
            sizes[filled] = np.maximum(sums / widths[filled], 1.0)
        return sizes

    def gains(
        self,
        batch: Batch,
        metric: Metric,
        memory: Mapping[str, NDArray[np.float64]],
        rng: np.random.Generator,
        sizes: SentenceValues | None = None,
    ) -> NDArray[np.float64]:
        """Return the gain of each hypothesis, float64 ``[n_hyps]``.

        Args:
            batch: the hypotheses.
            metric: the corpus metric. Smoothed variants apply to BLEU, alone or in a mixture; other
                metrics score the sentence.
            memory: the learner's, from ``memory`` and ``update_memory``.
            rng: the random generator of the greedy search if the batch is the corpus.
            sizes: the size of each sentence, from ``sizes``; None: 1.
        """
        stats = batch.stats.astype(np.float64)
        sizes = np.ones(batch.n_sentences) if sizes is None else sizes
        owners = np.repeat(np.arange(batch.n_sentences), np.diff(batch.offsets))
        if (smoothing := _SMOOTHINGS.get(self.kind)) is not None:
            return metric.sentence_scores(stats, smoothing) * sizes[owners]
        remembered = memory.get(self.kind)
        if remembered is None:
            remembered = self.memory(metric).get(self.kind)
        if self.kind == "background" and remembered is not None:
            context = self.decay * remembered
            return np.asarray(metric.score(stats + context[:-1]) * (context[-1] + sizes)[owners])
        totals, own, size = _corpus(batch, metric, remembered, rng, sizes)
        return FewSentences(metric).score(totals - own[owners] + stats) * size

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
        sizes: SentenceValues | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Return the memory after a batch (equation 57, and the text below 56 and 58).

        Args:
            batch: the hypotheses.
            memory: the learner's.
            rows: int64; a hypothesis of each non-empty sentence, in their order.
            sizes: the size of each sentence, from ``sizes``; None: 1.
        """
        if self.kind not in memory:
            return {}
        stats = batch.stats[rows].astype(np.float64)
        filled = np.diff(batch.offsets) > 0
        counted = np.column_stack([stats, np.ones(len(rows)) if sizes is None else sizes[filled]])
        if batch.sentence_weights is not None:
            counted *= batch.sentence_weights[filled][:, None]
        old = memory[self.kind]
        if self.kind == "background":
            for row in counted:
                old = self.decay * old + row
            return {self.kind: old}
        sentences = batch.sentence_ids[filled]
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
    sizes: SentenceValues,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return statistics of a corpus with the batch, of each sentence, and its size.

    Sentences that are not remembered take part with the batch's own greedy oracles. The corpus and
    its size count sentences by their weights, and the statistics of each sentence are those of one.
    """
    own = np.zeros((batch.n_sentences, metric.n_statistics))
    filled = np.diff(batch.offsets) > 0
    own[filled] = batch.stats[corpus_oracles(batch, FewSentences(metric), rng).first]
    counts = batch.sentence_weights
    counts = np.ones(batch.n_sentences) if counts is None else counts
    if remembered is None:
        return (counts[:, None] * own).sum(axis=0), own, float((counts * sizes)[filled].sum())
    inside = np.flatnonzero(batch.sentence_ids < len(remembered))
    known = inside[remembered[batch.sentence_ids[inside], -1] > 0.0]
    own[known] = remembered[batch.sentence_ids[known], :-1] / counts[known][:, None]
    new = np.setdiff1d(np.flatnonzero(filled), known)
    totals = remembered[:, :-1].sum(axis=0) + (counts[:, None] * own)[new].sum(axis=0)
    return totals, own, float(remembered[:, -1].sum() + (counts * sizes)[new].sum())


def first_of_largest(offsets: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first row of the largest value of each non-empty sentence, int64."""
    widths = np.diff(offsets)
    starts = offsets[:-1][widths > 0]
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    best = np.maximum.reduceat(values, starts)
    rows = np.flatnonzero(values == np.repeat(best, widths[widths > 0]))
    return rows[np.searchsorted(rows, starts)]
