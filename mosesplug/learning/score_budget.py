"""Learn from those hypotheses of lists that a slow metric has time to score.

With ``--score-budget N``, a command scores at most N texts of each sentence: half of them before
the first optimization. If the learned weights choose a hypothesis that is not scored, it scores
more hypotheses of that sentence, and the weights are learned again. Hypotheses that are not scored
do not take part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.errors import Message, UsageError, count_noun
from mosesplug.learning.inputs import LearningData
from mosesplug.learning.runs import LearningResult
from mosesplug.metrics.scored import BudgetCost
from mosesplug.optimizers import Problem
from mosesplug.optimizers.line_search.winners import (
    choose_within_budget,
    find_winners,
    number_texts,
)


class ScoredLists:
    """Merged lists, some of whose hypotheses are scored.

    Args:
        data: lists that commands have not scored yet.
        budget: most texts of each sentence to score by ``extend``.

    Raises:
        UsageError: the data are no n-best lists with texts.

    Attributes:
        data: the lists, without scores.
        budgets: int64 ``[n_sentences]``, how many more texts of each sentence may be scored.
        is_scored: bool ``[n_hyps]``.
        n_texts: number of texts that are scored.
    """

    def __init__(self, data: LearningData, budget: int = 0) -> None:
        if data.deferred is None:
            raise UsageError("{--score-budget} chooses among texts: give n-best lists with texts")
        self.data, self._scoring = data, data.deferred
        self._lists = lists = data.problem.tuning_set
        self._owners = np.repeat(np.arange(lists.n_sentences), np.diff(lists.offsets))
        self._texts = number_texts(self._owners, data.deferred.texts)
        self.is_scored = np.zeros(lists.n_hyps, dtype=np.bool_)
        self.n_texts = 0
        self.budgets = np.full(lists.n_sentences, budget)
        self._visited: list[Weights] = []
        nothing = self._scoring.score(lists, np.zeros(0, dtype=np.int64))
        self._statistics = np.zeros((lists.n_hyps, nothing.shape[1]), dtype=nothing.dtype)

    def extend(self, weights: Weights) -> bool:
        """Score more hypotheses of the sentences whose 1-best is not scored.

        Each call scores half of the texts that the budget of a sentence has left, at least two; or
        all texts of the sentence, if the budget suffices. The 1-best comes first, then the
        hypotheses that win along an axis through the weights of this and earlier calls or on a
        line between them, then others by rank.

        Returns:
            Whether anything was scored.
        """
        self._visited.append(weights)
        lists, ranks = self._lists, self._rank(weights)
        choice = choose_within_budget(
            lists,
            self.data.problem.metric,
            self._visited,
            needed=ranks == 0,
            ranks=ranks,
            texts=self._texts,
            is_free=self.is_scored,
            budgets=self._divide_budgets(self.find_unscored(weights)),
        )
        new = np.flatnonzero(choice.rows & ~self.is_scored)
        np.subtract.at(self.budgets, self._owners[self._score(new)], 1)
        return len(new) > 0

    def score_first_bests(self, weights: Weights) -> Problem:
        """Score the 1-best hypotheses, whatever the budget; return the scored hypotheses."""
        self._score(self.find_unscored(weights))
        return self.take().problem

    def _score(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Score hypotheses; return a row of each of their texts."""
        self._statistics[rows] = self._scoring.score(self._lists, rows)
        _, places = np.unique(self._texts[rows], return_index=True)
        self.n_texts += len(places)
        self.is_scored[rows] = True
        return rows[places]

    def find_unscored(self, weights: Weights) -> NDArray[np.int64]:
        """Return the rows of 1-best hypotheses that are not scored."""
        best = self._lists.first_best(weights)
        return best[~self.is_scored[best]]

    def take(self) -> LearningData:
        """Return the data with the scored hypotheses only."""
        rows = np.flatnonzero(self.is_scored)
        lists = self._lists.take_hypotheses(rows)
        lists, watched = self._scoring.split(lists, self._statistics[rows])
        problem = replace(self.data.problem, tuning_set=lists)
        return replace(self.data, problem=problem, watched_metrics=watched)

    def _rank(self, weights: Weights) -> NDArray[np.int64]:
        """Return the rank of each hypothesis in its list, from 0, int64 ``[n_hyps]``."""
        order = np.lexsort((-self._lists.model_scores(weights), self._owners))
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order)) - self._lists.offsets[self._owners]
        return ranks

    def _divide_budgets(self, unscored: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many texts of each sentence to score now, int64 ``[n_sentences]``.

        Args:
            unscored: int64, the 1-best hypotheses that are not scored.
        """
        _, rows = np.unique(np.where(self.is_scored, -1, self._texts), return_index=True)
        rows = rows[~self.is_scored[rows]]  # the first of each unscored text
        n_texts = np.bincount(self._owners[rows], minlength=len(self.budgets))
        left, sentences = self.budgets, self._owners[unscored]
        half = np.maximum(np.minimum(left, 2), (left + 1) // 2)
        portions = np.zeros_like(left)
        portions[sentences] = np.where(n_texts <= left, left, half)[sentences]
        return portions

    def describe(self) -> str:
        """Return how many hypotheses are scored that no weights are learned from."""
        return (
            f"{int(self.is_scored.sum())} of {self._lists.n_hyps} held-out hypotheses "
            f"({count_noun(self.n_texts, 'text')}) are scored: the 1-bests of the starting and of "
            "the learned weights"
        )

    def measure_cost(self, weights: Weights) -> BudgetCost:
        """Return how many hypotheses are scored, and how many that matter are not."""
        lists = self._lists
        wins = find_winners(lists, self.data.problem.metric, [self._visited[0], weights])
        return BudgetCost(
            lists.n_hyps,
            int(self.is_scored.sum()),
            self.n_texts,
            int(wins.sum()),
            int((wins & self.is_scored).sum()),
            len(self.find_unscored(weights)),
        )


def describe_cost(cost: BudgetCost) -> str:
    """Return what a budget cost, in a sentence."""
    first_bests = "the new weights choose scored hypotheses only"
    if cost.unscored_first_bests:
        first_bests = (
            f"in {count_noun(cost.unscored_first_bests, 'sentence')}, the new weights choose a "
            "hypothesis that is not scored, so that the score at the end is not that of all "
            "hypotheses: raise {--score-budget}"
        )
    return Message(
        f"{cost.scored} of {cost.hypotheses} hypotheses ({count_noun(cost.texts, 'text')}) are "
        f"scored within the score budget, and {100 * cost.winning_share:.0f}% of those that win "
        f"along an axis or between the first and the new weights; {first_bests}"
    )


def learn_within_budget(
    lists: ScoredLists, budget: int, learn: Callable[[LearningData], LearningResult]
) -> tuple[LearningData, LearningResult]:
    """Learn until the result chooses scored hypotheses only, or the budget is used up.

    Args:
        lists: lists of which nothing is scored yet.
        budget: most texts of each sentence to score.
        learn: learns weights from the scored hypotheses.

    Returns:
        The data with the scored hypotheses, and the result.
    """
    lists.extend(lists.data.start.weights)
    # Each time scores half of what a sentence has left, so this many times use up the budget.
    for n_left in range(budget.bit_length(), -1, -1):
        data = lists.take()
        result = learn(data)
        # Runs are compared by their scores, which should be those of all hypotheses.
        weights = [run.solution.weights for run in result.runs]
        if result.chosen_run is None:
            weights.append(result.solution.weights)
        has_more = [lists.extend(vector) for vector in weights if n_left]
        if not any(has_more):
            break
    return data, result
