"""Online rank learning with the softmax loss (Watanabe 2012).

There are a plain learner and one with optimized updates. The loss of a sentence is
``-L = -log(Z_O / Z_N)``, the negative log-probability of its oracles (equation 6). ``Psi``, the
gradient of ``L``, is the mean features of the oracles minus those of the whole list. The plain
learner follows the mean ``Psi`` of a batch (equation 10). The optimized learner finds the
coefficient of each sentence, with one constraint per sentence,

    w . Psi >= -L - slack

(equation 16). This is the constraint as printed, and as in the author's published program (cicada).
The text describes the tangent plane of the loss at the current weights ``w_k``, which has an
additional ``w_k . Psi`` on the right; ``tangent`` adds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from mosesplug.optimizers.losses import SOFTMAX
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.ball import exponential_rate, shrink_factor
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.oro.dual import (
    renormalize,
    solve_box,
    solve_simplex,
)
from mosesplug.optimizers.online.oro.options import DualOptions, OroOptions
from mosesplug.optimizers.online.oro.view import make_change, make_learner, make_view
from mosesplug.options import Opt
from mosesplug.tuning_set import Batch

__all__ = [
    "ALGORITHMS",
    "OOroSoftmaxOptions",
    "OroSoftmaxOptions",
    "o_oro_softmax_learner",
    "oro_softmax_learner",
]


@dataclass(frozen=True)
class OroSoftmaxOptions(OroOptions):
    """Settings of online rank learning with the softmax loss."""

    rate: Annotated[
        float,
        Opt(
            "initial learning rate, eta",
            source="Watanabe 2012, section 3.2, with 0.2; value: chosen on folds",
            minimum=0.0,
        ),
    ] = 0.1


@dataclass(frozen=True)
class OOroSoftmaxOptions(DualOptions):
    """Settings of optimized updates for the softmax loss."""

    tangent: Annotated[
        bool,
        Opt(
            "use tangent planes of the loss as constraints",
            details="They touch the loss at the current weights, unlike the printed constraints.",
            source="Watanabe 2012, text under eq. 16; Teo et al. 2010",
        ),
    ] = False


def oro_softmax_learner(options: OroSoftmaxOptions) -> Learner:
    """Return gradient descent on softmax loss (Watanabe 2012, Algorithm 2, eq. 10).

    The mean is over the sentences with hypotheses; ``violations`` counts those in which some
    hypothesis is not an oracle.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = make_view(options, state, batch, step)
        goals = view.is_good.astype(np.float64)
        losses, slopes = SOFTMAX.value_and_gradient(view.scores, batch.offsets, goals)
        size = max(1, int(np.count_nonzero(np.diff(batch.offsets))))
        rate = exponential_rate(step, options.rate, options.rate_decay)
        positive = int(np.count_nonzero(losses > 0.0))
        return make_change(view, slopes * (-rate / size), float(losses.sum()) / size, positive)

    return make_learner(options, change)


def o_oro_softmax_learner(options: OOroSoftmaxOptions) -> Learner:
    """Optimized updates for the softmax loss (Watanabe 2012, equations 16 and 17)."""

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = make_view(options, state, batch, step)
        goals = view.is_good.astype(np.float64)
        losses, slopes = SOFTMAX.value_and_gradient(view.scores, batch.offsets, goals)
        positive = np.flatnonzero(losses > 0.0)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        owner = np.repeat(np.arange(batch.n_sentences), np.diff(batch.offsets))
        planes = np.empty((len(positive), len(view.weights)))
        for place, sentence in enumerate(positive):
            planes[place] = view.rows.combine(np.where(owner == sentence, -slopes, 0.0))
        now = planes @ view.weights
        moving = np.where(view.active, planes, 0.0)
        shrinking = (1.0 - shrink_factor(rate, options.regularization)) * (moving @ view.weights)
        gains = (
            losses[positive] + shrinking if options.tangent else losses[positive] + shrinking - now
        )
        gram = moving @ moving.T
        if options.exact_dual:
            multipliers = solve_simplex(gram, gains, rate)
        else:
            bound = rate / max(1, len(positive)) if options.bound == "share" else rate
            multipliers = solve_box(
                gram, gains, bound, options.dual_tolerance, options.dual_sweeps, step.rng
            )
            if options.renormalize:
                renormalize(multipliers, float(multipliers.sum()), rate, up=options.scale_up)
        shares = np.zeros(batch.n_sentences)
        shares[positive] = multipliers
        size = max(1, int(np.count_nonzero(np.diff(batch.offsets))))
        return make_change(view, -slopes * shares[owner], float(losses.sum()) / size, len(positive))

    return make_learner(options, change)


ALGORITHMS = (
    online_algorithm(
        name="oro-softmax",
        summary="Rank oracles above the rest with the softmax loss.",
        source="Watanabe 2012",
        options=OroSoftmaxOptions,
        learner=oro_softmax_learner,
        window=0,
    ),
    online_algorithm(
        name="o-oro-softmax",
        summary="Optimize each update of `oro-softmax` in its dual.",
        source="Watanabe 2012",
        options=OOroSoftmaxOptions,
        learner=o_oro_softmax_learner,
        window=0,
    ),
)
