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
