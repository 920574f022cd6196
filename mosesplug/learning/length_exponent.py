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
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.learning.cross_validation import LearnFunction
from mosesplug.learning.lengths import LengthScale
from mosesplug.optimizers.problem import Problem, Progress, Solution, corpus_score, no_progress

__all__ = ["learn_exponent"]

Floats = NDArray[np.float64]

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


def learn_exponent(
    learn: Callable[[Floats | None], LearnFunction],
    scale: LengthScale,
) -> LearnFunction:
    """Return a function that finds the exponent and the weights of a problem.

    The result has the best score of all exponents that were tried, the smallest one in a tie.

    Args:
        learn: from starting weights, or None for the given ones, to a function that finds weights.
        scale: the exponents.
    """

    def search(problem: Problem, rng: np.random.Generator, progress: Progress) -> Solution:
        seed = int(rng.integers(1 << 62))
        found: dict[float, Solution] = {}
        width, total = scale.high - scale.low, GRID + SECTIONS + 2

        def score_at(exponent: float, start: Floats | None = None) -> float:
            exponent = min(max(float(exponent), scale.low), scale.high)
            if exponent not in found or start is not None:
                divided = scale.divide(problem, exponent)
                own = learn(start)(divided, np.random.default_rng(seed), no_progress)
                if exponent not in found or own.score > found[exponent].score:
                    found[exponent] = own
                progress(min(len(found), total), total, "exponents")
            return found[exponent].score

        def best() -> float:
            return max(sorted(found), key=lambda each: found[each].score)

        for exponent in np.linspace(scale.low, scale.high, GRID if width > 0.0 else 1):
            score_at(float(exponent))
        if width > 0.0:
            _narrow(score_at, best(), width / (GRID - 1), scale)
            for _ in range(_MOVES):
                middle = best()
                solution = found[middle]
                near, score = _move_exponent(problem, scale, solution.weights, middle)
                if score <= solution.score:
                    break
                score_at(near, solution.weights)
                if found[near].score <= solution.score:
                    # The algorithm ends lower from there: what was found by x alone counts.
                    found[near] = replace(solution, score=score)
        exponent = best()
        history: tuple[Mapping[str, Any], ...] = tuple(
            {"exponent": each, "score": found[each].score} for each in sorted(found)
        )
        return replace(
            found[exponent],
            history=(*history, *found[exponent].history),
            length_exponent=exponent,
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
    scores = [corpus_score(scale.divide(problem, float(each)), weights) for each in tried]
    best = int(np.argmax(scores))
    return float(tried[best]), scores[best]
