"""Direct search on the metric itself: simplex, particle swarm, gradients of xBLEU."""

from __future__ import annotations

from mosesplug.optimizers.batch.direct.nelder_mead import NelderMeadOptions, nelder_mead
from mosesplug.optimizers.batch.direct.swarm import PsoOptions, pso
from mosesplug.optimizers.batch.direct.xbleu_mert import XbleuMertOptions, xbleu_mert
from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return (
        Algorithm(
            name="nelder-mead",
            summary="the downhill simplex on the metric itself",
            source="Zens et al. 2007",
            options=NelderMeadOptions,
            optimize=nelder_mead,
            restarts=True,
        ),
        Algorithm(
            name="pso",
            summary="a particle swarm on the metric itself",
            source="Suzuki et al. 2011",
            options=PsoOptions,
            optimize=pso,
            restarts=True,
        ),
        Algorithm(
            name="xbleu-mert",
            summary="exact line search along gradients of xBLEU; sparse features, L0 and L2",
            source="Galley et al. 2013",
            options=XbleuMertOptions,
            optimize=xbleu_mert,
            restarts=True,
            needs_bleu=True,
        ),
    )
