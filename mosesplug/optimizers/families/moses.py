"""The algorithms of ``mert-moses.pl``: MERT, batch MIRA, PRO, and MERT from PRO's weights."""

from __future__ import annotations

from mosesplug.optimizers.batch.mert.mert import MertOptions, mert
from mosesplug.optimizers.batch.mira.kbmira import KbmiraOptions
from mosesplug.optimizers.batch.mira.optimizer import kbmira
from mosesplug.optimizers.batch.ranking.pro import ProMertOptions, ProOptions, pro, pro_mert
from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return (
        Algorithm(
            name="mert",
            family="Moses",
            summary="Find the metric's optimum along lines, exactly.",
            source="Och 2003",
            options=MertOptions,
            optimize=mert,
            graphs="source",
            restarts=True,
            tunes_sparse=False,
        ),
        Algorithm(
            name="kbmira",
            family="Moses",
            summary="Learn a margin between hope and fear (batch MIRA).",
            source="Cherry & Foster 2012",
            options=KbmiraOptions,
            optimize=kbmira,
            graphs="search",
        ),
        Algorithm(
            name="pro",
            family="Moses",
            summary="Train a classifier on sampled pairs of hypotheses.",
            source="Hopkins & May 2011",
            options=ProOptions,
            optimize=pro,
        ),
        Algorithm(
            name="pro+mert",
            family="Moses",
            summary="Run MERT with PRO's weights among its starting points.",
            source="mert-moses.pl --pro-starting-point",
            options=ProMertOptions,
            optimize=pro_mert,
            restarts=True,
        ),
    )
