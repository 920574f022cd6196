"""Learn weights of domains from lists, and score each domain by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.domains import DomainSpace, count_domains
from mosesplug.optimizers.problem import Problem, Progress, Solution, corpus_score
from mosesplug.settings.sentences.domains import Domains

LearnFunction = Callable[[Problem, np.random.Generator, Progress], Solution]
"""Finds weights for a problem."""


@dataclass(frozen=True)
class LearningDomains:
    """The domains of data to learn from.

    Attributes:
        domains: which domain each source sentence belongs to.
        copies: the features of the lists, and their copies.
    """

    domains: Domains
    copies: DomainSpace

    @property
    def base(self) -> FeatureSpace:
        """The features of the lists."""
        return self.copies.base

    def center_weights(self, learn: LearnFunction) -> LearnFunction:
        """Return a learner whose shared weights are the mean of those of the domains."""

        def learn_centered(
            problem: Problem, rng: np.random.Generator, progress: Progress
        ) -> Solution:
            solution, lists = learn(problem, rng, progress), problem.tuning_set
            numbers = self.domains.take(lists.sentence_ids)
            counts = count_domains(len(self.domains.names), numbers, lists)
            return replace(solution, weights=self.copies.center(solution.weights, counts))

        return learn_centered

    def select(self, problem: Problem, domain: str) -> NDArray[np.int64]:
        """Return the positions of a problem's sentences of a domain, int64."""
        numbers = self.domains.take(problem.tuning_set.sentence_ids)
        return np.flatnonzero(numbers == self.domains.names.index(domain))


@dataclass(frozen=True)
class DomainScore:
    """The scores of one domain's sentences, decided with its weights.

    Attributes:
        is_held_out: whether the sentences were held out.
        sentences: number of sentences of the domain.
        start: score of the starting weights.
        shared: score of the shared weights.
        end: score of the domain's weights.
    """

    name: str
    is_held_out: bool
    sentences: int
    start: float
    shared: float
    end: float


def score_domains(
    domains: LearningDomains,
    problem: Problem,
    start: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    held_out: bool,
) -> list[DomainScore]:
    """Return the scores of each domain that has sentences.

    Args:
        start, weights: float64 ``[n_features]``, with the weights of the copies.
    """
    domain_scores = []
    shared = weights.copy()
    shared[len(domains.base) :] = 0.0
    for name in domains.domains.names:
        positions = domains.select(problem, name)
        part = replace(problem, tuning_set=problem.tuning_set.take_sentences(positions))
        count = int(np.count_nonzero(np.diff(part.tuning_set.offsets)))
        if count:
            scores = (corpus_score(part, each) for each in (start, shared, weights))
            domain_scores.append(DomainScore(name, held_out, count, *scores))
    return domain_scores
