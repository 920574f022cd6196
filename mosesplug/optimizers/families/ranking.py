"""Ranking of pairs beyond PRO: all pairs, cross-entropy, Pareto-optimal ranking; summaries."""

from __future__ import annotations

from mosesplug.optimizers.batch.ranking.cross_entropy import CrossEntropyOptions, cross_entropy
from mosesplug.optimizers.batch.ranking.pareto import ParetoOptions, pareto
from mosesplug.optimizers.batch.ranking.rank_all import RankAllOptions, rank_all
from mosesplug.optimizers.batch.ranking.summary_mert import SummaryMertOptions, summary_mert
from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return (
        Algorithm(
            name="rank-all",
            family="ranking",
            summary="Rank all pairs of hypotheses instead of a sample.",
            source="Dreyer & Dong 2015",
            options=RankAllOptions,
            optimize=rank_all,
        ),
        Algorithm(
            name="cross-entropy",
            family="ranking",
            summary="Fit the model's distribution to one of the metric.",
            source="Green et al. 2014",
            options=CrossEntropyOptions,
            optimize=cross_entropy,
        ),
        Algorithm(
            name="pareto",
            family="ranking",
            summary="Rank hypotheses that are best by any of several metrics.",
            source="Duh et al. 2012",
            options=ParetoOptions,
            optimize=pareto,
        ),
        Algorithm(
            name="summary-mert",
            family="ranking",
            summary="Run MERT on dense features and summaries of sparse ones.",
            source="Neubig & Watanabe 2016, section 2.3.3",
            options=SummaryMertOptions,
            optimize=summary_mert,
            restarts=True,
        ),
    )
