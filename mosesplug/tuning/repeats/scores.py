"""What finished runs scored, and how far they are from each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from mosesplug.errors import DataError
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "FinishedRun",
    "Spread",
    "comparable_scores",
    "find_median_run",
    "measure_spread",
    "read_finished_run",
]


@dataclass(frozen=True)
class FinishedRun:
    """A run, and what is known of the weights that it ended with.

    Attributes:
        number: from 1.
        directory: its working directory.
        seed: of its random choices.
        iterations: how many it took.
        reason: why it ended.
        names: of the dense columns.
        weights: those in its ``moses.ini``.
        dev: their score on the tuning set, or None where nobody knows.
        dev_of: what that is one of, as ``summary.Result.scored_on``; None where there is none.
        heldout: their score on the held-out text, or None.
        metric, signature: of the scores.
        settings: what the weights depend on beside files and seed, by name.
    """

    number: int
    directory: Path
    seed: int
    iterations: int
    reason: str
    names: tuple[str, ...]
    weights: Weights
    dev: float | None
    dev_of: str | None
    heldout: float | None
    metric: str
    signature: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Spread:
    """Scores of several runs.

    Attributes:
        runs: how many have one.
        mean: of them.
        optimizer: their standard deviation, s_opt of Clark et al. (2011), section 3.2, with n - 1
            in the denominator; None for fewer than two.
        low, median, high: the least, the middle one (of an even number, half-way between the two)
            and the largest.
    """

    runs: int
    mean: float
    optimizer: float | None
    low: float
    median: float
    high: float


def measure_spread(scores: Sequence[float | None]) -> Spread | None:
    """How runs differ, those without a score left out; None if none has one."""
    known = [score for score in scores if score is not None]
    if not known:
        return None
    deviation = stdev(known) if len(known) > 1 else None
    return Spread(len(known), fmean(known), deviation, min(known), median(known), max(known))


def comparable_scores(runs: Sequence[FinishedRun]) -> tuple[str, tuple[float, ...]]:
    """The scores by which runs are chosen: held-out ones where all have one, else the tuning set's.

    Returns:
        ``heldout`` or ``dev``, and one score a run.

    Raises:
        DataError: not all have any of the two.
    """
    for kind in ("heldout", "dev"):
        scores = [getattr(run, kind) for run in runs]
        if all(score is not None for score in scores):
            return kind, tuple(scores)
    unknown = next(run for run in runs if run.dev is None)
    raise DataError(
        f"{unknown.directory}: its weights are not scored, so it cannot be compared with the"
        " others: give --select average"
    )


def find_median_run(runs: Sequence[FinishedRun]) -> FinishedRun:
    """The run in the middle by its score; of an even number, the lower of the two there.

    Of equal scores, that of the earlier run counts as the lower.

    Raises:
        DataError: not all runs have a score.
    """
    _, scores = comparable_scores(runs)
    order = sorted(range(len(runs)), key=lambda place: scores[place])
    return runs[order[(len(runs) - 1) // 2]]


def read_finished_run(directory: Path, number: int, seed: int) -> FinishedRun:
    """A finished run as its working directory tells it.

    Raises:
        DataError: ``summary.json`` is missing or damaged.
        StoreError: the store cannot be read.
    """
    workspace = Workspace(directory, 0)
    with NBestStore.open(workspace.store) as store:
        last = read_start(store.iterations()[-1])
    n_dense = len(last.weights.dense)
    try:
        summary = json.loads(workspace.summary.read_bytes())
        pairs = [(str(k), float(v)) for k, v in summary["result"]["weights"].items()]
        if len(pairs) < n_dense:
            raise ValueError("too few weights")
        dev, dev_of = _on_tuning_set(summary)
        return FinishedRun(
            number=number,
            directory=directory,
            seed=seed,
            iterations=len(summary["iterations"]),
            reason=str(summary["reason"]),
            names=tuple(name for name, _ in pairs[:n_dense]),
            weights=Weights(tuple(value for _, value in pairs[:n_dense]), dict(pairs[n_dense:])),
            dev=dev,
            dev_of=dev_of,
            heldout=_on_held_out(summary),
            metric=str(summary["metric"]),
            signature=str(summary["signature"]),
            settings=last.settings,
        )
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(
            f"{workspace.summary} is missing or is not the summary of this run: with --continue"
            " the run is ended again if the file is removed"
        ) from error


def _on_tuning_set(summary: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Score of the result on the tuning set, and what it is one of."""
    result, iterations = summary["result"], summary["iterations"]
    if decoded := result["decoded_in_iteration"]:
        return float(iterations[decoded - 1]["first_best_score"]), "decoded"
    if result["score"] is None or result["score_of"] == "heldout":
        return None, None
    return float(result["score"]), str(result["score_of"])


def _on_held_out(summary: Mapping[str, Any]) -> float | None:
    """Score of the result on the held-out text.

    After iteration N the weights that it found are scored; and before the first, the start.
    """
    result = summary["result"]
    judged = [[float(p["score"]) for p in each["heldout"]] for each in summary["iterations"]]
    if result["score_of"] == "heldout":
        return float(result["score"])
    if result["selected"] == "average" or not any(judged):
        return None
    match result["decoded_in_iteration"]:
        case None:
            return judged[-1][-1] if judged[-1] else None
        case 1:
            return judged[0][0] if judged[0] else None
        case iteration:
            return judged[iteration - 2][-1] if judged[iteration - 2] else None
