"""Objectives of the model's distribution: softmax, risk, expected BLEU, linear BLEU."""

from __future__ import annotations

from mosesplug.optimizers.batch.expected.risk import (
    LinearBleuOptions,
    RiskOptions,
    expected_linear_bleu,
    risk,
)
from mosesplug.optimizers.batch.expected.softmax import SoftmaxOptions, softmax
from mosesplug.optimizers.batch.expected.xbleu import XbleuOptions, xbleu
from mosesplug.optimizers.entry import Algorithm

__all__ = ["algorithms"]


def algorithms() -> tuple[Algorithm, ...]:
    """In the order in which they are listed."""
    return (
        Algorithm(
            name="softmax",
            summary="oracles made likely among their lists; many and sparse features, L1 or L2",
            source="Och & Ney 2002",
            options=SoftmaxOptions,
            optimize=softmax,
        ),
        Algorithm(
            name="risk",
            summary="the expected error of a sentence, annealed; many and sparse features",
            source="Smith & Eisner 2006",
            options=RiskOptions,
            optimize=risk,
        ),
        Algorithm(
            name="linear-bleu",
            summary="the expectation of linear BLEU, annealed; many and sparse features",
            source="Tromble et al. 2008",
            options=LinearBleuOptions,
            optimize=expected_linear_bleu,
            needs_bleu=True,
        ),
        Algorithm(
            name="xbleu",
            summary="BLEU of expected statistics, annealed; many and sparse features",
            source="Rosti et al. 2010, 2011",
            options=XbleuOptions,
            optimize=xbleu,
            needs_bleu=True,
        ),
    )
