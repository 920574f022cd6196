"""Find oracles of n-best lists by several methods, and score them as one corpus.

A corpus metric is not a sum over sentences, so that the oracle of all sentences is found by a
greedy search (``optimizers.oracles``). The oracles that learners use instead are scored by the same
corpus metric: that of each sentence by a smoothed BLEU, of each mini-batch by its corpus score, or
of each sentence in the context of earlier choices (Neubig & Watanabe 2016, sections 4.2 and 6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import count_noun
from mosesplug.metrics import Metric
from mosesplug.metrics.error_rates import display_score, explain_shown_scores
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers import Progress
from mosesplug.optimizers.costs import CostKind, Costs
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.optimizers.problem import no_progress
from mosesplug.results.choices.oracle_lists import ListOracle, RankedLists
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable, format_score
from mosesplug.tuning_set import TuningSet

OracleMethod = Literal["sentence", "greedy", "batch", "pseudo-corpus", "background"]
METHODS: tuple[OracleMethod, ...] = get_args(OracleMethod)


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
class OracleComparison:
    """Oracles by several methods, with different list sizes.

    Attributes:
        oracles: the oracles by method and list size; None stands for whole lists.
        first_best: corpus score of the first hypothesis of each list.
        best: the oracle with the highest score in these lists.
    """

    oracles: Mapping[tuple[OracleMethod, int | None], ListOracle]
    first_best: float
    longest: RankedLists
    best: ListOracle

    def list_oracles(self) -> tuple[FoundOracle, ...]:
        """Return the oracles as a report shows them."""
        return tuple(
            FoundOracle(method, size, oracle.score, oracle.scores, int(oracle.equals.sum()))
            for (method, size), oracle in self.oracles.items()
        )


@dataclass(frozen=True)
class FoundOracle:
    """The oracle that one method finds in the first hypotheses of each list.

    Attributes:
        top: hypotheses of each list; None for whole lists.
        score: its corpus score.
        scores: those of all searches, of which it is the best.
        hypotheses_as_good: hypotheses that no other of their sentence is better than.
    """

    method: OracleMethod
    top: int | None
    score: float
    scores: tuple[float, ...]
    hypotheses_as_good: int


@dataclass(frozen=True)
class OracleReport:
    """The scores of oracles by several methods.

    Scores are those of the metric, larger is better; blocks show error rates as rates.

    Attributes:
        first: corpus score of the first hypothesis of each list.
        settings: settings of all methods, and their seed.
    """

    JSON_KEYS: ClassVar = "signature sentences hypotheses first settings oracles"

    signature: str
    sentences: int
    hypotheses: int
    first: float
    settings: Mapping[str, Any]
    oracles: tuple[FoundOracle, ...]

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield the size of the lists, the metric, and a table of methods and sizes."""
        hypotheses = count_noun(self.hypotheses, "distinct hypothesis")
        yield f"{count_noun(self.sentences, 'sentence')}, {hypotheses}"
        yield f"{explain_shown_scores(self.signature)}\n"
        sizes = list(dict.fromkeys(oracle.top for oracle in self.oracles))
        rows = {"(first best)": [self._format(self.first)] * len(sizes)}
        for oracle in self.oracles:
            rows.setdefault(oracle.method, []).append(self._format(oracle.score))
        head = ("oracle", *("all" if size is None else f"first {size}" for size in sizes))
        yield TextTable([head, *((name, *cells) for name, cells in rows.items())], left=1)

    def _format(self, score: float) -> str:
        return format_score(display_score(self.signature, score))


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
        methods: the methods, at least one.
        sizes: numbers of hypotheses of each list, at least one; None for whole lists.
        seed: seed of all random choices.
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
        seed: seed of all random choices.
    """
    searches = _SEARCHES[method](lists, metric, seed, settings)
    scores = [_corpus_score(lists, metric, search.oracle_rows) for search in searches]
    best = int(np.argmax(scores))
    equals = np.diff(searches[best].offsets)
    return ListOracle(searches[best].oracle_rows, equals[equals > 0], scores[best], tuple(scores))


def _corpus_score(lists: TuningSet, metric: Metric, rows: NDArray[np.int64]) -> float:
    return float(metric.score(lists.weighted_stats[rows].sum(axis=0, dtype=np.float64)))


def _sentence(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    costs = Costs(settings.smoothing)
    gains = costs.gains(lists, metric, {}, np.random.default_rng(seed))
    return [sentence_oracles(lists.offsets, gains)]


def _search_greedily(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Search greedily for the best corpus score, from several random starts."""
    generators = [np.random.default_rng(seed + start) for start in range(settings.restarts)]
    return [corpus_oracles(lists, metric, rng) for rng in generators]


def _batch(
    lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
) -> list[OracleSets]:
    """Search greedily for the best corpus score of each mini-batch, as ORO does."""

    def oracles(batch: TuningSet, rng: np.random.Generator) -> OracleSets:
        return corpus_oracles(batch, FewSentences(metric), rng)

    return [_search_in_batches(lists, seed, settings.batch, oracles)]


def _make_context_search(kind: CostKind) -> _Search:
    """Return a search for the best of each sentence in the context of earlier choices."""

    def search(
        lists: TuningSet, metric: Metric, seed: int, settings: OracleSettings
    ) -> list[OracleSets]:
        costs = Costs(kind, remember="oracle", decay=settings.decay)
        memory = costs.memory(metric)

        def oracles(batch: TuningSet, rng: np.random.Generator) -> OracleSets:
            gains = costs.gains(batch, metric, memory, rng)
            chosen = sentence_oracles(batch.offsets, gains)
            memory.update(costs.update_memory(batch, memory, chosen.oracle_rows))
            return chosen

        return [_search_in_batches(lists, seed, settings.batch, oracles)]

    return search


def _search_in_batches(
    lists: TuningSet,
    seed: int,
    size: int,
    oracles: Callable[[TuningSet, np.random.Generator], OracleSets],
) -> OracleSets:
    """Return the oracles of random mini-batches, with rows of the whole lists."""
    rng = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(lists.offsets) > 0)
    order = rng.permutation(filled)
    chosen = np.zeros(lists.n_sentences, dtype=np.int64)
    rows = []
    for first in range(0, len(order), size):
        sentences = order[first : first + size]
        batch = lists.take_sentences(sentences)
        best = oracles(batch, rng)
        # From rows of the batch to rows of the lists.
        moved = lists.offsets[sentences] - batch.offsets[:-1]
        chosen[sentences] = best.oracle_rows + moved
        rows.append(best.rows + np.repeat(moved, np.diff(best.offsets)))
    every = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows]))
    bounds = np.searchsorted(every, lists.offsets).astype(np.int64)
    return OracleSets(every, bounds, float("nan"), chosen[filled])


_Search = Callable[[TuningSet, Metric, int, OracleSettings], list[OracleSets]]

_SEARCHES: Mapping[OracleMethod, _Search] = MappingProxyType(
    {
        "sentence": _sentence,
        "greedy": _search_greedily,
        "batch": _batch,
        "pseudo-corpus": _make_context_search("pseudo-corpus"),
        "background": _make_context_search("background"),
    }
)
