"""Words of settings of decoders; settings import this and nothing else of a decoder."""

from __future__ import annotations

from typing import Literal

WeightsFormat = Literal["moses", "dense", "json", "one-line"]
"""The format of the file of weights that a decoder reads."""

ServerNetwork = Literal["auto", "own", "host"]
"""Network of servers: a namespace of their own, the host's, or their own where that is possible."""
