"""How good translations out of stored lists could be: oracles by several methods, and their score.

A corpus metric does not fall into sentences, so that the best choice for all of them is sought
greedily (``optimizers.oracles``). What learners use in its place is judged by the same corpus
score: the best of each sentence by a smoothed BLEU, of each mini-batch by its own corpus score, or
in the context of what was chosen before (Neubig & Watanabe 2016, sections 4.2 and 6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers.costs import CostKind, Costs
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.tuning_set import TuningSet

__all__ = ["METHODS", "Method", "Oracle", "OracleSettings", "Ranked", "find_oracle", "ranked"]

Method = Literal["sentence", "greedy", "batch", "pseudo-corpus", "background"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Ranked:
    """Lists in the order of a ranking, as far as oracles need them.

    Attributes:
        lists: identities, offsets and statistics; without features.
        rows: int64 ``[n_hyps]``, where each stands in the lists that were ranked.
    """

    lists: TuningSet
    rows: NDArray[np.int64]

    def first(self, count: int | None) -> Ranked:
        """The first so many of each list; None: all."""
        if count is None:
            return self
        places = np.arange(len(self.rows)) - np.repeat(
            self.lists.offsets[:-1], np.diff(self.lists.offsets)
        )
        kept = places < count
        offsets = np.append(0, np.cumsum(kept))[self.lists.offsets]
        lists = replace(
            self.lists,
            offsets=offsets,
            dense=self.lists.dense[kept],
            stats=self.lists.stats[kept],
            lengths=self.lists.lengths[kept],
        )
        return Ranked(lists, self.rows[kept])

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The first of each list that has any, int64."""
        return self.lists.offsets[:-1][np.diff(self.lists.offsets) > 0]


def ranked(tuning_set: TuningSet, scores: NDArray[np.float64] | None) -> Ranked:
    """The lists, each with its highest scores first; equals stay as they are.

    Args:
        tuning_set: the lists.
        scores: float64 ``[n_hyps]``; None: in the order that they have.
    """
    rows = np.arange(tuning_set.n_hyps)
    if scores is not None:
        owners = np.repeat(np.arange(tuning_set.n_sentences), np.diff(tuning_set.offsets))
        rows = np.lexsort((rows, -scores, owners))
    lists = TuningSet(
        space=FeatureSpace(()),
        sentence_ids=tuning_set.sentence_ids,
        offsets=tuning_set.offsets,
        dense=np.zeros((len(rows), 0), dtype=np.float32),
        sparse=None,
        stats=tuning_set.stats[rows],
        lengths=tuning_set.lengths[rows],
    )
    return Ranked(lists, rows)


@dataclass(frozen=True)
class OracleSettings:
    """Settings of the methods; each looks at its own.

    Attributes:
        restarts: random first choices of ``greedy``, of which the best result counts.
        smoothing: of the BLEU of a sentence: ``lin-och``, ``moses`` or ``nakov``.
        batch: sentences of a mini-batch (``batch``, ``pseudo-corpus``, ``background``).
        decay: what the background keeps of itself at each sentence.
    """

    restarts: int = 3
    smoothing: CostKind = "lin-och"
    batch: int = 16
    decay: float = 0.999


@dataclass(frozen=True)
class Oracle:
    """A choice of one hypothesis of each sentence.

    Attributes:
        rows: int64, of each sentence that has hypotheses.
        equals: int64, how many of its hypotheses are as good by the method.
        score: of the corpus metric.
        scores: of each restart; of methods without restarts the one.
    """

    rows: NDArray[np.int64]
    equals: NDArray[np.int64]
    score: float
    scores: tuple[float, ...]


def find_oracle(
    method: Method,
    lists: TuningSet,
    metric: Metric,
    seed: int,
    settings: OracleSettings = OracleSettings(),
) -> Oracle:
    """The oracle of the lists by one method, with the corpus score of its choice.

    Args:
        method: one of ``METHODS``.
        lists: of all sentences.
        metric: of the corpus.
        seed: of all random choices.
        settings: of the methods.
    """
    found = _SEARCHES[method](lists, metric, seed, settings)
    scores = [_corpus_score(lists, metric, each.chosen) for each in found]
    best = int(np.argmax(scores))
    equals = np.diff(found[best].offsets)
    return Oracle(found[best].chosen, equals[equals > 0], scores[best], tuple(scores))


def _corpus_score(lists: TuningSet, metric: Metric, rows: NDArray[np.int64]) -> float:
    return float(metric.score(lists.stats[rows].sum(axis=0, dtype=np.float64)))


def _sentence(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Of each sentence the best by itself."""
    costs = Costs(settings.smoothing)
    gains = costs.gains(lists, metric, {}, np.random.default_rng(seed))
    return [sentence_oracles(lists.offsets, gains)]


def _greedy(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Greedily for the corpus score of all sentences, from several random choices."""
    generators = [np.random.default_rng(seed + each) for each in range(settings.restarts)]
    return [corpus_oracles(lists, metric, rng) for rng in generators]


def _batch(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Greedily for the corpus score of each mini-batch, as ORO takes its oracles."""

    def oracles(batch: TuningSet, rng: np.random.Generator) -> OracleSets:
        return corpus_oracles(batch, FewSentences(metric), rng)

    return [_in_batches(lists, seed, settings.batch, oracles)]


def _in_context(kind: CostKind) -> _Search:
    """The best of each sentence beside what was chosen for others before."""

    def search(
        lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
    ) -> list[OracleSets]:
        costs = Costs(kind, remember="oracle", decay=settings.decay)
        memory = costs.memory(metric)

        def oracles(batch: TuningSet, rng: np.random.Generator) -> OracleSets:
            gains = costs.gains(batch, metric, memory, rng)
            found = sentence_oracles(batch.offsets, gains)
            memory.update(costs.remembered(batch, memory, found.chosen))
            return found

        return [_in_batches(lists, seed, settings.batch, oracles)]

    return search


def _in_batches(
    lists: TuningSet,
    seed: int,
    size: int,
    oracles: Callable[[TuningSet, np.random.Generator], OracleSets],
) -> OracleSets:
    """Oracles of mini-batches in random order, as those of the whole."""
    rng = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(lists.offsets) > 0)
    order = rng.permutation(filled)
    chosen = np.zeros(lists.n_sentences, dtype=np.int64)
    rows = []
    for first in range(0, len(order), size):
        sentences = order[first : first + size]
        batch = lists.take_sentences(sentences)
        found = oracles(batch, rng)
        # Rows of the batch are those of the lists, moved sentence by sentence.
        moved = lists.offsets[sentences] - batch.offsets[:-1]
        chosen[sentences] = found.chosen + moved
        rows.append(found.rows + np.repeat(moved, np.diff(found.offsets)))
    every = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows]))
    bounds = np.searchsorted(every, lists.offsets).astype(np.int64)
    return OracleSets(every, bounds, float("nan"), chosen[filled])


_Search = Callable[[TuningSet, Metric, int, OracleSettings], list[OracleSets]]

_SEARCHES: Mapping[Method, _Search] = MappingProxyType(
    {
        "sentence": _sentence,
        "greedy": _greedy,
        "batch": _batch,
        "pseudo-corpus": _in_context("pseudo-corpus"),
        "background": _in_context("background"),
    }
)
