"""Pegasos (Shalev-Shwartz et al. 2007): projected sub-gradient steps of an SVM.

    w <- (1 - eta_k lambda) w - eta_k gradient,    eta_k = 1 / (lambda k)
    w <- min(1, 1 / (sqrt(lambda) |w|)) w

(Watanabe 2012, Algorithm 2, lines 7 and 8, with Pegasos' own rate). The first step removes the
initial weights: they only affect its gradient. If that gradient is 0, they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.costs import CostKind
from mosesplug.optimizers.online import ball
from mosesplug.optimizers.online.algorithms import online_algorithm
from mosesplug.optimizers.online.descent import (
    LOSS_DETAILS,
    DescentOptions,
    drop_rare_features,
    initial_vectors,
    list_count_vectors,
    make_change,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.objectives import Loss
from mosesplug.optimizers.online.options import COST_DETAILS
from mosesplug.optimizers.options import option

__all__ = ["ALGORITHMS", "PegasosOptions", "pegasos_learner"]


@dataclass(frozen=True)
class PegasosOptions(DescentOptions):
    """Settings of Pegasos."""

    cost: CostKind = option(
        "lin-och",
        help="cost of a hypothesis, by corpus or sentence score",
        details=COST_DETAILS,
        source="Lin & Och 2004; measured: the first steps remove the starting weights, and a "
        "background of such output ended 7 BLEU lower on the demo",
    )
    loss: Loss = option(
        "hinge",
        help="loss, on sampled pairs of hypotheses or on whole n-best lists",
        details=LOSS_DETAILS,
        source="Shalev-Shwartz et al. 2007; Watanabe 2012, eq. 5-6",
    )
    regularization: float = option(
        0.02,
        help="strength of the L2 regularizer, lambda",
        source="Shalev-Shwartz et al. 2007; value: found on recorded lists of Moses",
        minimum=1e-30,
    )


def pegasos_learner(options: PegasosOptions) -> Learner:
    """Return Pegasos on the mean loss of a batch; its state is that of ``ball``."""

    def init(weights: NDArray[np.float64]) -> LearnerState:
        state = ball.init_state(weights)
        return replace(state, vectors={**initial_vectors(fills, weights), **state.vectors})

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        rate = 1.0 / (options.regularization * step.number)
        change = drop_rare_features(state, change, step, options.minimum_count)
        return ball.take_step(
            state,
            replace(change, values=-rate * change.values),
            step,
            rate=rate,
            regularization=options.regularization,
        )

    fills = {**ball.FILLS, **list_count_vectors(options)}
    return Learner(
        fills=fills,
        init=init,
        change=make_change(options, ball.present_weights, summed=False),
        apply=apply,
        weights=ball.all_weights,
        project=ball.project_all,
        initial_memory=options.costs().memory,
    )


ALGORITHMS = (
    online_algorithm(
        name="pegasos",
        summary="Take sub-gradient steps of size 1/(lambda k).",
        source="Shalev-Shwartz et al. 2007",
        options=PegasosOptions,
        learner=pegasos_learner,
    ),
)
