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
            family="expectation",
            summary="Make the oracles of each list likely.",
            source="Och & Ney 2002",
            options=SoftmaxOptions,
            optimize=softmax,
        ),
        Algorithm(
            name="risk",
            family="expectation",
            summary="Minimise the expected sentence cost, with annealing.",
            source="Smith & Eisner 2006",
            options=RiskOptions,
            optimize=risk,
        ),
        Algorithm(
            name="linear-bleu",
            family="expectation",
            summary="Maximise the expectation of linear BLEU, with annealing.",
            source="Tromble et al. 2008",
            options=LinearBleuOptions,
            optimize=expected_linear_bleu,
            needs_bleu=True,
        ),
        Algorithm(
            name="xbleu",
            family="expectation",
            summary="Maximise BLEU of the expected statistics, with annealing.",
            source="Rosti et al. 2010, 2011",
            options=XbleuOptions,
            optimize=xbleu,
            needs_bleu=True,
        ),
    )
