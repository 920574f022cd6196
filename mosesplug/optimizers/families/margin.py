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
            family="margin",
            summary="Minimise the structured hinge loss in its dual.",
            source="Neubig & Watanabe 2016, eq. 25-37; Hsieh et al. 2008",
            options=MarginOptions,
            optimize=large_margin,
        ),
        Algorithm(
            name="cutting-plane",
            family="margin",
            summary="Minimise the loss of `margin` with cutting planes.",
            source="Joachims et al. 2009; Tsochantaridis et al. 2005",
            options=CuttingPlaneOptions,
            optimize=cutting_plane,
        ),
        Algorithm(
            name="rampion",
            family="margin",
            summary="Minimise the structured ramp loss of hope and fear.",
            source="Gimpel & Smith 2012",
            options=RampionOptions,
            optimize=rampion,
        ),
        Algorithm(
            name="mse",
            family="margin",
            summary="Fit differences of sentence scores by linear regression.",
            source="Bazrafshan et al. 2012",
            options=RegressionOptions,
            optimize=regression,
        ),
    )
