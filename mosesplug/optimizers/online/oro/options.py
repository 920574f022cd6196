"""Settings of online rank learning, for every loss and both kinds of updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

from mosesplug.optimizers.costs import CostKind
from mosesplug.optimizers.online.options import Averaging, CostOptions, OnlineOptions
from mosesplug.options import Opt, same_as


@dataclass(frozen=True)
class OracleOptions(CostOptions):
    """Settings of all learners that rank oracles above other hypotheses."""

    averaging: Annotated[
        Averaging,
        same_as(
            OnlineOptions,
            "averaging",
            details="With line_search, the mean is over the weights after every epoch.",
            source="Neubig & Watanabe 2016, section 6.2; default: better on folds",
        ),
    ] = "all"
    cost: Annotated[
        CostKind,
        same_as(CostOptions, "cost", source="Watanabe 2012, section 3.2; Haddow et al. 2011"),
    ] = "corpus"
    oracles: Annotated[
        Literal["best", "hope"],
        Opt(
            "oracles: the best hypotheses, or the hope of each sentence",
            details="The hope has the largest sum of model score and gain. Hypotheses that are at "
            "least as good are neither oracles nor rivals.",
            source="best: Watanabe 2012, section 3.1; hope: Chiang 2012",
        ),
    ] = "best"
    line_search: Annotated[
        bool,
        Opt(
            "end epochs at the best corpus score along the update",
            details="The point may lie beyond the new weights. With shards, --mixing applies "
            "instead.",
            source="Watanabe 2012, Algorithm 3",
        ),
    ] = True
    zero_start: Annotated[
        bool, Opt("start learning from zero weights", source="Watanabe 2012, Algorithm 2")
    ] = False


_PAPER: Mapping[str, object] = MappingProxyType(
    {
        "batch": 16,
        "averaging": "best",
        "cost": "corpus",
        "oracles": "best",
        "margin": "one",
        "line_search": True,
        "rate": 0.2,
        "rate_decay": 0.85,
        "regularization": 1e-5,
        "zero_start": True,
        "bound": "rate",
        "exact_dual": False,
        "renormalize": True,
        "scale_up": False,
        "all_pairs": True,
        "slack": 0.01,
    }
)
_CICADA: Mapping[str, object] = MappingProxyType(
    {**_PAPER, "margin": "cost", "line_search": False, "scale_up": True, "all_pairs": False}
)


@dataclass(frozen=True)
class OroOptions(OracleOptions):
    """Settings of online rank learning."""

    variant: Annotated[
        Literal["mosesplug", "paper", "cicada"],
        Opt(
            "defaults of the other settings, as in paper or program",
            details="paper: Watanabe 2012 with line search, from zero weights. cicada: the "
            "author's program, with costs as margins. Other options take precedence.",
            source="Watanabe 2012; cicada_learn_online_kbest",
            presets={"paper": _PAPER, "cicada": _CICADA},
        ),
    ] = "mosesplug"
    rate: Annotated[
        float,
        Opt(
            "initial learning rate, eta",
            source="Watanabe 2012, section 3.2, with 0.2; value: chosen on folds",
            minimum=0.0,
        ),
    ] = 0.01
    rate_decay: Annotated[
        float,
        Opt(
            "factor of the rate per epoch, alpha",
            source="Watanabe 2012, section 3.2",
            minimum=0.0,
        ),
    ] = 0.85
    regularization: Annotated[
        float,
        Opt(
            "strength of the L2 regularizer, lambda", source="Watanabe 2012, section 5", minimum=0.0
        ),
    ] = 1e-5
    keep_state: Annotated[
        bool,
        same_as(
            OnlineOptions,
            "keep-state",
            details="If true, the rate keeps falling. Epochs that decode always keep the state.",
            source="Watanabe 2012, section 3.2",
        ),
    ] = False


@dataclass(frozen=True)
class PairMarginOptions(OracleOptions):
    """Settings of margins between pairs."""

    margin: Annotated[
        Literal["one", "cost"],
        Opt(
            "required margin of a pair: 1, or the difference of costs",
            source="one: Watanabe 2012, eq. 5; cost: the author's program, cicada",
        ),
    ] = "one"


@dataclass(frozen=True)
class HingeOptions(OroOptions, PairMarginOptions):
    """Settings of online rank learning with the hinge loss."""


@dataclass(frozen=True)
class SolverOptions(OracleOptions):
    """Settings of the quadratic programs."""

    bound: Annotated[
        Literal["share", "rate"],
        Opt(
            "bound of each multiplier: the rate, or an equal share of it",
            details="share: the rate divided by the number of violated constraints, as "
            "in the plain update. rate: as in eq. 12.",
            source="rate: Watanabe 2012, eq. 12; share: eq. 11",
            only_with="exact_dual=false",
        ),
    ] = "share"
    exact_dual: Annotated[
        bool,
        Opt(
            "bound the sum of the multipliers instead of scaling them down",
            details="The sum is then at most the learning rate.",
            source="Watanabe 2012, eq. 14",
        ),
    ] = False
    renormalize: Annotated[
        bool,
        Opt(
            "scale multipliers down so that their sum is at most the rate",
            details="If false, only each multiplier is bounded, as in the dual of eq. 12.",
            source="Watanabe 2012, footnote 2",
            only_with="exact_dual=false",
        ),
    ] = True
    scale_up: Annotated[
        bool,
        Opt(
            "also scale multipliers up so that their sum is the rate",
            source="the author's program, cicada",
            only_with="renormalize=true",
        ),
    ] = False
    dual_tolerance: Annotated[
        float,
        Opt(
            "spread of the gradient at which dual coordinate descent ends",
            source="Hsieh et al. 2008; LIBLINEAR's -e",
            minimum=0.0,
        ),
    ] = 0.1
    dual_sweeps: Annotated[
        int,
        Opt(
            "maximum number of sweeps of dual coordinate descent",
            source="measured: after 30 sweeps, steps are within 10 % of those at convergence",
            minimum=1,
        ),
    ] = 30


@dataclass(frozen=True)
class DualOptions(OroOptions, SolverOptions):
    """Settings of optimized updates, for any loss."""

    rate: Annotated[float, same_as(OroOptions, "rate")] = 0.1


@dataclass(frozen=True)
class PairSolverOptions(PairMarginOptions, SolverOptions):
    """Settings of the quadratic programs of pairs."""

    all_pairs: Annotated[
        bool,
        Opt(
            "use all pairs, or only those that violate the margin",
            details="Violations are those before the update. False is faster.",
            source="Watanabe 2012, eq. 12; false: the author's program, cicada",
        ),
    ] = False


@dataclass(frozen=True)
class OOroOptions(DualOptions, PairSolverOptions):
    """Settings of optimized updates for the hinge loss."""

    margin: Annotated[
        Literal["one", "cost"],
        same_as(
            PairMarginOptions,
            "margin",
            source="cost: the author's program, cicada; one: Watanabe 2012, eq. 5",
        ),
    ] = "cost"


@dataclass(frozen=True)
class RankMiraOptions(PairSolverOptions):
    """Settings of MIRA on the pairs of rank learning."""

    variant: Annotated[
        Literal["mosesplug", "paper"],
        Opt(
            "defaults of the other settings: mosesplug's, or the paper's",
            details="paper: all pairs of a mini-batch, from zero weights, and the best epoch. "
            "Settings that are given keep their values.",
            source="Watanabe 2012, section 5",
            presets={"paper": _PAPER},
        ),
    ] = "mosesplug"
    bound: Annotated[
        Literal["share", "rate"],
        Opt(
            "bound of each multiplier: the slack, or an equal share of it",
            details="share: the slack divided by the number of violated constraints.",
            source="Watanabe 2012, eq. 13",
            only_with="exact_dual=false",
        ),
    ] = "rate"
    slack: Annotated[
        float,
        Opt(
            "C: largest sum of the multipliers of a mini-batch",
            details="1 / lambda of the paper.",
            source="Watanabe 2012, eq. 13 and section 5",
            minimum=0.0,
        ),
    ] = 0.01


@dataclass(frozen=True)
class OroSoftmaxOptions(OroOptions):
    """Settings of online rank learning with the softmax loss."""

    rate: Annotated[float, same_as(OroOptions, "rate")] = 0.1


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
