"""The tuning loop: decode, store, optimise, write weights, and again until nothing moves."""

from __future__ import annotations

from mosesplug.tuning.configuration import Configuration, Decoding, Filtering, Optimising
from mosesplug.tuning.loop import tune
from mosesplug.tuning.summary import Result

__all__ = ["Configuration", "Decoding", "Filtering", "Optimising", "Result", "tune"]
