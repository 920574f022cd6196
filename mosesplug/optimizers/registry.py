"""Every optimizer under its name; what is registered is what the command line offers and tests.

An algorithm is a function and a frozen dataclass of its settings, each field with ``help`` and
``source`` in its metadata. Command-line options are made from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.batch.kbmira import KbmiraOptions
from mosesplug.optimizers.batch.mert import MertOptions, mert
from mosesplug.optimizers.batch.mira import kbmira
from mosesplug.optimizers.batch.pro import ProMertOptions, ProOptions, pro, pro_mert
from mosesplug.optimizers.online.adagrad import AdagradOptions, adagrad_learner
from mosesplug.optimizers.online.arow import ArowOptions, arow_learner
from mosesplug.optimizers.online.epochs import optimize_online
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.online.mira import MiraOptions, mira_learner
from mosesplug.optimizers.online.oro import (
    OOroOptions,
    OroOptions,
    o_oro_learner,
    oro_learner,
)
from mosesplug.optimizers.online.oro_softmax import (
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
from mosesplug.optimizers.problem import Problem, Progress, Solution

__all__ = ["Algorithm", "algorithm", "algorithms"]


@dataclass(frozen=True)
class Algorithm:
    """An optimizer as others see it.

    Attributes:
        name: what ``--algorithm`` takes.
        summary: one line for ``--help``.
        source: the paper.
        options: frozen dataclass of its settings, every field with a default.
        optimize: ``(problem, initial, rng, options, progress) -> Solution``.
        learner: of an online learner, what makes it from its options; None for a batch optimizer.
        restarts: whether it starts from random points and from weights of earlier iterations, too.
        graphs: how it learns from search graphs: by a ``source`` or a ``search`` of its problem;
            None if it learns from lists only.
    """

    name: str
    summary: str
    source: str
    options: type[Any]
    optimize: Callable[[Problem, NDArray[np.float64], np.random.Generator, Any, Progress], Solution]
    learner: Callable[[Any], Learner] | None = None
    graphs: Literal["source", "search"] | None = None
    restarts: bool = False


def algorithms() -> Mapping[str, Algorithm]:
    """All optimizers by name."""
    known = (
        Algorithm(
            name="mert",
            summary="exact line search on the metric itself",
            source="Och 2003",
            options=MertOptions,
            optimize=mert,
            graphs="source",
            restarts=True,
        ),
        Algorithm(
            name="kbmira",
            summary="margin-infused learning from hope and fear; many and sparse features",
            source="Cherry & Foster 2012",
            options=KbmiraOptions,
            optimize=kbmira,
            graphs="search",
        ),
        Algorithm(
            name="pro",
            summary="a classifier on pairs of hypotheses; many and sparse features",
            source="Hopkins & May 2011",
            options=ProOptions,
            optimize=pro,
        ),
        Algorithm(
            name="pro+mert",
            summary="MERT that also starts from PRO's weights",
            source="mert-moses.pl --pro-starting-point",
            options=ProMertOptions,
            optimize=pro_mert,
            restarts=True,
        ),
    )
    return MappingProxyType({each.name: each for each in (*known, *_online())})


def _online() -> tuple[Algorithm, ...]:
    """The online learners, each also the batch optimizer that it is on lists that are there."""
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


def algorithm(name: str) -> Algorithm:
    """The optimizer of that name.

    Raises:
        UsageError: there is none; the message lists those there are.
    """
    known = algorithms()
    if name not in known:
        raise UsageError(f"unknown algorithm {name!r}; known: {', '.join(sorted(known))}")
    return known[name]
