"""What the store keeps with each iteration, so that a run can go on where it was cut off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from mosesplug.errors import StoreError
from mosesplug.store import IterationRecord
from mosesplug.tuning.weights import Weights

__all__ = [
    "Evaluation",
    "IterationResult",
    "IterationStart",
    "ShardLists",
    "evaluations_of",
    "result_of",
    "start_of",
]


@dataclass(frozen=True)
class Evaluation:
    """A translation of the held-out text.

    Attributes:
        updates: of the weights before it: mini-batches online, else iterations.
        score: the metric's.
        weights: that it was translated with, if it is better than all before, else None.
    """

    updates: int
    score: float
    weights: Weights | None = None

    def as_record(self) -> dict[str, Any]:
        """Plain data for the store."""
        record: dict[str, Any] = {"updates": self.updates, "score": self.score}
        return record if self.weights is None else record | _plain(self.weights)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Evaluation:
        """From what ``as_record`` made."""
        weights = _weights(record) if "dense" in record else None
        return cls(int(record["updates"]), float(record["score"]), weights)


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
            **_plain(self.weights),
            "seed": self.seed,
            "settings": dict(self.settings),
            "command": list(self.command),
            "seconds_decoding": self.seconds_decoding,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> IterationStart:
        """From what ``as_record`` made."""
        return cls(
            _weights(record),
            int(record["seed"]),
            {_text(name): _text(value) for name, value in dict(record["settings"]).items()},
            tuple(map(_text, record["command"])),
            float(record["seconds_decoding"]),
        )


@dataclass(frozen=True)
class ShardLists:
    """What is known of lists that lie in the stores of shards.

    Attributes:
        first_best_score: the metric of the decoders' own translations.
        sentences: that have a list.
        hypotheses: of the lists; ``new_hypotheses`` were new to their shard.
    """

    first_best_score: float
    sentences: int
    hypotheses: int
    new_hypotheses: int


@dataclass(frozen=True)
class IterationResult:
    """What the optimizer made of an iteration.

    Attributes:
        weights: for the next decoding.
        optimum: score on the merged lists that the optimizer reports; online that of the
            translations of all batches, each with the weights before its update.
        largest_change: of one weight against those decoded with, or before the epoch.
        seconds_optimising: wall time.
        curve: what the optimizer reports of its steps; of an online learner, one mapping an epoch.
        heldout: translations of the held-out text in this iteration.
        average: online, the mean of the weights after all updates of the run, if it is wanted.
        learner: online, what the learner remembers; only the newest iteration has it.
        shards: online by shards, what is known of the iteration's lists.
    """

    weights: Weights
    optimum: float
    largest_change: float
    seconds_optimising: float
    curve: tuple[Mapping[str, Any], ...] = ()
    heldout: tuple[Evaluation, ...] = ()
    average: Weights | None = None
    learner: Mapping[str, Any] | None = None
    shards: ShardLists | None = None

    def as_record(self) -> dict[str, Any]:
        """Plain data for the store."""
        return {
            **_plain(self.weights),
            "optimum": self.optimum,
            "largest_change": self.largest_change,
            "seconds_optimising": self.seconds_optimising,
            "curve": [dict(point) for point in self.curve],
            "heldout": [evaluation.as_record() for evaluation in self.heldout],
            "average": None if self.average is None else _plain(self.average),
            "learner": self.learner,
            "shards": None if self.shards is None else asdict(self.shards),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> IterationResult:
        """From what ``as_record`` made."""
        return cls(
            _weights(record),
            float(record["optimum"]),
            float(record["largest_change"]),
            float(record["seconds_optimising"]),
            # Stores of version 0.1 lack what follows.
            tuple(map(dict, record.get("curve", ()))),
            tuple(map(Evaluation.of_record, record.get("heldout", ()))),
            _weights(average) if (average := record.get("average")) else None,
            record.get("learner"),
            ShardLists(**shards) if (shards := record.get("shards")) else None,
        )


def _plain(weights: Weights) -> dict[str, Any]:
    return {"dense": list(weights.dense), "sparse": dict(weights.sparse)}


def _weights(record: Mapping[str, Any]) -> Weights:
    dense = tuple(map(float, record["dense"]))
    sparse = {_text(name): float(value) for name, value in dict(record["sparse"]).items()}
    if not all(map(math.isfinite, (*dense, *sparse.values()))):
        raise ValueError("a weight is not finite")
    return Weights(dense, sparse)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


@contextmanager
def _damage_told(iteration: int) -> Iterator[None]:
    """Errors of taking a record apart, as one message.

    Raises:
        StoreError: it is damaged.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"what the n-best store says of iteration {iteration} cannot be read "
            f"({type(error).__name__}: {error}). See what else is damaged (mosesplug nbest "
            "verify), and go on with a copy, or begin in an empty directory"
        ) from None


def start_of(record: IterationRecord) -> IterationStart:
    """The beginning of a stored iteration.

    Raises:
        StoreError: its record is damaged.
    """
    with _damage_told(record.iteration):
        return IterationStart.of_record(record.record)


def result_of(record: IterationRecord) -> IterationResult:
    """The result of a stored iteration that has one.

    Raises:
        ValueError: it has none yet.
        StoreError: its record is damaged.
    """
    if record.result is None:
        raise ValueError(f"iteration {record.iteration} has no result yet")
    with _damage_told(record.iteration):
        return IterationResult.of_record(record.result)


def evaluations_of(records: Sequence[IterationRecord]) -> tuple[Evaluation, ...]:
    """All translations of the held-out text, in order."""
    done = [record for record in records if record.result is not None]
    return tuple(evaluation for record in done for evaluation in result_of(record).heldout)
