"""The algorithms to begin with, and when each is the one to take."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["ONLINE", "RECOMMENDED"]

ONLINE = "sgd"
"""The online learner of ``mosesplug tune --online``: it translated test sets best."""

RECOMMENDED: Mapping[str, str] = MappingProxyType(
    {
        "kbmira": "with a decoder, up to thousands of sparse features; the default of tune",
        "mert": "the best score on given lists or graphs, any metric; the default of optimize",
        "xbleu": "given lists, in a tenth of the time, with less variance between seeds",
        ONLINE: "while decoding, where decoding is expensive; the default of tune --online",
        "adagrad": "up to millions of sparse features, most of whose weights become 0",
    }
)
"""When to take which algorithm, the most frequent case first."""
