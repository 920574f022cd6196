"""The figures of a run: a table for people, ``summary.json`` for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mosesplug.errors import DataError
from mosesplug.metrics.scored import BudgetCost
from mosesplug.store import IterationRecord
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    HELD_OUT,
    Evaluation,
    ListFigures,
    list_series,
    read_budget_cost,
    read_list_figures,
    read_result,
    read_start,
)

ScoredOn = Literal["decoded", "lists", "graphs", "learning", "heldout"]
"""Which data the score of a result was computed on; see ``Result``."""


@dataclass(frozen=True)
class IterationFigures(ListFigures):
    """The figures of one iteration.

    Attributes:
        number: from 1.
        optimum: score of the new weights on the merged lists or graphs.
        largest_change: the largest change of one weight.
        curve: the optimizer's report of its steps. An online learner reports epochs: score,
            loss, norm of the weights, number of nonzero weights, updates, and more.
        evaluations: scores of the held-out set and of the monitors.
        reported: scores of the 1-bests by metrics that are reported only, by name.
        budget: the cost of ``--score-budget`` in its lists; None without a budget.
    """

    number: int
    optimum: float
    largest_change: float
    weights: Weights
    seconds_decoding: float
    seconds_optimizing: float
    curve: tuple[Mapping[str, Any], ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    reported: Mapping[str, float] = field(default_factory=dict)
    budget: BudgetCost | None = None

    @property
    def heldout(self) -> tuple[tuple[int, float], ...]:
        """``(updates, score)`` of each decoding of the held-out set."""
        return list_series(self.evaluations).get(HELD_OUT, ())

    @property
    def monitors(self) -> dict[str, tuple[tuple[int, float], ...]]:
        """The same of each monitor, by its name."""
        series = list_series(self.evaluations)
        return {name: scores for name, scores in series.items() if name != HELD_OUT}


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        weights: those in ``moses.ini``.
        chosen_iteration: the iteration that was decoded with them; 0 if none was, because they are
            the optimum of the last iteration's lists.
        score: the score of these weights, or None if none is known.
        names: the names of the dense weights.
        signature: the signature of the scores.
        seed: the seed of all random choices.
        selection: how the weights were chosen, a value of ``--select``.
        is_online: whether each iteration was an epoch of learning while decoding.
        scored_on: which data the score was computed on: ``decoded``, the 1-best hypotheses of
            that iteration; ``lists``, the merged lists at the end; ``graphs``, the search graphs of
            all iterations; ``learning``, the 1-best hypotheses of the last epoch, each decoded
            with the weights of its moment; ``heldout``, the held-out set.
        uses_graphs: whether the algorithm learned from search graphs, so that optima are scores on
            them.
        warnings: signs that something is wrong, in sentences.
        monitors: the score of each monitor with these weights, by its name.
        reported: scores of the translations of ``score`` by metrics that are reported only, by
            name; empty if unknown.
        reported_monitors: the same of each monitor, by its name.
        report_signatures: the signature of each of these metrics.
        scored_at_end: with ``--score-budget``, the number of left-out hypotheses that these weights
            choose, which were scored after the last iteration; None if nothing was looked for.
        score_before: the score without these hypotheses.
    """

    weights: Weights
    chosen_iteration: int
    score: float | None
    names: tuple[str, ...]
    metric: str
    signature: str
    algorithm: str
    seed: int
    reason: str
    iterations: tuple[IterationFigures, ...]
    selection: str = "last"
    is_online: bool = False
    scored_on: ScoredOn | None = None
    uses_graphs: bool = False
    warnings: tuple[str, ...] = ()
    monitors: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    reported_monitors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    report_signatures: Mapping[str, str] = field(default_factory=dict)
    scored_at_end: int | None = None
    score_before: float | None = None

    def as_json(self, finished: str, version: str) -> bytes:
        """Return ``summary.json``.

        Only ``finished`` and ``seconds`` differ between equal runs.
        """
        document = {
            "program": f"mosesplug {version}",
            "finished": finished,
            "reason": self.reason,
            "online": self.is_online,
            "learned_from": "search graphs" if self.uses_graphs else "lists",
            "algorithm": self.algorithm,
            "metric": self.metric,
            "signature": self.signature,
            **_if_any("report_metrics", self.report_signatures),
            "seed": self.seed,
            "warnings": list(self.warnings),
            "result": {
                "selected": self.selection,
                "decoded_in_iteration": self.chosen_iteration or None,
                "score": self.score,
                "score_of": self.scored_on,
                **_if_any("reported", self.reported),
                **_if_any("monitors", self.monitors),
                **_if_any("reported_monitors", self.reported_monitors),
                **(
                    {}
                    if self.scored_at_end is None
                    else {
                        "score_budget": {
                            "scored_at_end": self.scored_at_end,
                            "score_before": self.score_before,
                        }
                    }
                ),
                "weights": self.weights.by_name(self.names),
            },
            "iterations": [self._iteration(iteration) for iteration in self.iterations],
        }
        return (json.dumps(document, indent=1) + "\n").encode()

    def _iteration(self, iteration: IterationFigures) -> dict[str, Any]:
        return {
            "iteration": iteration.number,
            "first_best_score": iteration.first_best_score,
            "optimum": iteration.optimum,
            "largest_change": iteration.largest_change,
            "sentences": iteration.sentences,
            "hypotheses": iteration.hypotheses,
            "new_hypotheses": iteration.new_hypotheses,
            **({} if iteration.budget is None else {"score_budget": asdict(iteration.budget)}),
            "weights": iteration.weights.by_name(self.names),
            "curve": [dict(point) for point in iteration.curve],
            **_if_any("reported", iteration.reported),
            "heldout": _list_scores(iteration.evaluations, HELD_OUT),
            **_if_any(
                "monitors",
                {name: _list_scores(iteration.evaluations, name) for name in iteration.monitors},
            ),
            "seconds": {
                "decoding": round(iteration.seconds_decoding, 3),
                "optimizing": round(iteration.seconds_optimizing, 3),
            },
        }


def _if_any(key: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {key: dict(values)} if values else {}


def _list_scores(evaluations: Iterable[Evaluation], name: str) -> list[dict[str, Any]]:
    """Return the scores of the held-out set or of a monitor."""
    return [
        {
            "updates": evaluation.updates,
            "score": evaluation.scores()[name],
            **_if_any("reported", evaluation.reported.get(name, {})),
        }
        for evaluation in evaluations
        if name in evaluation.scores()
    ]


def summarize_iterations(records: Sequence[IterationRecord]) -> tuple[IterationFigures, ...]:
    """Return the figures of all finished iterations."""
    figures = []
    for record in records:
        if record.result is None:
            continue
        start = read_start(record)
        result = read_result(record)
        figures.append(
            IterationFigures(
                **asdict(read_list_figures(record)),
                number=record.iteration,
                optimum=result.optimum,
                largest_change=result.largest_change,
                weights=start.weights,
                seconds_decoding=start.seconds_decoding,
                seconds_optimizing=result.seconds_optimizing,
                curve=result.curve,
                evaluations=result.heldout,
                reported=result.reported,
                budget=read_budget_cost(record),
            )
        )
    return tuple(figures)


@dataclass(frozen=True)
class StoredSummary:
    """The ``summary.json`` of a finished run."""

    path: Path
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> StoredSummary:
        """Read the file.

        Raises:
            DataError: it is missing or corrupt.
        """
        with _require_well_formed(path):
            document = json.loads(path.read_bytes())
            return cls(path, {**document, "result": dict(document["result"])})

    @property
    def decoded_in_iteration(self) -> int | None:
        """The iteration that was decoded with the resulting weights."""
        with _require_well_formed(self.path):
            decoded: int | None = self.document["result"]["decoded_in_iteration"]
            return decoded

    def weights(self, n_dense: int) -> tuple[tuple[str, ...], Weights]:
        """Return the names of the dense weights, and the resulting weights.

        Dense weights come first in the file.

        Raises:
            DataError: there are fewer than ``n_dense``.
        """
        with _require_well_formed(self.path):
            items = self.document["result"]["weights"].items()
            pairs = [(str(name), float(value)) for name, value in items]
            if len(pairs) < n_dense:
                raise ValueError("too few weights")
            dense = tuple(value for _, value in pairs[:n_dense])
            return tuple(name for name, _ in pairs[:n_dense]), Weights(dense, dict(pairs[n_dense:]))

    def dev_score(self) -> tuple[float | None, str | None]:
        """Return the result's score on the tuning set, and the data it was scored on."""
        with _require_well_formed(self.path):
            result, iterations = self.document["result"], self.document["iterations"]
            if decoded := result["decoded_in_iteration"]:
                return float(iterations[decoded - 1]["first_best_score"]), "decoded"
            if result["score"] is None or result["score_of"] == "heldout":
                return None, None
            return float(result["score"]), str(result["score_of"])

    def heldout_score(self) -> float | None:
        """Return the score of the result on the held-out set.

        The starting weights are scored before iteration 1, and new weights after each iteration.
        """
        with _require_well_formed(self.path):
            result, iterations = self.document["result"], self.document["iterations"]
            scores = [
                [float(evaluation["score"]) for evaluation in one["heldout"]] for one in iterations
            ]
            if result["score_of"] == "heldout":
                return float(result["score"])
            if result["selected"] == "average" or not any(scores):
                return None
            match result["decoded_in_iteration"]:
                case None:
                    return scores[-1][-1] if scores[-1] else None
                case 1:
                    return scores[0][0] if scores[0] else None
                case iteration:
                    return scores[iteration - 2][-1] if scores[iteration - 2] else None


@contextmanager
def _require_well_formed(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is missing or is not the summary of this run") from error
