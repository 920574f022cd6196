"""Keep those hypotheses of n-best lists that a slow metric has time to score.

With ``--score-budget N``, a command scores at most N new texts of each sentence in an iteration.
Only scored hypotheses are stored, so that no learner and no report meets another one. The choice
depends on the list, on the weights of all decodings so far, and on what is stored; never on what a
command happens to know. A hypothesis that is left out although the new weights choose it does not
matter for long: the 1-best of the next decoding is chosen first. After the last iteration, those
that the result chooses are scored, so that the score of the result is that of all hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.decoders.layout import arrange_groups
from mosesplug.decoders.lists.files import read_decoded
from mosesplug.events import Note
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.scored import BudgetCost
from mosesplug.optimizers import Problem, corpus_score
from mosesplug.optimizers.line_search.winners import Choice, choose_within_budget, number_texts
from mosesplug.tuning.context import Context
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning_set import SparseRows, TuningSet


@dataclass
class ListBudget:
    """Chooses the hypotheses of one iteration's lists.

    Attributes:
        size: most new texts of a sentence.
        metric: the metric of the run.
        groups: the dense features of the run.
        visited: the weights of all decodings so far, in order.
        known: the texts of each sentence that earlier iterations have scored.
        cost: the numbers of hypotheses that ``limit`` has chosen and left out so far.
    """

    size: int
    metric: Metric
    groups: tuple[tuple[str, int], ...]
    visited: tuple[Weights, ...]
    known: tuple[frozenset[bytes], ...]
    cost: BudgetCost = field(default_factory=BudgetCost)

    def limit(self, blocks: Iterator[NBestList]) -> Iterator[NBestList]:
        """Yield lists with the chosen hypotheses, and count them."""
        for block in blocks:
            if (choice := self._choose(block)) is None:
                yield block  # storing the list reports what is wrong
                continue
            rows, cost = np.flatnonzero(choice.rows), self.cost
            texts = {(int(block.sentence_ids[row]), block.text(row)) for row in rows.tolist()}
            self.cost = BudgetCost(
                cost.hypotheses + len(block),
                cost.scored + len(rows),
                cost.texts + sum(text not in self.known[sentence] for sentence, text in texts),
                cost.winners + int(choice.wins.sum()),
                cost.scored_winners + int((choice.wins & choice.rows).sum()),
            )
            yield block.take(rows)

    def reduce(self, block: NBestList) -> NBestList:
        """Return the chosen hypotheses as ``limit`` does, but none of invalid lists."""
        choice = self._choose(block)
        return block.take(np.flatnonzero(np.zeros(0) if choice is None else choice.rows))

    def describe(self, iteration: int) -> str:
        """Return what the budget costs in this iteration."""
        cost = self.cost
        return (
            f"iteration {iteration}: {cost.scored} of {cost.hypotheses} hypotheses are scored "
            f"within the score budget, and {100 * cost.winning_share:.0f}% of those that win along "
            "an axis or between the weights of two decodings"
        )

    def _choose(self, block: NBestList) -> Choice | None:
        """Return the choice; None for invalid lists, which the store rejects."""
        lists = _as_tuning_set(block, self.groups)
        is_finite = np.isfinite(block.dense).all() and np.isfinite(block.sparse_data).all()
        if not (len(block) and is_finite and block.has_texts) or lists.space.groups != self.groups:
            return None
        texts = [block.text(row) for row in range(len(block))]
        owners = block.sentence_ids
        pairs = zip(owners.tolist(), texts, strict=True)
        begins = np.repeat(lists.offsets[:-1], np.diff(lists.offsets))
        ranks = np.arange(len(block)) - begins
        return choose_within_budget(
            lists,
            self.metric,
            [weights.vector(lists.space) for weights in self.visited],
            # The decoder's 1-best: what the weights of the decoding are scored by.
            needed=ranks == 0,
            ranks=ranks,
            texts=number_texts(owners, texts),
            is_free=np.array([text in self.known[sentence] for sentence, text in pairs]),
            budgets=np.full(lists.n_sentences, self.size),
        )


def make_list_budget(context: Context, iteration: int, weights: Weights) -> ListBudget | None:
    """Return the budget of the lists of an iteration; None without any.

    Args:
        weights: with which it is decoded.
    """
    size, store = context.configuration.score_budget, context.store
    if size is None:
        return None
    records = store.iterations()[: iteration - 1]
    n_sentences = context.references.n_sentences
    return ListBudget(
        size,
        context.configuration.metric,
        context.space.groups,
        (*(read_start(record).weights for record in records), weights),
        tuple(
            frozenset(store.hypotheses(sentence, range(1, iteration)) if records else ())
            for sentence in range(n_sentences)
        ),
    )


def count_unscored(context: Context, iteration: int, weights: Weights) -> int | None:
    """Return in how many sentences new weights choose what the budget left out.

    None without a budget, or if the lists of the decoder are not there.
    """
    if context.configuration.score_budget is None:
        return None
    if _find_missing(context, range(iteration, iteration + 1)):
        return None
    lists = context.store.tuning_set()
    return len(_find_left_out(context, range(iteration, iteration + 1), lists, weights))


def score_left_out(
    context: Context, problem: Problem, iterations: range, weights: Weights, score: float | None
) -> tuple[float | None, dict[int, bytes] | None]:
    """Return the score of weights on all hypotheses, left-out ones included.

    The left-out hypotheses that the weights choose are scored now, at most one of each sentence.

    Args:
        problem: the scored hypotheses of the iterations.
        iterations: whose lists, as the decoder wrote them, are read again.
        weights: the result of the run.
        score: their score on the scored hypotheses, which is returned if they choose no other one.

    Returns:
        The score, and the left-out hypotheses that were scored for it, by sentence; None if the
        lists of the decoder are not there.

    Raises:
        DataError: a command failed, or its answer cannot be used.
    """
    if missing := _find_missing(context, iterations):
        context.watch(
            Note(
                f"the score of the result is that of the scored hypotheses only: {missing}, which "
                "has those that the score budget left out, does not exist",
                is_warning=True,
            )
        )
        return score, None
    lists = problem.tuning_set
    left_out = _find_left_out(context, iterations, lists, weights)
    if not left_out:
        context.watch(
            Note(
                "the resulting weights choose no hypothesis that the score budget left out: their "
                "score is that of all hypotheses"
            )
        )
        return score, {}
    texts = HypothesisRanges.of_lines(list(left_out.values()), np.array(list(left_out)))
    vector = context.vector(weights, lists.space)
    rows = lists.first_best(vector)
    owners = np.searchsorted(lists.offsets, rows, side="right") - 1
    stats = lists.stats.copy()
    # In the place of the best scored hypothesis: no other row of the sentence counts.
    replaced = rows[np.searchsorted(owners, list(left_out))]
    stats[replaced] = context.configuration.metric.statistics(context.references, *texts)
    whole = corpus_score(replace(problem, tuning_set=replace(lists, stats=stats)), vector)
    before = "" if score is None else f" instead of {score:.6f}"
    context.watch(
        Note(
            f"in {len(left_out)} of {lists.n_sentences} sentences, the resulting weights choose a "
            "hypothesis that the score budget left out: these hypotheses are scored, too, and the "
            f"score of the result is {whole:.6f}{before}"
        )
    )
    return whole, left_out


def _find_missing(context: Context, iterations: range) -> Path | None:
    """Return the first file with a list of the decoder that does not exist."""
    paths = map(context.workspace.packed_nbest, iterations)
    return next((path for path in paths if not path.is_file()), None)


def _find_left_out(
    context: Context, iterations: range, lists: TuningSet, weights: Weights
) -> dict[int, bytes]:
    """Return the left-out texts that weights choose, by ascending sentence.

    Args:
        iterations: whose lists, as the decoder wrote them, are read again.
        lists: stored hypotheses, at least those of the iterations.
    """
    store, groups = context.store, context.space.groups
    best = np.full(lists.n_sentences, -np.inf)
    owners = np.repeat(np.arange(lists.n_sentences), np.diff(lists.offsets))
    np.maximum.at(best, owners, lists.model_scores(context.vector(weights, lists.space)))
    left_out: dict[int, bytes] = {}
    for iteration in iterations:
        for block in read_decoded(context.workspace.packed_nbest(iteration), groups):
            decoded = _as_tuning_set(block, groups)
            vector = context.vector(weights, decoded.space)
            scores = decoded.model_scores(vector)
            for row in decoded.first_best(vector).tolist():
                sentence, text = int(block.sentence_ids[row]), block.text(row)
                # Stored hypotheses may differ from those of the file by rounding of the score.
                if scores[row] > best[sentence] and text not in store.hypotheses(
                    sentence, range(1, iteration + 1)
                ):
                    best[sentence], left_out[sentence] = scores[row], text
    return dict(sorted(left_out.items()))


def _as_tuning_set(block: NBestList, groups: tuple[tuple[str, int], ...]) -> TuningSet:
    """Return lists with the dense features in this order, and no statistics."""
    block = arrange_groups(block, groups)
    offsets = block.list_offsets
    nothing: NDArray[np.int32] = np.zeros((len(block), 1), dtype=np.int32)
    sparse = SparseRows(*block.sparse_rows)
    return TuningSet(
        FeatureSpace(block.groups, block.sparse_names),
        block.sentence_ids[offsets[:-1]],
        offsets,
        block.dense,
        sparse if block.sparse_names else None,
        nothing,
        nothing[:, 0],
    )
