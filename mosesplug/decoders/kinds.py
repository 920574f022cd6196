"""Words of settings of decoders, which import nothing else of a decoder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

WeightsFormat = Literal["moses", "dense", "json", "one-line"]
"""The format of the file of weights that a decoder reads."""

ServerNetwork = Literal["auto", "own", "host"]
"""Network of servers: a namespace of their own, the host's, or their own where that is possible."""


@dataclass(frozen=True)
class ModelFilter:
    """Cutting the model down to the phrases of the input before tuning.

    Attributes:
        command: words of ``filter-model-given-input.pl`` with its own options; the target
            directory, the configuration and the input are put behind them.
        input: source sentences to filter for.
    """

    command: tuple[str, ...]
    input: Path
