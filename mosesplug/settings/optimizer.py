"""Settings of the optimizer: algorithm, active features, seed, iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mosesplug.settings.declare import describe, group, parts, setting
from mosesplug.settings.sharding import Sharding

__all__ = ["OptimizerSettings"]


@dataclass(frozen=True)
class _AlgorithmSettings:
    """Settings of ``OptimizerSettings.options``."""

    option: Mapping[str, object] = field(
        default_factory=dict,
        metadata=describe(
            aliases=("algorithm-option",),
            help="Setting of the algorithm; repeatable",
            panel="Learning",
            metavar="NAME=VALUE",
            can_be_abbreviated=True,
            details="`mosesplug algorithms NAME` lists the settings of an algorithm.",
        ),
    )
    epochs: int | None = setting(
        None,
        help="Passes of an online learner over the data",
        panel="Learning",
        metavar="N",
        minimum=1,
        is_saved=False,
        can_be_abbreviated=True,
        details="Passes over the n-best lists after each decoding; with --online, over the "
        "tuning set. The same as --option epochs=N.",
    )


@dataclass(frozen=True)
class OptimizerSettings:
    """How weights are found in the lists."""

    algorithm: str = setting(
        "mert",
        help="Optimizer; see mosesplug algorithms",
        panel="Learning",
        metavar="NAME",
        can_be_abbreviated=True,
        tune_default="kbmira",
        script_default="mert",
        details="The default of tune is kbmira, whose weights translated other text better than "
        "those of mert and differed less between seeds; with --forest, where it takes ten times "
        "longer, mert; with --online, sgd. mert-moses and optimize use mert.",
    )
    options: Mapping[str, object] = field(default_factory=dict, metadata=parts(_AlgorithmSettings))
    active: tuple[str, ...] | None = setting(
        None,
        help="Features to tune: LM0_0, or a group: LM0",
        panel="Learning",
        metavar="NAME,...",
        script="activate-features",
        stored_name="active features",
        default_text="all",
        note="a whole group (LM0) is a name too; unknown names are refused",
    )
    ranges: tuple[str, ...] = setting(
        (),
        name="range",
        help="Bounds of random starts; repeatable",
        panel="Learning",
        metavar="NAME:MIN..MAX",
        script="range",
        stored_name="ranges",
        note="names of no feature are refused",
        details="As LM0:0..1, or with one interval for each weight of a group: "
        "tm:0..1,0..1,-1..1,0..1. In tune, mert draws random starts if this is given, or "
        "--option restarts=N.",
    )
    window: int = setting(
        -1,
        name="iterations-window",
        aliases=("window",),
        help="Earlier iterations to learn from; -1: all",
        panel="Learning",
        metavar="N",
        minimum=-1,
        script="prev-aggregate-nbestlist",
        stored_name="earlier iterations",
        details="oro, o-oro, their softmax variants and rank-mira learn from the newest lists "
        "only, unless it is given.",
    )
    historic_bests: bool = setting(
        False,
        help="Start also from the weights of earlier iterations",
        panel="Learning",
        script="historic-bests",
        stored_name="historic bests",
    )
    interpolation: float = setting(
        0.0,
        help="Share of new weights from iteration 4",
        panel="Learning",
        metavar="X",
        minimum=0.0,
        maximum=1.0,
        script="historic-interpolation",
        stored_name="interpolation",
        default_text="all",
        details="From iteration 4 on, the weights are this share of the new ones and the rest "
        "of the ones before.",
    )
    threads: int = setting(
        1,
        help="Threads for scoring and learning",
        panel="Learning",
        metavar="N",
        minimum=1,
        script="threads",
        script_default="1",
        default_text="all cores that the process may use",
        details="The results do not depend on it.",
    )
    seed: int | None = setting(
        None,
        help="Seed of all random numbers",
        panel="Learning",
        metavar="N",
        can_be_abbreviated=True,
        default_text="drawn, and kept",
        excludes=("predictable-seeds",),
    )
    predictable_seeds: bool = setting(
        False,
        help="Seed iteration N with 1000 N",
        panel="Learning",
        script="predictable-seeds",
        stored_name="predictable seeds",
        note="the seeds are the script's, the random numbers are not",
    )
    sharding: Sharding | None = field(default=None, metadata=group())
