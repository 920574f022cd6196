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
            "towards the oracle, away from the first best; averaged",
            "Collins 2002",
            PerceptronOptions,
            perceptron_learner,
        ),
        (
            "mira",
            "the smallest step that ranks well by enough; one or many constraints",
            "Crammer et al. 2006",
            MiraOptions,
            mira_learner,
        ),
        (
            "arow",
            "hope above fear, each weight with a variance that shrinks as it is learnt",
            "Crammer et al. 2009; Chiang 2012",
            ArowOptions,
            arow_learner,
        ),
        (
            "rm-pa",
            "hope above fear, and no hypothesis far from hope; passive-aggressive",
            "Eidelman et al. 2013",
            RelativeMarginOptions,
            rm_pa_learner,
        ),
        (
            "rm-cp",
            "the same as rm-pa, over working sets of violated constraints",
            "Eidelman et al. 2013",
            RmCpOptions,
            rm_cp_learner,
        ),
        (
            "oro",
            "online ranking of oracles above the rest, hinge loss",
            "Watanabe 2012",
            OroOptions,
            oro_learner,
        ),
        (
            "oro-softmax",
            "online ranking of oracles above the rest, softmax loss",
            "Watanabe 2012",
            OroOptions,
            oro_softmax_learner,
        ),
        (
            "o-oro",
            "the same as oro, each update optimized in its dual",
            "Watanabe 2012",
            OOroOptions,
            o_oro_learner,
        ),
        (
            "o-oro-softmax",
            "the same as oro-softmax, each update optimized in its dual",
            "Watanabe 2012",
            OOroSoftmaxOptions,
            o_oro_softmax_learner,
        ),
        (
            "pegasos",
            "stochastic sub-gradients with a rate of 1/(lambda k)",
            "Shalev-Shwartz et al. 2007",
            PegasosOptions,
            pegasos_learner,
        ),
        (
            "sgd",
            "stochastic gradient descent on a loss of choice",
            "Neubig & Watanabe 2016",
            SgdOptions,
            sgd_learner,
        ),
        (
            "adagrad",
            "stochastic gradients with a rate for each feature; a million sparse features",
            "Green et al. 2013",
            AdagradOptions,
            adagrad_learner,
        ),
        (
            "rda",
            "regularised dual averaging; sparse weights",
            "Xiao 2010",
            RdaOptions,
            rda_learner,
        ),
    )
    return tuple(
        Algorithm(name, summary, source, options, optimize_online(learner), learner)
        for name, summary, source, options, learner in known
    )
