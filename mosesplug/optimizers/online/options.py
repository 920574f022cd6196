"""Settings that all online learners have in common; each learner adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mosesplug.optimizers.options import option

__all__ = ["OnlineOptions"]


@dataclass(frozen=True)
class OnlineOptions:
    """Settings of all online learners.

    Attributes are described by their ``help``.
    """

    epochs: int = option(
        30,
        help="passes over the sentences after each decoding",
        source="Watanabe 2012, section 5",
        minimum=1,
    )
    batch: int = option(
        16,
        help="sentences of a mini-batch",
        source="Watanabe 2012, section 5",
        minimum=1,
    )
    averaging: Literal["last", "all", "best"] = option(
        "best",
        help="which weights are the result: the last ones, the average of those after every "
        "update, or those of the epoch that scored best",
        source="Neubig & Watanabe 2016, section 6.2",
    )
