"""Settings that all online learners share; each learner adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mosesplug.optimizers.options import option

__all__ = ["OnlineOptions"]


@dataclass(frozen=True)
class OnlineOptions:
    """Settings of all online learners."""

    epochs: int = option(
        30,
        help="number of passes over the sentences after each decoding",
        source="Watanabe 2012, section 5",
        minimum=1,
    )
    batch: int = option(
        16,
        help="number of sentences per mini-batch",
        source="Watanabe 2012, section 5",
        minimum=1,
    )
    averaging: Literal["last", "all", "best"] = option(
        "best",
        help="result: last weights, mean over all updates, or best epoch",
        details="The mean is over the weights after every update.",
        source="Neubig & Watanabe 2016, section 6.2",
    )
