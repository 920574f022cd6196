"""What the store keeps with each iteration, so that a run can go on where it was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mosesplug.store import IterationRecord
from mosesplug.tuning.weights import Weights

__all__ = ["IterationResult", "IterationStart", "result_of", "start_of"]


@dataclass(frozen=True)
class IterationStart:
    """An iteration when its lists are stored.

    Attributes:
        weights: at which the lists were decoded, before any normalisation.
        seed: of the run.
        settings: what the results depend on, by name, to compare with a resumed run's.
        command: the decoder's.
        seconds_decoding: wall time.
    """

    weights: Weights
    seed: int
    settings: Mapping[str, str]
    command: tuple[str, ...]
    seconds_decoding: float

    def as_record(self) -> dict[str, Any]:
        """Plain data for the store."""
        return {
            "dense": list(self.weights.dense),
            "sparse": dict(self.weights.sparse),
            "seed": self.seed,
            "settings": dict(self.settings),
            "command": list(self.command),
            "seconds_decoding": self.seconds_decoding,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> IterationStart:
        """From what ``as_record`` made."""
        return cls(
            Weights(tuple(record["dense"]), dict(record["sparse"])),
            record["seed"],
            dict(record["settings"]),
            tuple(record["command"]),
            record["seconds_decoding"],
        )


@dataclass(frozen=True)
class IterationResult:
    """What the optimizer made of an iteration.

    Attributes:
        weights: for the next decoding.
        optimum: score on the merged lists that the optimizer reports.
        largest_change: of one weight against those decoded with.
        seconds_optimising: wall time.
    """

    weights: Weights
    optimum: float
    largest_change: float
    seconds_optimising: float

    def as_record(self) -> dict[str, Any]:
        """Plain data for the store."""
        return {
            "dense": list(self.weights.dense),
            "sparse": dict(self.weights.sparse),
            "optimum": self.optimum,
            "largest_change": self.largest_change,
            "seconds_optimising": self.seconds_optimising,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> IterationResult:
        """From what ``as_record`` made."""
        return cls(
            Weights(tuple(record["dense"]), dict(record["sparse"])),
            record["optimum"],
            record["largest_change"],
            record["seconds_optimising"],
        )


def start_of(record: IterationRecord) -> IterationStart:
    """The beginning of a stored iteration."""
    return IterationStart.of_record(record.record)


def result_of(record: IterationRecord) -> IterationResult:
    """The result of a stored iteration that has one.

    Raises:
        ValueError: it has none yet.
    """
    if record.result is None:
        raise ValueError(f"iteration {record.iteration} has no result yet")
    return IterationResult.of_record(record.result)
