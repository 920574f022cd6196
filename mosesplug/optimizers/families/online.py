"""The online learners, each also the batch optimizer that it is on lists that are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mosesplug.optimizers.entry import Algorithm
from mosesplug.optimizers.online.adagrad import AdagradOptions, adagrad_learner
from mosesplug.optimizers.online.arow import ArowOptions, arow_learner
from mosesplug.optimizers.online.epochs import optimize_online
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.online.mira import MiraOptions, mira_learner
from mosesplug.optimizers.online.oro.hinge import (
    OOroOptions,
    OroOptions,
    o_oro_learner,
    oro_learner,
)
from mosesplug.optimizers.online.oro.softmax import (
    OOroSoftmaxOptions,
    o_oro_softmax_learner,
    oro_softmax_learner,
)
from mosesplug.optimizers.online.pegasos import PegasosOptions, pegasos_learner
from mosesplug.optimizers.online.perceptron import PerceptronOptions, perceptron_learner
from mosesplug.optimizers.online.rda import RdaOptions, rda_learner
from mosesplug.optimizers.online.relative_margin import (
    RelativeMarginOptions,
    RmCpOptions,
    rm_cp_learner,
    rm_pa_learner,
)
from mosesplug.optimizers.online.sgd import SgdOptions, sgd_learner

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    known: tuple[tuple[str, str, str, type[Any], Callable[[Any], Learner]], ...] = (
        (
            "perceptron",
            "Move towards the oracle, away from the 1-best; averaged.",
            "Collins 2002",
            PerceptronOptions,
            perceptron_learner,
        ),
        (
            "mira",
            "Take the smallest step that reaches the margin.",
            "Crammer et al. 2006",
            MiraOptions,
            mira_learner,
        ),
        (
            "arow",
            "Learn weights with a confidence for each feature.",
            "Crammer et al. 2009; Chiang 2012",
            ArowOptions,
            arow_learner,
        ),
        (
            "rm-pa",
            "Keep every hypothesis near the hope (relative margin).",
            "Eidelman et al. 2013",
            RelativeMarginOptions,
            rm_pa_learner,
        ),
        (
            "rm-cp",
            "Solve `rm-pa` over working sets of constraints.",
            "Eidelman et al. 2013",
            RmCpOptions,
            rm_cp_learner,
        ),
        (
            "oro",
            "Rank oracles above the rest with the hinge loss.",
            "Watanabe 2012",
            OroOptions,
            oro_learner,
        ),
        (
            "oro-softmax",
            "Rank oracles above the rest with the softmax loss.",
            "Watanabe 2012",
            OroOptions,
            oro_softmax_learner,
        ),
        (
            "o-oro",
            "Optimise each update of `oro` in its dual.",
            "Watanabe 2012",
            OOroOptions,
            o_oro_learner,
        ),
        (
            "o-oro-softmax",
            "Optimise each update of `oro-softmax` in its dual.",
            "Watanabe 2012",
            OOroSoftmaxOptions,
            o_oro_softmax_learner,
        ),
        (
            "pegasos",
            "Take sub-gradient steps of size 1/(lambda k).",
            "Shalev-Shwartz et al. 2007",
            PegasosOptions,
            pegasos_learner,
        ),
        (
            "sgd",
            "Run stochastic gradient descent on a selectable loss.",
            "Neubig & Watanabe 2016",
            SgdOptions,
            sgd_learner,
        ),
        (
            "adagrad",
            "Adapt the step size of each feature to its gradients.",
            "Green et al. 2013",
            AdagradOptions,
            adagrad_learner,
        ),
        (
            "rda",
            "Average gradients under L1, for sparse weights.",
            "Xiao 2010",
            RdaOptions,
            rda_learner,
        ),
    )
    return tuple(
        Algorithm(
            name=name,
            family="online",
            summary=summary,
            source=source,
            options=options,
            optimize=optimize_online(learner),
            learner=learner,
        )
        for name, summary, source, options, learner in known
    )
