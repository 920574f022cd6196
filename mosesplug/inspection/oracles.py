"""Find oracles of n-best lists by several methods, and score them as one corpus.

A corpus metric is not a sum over sentences, so that the oracle of all sentences is found by a
greedy search (``optimizers.oracles``). The oracles that learners use instead are scored by the same
corpus metric: that of each sentence by a smoothed BLEU, of each mini-batch by its corpus score, or
of each sentence in the context of earlier choices (Neubig & Watanabe 2016, sections 4.2 and 6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.inspection.run import open_run
from mosesplug.learning.data import read_data
from mosesplug.learning.lists import find_dense_features, store_lists
from mosesplug.learning.weights import read_starting_weights
from mosesplug.metrics import Metric
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers import Progress
from mosesplug.optimizers.costs import CostKind, Costs
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.learning import LearningSettings
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet

__all__ = [
    "METHODS",
    "ListOracle",
    "OracleComparison",
    "OracleLists",
    "OracleMethod",
    "OracleSettings",
    "RankedLists",
    "compare_oracles",
    "find_oracle",
    "open_oracle_lists",
    "rank_lists",
]

OracleMethod = Literal["sentence", "greedy", "batch", "pseudo-corpus", "background"]
METHODS: tuple[OracleMethod, ...] = get_args(OracleMethod)


@dataclass(frozen=True)
class OracleLists:
    """Merged lists, with a metric to find oracles by.

    Attributes:
        store: the open store, which holds the texts.
        lists: the merged lists.
        metric: the metric of their statistics.
        signature: the metric's signature.
        scores: model scores, float64 ``[n_hyps]``; None to keep the order of the lists.
    """

    store: NBestStore
    lists: TuningSet
    metric: Metric
    signature: str
    scores: NDArray[np.float64] | None

    def read_texts(self, ranked: RankedLists, oracle: ListOracle) -> list[bytes]:
        """Return the oracle of each sentence, empty for a sentence without hypotheses."""
        texts = [b""] * self.lists.n_sentences
        for sentence, row in ranked.pair_rows(oracle):
            place = int(ranked.rows[row]) - int(self.lists.offsets[sentence])
            texts[sentence] = self.store.hypotheses(sentence)[place]
        return texts


@contextmanager
def open_oracle_lists(
    places: Sequence[Path],
    references: Path | None = None,
    *,
    metric: str | None = None,
    metric_settings: str = "",
    names: Sequence[str] | None = None,
    weights: Path | None = None,
    sparse_weights: Path | None = None,
    threads: int = 1,
    progress: Progress = no_progress,
) -> Iterator[OracleLists]:
    """Open the merged lists of a run, or of n-best files.

    Args:
        places: a working directory or store, or n-best lists of one text.
        references: the references, a file or a prefix; None for the statistics of a store.
        metric: the metric's name; None for that of the run, or BLEU.
        metric_settings: the metric's settings.
        names: column names of unlabelled lists.
        weights: weights of the model scores; None for the result of a run, and for files no
            ranking.
        sparse_weights: sparse weights, which replace those of ``weights``.
        threads: threads of scoring.
        progress: is called with the work done.

    Raises:
        UsageError: references are missing, or ``names`` are given for a store.
        FormatError, StoreError, DataError: a file or store cannot be read.
    """
    if len(places) == 1 and places[0].is_dir():
        if names is not None:
            raise UsageError("--names requires n-best lists: a store has its own names")
        settings = LearningSettings(
            store=places[0],
            metric=metric,
            metric_settings=metric_settings,
            references=references,
            threads=threads,
        )
        data = read_data(settings, progress)
        lists = data.problem.tuning_set
        with open_run(places[0], with_lists=True) as run:
            vector = run.vector
            if weights is not None:
                vector = read_starting_weights(lists.space, weights, sparse_weights).weights
            scores = lists.model_scores(vector)
            yield OracleLists(run.store, lists, data.problem.metric, data.signature, scores)
        return
    if references is None:
        raise UsageError("there are no references: give --refs FILE")
    measure = find_metric(metric or "BLEU", metric_settings)
    with store_lists(
        places,
        references,
        measure,
        names=names,
        dense=find_dense_features(places, None),
        threads=threads,
        loaded=lambda done: progress(done, len(places), "lists"),
    ) as stored:
        lists = stored.store.tuning_set()
        ranking = None
        if weights is not None:
            start = read_starting_weights(lists.space, weights, sparse_weights)
            ranking = lists.model_scores(start.weights)
        yield OracleLists(stored.store, lists, measure, stored.signature, ranking)


@dataclass(frozen=True)
class RankedLists:
    """Lists sorted by model score, as far as oracles need them.

    Attributes:
        lists: identities, offsets and statistics, without features.
        rows: int64 ``[n_hyps]``, the row of each hypothesis in the unsorted lists.
    """

    lists: TuningSet
    rows: NDArray[np.int64]

    def pair_rows(self, oracle: ListOracle) -> Iterator[tuple[int, int]]:
        """Return the position of each sentence that has hypotheses, with its oracle's row."""
        filled = np.flatnonzero(np.diff(self.lists.offsets) > 0)
        return zip(filled.tolist(), oracle.rows.tolist(), strict=True)

    def truncate(self, count: int | None) -> RankedLists:
        """Keep the first hypotheses of each list; None keeps all."""
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
        return RankedLists(lists, self.rows[kept])

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each list that is not empty, int64."""
        return self.lists.offsets[:-1][np.diff(self.lists.offsets) > 0]


def rank_lists(tuning_set: TuningSet, scores: NDArray[np.float64] | None) -> RankedLists:
    """Sort each list by model score, the highest first; ties keep their order.

    Args:
        tuning_set: the lists.
        scores: float64 ``[n_hyps]``; None keeps the order.
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
    return RankedLists(lists, rows)


@dataclass(frozen=True)
class OracleSettings:
    """Settings of the methods.

    Attributes:
        restarts: number of random starts of ``greedy``, the best of which counts.
        smoothing: BLEU variant of ``sentence``: ``lin-och``, ``moses`` or ``nakov``.
        batch: sentences of a mini-batch (``batch``, ``pseudo-corpus``, ``background``).
        decay: factor of the background at each sentence (``background``).
    """

    restarts: int = 3
    smoothing: CostKind = "lin-och"
    batch: int = 16
    decay: float = 0.999


@dataclass(frozen=True)
class ListOracle:
    """The oracle hypothesis of each sentence.

    Attributes:
        rows: int64, the oracle's row of each sentence that has hypotheses.
        equals: int64, number of hypotheses of the sentence that the method finds equally good.
        score: the corpus score.
        scores: the corpus score of each restart; one for methods without restarts.
    """

    rows: NDArray[np.int64]
    equals: NDArray[np.int64]
    score: float
    scores: tuple[float, ...]


@dataclass(frozen=True)
class OracleComparison:
    """Oracles by several methods, with different list sizes.

    Attributes:
        oracles: by method and list size; None stands for whole lists.
        first_best: corpus score of the first hypothesis of each list.
        longest: lists of the largest size.
        best: the oracle with the highest score in these lists.
    """

    oracles: Mapping[tuple[OracleMethod, int | None], ListOracle]
    first_best: float
    longest: RankedLists
    best: ListOracle


def compare_oracles(
    ranked: RankedLists,
    metric: Metric,
    methods: Sequence[OracleMethod],
    sizes: Sequence[int | None],
    seed: int,
    settings: OracleSettings = OracleSettings(),
    progress: Progress = no_progress,
) -> OracleComparison:
    """Find oracles by several methods in the first hypotheses of each list.

    Args:
        ranked: the lists.
        metric: the corpus metric.
        methods: the methods, at least one.
        sizes: numbers of hypotheses of each list, at least one; None for whole lists.
        seed: seed of all random choices.
        settings: settings of the methods.
        progress: is called with the searches done.
    """
    oracles: dict[tuple[OracleMethod, int | None], ListOracle] = {}
    for size in sizes:
        part = ranked.truncate(size).lists
        for method in methods:
            progress(len(oracles), len(sizes) * len(methods), method)
            oracles[method, size] = find_oracle(method, part, metric, seed, settings)
    largest = max(sizes, key=lambda size: float("inf") if size is None else size)
    best = max(methods, key=lambda method: oracles[method, largest].score)
    return OracleComparison(
        oracles=oracles,
        first_best=_corpus_score(ranked.lists, metric, ranked.first_rows),
        longest=ranked.truncate(largest),
        best=oracles[best, largest],
    )


def find_oracle(
    method: OracleMethod,
    lists: TuningSet,
    metric: Metric,
    seed: int,
    settings: OracleSettings = OracleSettings(),
) -> ListOracle:
    """Find the oracle of lists by one method, and its corpus score.

    Args:
        method: one of ``METHODS``.
        lists: the lists of all sentences.
        metric: the corpus metric.
        seed: seed of all random choices.
        settings: settings of the methods.
    """
    found = _SEARCHES[method](lists, metric, seed, settings)
    scores = [_corpus_score(lists, metric, each.chosen) for each in found]
    best = int(np.argmax(scores))
    equals = np.diff(found[best].offsets)
    return ListOracle(found[best].chosen, equals[equals > 0], scores[best], tuple(scores))


def _corpus_score(lists: TuningSet, metric: Metric, rows: NDArray[np.int64]) -> float:
    return float(metric.score(lists.stats[rows].sum(axis=0, dtype=np.float64)))


def _sentence(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Find the best hypothesis of each sentence by itself."""
    costs = Costs(settings.smoothing)
    gains = costs.gains(lists, metric, {}, np.random.default_rng(seed))
    return [sentence_oracles(lists.offsets, gains)]


def _greedy(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Search greedily for the best corpus score, from several random starts."""
    generators = [np.random.default_rng(seed + each) for each in range(settings.restarts)]
    return [corpus_oracles(lists, metric, rng) for rng in generators]


def _batch(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Search greedily for the best corpus score of each mini-batch, as ORO does."""

    def oracles(batch: TuningSet, rng: np.random.Generator) -> OracleSets:
        return corpus_oracles(batch, FewSentences(metric), rng)

    return [_in_batches(lists, seed, settings.batch, oracles)]


def _in_context(kind: CostKind) -> _Search:
    """Return a search for the best of each sentence in the context of earlier choices."""

    def search(
        lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
    ) -> list[OracleSets]:
        costs = Costs(kind, remember="oracle", decay=settings.decay)
        memory = costs.memory(metric)

        def oracles(batch: TuningSet, rng: np.random.Generator) -> OracleSets:
            gains = costs.gains(batch, metric, memory, rng)
            found = sentence_oracles(batch.offsets, gains)
            memory.update(costs.update_memory(batch, memory, found.chosen))
            return found

        return [_in_batches(lists, seed, settings.batch, oracles)]

    return search


def _in_batches(
    lists: TuningSet,
    seed: int,
    size: int,
    oracles: Callable[[TuningSet, np.random.Generator], OracleSets],
) -> OracleSets:
    """Return the oracles of mini-batches in random order, with rows of the whole lists."""
    rng = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(lists.offsets) > 0)
    order = rng.permutation(filled)
    chosen = np.zeros(lists.n_sentences, dtype=np.int64)
    rows = []
    for first in range(0, len(order), size):
        sentences = order[first : first + size]
        batch = lists.take_sentences(sentences)
        found = oracles(batch, rng)
        # From rows of the batch to rows of the lists.
        moved = lists.offsets[sentences] - batch.offsets[:-1]
        chosen[sentences] = found.chosen + moved
        rows.append(found.rows + np.repeat(moved, np.diff(found.offsets)))
    every = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows]))
    bounds = np.searchsorted(every, lists.offsets).astype(np.int64)
    return OracleSets(every, bounds, float("nan"), chosen[filled])


_Search = Callable[[TuningSet, Metric, int, OracleSettings], list[OracleSets]]

_SEARCHES: Mapping[OracleMethod, _Search] = MappingProxyType(
    {
        "sentence": _sentence,
        "greedy": _greedy,
        "batch": _batch,
        "pseudo-corpus": _in_context("pseudo-corpus"),
        "background": _in_context("background"),
    }
)
