"""Settings of the optimizer: algorithm, active features, seed, iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from mosesplug.options import Opt, OptionGroup, Parts
from mosesplug.settings.checks import check_dropped_names, check_fields
from mosesplug.settings.intervals import StartRange, parse_start_ranges
from mosesplug.settings.sharding import Sharding

if TYPE_CHECKING:
    from mosesplug.optimizers.selection import FeatureSelection


@dataclass(frozen=True)
class _AlgorithmSettings:
    """Settings of ``OptimizerSettings.options``."""

    option: Annotated[
        Mapping[str, object],
        Opt(
            "Setting of the algorithm; repeatable",
            "Learning",
            keyword="options",
            aliases=("algorithm-option",),
            metavar="NAME=VALUE",
            can_be_abbreviated=True,
            details="`mosesplug algorithms NAME` lists the settings of an algorithm.",
        ),
    ] = field(default_factory=dict)
    epochs: Annotated[
        int | None,
        Opt(
            "Passes of an online learner over the data",
            "Learning",
            minimum=1,
            is_saved=False,
            can_be_abbreviated=True,
            details="Passes over the n-best lists after each decoding; with --online, over the "
            "tuning set. The same as --option epochs=N.",
        ),
    ] = None


@dataclass(frozen=True)
class OptimizerSettings:
    """How weights are found in the lists."""

    algorithm: Annotated[
        str,
        Opt(
            "Optimizer; see mosesplug algorithms",
            "Learning",
            metavar="NAME",
            can_be_abbreviated=True,
            tune_default="kbmira",
            script_default="mert",
            details="The default of tune is kbmira, whose weights translated other text better "
            "than those of mert and differed less between seeds; with --forest, where it takes "
            "ten times longer, mert; with --online, sgd. mert-moses and optimize use mert.",
        ),
    ] = "mert"
    options: Annotated[Mapping[str, object], Parts(_AlgorithmSettings)] = field(
        default_factory=dict
    )
    active: Annotated[
        tuple[str, ...] | None,
        Opt(
            "Features to tune: LM0_0, a group: LM0, or WT_*",
            "Learning",
            metavar="NAME,...",
            script="activate-features",
            stored_name="active features",
            default_text="all",
            note="a whole group (LM0) is a name too; unknown names are rejected",
            details="An asterisk stands for any characters. Other weights keep their values.",
        ),
    ] = None
    dropped: Annotated[
        tuple[str, ...],
        Opt(
            "Do not tune a feature, or any of WT_*; repeatable",
            "Learning",
            name="drop-feature",
            parse=check_dropped_names,
            metavar="NAME",
            stored_name="dropped features",
            details="Its weight keeps its value: 0, unless starting weights name it.",
        ),
    ] = ()
    sparse_min_count: Annotated[
        int,
        Opt(
            "Tune only sparse features found in N sentences or more",
            "Learning",
            minimum=0,
            stored_name="least sentences of sparse features",
            details="A sentence counts if one of its hypotheses has the feature. The weights of "
            "rarer features keep their starting values, mostly 0. With --online, a feature is "
            "tuned as soon as N sentences of one epoch have had it.",
        ),
    ] = 0
    sparse_max: Annotated[
        int,
        Opt(
            "Tune only the N most common sparse features; 0: all",
            "Learning",
            minimum=0,
            stored_name="number of sparse features",
            details="Those that occur in the hypotheses of most sentences. The weights of the "
            "others keep their starting values, mostly 0. With --online, the first epoch tunes "
            "all features; after it, only the N most common ones are tuned.",
        ),
    ] = 0
    ranges: Annotated[
        tuple[StartRange, ...],
        Opt(
            "Bounds of random starts; repeatable",
            "Learning",
            name="range",
            parse=parse_start_ranges,
            metavar="NAME:MIN..MAX",
            script="range",
            stored_name="ranges",
            note="names that no feature has are rejected",
            details="As LM0:0..1, or with one interval for each weight of a group: "
            "tm:0..1,0..1,-1..1,0..1. In tune, mert draws random starts if this is given, or "
            "--option restarts=N.",
        ),
    ] = ()
    window: Annotated[
        int,
        Opt(
            "Earlier iterations to learn from; -1: all",
            "Learning",
            name="iterations-window",
            aliases=("window",),
            minimum=-1,
            script="prev-aggregate-nbestlist",
            stored_name="earlier iterations",
            details="oro, o-oro, their softmax variants and rank-mira learn from the newest lists "
            "only, unless it is given.",
        ),
    ] = -1
    historic_bests: Annotated[
        bool,
        Opt(
            "Start also from the weights of earlier iterations",
            "Learning",
            script="historic-bests",
            stored_name="historic bests",
        ),
    ] = False
    interpolation: Annotated[
        float,
        Opt(
            "Interpolate weights: share of the new ones",
            "Learning",
            minimum=0.0,
            maximum=1.0,
            script="historic-interpolation",
            stored_name="interpolation",
            default_text="all",
            details="From iteration 4 on (--interpolation-start), the weights are this share of "
            "the new ones and the rest of the ones before.",
        ),
    ] = 0.0
    interpolation_start: Annotated[
        int,
        Opt(
            "First iteration whose weights are interpolated",
            "Learning",
            minimum=1,
            stored_name="interpolation start",
            requires=("interpolation",),
            details="mert-moses.pl starts at 4, Hopkins & May (2011) at 1.",
        ),
    ] = 4
    threads: Annotated[
        int,
        Opt(
            "Threads for scoring and learning",
            "Learning",
            minimum=1,
            script="threads",
            script_default="1",
            default_text="all cores that the process may use",
            details="The results do not depend on it.",
        ),
    ] = 1
    seed: Annotated[
        int | None,
        Opt(
            "Seed of all random numbers",
            "Learning",
            can_be_abbreviated=True,
            default_text="drawn, and kept",
            excludes=("predictable-seeds",),
        ),
    ] = None
    predictable_seeds: Annotated[
        bool,
        Opt(
            "Seed iteration N with 1000 N",
            "Learning",
            script="predictable-seeds",
            stored_name="predictable seeds",
            note="the seeds are the script's, the random numbers are not",
        ),
    ] = False
    sharding: Annotated[Sharding | None, OptionGroup()] = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def selection(self) -> FeatureSelection:
        """Which features are tuned."""
        # Here and not above: it brings NumPy, which --help does not need.
        from mosesplug.optimizers.selection import FeatureSelection

        return FeatureSelection(self.active, self.dropped, self.sparse_min_count, self.sparse_max)
