"""Large margins and regression: hinge loss, cutting planes, RAMPION, least squares."""

from __future__ import annotations

from mosesplug.optimizers.batch.margin.margin import (
    CuttingPlaneOptions,
    MarginOptions,
    cutting_plane,
    large_margin,
)
from mosesplug.optimizers.batch.margin.rampion import RampionOptions, rampion
from mosesplug.optimizers.batch.margin.regression import RegressionOptions, regression
from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return (
        Algorithm(
            name="margin",
            summary="the least hinge loss of hopes or oracles over the rest, solved in its dual",
            source="Neubig & Watanabe 2016, eq. 25-37; Hsieh et al. 2008",
            options=MarginOptions,
            optimize=large_margin,
        ),
        Algorithm(
            name="cutting-plane",
            summary="the same loss as margin, solved by cutting planes",
            source="Joachims et al. 2009; Tsochantaridis et al. 2005",
            options=CuttingPlaneOptions,
            optimize=cutting_plane,
        ),
        Algorithm(
            name="rampion",
            summary="structured ramp loss: fear against hope, near the initial weights",
            source="Gimpel & Smith 2012",
            options=RampionOptions,
            optimize=rampion,
        ),
        Algorithm(
            name="mse",
            summary="linear regression of differences in score; many and sparse features",
            source="Bazrafshan et al. 2012",
            options=RegressionOptions,
            optimize=regression,
        ),
    )
