"""The events of a run, for those who watch it. Watching never changes a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from formats.errors import Message

Phase = Literal["filter", "features", "decode", "score", "optimize", "judge", "compare"]


@dataclass(frozen=True)
class Note:
    """A ``Message`` for the user; ``is_warning`` if it may be unwanted."""

    text: str
    is_warning: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", Message(self.text))


@dataclass(frozen=True)
class CommandStarted:
    """A command starts."""

    command: tuple[str, ...]


@dataclass(frozen=True)
class PhaseStarted:
    """A phase begins; ``iteration`` is 0 before the first."""

    iteration: int
    phase: Phase


@dataclass(frozen=True)
class DecodingProgress:
    """Number of sentences that are decoded so far."""

    iteration: int
    sentences: int
    total: int
    seconds: float


@dataclass(frozen=True)
class GraphsRead:
    """Number of search graphs of an iteration that are read and stored so far.

    ``iteration`` is 0 for graphs that existed before the run.
    """

    iteration: int
    graphs: int
    total: int


@dataclass(frozen=True)
class TextsScored:
    """A score command scored ``done`` of ``total`` texts of a metric.

    Since the last event it scored ``new`` texts, and ``known`` others had scores already.
    """

    metric: str
    done: int
    total: int
    new: int
    known: int


@dataclass(frozen=True)
class OptimizerProgress:
    """The optimizer finished ``done`` of ``total`` parts of ``what``."""

    iteration: int
    done: int
    total: int
    what: str


@dataclass(frozen=True)
class IterationFinished:
    """The end of an iteration: scores of its 1-best and of the new weights.

    ``optimum`` is the score of the new weights on the lists, or on search graphs if
    ``uses_graphs``. ``largest_change`` is the largest change of a weight.
    """

    iteration: int
    metric: str
    first_best_score: float
    optimum: float
    largest_change: float
    hypotheses: int
    uses_graphs: bool = False


@dataclass(frozen=True)
class EpochProgress:
    """Progress of an online epoch: mini-batches decoded and learned from."""

    iteration: int
    batches: int
    total: int
    metric: str
    score: float
    seconds: float


@dataclass(frozen=True)
class EpochLearned:
    """If online, an epoch ended: the score of its 1-best, and the learner's report."""

    iteration: int
    metric: str
    score: float
    report: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class HeldOutScored:
    """The held-out set or a monitor was scored; ``best`` is the highest score before.

    ``updates`` of the weights came before it: mini-batches if online, else iterations. ``monitor``
    is the name of the monitor; empty for the held-out set. ``reported`` has the scores by metrics
    that are reported only, error rates as rates.
    """

    iteration: int
    updates: int
    metric: str
    score: float
    best: float | None
    monitor: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class MetricsReported:
    """The 1-bests of an iteration were scored by metrics that are reported only.

    ``scores`` are by the names of the metrics; error rates are rates.
    """

    iteration: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class RunFinished:
    """The run ended after ``iteration``."""

    iteration: int
    reason: str


Event = (
    Note
    | CommandStarted
    | PhaseStarted
    | DecodingProgress
    | GraphsRead
    | TextsScored
    | OptimizerProgress
    | IterationFinished
    | EpochProgress
    | EpochLearned
    | HeldOutScored
    | MetricsReported
    | RunFinished
)
Watcher = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Do nothing."""
    del event


_scoring_watchers: list[Callable[[TextsScored], object]] = []


@contextmanager
def watch_scoring(show: Callable[[TextsScored], object]) -> Iterator[None]:
    """Call a function with what score commands do within the block, in any thread."""
    _scoring_watchers.append(show)
    try:
        yield
    finally:
        _scoring_watchers.remove(show)


def report_scoring(event: TextsScored) -> None:
    """Tell those who watch what a score command has done."""
    for show in tuple(_scoring_watchers):
        show(event)


class Clock:
    """Wall time since it was made. Events report it; no result depends on it."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the clock was made."""
        return time.monotonic() - self._start
