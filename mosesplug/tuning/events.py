"""What the loop tells those who watch it. Watching never changes a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CommandStarted",
    "DecodingProgress",
    "EpochLearned",
    "EpochProgress",
    "Event",
    "GraphsRead",
    "HeldOutScored",
    "IterationFinished",
    "Note",
    "OptimizerProgress",
    "PhaseStarted",
    "RunFinished",
    "Watcher",
    "ignore_event",
]

Phase = Literal["filter", "features", "decode", "score", "optimise", "judge", "compare"]


@dataclass(frozen=True)
class Note:
    """Something a person should know, in one sentence; ``warning`` where it may be unwanted."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class CommandStarted:
    """A command is about to run."""

    command: tuple[str, ...]


@dataclass(frozen=True)
class PhaseStarted:
    """A phase begins; ``iteration`` is 0 before the first."""

    iteration: int
    phase: Phase


@dataclass(frozen=True)
class DecodingProgress:
    """So many of the sentences are decoded after so many seconds."""

    iteration: int
    sentences: int
    total: int
    seconds: float


@dataclass(frozen=True)
class GraphsRead:
    """So many of the search graphs that were decoded in an iteration are read and stored.

    ``iteration`` is 0 for those that were there before the run.
    """

    iteration: int
    graphs: int
    total: int


@dataclass(frozen=True)
class OptimizerProgress:
    """The optimizer did ``done`` of ``total`` parts of ``what``."""

    iteration: int
    done: int
    total: int
    what: str


@dataclass(frozen=True)
class IterationFinished:
    """An iteration is over: the score of its first-best, the optimum in the lists, the change.

    ``graphs`` where it is that in the search graphs.
    """

    iteration: int
    metric: str
    first_best_score: float
    optimum: float
    largest_change: float
    hypotheses: int
    graphs: bool = False


@dataclass(frozen=True)
class EpochProgress:
    """Online, so many of an epoch's mini-batches are decoded and learnt from."""

    iteration: int
    batches: int
    total: int
    metric: str
    score: float
    seconds: float


@dataclass(frozen=True)
class EpochLearned:
    """Online, an epoch is over: the score of its translations, and what the learner reports."""

    iteration: int
    metric: str
    score: float
    report: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class HeldOutScored:
    """The held-out text was translated; ``best`` is the highest score before.

    ``updates`` of the weights came before it, mini-batches online, else iterations.
    """

    iteration: int
    updates: int
    metric: str
    score: float
    best: float | None


@dataclass(frozen=True)
class RunFinished:
    """The run is over; the result is that of ``iteration``."""

    iteration: int
    reason: str


Event = (
    Note
    | CommandStarted
    | PhaseStarted
    | DecodingProgress
    | GraphsRead
    | OptimizerProgress
    | IterationFinished
    | EpochProgress
    | EpochLearned
    | HeldOutScored
    | RunFinished
)
Watcher = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """The watcher that looks away."""
    del event
