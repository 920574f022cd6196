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
            family="direct search",
            summary="Search with a downhill simplex on the metric.",
            source="Zens et al. 2007",
            options=NelderMeadOptions,
            optimize=nelder_mead,
            restarts=True,
            tunes_sparse=False,
        ),
        Algorithm(
            name="pso",
            family="direct search",
            summary="Search with a particle swarm on the metric.",
            source="Suzuki et al. 2011",
            options=PsoOptions,
            optimize=pso,
            restarts=True,
            tunes_sparse=False,
        ),
        Algorithm(
            name="xbleu-mert",
            family="direct search",
            summary="Search lines along the gradients of expected BLEU.",
            source="Galley et al. 2013",
            options=XbleuMertOptions,
            optimize=xbleu_mert,
            restarts=True,
            needs_bleu=True,
        ),
    )
