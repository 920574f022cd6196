"""The records that the store keeps with each iteration.

A killed run resumes from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mosesplug.errors import StoreError
from mosesplug.metrics.scored import BudgetCost
from mosesplug.store import IterationRecord
from mosesplug.store.stored import convert
from mosesplug.tuning.weights import Weights

HELD_OUT = ""
"""The name of the held-out set, where monitors have theirs."""

REPORTED = "reported metric "
"""With the name of a metric that is reported only, the name of its signature in the store."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of one decoding of the held-out set and of the monitors.

    Attributes:
        updates: number of updates of the weights before it: mini-batches if online, else
            iterations.
        score: of the held-out set; None if it was not decoded.
        weights: that it was decoded with, if this score is a new best, else None.
        monitors: the score of each monitor by its name.
        reported: scores by metrics that are reported only, by the name of the set and that of the
            metric.
    """

    updates: int
    score: float | None = None
    weights: Weights | None = None
    monitors: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def scores(self) -> dict[str, float]:
        """Return the scores by the names of the sets; that of the held-out set is empty."""
        return ({} if self.score is None else {HELD_OUT: self.score}) | dict(self.monitors)

    def join(self, other: Evaluation) -> Evaluation:
        """Return the scores of both, which have the same weights and other sets."""
        first = self if other.score is None else other
        monitors = {**self.monitors, **other.monitors}
        reported = {**self.reported, **other.reported}
        return Evaluation(self.updates, first.score, first.weights, monitors, reported)

    def as_record(self) -> dict[str, Any]:
        """Return plain data for the store."""
        record: dict[str, Any] = {"updates": self.updates}
        if self.score is not None:
            record["score"] = self.score
        if self.monitors:
            record["monitors"] = dict(self.monitors)
        if self.reported:
            record["reported"] = {name: dict(scores) for name, scores in self.reported.items()}
        return record if self.weights is None else record | _encode_weights(self.weights)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Evaluation:
        """Return the inverse of ``as_record``."""
        if not record.get("monitors"):
            record["score"]  # one of them is there
        return convert({**record, "weights": record if "dense" in record else None}, cls)


IMPORTED = "imported from"
"""The only setting of imported lists: their file."""


@dataclass(frozen=True)
class IterationStart:
    """What is known of an iteration when its n-best lists are stored.

    Attributes:
        weights: that it was decoded with, before any normalization.
        settings: settings that determine the results, by name, to compare with a resumed run.
        command: the decoder's command line.
        budget: the cost of ``--score-budget`` in its lists; None without a budget.
    """

    weights: Weights
    seed: int
    settings: Mapping[str, str]
    command: tuple[str, ...]
    seconds_decoding: float
    budget: BudgetCost | None = None

    @property
    def is_imported(self) -> bool:
        """Whether the lists were imported, so that seed, command and time are unknown."""
        return IMPORTED in self.settings

    def as_record(self) -> dict[str, Any]:
        """Return plain data for the store."""
        return {
            **_encode_weights(self.weights),
            "seed": self.seed,
            "settings": dict(self.settings),
            "command": list(self.command),
            "seconds_decoding": self.seconds_decoding,
            **({} if self.budget is None else {"budget": asdict(self.budget)}),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> IterationStart:
        """Return the inverse of ``as_record``."""
        return convert({**record, "weights": record}, cls)


@dataclass(frozen=True)
class ListFigures:
    """Figures of the n-best lists of an iteration, whether they are kept or not.

    Attributes:
        first_best_score: corpus score of the decoders' 1-best hypotheses.
        sentences: the number of sentences with an n-best list.
        hypotheses: in the lists; ``new_hypotheses`` were new to their store.
    """

    first_best_score: float
    sentences: int
    hypotheses: int
    new_hypotheses: int


@dataclass(frozen=True)
class IterationResult:
    """The result of an iteration.

    Attributes:
        optimum: score on the merged lists that the optimizer reports; if online, the score of
            all mini-batches, each decoded with the weights before its update.
        largest_change: the largest change of one weight against those decoded with, or before the
            epoch.
        curve: the optimizer's report of its steps; for online learners, one mapping per epoch.
        heldout: scores of the held-out set and of the monitors in this iteration.
        average: if online and wanted, the mean of the weights after all updates of the run.
        learner: if online, the learner's state; only the newest iteration has it.
        elsewhere: if online, figures of the iteration's n-best lists, if the run's store has none:
            shards have them, or they are not kept.
        signs: name and message of each warning sign in the lists of the first epoch, if these are
            not kept; else None.
        unscored_first_bests: number of sentences in which the new weights choose a hypothesis that
            ``--score-budget`` left out of the iteration; None if it is unknown.
        is_evaluated: whether held-out set and monitors were scored, if there are any. The store
            keeps the weights before, since their decoder may fail.
        reported: scores of the decoder's 1-bests by metrics that are reported only, by name. They
            come with ``is_evaluated``.
    """

    weights: Weights
    optimum: float
    largest_change: float
    seconds_optimizing: float
    curve: tuple[Mapping[str, Any], ...] = ()
    heldout: tuple[Evaluation, ...] = ()
    average: Weights | None = None
    learner: Mapping[str, Any] | None = None
    elsewhere: ListFigures | None = None
    signs: tuple[tuple[str, str], ...] | None = None
    unscored_first_bests: int | None = None
    is_evaluated: bool = True
    reported: Mapping[str, float] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return plain data for the store."""
        return {
            **_encode_weights(self.weights),
            "optimum": self.optimum,
            "largest_change": self.largest_change,
            # The spelling of this key is that of stored runs.
            "seconds_optimising": self.seconds_optimizing,
            "curve": [dict(point) for point in self.curve],
            "heldout": [evaluation.as_record() for evaluation in self.heldout],
            "average": None if self.average is None else _encode_weights(self.average),
            "learner": self.learner,
            # The spelling of this key is that of stored runs.
            "shards": None if self.elsewhere is None else asdict(self.elsewhere),
            **({} if self.signs is None else {"signs": [list(sign) for sign in self.signs]}),
            **(
                {}
                if self.unscored_first_bests is None
                else {"unscored_first_bests": self.unscored_first_bests}
            ),
            **({} if self.is_evaluated else {"is_evaluated": False}),
            **({"reported": dict(self.reported)} if self.reported else {}),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> IterationResult:
        """Return the inverse of ``as_record``."""
        heldout = tuple(map(Evaluation.of_record, record.get("heldout", ())))
        seconds = record["seconds_optimising"]
        plain = {
            **record,
            "weights": record,
            "seconds_optimizing": seconds,
            "heldout": (),
            "elsewhere": record.get("shards"),
        }
        return replace(convert(plain, cls), heldout=heldout)


def _encode_weights(weights: Weights) -> dict[str, Any]:
    return {"dense": list(weights.dense), "sparse": dict(weights.sparse)}


def read_budget_cost(record: IterationRecord) -> BudgetCost | None:
    """Return the cost of the score budget in an iteration; None without a budget.

    Raises:
        StoreError: the record is corrupt.
    """
    cost = read_start(record).budget
    if cost is None or record.result is None:
        return cost
    return replace(cost, unscored_first_bests=read_result(record).unscored_first_bests)


@contextmanager
def _name_corrupt_records(iteration: int) -> Iterator[None]:
    """Turn errors of decoding a record into one ``StoreError``."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"corrupt record of iteration {iteration} in the n-best store "
            f"({type(error).__name__}: {error}). Find other damage with mosesplug nbest verify, and"
            " continue from a copy, or start in an empty directory"
        ) from None


def read_start(record: IterationRecord) -> IterationStart:
    """Return the record stored with the n-best lists of an iteration.

    Raises:
        StoreError: the record is corrupt.
    """
    with _name_corrupt_records(record.iteration):
        return IterationStart.of_record(record.record)


def read_result(record: IterationRecord) -> IterationResult:
    """Return the result of a finished iteration.

    Raises:
        ValueError: the iteration is not finished.
        StoreError: the record is corrupt.
    """
    if record.result is None:
        raise ValueError(f"iteration {record.iteration} has no result yet")
    with _name_corrupt_records(record.iteration):
        return IterationResult.of_record(record.result)


def is_finished(record: IterationRecord) -> bool:
    """Return whether an iteration has its weights and its held-out scores."""
    return record.result is not None and record.result.get("is_evaluated", True)


NOT_KEPT = {"lists": "not kept"}
"""The setting, as the store has it, of an epoch whose lists are not kept."""


def keeps_lists(record: IterationRecord) -> bool:
    """Return whether the lists of an iteration stay when its result is stored."""
    return not NOT_KEPT.items() <= dict(record.record.get("settings", {})).items()


def read_list_figures(record: IterationRecord) -> ListFigures:
    """Return the figures of the n-best lists of an iteration.

    Raises:
        StoreError: the record is corrupt.
    """
    # Of all iterations, after each: weights and the learner's state are not decoded.
    with _name_corrupt_records(record.iteration):
        if elsewhere := (record.result or {}).get("shards"):
            return convert(elsewhere, ListFigures)
    return ListFigures(
        record.first_best_score, record.n_lists, record.hypotheses, record.new_hypotheses
    )


def read_evaluations(records: Sequence[IterationRecord]) -> tuple[Evaluation, ...]:
    """Return all scores of the held-out set and of the monitors, in order."""
    evaluations: list[Evaluation] = []
    for record in records:
        with _name_corrupt_records(record.iteration):
            evaluations += map(Evaluation.of_record, (record.result or {}).get("heldout", ()))
    return tuple(evaluations)


def list_series(evaluations: Sequence[Evaluation]) -> dict[str, tuple[tuple[int, float], ...]]:
    """Return ``(updates, score)`` of each decoding of each set, by its name."""
    series: dict[str, tuple[tuple[int, float], ...]] = {}
    for evaluation in evaluations:
        for name, score in evaluation.scores().items():
            series[name] = (*series.get(name, ()), (evaluation.updates, score))
    return series


_OPTION = re.compile(r"(\w+=.*?)(?:, (?=\w+=)|\)$)")
"""An option in the text of an algorithm: ``sgd SgdOptions(epochs=3, rate=0.02)``."""


def list_changes(earlier: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the settings that differ, each with both values.

    Of an algorithm with other options, these options alone are listed.
    """
    changes = []
    for name, value in now.items():
        # An older version that did not know a setting ran with its default.
        before = earlier.get(name, value)
        if before == value:
            continue
        (head, _, old), (other, _, new) = before.partition("("), value.partition("(")
        if name == "algorithm" and head == other:
            options, others = _OPTION.findall(old), _OPTION.findall(new)
            before = ", ".join(option for option in options if option not in others)
            value = ", ".join(option for option in others if option not in options)
        changes.append(f"{name}: {before or 'not set'} -> {value or 'not set'}")
    return changes
