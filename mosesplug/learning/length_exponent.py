"""Model scores over a power of the length, ``w . h / len^x``, with learned ``x``.

For each ``x``, the score is linear in the weights, with features divided by ``len^x``. So an outer
search tries values of ``x``, and the algorithm finds the weights of each: first on an even grid,
then by golden sections around its best value, then with the weights held while ``x`` moves in
small steps, as long as this gains. Nothing of it is random, and all values of ``x`` share the
random choices of the algorithm.

Decoders divide by the length as fairseq's noisy channel reranking does (Yee et al. 2019), which
tries random ``x`` and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.learning.domains import LearnFunction
from mosesplug.learning.lengths import LengthScale
from mosesplug.optimizers.problem import Problem, Progress, Solution, corpus_score, no_progress

GRID = 9
"""Values of the even grid."""

SECTIONS = 6
"""Golden sections of the interval around its best value."""

FINE = 40
"""Values of ``x`` that are tried with fixed weights: evenly over the range, and as many close to
the best value."""

_MOVES = 20
"""Maximum moves of the exponent with fixed weights; each gains."""

CLOSE = 0.02
"""Half the width of what is close, as a share of the range."""


@dataclass
class _Search:
    """The best solution of each exponent that was tried.

    Attributes:
        problem: whose features are divided.
        seed: of the random choices of each learning.
    """

    problem: Problem
    scale: LengthScale
    seed: int
    solutions: dict[float, Solution] = field(default_factory=dict)

    def score_at(self, exponent: float, learn: LearnFunction) -> float:
        """Learn with an exponent, and return its best score so far."""
        divided = self.scale.divide(self.problem, exponent)
        own = learn(divided, np.random.default_rng(self.seed), no_progress)
        if exponent not in self.solutions or own.score > self.solutions[exponent].score:
            self.solutions[exponent] = own
        return self.solutions[exponent].score

    @property
    def best_exponent(self) -> float:
        """The exponent of the best score, the smallest one in a tie."""
        return max(sorted(self.solutions), key=lambda exponent: self.solutions[exponent].score)

    @property
    def best(self) -> Solution:
        """The solution of the best score."""
        return self.solutions[self.best_exponent]

    def nearest_weights(self, exponent: float) -> Floats:
        """Return the weights of the nearest exponent, scaled as features are."""
        nearest = min(sorted(self.solutions), key=lambda tried: abs(tried - exponent))
        weights = self.solutions[nearest].weights.copy()
        if not self.scale.columns.all():  # else all scores change by one factor
            length = np.log(self.scale.lengths(self.problem.tuning_set)).mean()
            weights[self.scale.columns] *= np.exp((exponent - nearest) * length)
        return weights if self.problem.bounds is None else self.problem.bounds.project(weights)


MakeLearner = Callable[[Floats | None, bool], LearnFunction]
"""Returns a function that finds the weights of one exponent.

The arguments are the weights to start from (None: the given ones), and whether to search nearby,
without restarts if the algorithm has some.
"""


def learn_exponent(make: MakeLearner, scale: LengthScale, *, has_restarts: bool) -> LearnFunction:
    """Return a function that finds the exponent and the weights of a problem.

    The result has the best score of all exponents that were tried, the smallest one in a tie. An
    algorithm with restarts has them at the first exponent, at the best one of the grid and at the
    result. At others, it searches near the weights of the nearest exponent.
    """

    def search(problem: Problem, rng: np.random.Generator, progress: Progress) -> Solution:
        tried = _Search(problem, scale, int(rng.integers(1 << 62)))
        width, total = scale.high - scale.low, GRID + SECTIONS + 2

        def score_at(exponent: float) -> float:
            exponent = min(max(float(exponent), scale.low), scale.high)
            if exponent not in tried.solutions:
                if has_restarts and tried.solutions:
                    near = tried.nearest_weights(exponent)
                    for start in (None, near):
                        tried.score_at(exponent, make(start, True))
                else:
                    tried.score_at(exponent, make(None, False))
                progress(min(len(tried.solutions), total), total, "exponents")
            return tried.solutions[exponent].score

        def move() -> None:
            for _ in range(_MOVES):
                solution = tried.best
                near, score = _move_exponent(problem, scale, solution.weights, tried.best_exponent)
                if score <= solution.score:
                    break
                if tried.score_at(near, make(solution.weights, True)) <= score:
                    # The algorithm ends lower from there: what was found by x alone counts.
                    tried.solutions[near] = replace(solution, score=score)

        def learn_thoroughly() -> bool:
            """Return whether more restarts find better weights for the best exponent."""
            before = tried.best
            again = make(before.weights, False) if has_restarts else None
            return again is not None and tried.score_at(tried.best_exponent, again) > before.score

        for exponent in np.linspace(scale.low, scale.high, GRID if width > 0.0 else 1):
            score_at(float(exponent))
        if width > 0.0:
            learn_thoroughly()
            _narrow(score_at, tried.best_exponent, width / (GRID - 1), scale)
            move()
            if learn_thoroughly():
                move()
        history: tuple[Mapping[str, Any], ...] = tuple(
            {"exponent": exponent, "score": tried.solutions[exponent].score}
            for exponent in sorted(tried.solutions)
        )
        return replace(
            tried.best,
            history=(*history, *tried.best.history),
            length_exponent=tried.best_exponent,
        )

    return search


def _narrow(
    score_at: Callable[[float], float], middle: float, reach: float, scale: LengthScale
) -> None:
    """Try values around the best of the grid, by golden sections."""
    low, high = max(scale.low, middle - reach), min(scale.high, middle + reach)
    share = 0.5 * (5.0**0.5 - 1.0)
    for _ in range(SECTIONS):
        first, second = high - share * (high - low), low + share * (high - low)
        if score_at(first) >= score_at(second):
            high = second
        else:
            low = first


def _move_exponent(
    problem: Problem, scale: LengthScale, weights: Floats, middle: float
) -> tuple[float, float]:
    """Return the best exponent with fixed weights, and its score."""
    close = CLOSE * (scale.high - scale.low)
    tried = np.concatenate(
        [
            np.linspace(scale.low, scale.high, FINE),
            np.linspace(max(scale.low, middle - close), min(scale.high, middle + close), FINE),
        ]
    )
    scores = [corpus_score(scale.divide(problem, float(exponent)), weights) for exponent in tried]
    best = int(np.argmax(scores))
    return float(tried[best]), scores[best]
