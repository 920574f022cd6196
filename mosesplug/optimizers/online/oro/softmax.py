"""Online rank learning with the softmax loss (Watanabe 2012): plain, and with optimized updates.

The loss of a sentence is ``-L = -log(Z_O / Z_N)``: how little of the model's probability its
oracles have (equation 6). ``Psi``, the gradient of ``L``, is the mean features of the oracles less
those of the whole list. The plain learner follows the mean ``Psi`` of a batch (equation 10). The
optimized one solves for how much each sentence should count: one constraint a sentence,

    w . Psi >= -L - slack

(equation 16). That is the constraint as printed, and as the author's published program (cicada)
has it. The plane through the loss at the present weights ``w_k``, which the text speaks of, has
``w_k . Psi`` more on its right; ``tangent`` adds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosesplug.optimizers.losses import SOFTMAX
from mosesplug.optimizers.online.ball import exponential_rate, shrinkage
from mosesplug.optimizers.online.epochs import online_algorithm
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.oro.dual import (
    box_multipliers,
    renormalised,
    simplex_multipliers,
)
from mosesplug.optimizers.online.oro.hinge import (
    DualOptions,
    OroOptions,
    change_of,
    learner_of,
    view_of,
)
from mosesplug.optimizers.options import option
from mosesplug.tuning_set import Batch

__all__ = ["ALGORITHMS", "OOroSoftmaxOptions", "o_oro_softmax_learner", "oro_softmax_learner"]


@dataclass(frozen=True)
class OOroSoftmaxOptions(DualOptions):
    """Settings of optimized updates for the softmax loss."""

    tangent: bool = option(
        False,
        help="use tangent planes of the loss at the current weights as constraints, without "
        "the offset of the printed ones",
        source="Watanabe 2012, text under eq. 16; Teo et al. 2010",
    )


def oro_softmax_learner(options: OroOptions) -> Learner:
    """Gradient descent on the softmax loss of a batch (Watanabe 2012, Algorithm 2, equation 10).

    The mean is over the sentences that have hypotheses; ``violations`` are those whose oracles
    are not the whole list.
    """

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = view_of(options, state, batch, step)
        goals = view.is_oracle.astype(np.float64)
        losses, slopes = SOFTMAX.value_and_gradient(view.scores, batch.offsets, goals)
        size = max(1, int(np.count_nonzero(np.diff(batch.offsets))))
        rate = exponential_rate(step, options.rate, options.rate_decay)
        told = int(np.count_nonzero(losses > 0.0))
        return change_of(view, slopes * (-rate / size), float(losses.sum()) / size, told)

    return learner_of(options, change)


def o_oro_softmax_learner(options: OOroSoftmaxOptions) -> Learner:
    """Optimized updates for the softmax loss (Watanabe 2012, equations 16 and 17)."""

    def change(state: LearnerState, batch: Batch, step: Step) -> Change:
        view = view_of(options, state, batch, step)
        goals = view.is_oracle.astype(np.float64)
        losses, slopes = SOFTMAX.value_and_gradient(view.scores, batch.offsets, goals)
        told = np.flatnonzero(losses > 0.0)
        rate = exponential_rate(step, options.rate, options.rate_decay)
        owner = np.repeat(np.arange(batch.n_sentences), np.diff(batch.offsets))
        planes = np.empty((len(told), len(view.weights)))
        for place, sentence in enumerate(told):
            planes[place] = view.rows.combine(np.where(owner == sentence, -slopes, 0.0))
        now = planes @ view.weights
        moving = np.where(view.active, planes, 0.0)
        shrinking = (1.0 - shrinkage(rate, options.regularization)) * (moving @ view.weights)
        gains = losses[told] + shrinking if options.tangent else losses[told] + shrinking - now
        gram = moving @ moving.T
        if options.exact_dual:
            multipliers = simplex_multipliers(gram, gains, rate)
        else:
            multipliers = box_multipliers(
                gram, gains, rate, options.dual_tolerance, options.dual_sweeps, step.rng
            )
            if options.renormalise:
                renormalised(multipliers, float(multipliers.sum()), rate)
        shares = np.zeros(batch.n_sentences)
        shares[told] = multipliers
        size = max(1, int(np.count_nonzero(np.diff(batch.offsets))))
        return change_of(view, -slopes * shares[owner], float(losses.sum()) / size, len(told))

    return learner_of(options, change)


ALGORITHMS = (
    online_algorithm(
        name="oro-softmax",
        summary="Rank oracles above the rest with the softmax loss.",
        source="Watanabe 2012",
        options=OroOptions,
        learner=oro_softmax_learner,
    ),
    online_algorithm(
        name="o-oro-softmax",
        summary="Optimise each update of `oro-softmax` in its dual.",
        source="Watanabe 2012",
        options=OOroSoftmaxOptions,
        learner=o_oro_softmax_learner,
    ),
)
