"""The scores of finished runs, and their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev

from mosesplug.errors import DataError
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace


@dataclass(frozen=True)
class FinishedRun:
    """A finished run, and the scores of its resulting weights.

    Attributes:
        number: from 1.
        seed: the seed of its random choices.
        names: the names of the dense features.
        weights: those in its ``moses.ini``.
        dev: their score on the tuning set, or None if it is unknown.
        dev_of: which data ``dev`` was computed on, as ``summary.Result.scored_on``, or None.
        heldout: their score on the held-out set, or None.
        metric, signature: the metric of the scores, and its signature.
        settings: by their names, the settings that determine the weights, without files and seed.
        is_start: whether its weights are those that it started with, up to a factor.
        monitors: their score on each monitor, by its name.
        reported: their scores by metrics that are reported only, by name, on the data of ``dev`` or
            else ``heldout``.
        report_signatures: the signature of each of these metrics.
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
    is_start: bool = False
    monitors: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    report_signatures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Spread:
    """Scores of several runs.

    Attributes:
        optimizer: their standard deviation, s_opt of Clark et al. (2011), section 3.2, with n - 1
            in the denominator; None for fewer than two.
        low, median, high: minimum, median and maximum.
    """

    runs: int
    mean: float
    optimizer: float | None
    low: float
    median: float
    high: float


def measure_spread(scores: Sequence[float | None]) -> Spread | None:
    """Return the spread of the known scores, or None if there are none."""
    known = [score for score in scores if score is not None]
    if not known:
        return None
    deviation = stdev(known) if len(known) > 1 else None
    return Spread(len(known), fmean(known), deviation, min(known), median(known), max(known))


def select_scores(runs: Sequence[FinishedRun]) -> tuple[str, tuple[float, ...]]:
    """Return the scores that select a run: held-out scores, or else dev scores.

    Returns:
        ``heldout`` or ``dev``, and one score per run.

    Raises:
        DataError: some runs lack both scores.
    """
    for kind, scores in (
        ("heldout", [run.heldout for run in runs]),
        ("dev", [run.dev for run in runs]),
    ):
        known = [score for score in scores if score is not None]
        if len(known) == len(runs):
            return kind, tuple(known)
    unknown = next(run for run in runs if run.dev is None)
    raise DataError(
        f"{unknown.directory}: its weights are not scored, so it cannot be compared with the"
        " others: give {--select average}"
    )


def find_median_run(runs: Sequence[FinishedRun]) -> FinishedRun:
    """Return the run with the median score.

    Of an even number of runs, it is the lower of the middle two. Of equal scores, that of the
    earlier run counts as lower.

    Raises:
        DataError: some runs have no score.
    """
    _, scores = select_scores(runs)
    order = sorted(range(len(runs)), key=lambda place: scores[place])
    return runs[order[(len(runs) - 1) // 2]]


def read_finished_run(directory: Path, number: int, seed: int) -> FinishedRun:
    """Read a finished run from its working directory.

    Raises:
        DataError: ``summary.json`` is missing or corrupt.
        StoreError: the store cannot be read.
    """
    workspace = Workspace(directory, 0)
    with NBestStore.open(workspace.store) as store:
        records = store.iterations()
        first, last = read_start(records[0]), read_start(records[-1])
    try:
        summary = StoredSummary.read(workspace.summary)
        names, weights = summary.weights(len(last.weights.dense))
        dev, dev_of = summary.dev_score()
        return FinishedRun(
            number=number,
            directory=directory,
            seed=seed,
            iterations=len(summary.document["iterations"]),
            reason=str(summary.document["reason"]),
            names=names,
            weights=weights,
            dev=dev,
            dev_of=dev_of,
            heldout=summary.heldout_score(),
            metric=str(summary.document["metric"]),
            signature=str(summary.document["signature"]),
            settings=last.settings,
            is_start=weights.has_direction(first.weights),
            monitors=dict(summary.document["result"].get("monitors", {})),
            reported=dict(summary.document["result"].get("reported", {})),
            report_signatures=dict(summary.document.get("report_metrics", {})),
        )
    except (DataError, KeyError) as error:
        raise DataError(
            f"{workspace.summary} is missing or is not the summary of this run: with {{--continue}}"
            " the run is ended again if the file is removed"
        ) from error
