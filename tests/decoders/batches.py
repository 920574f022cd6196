"""Weights of the stand-in decoder."""

from __future__ import annotations

from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights

__all__ = ["OTHERS", "WEIGHTS"]

WEIGHTS = ModelWeights((WeightGroup("LM0", (0.5,)), WeightGroup("TM0", (-0.25, None))))
OTHERS = ModelWeights((WeightGroup("LM0", (-0.1,)), WeightGroup("TM0", (1e-05, None))))
