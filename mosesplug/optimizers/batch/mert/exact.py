"""The best weights of all, for few features and hypotheses.

The search lists all regions of weights that choose the same hypotheses (``regions``), scores the
choice of each, and returns the middle of the best. Galley & Quirk (2011) find it by linear programs
that they prune by bounds of the metric; here any metric will do.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Ints, Weights
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.fits import make_solution
from mosesplug.optimizers.batch.mert.regions import (
    FULL,
    NARROW,
    Regions,
    keep_winners,
    list_regions,
)
from mosesplug.optimizers.problem import Problem, Progress, Solution
from mosesplug.tuning_set import TuningSet

MOST_FEATURES = 6
"""Features that vary; fixed weights together count as one more, and so does the scale of bounds."""

MOST_HYPOTHESES = 1000

MOST_REGIONS = 1_000_000

_FEWER_HYPOTHESES = "Give fewer sentences or shorter lists"
_FEWER_FEATURES = "Tune fewer features ({--drop-feature} NAME)"


@dataclass(frozen=True)
class _Cones:
    """Hypotheses and bounds, so that any positive multiple of weights chooses alike.

    Attributes:
        features: float64 ``[n_hyps, n]``, each divided by its unit.
        bounds: float64 ``[n_bounds, n]``; unit normals of half-spaces that the weights are in.
        columns: int64, the place of each feature among the active ones.
        units: float64 ``[len(columns)]``, the spread of each.
        has_scale: whether the last column is the share of the fixed weights, whose weight is 1.
    """

    features: Floats
    bounds: Floats
    columns: Ints
    units: Floats
    has_scale: bool

    def weights(self, axis: Floats, initial: Floats) -> Floats:
        """Return active weights along an axis; features that never vary keep theirs."""
        own = axis[: len(self.columns)] / self.units
        if self.has_scale:
            own = own / axis[-1]
            scale = 1.0
        else:
            before = np.abs(initial[self.columns]).sum()
            scale = np.abs(own).sum() / before if before > 0.0 else 0.0
        weights = initial * scale
        weights[self.columns] = own
        return weights


def search_exactly(problem: Problem, initial: Weights, progress: Progress) -> Solution:
    """Return the weights with the highest corpus score of all.

    Regions narrower than ``NARROW`` are left out. Of regions with equal scores, the one whose
    hypotheses come first is chosen, sentence by sentence.

    Args:
        problem: n-best lists in this process.
        initial: normalized; it matters to inactive weights, and those of features that never vary.
        progress: is called with the hypotheses of the first sentence that are done.

    Raises:
        OptimizerError: there are too many features, hypotheses or regions; or no weights inside
            the bounds choose any hypotheses.
    """
    if problem.source is not None:
        raise OptimizerError("method=exact requires n-best lists in one process: use method=powell")
    active = problem.active_mask
    filled = np.flatnonzero(np.diff(problem.tuning_set.offsets))
    lists = problem.tuning_set.take_sentences(filled)
    _check_size(lists.n_hyps, MOST_HYPOTHESES, "hypotheses", _FEWER_HYPOTHESES)
    cones = _make_cones(problem, lists, initial)
    n_features = cones.features.shape[1]
    _check_size(n_features, MOST_FEATURES, "features that vary", _FEWER_FEATURES)
    if n_features == 0:
        return make_solution(problem, initial, initial[active], ())
    wins = np.zeros(lists.n_hyps, dtype=np.bool_)
    if not keep_winners(cones.features, lists.offsets, cones.bounds, wins):
        raise _undecided()
    offsets = np.append(0, np.cumsum(wins))[lists.offsets]
    if not np.diff(offsets).all():
        raise OptimizerError(
            f"the bounds leave no room for weights wider than {NARROW:g}: use wider bounds, or"
            " method=powell"
        )
    regions = _list_all(
        cones.features[wins],
        offsets,
        lists.weighted_stats[wins].astype(np.float64),
        cones.bounds,
        problem.threads,
        progress,
    )
    if not regions.size:
        raise OptimizerError("no region of weights is wide enough to be found: use method=powell")
    return _choose(problem, initial, cones, regions)


def _check_size(size: int, most: int, noun: str, remedy: str) -> None:
    if size > most:
        raise OptimizerError(
            f"method=exact takes up to {most:,} {noun}, not {size:,}. {remedy}, or use"
            " method=powell"
        )


def _undecided() -> OptimizerError:
    return OptimizerError(
        "method=exact cannot tell whether a region of weights is empty: features are nearly equal"
        " in the limits of their precision. Use method=powell"
    )


def _make_cones(problem: Problem, lists: TuningSet, initial: Weights) -> _Cones:
    """Arrange features and bounds so that the scale of all weights is free."""
    active = problem.active_mask
    if active[lists.space.n_dense :].any():
        raise OptimizerError("method=exact tunes dense features only")
    dense = lists.dense[:, active[: lists.space.n_dense]].astype(np.float64)
    spread = _spread(dense, lists.offsets)
    columns = np.flatnonzero(spread > 0.0)
    parts = [dense[:, columns] / spread[columns]]
    fixed = lists.model_scores(np.where(active, 0.0, initial))[:, None]
    fixed_spread = float(_spread(fixed, lists.offsets)[0])
    bounds = None if problem.bounds is None else problem.bounds.take(active).take(columns)
    has_scale = fixed_spread > 0.0 or not (bounds is None or bounds.is_cone())
    if has_scale:
        parts.append(fixed)
    features = np.ascontiguousarray(np.concatenate(parts, axis=1))
    rows = []
    unit = np.eye(features.shape[1])
    if has_scale:
        rows.append(unit[-1])
    if problem.positive is not None:
        rows += [unit[place] for place in np.flatnonzero(problem.positive[active][columns])]
    if bounds is not None:
        for place, (low, high) in enumerate(zip(*bounds.box, strict=True)):
            for limit, sign in ((low, 1.0), (high, -1.0)):
                if np.isfinite(limit):
                    row = sign * unit[place]
                    if has_scale:
                        row[-1] = -sign * limit * spread[columns[place]]
                    rows.append(row / np.linalg.norm(row))
    normals = np.array(rows).reshape(len(rows), features.shape[1])
    return _Cones(features, normals, columns, spread[columns], has_scale)


def _spread(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the largest difference of each column inside a sentence."""
    starts = offsets[:-1]
    highest = np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)
    return np.asarray(highest.max(axis=0, initial=0.0))


def _list_all(
    features: Floats,
    offsets: NDArray[np.int64],
    stats: Floats,
    bounds: Floats,
    threads: int,
    progress: Progress,
) -> Regions:
    """List the regions of all hypotheses of the first sentence, in their order."""
    done, total = count(1), int(offsets[1])

    def search(first: int) -> Regions:
        part = list_regions(features, offsets, stats, bounds, first, MOST_REGIONS)
        progress(next(done), total, "regions")
        return part

    parts: list[Regions] = []
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for part in pool.map(search, range(total)):
            if part.size == FULL or sum(each.size for each in (*parts, part)) > MOST_REGIONS:
                pool.shutdown(cancel_futures=True)
                raise OptimizerError(
                    f"method=exact takes up to {MOST_REGIONS:,} regions of weights, and these"
                    f" lists have more. {_FEWER_HYPOTHESES}, or use method=powell"
                )
            if part.size < 0:
                raise _undecided()
            parts.append(part)
    return Regions(
        sum(part.size for part in parts),
        np.concatenate([part.stats for part in parts]),
        np.concatenate([part.axes for part in parts]),
        np.concatenate([part.angles for part in parts]),
    )


def _choose(problem: Problem, initial: Weights, cones: _Cones, regions: Regions) -> Solution:
    """Return the best region's weights; decoding has the last word on their score."""
    scores = np.asarray(problem.metric.score(regions.stats), dtype=np.float64)
    own = initial[problem.active_mask]
    best: Solution | None = None
    for number in np.argsort(-scores, kind="stable").tolist():
        if best is not None and best.score >= scores[number]:
            break
        weights = cones.weights(regions.axes[number], own)
        record = {"regions": regions.size, "angle": float(regions.angles[number])}
        solution = make_solution(problem, initial, weights, (record,))
        if best is None or solution.score > best.score:
            best = solution
    assert best is not None
    note = (
        f"no weights score higher: all {regions.size:,} regions of weights wider than"
        f" {NARROW:g} were compared"
    )
    return replace(best, notes=(note,))
