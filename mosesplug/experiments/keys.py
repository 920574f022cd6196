"""The keys of an experiment file, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mosesplug.options import Opt


@dataclass(frozen=True)
class ExperimentKeys:
    """Keys at the top of the file, before its first table."""

    baseline: Annotated[
        str,
        Opt(
            "System that the others are compared with",
            details="SYSTEM, SYSTEM/FEATURES or SYSTEM/FEATURES/TUNING. Features and tuning set "
            "that are not named are those of the row, or else the only ones of the baseline.",
        ),
    ]
    seeds: Annotated[
        tuple[int, ...],
        Opt(
            "Number of seeds, or a list of them",
            details="3 means [1, 2, 3].",
        ),
    ] = (1,)
    directory: Annotated[
        Path | None,
        Opt(
            "Directory of all runs and of the table",
            is_output=True,
            default_text="the name of the file without .toml",
        ),
    ] = None
    metrics: Annotated[
        tuple[str, ...],
        Opt(
            "Metrics of the test sets",
            details="As for mosesplug compare: 'BLEU', 'CHRF beta:2'. The mean over the test sets "
            "and the figures use the first one.",
        ),
    ] = ("BLEU",)
    trials: Annotated[
        int,
        Opt("Trials of approximate randomization, for p", minimum=1),
    ] = 10_000
    keep_lists: Annotated[
        bool,
        Opt(
            "Keep stores, n-best lists and search graphs of finished runs",
            details="Otherwise they are removed when the test sets are translated. Weights, "
            "moses.ini, summary.json and translations are always kept.",
        ),
    ] = False


@dataclass(frozen=True)
class FeatureKeys:
    """Keys of a table ``[features.NAME]``, beside settings of ``tune``."""

    config: Annotated[Path, Opt("The decoder's moses.ini, or file of weights", exists="file")]


@dataclass(frozen=True)
class TextKeys:
    """Keys of ``[tests.NAME]``, and of ``[tuning.NAME]`` beside settings."""

    input: Annotated[Path, Opt("Source sentences", exists="file")]
    refs: Annotated[Path, Opt("References: a file, or the prefix of several", exists="references")]
    sentences: Annotated[
        int | None, Opt("The first N sentences only", minimum=1, default_text="all")
    ] = None
    part: Annotated[
        str,
        Opt(
            "Part of the file, K/N: the K-th of N random parts",
            details="Parts of one file do not overlap. To make choices without the test sets, tune "
            "on 1/2 and test on 2/2.",
        ),
    ] = ""


@dataclass(frozen=True)
class SystemKeys:
    """Keys of a table ``[systems.NAME]``, beside settings of ``tune``."""

    features: Annotated[
        tuple[str, ...], Opt("Feature sets that it is tuned with", default_text="all")
    ] = ()
    tuning: Annotated[
        tuple[str, ...], Opt("Tuning sets that it is tuned on", default_text="all")
    ] = ()
    seeds: Annotated[
        tuple[int, ...],
        Opt("Number of seeds, or a list of them", default_text="that of the experiment"),
    ] = ()
    command: Annotated[
        str,
        Opt(
            "A tuning program to run instead of tune",
            excludes=("untuned",),
            details="It may contain {input}, {refs}, {config}, {seed}, {directory} (which it must "
            "create), and any setting of tune in braces, as {decoder-flags}.",
        ),
    ] = ""
    result: Annotated[
        Path | None,
        Opt(
            "The tuned moses.ini that command writes, in {directory}",
            requires=("command",),
            default_text="moses.ini",
        ),
    ] = None
    untuned: Annotated[bool, Opt("Do not tune: translate with the weights of the feature set")] = (
        False
    )
