"""The error surface along one line: how the score moves, and which sentences move it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.inspection.lists import sentence_scores
from mosesplug.inspection.run import Run
from mosesplug.inspection.texts import decode_text
from mosesplug.optimizers.line_search.lists import search_space
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import start_of
from mosesplug.tuning_set import TuningSet

__all__ = ["Line", "Moved", "line_of", "moved_sentences"]

_BETWEEN = re.compile(r"([0-9]+):([0-9]+)")
_NARROWEST = 1e-9


@dataclass(frozen=True)
class Line:
    """The score of the merged lists along a line.

    Attributes:
        what: the line, in words.
        axis: what the steps are: ``weight of LM0_0``, ``step``.
        origin: float64 ``[n_features]``, the weights at step 0.
        direction: float64 ``[n_features]``.
        shift: what is added to a step to give a place on the axis.
        thresholds: float64 ``[m]``, ascending, in steps; no two at one place.
        scores: float64 ``[m + 1]``, between them.
    """

    what: str
    axis: str
    origin: NDArray[np.float64]
    direction: NDArray[np.float64]
    shift: float
    thresholds: NDArray[np.float64]
    scores: NDArray[np.float64]

    def at(self, step: float) -> float:
        """The score at a step; at a threshold, right of it."""
        return float(self.scores[np.searchsorted(self.thresholds, step, side="right")])

    def best(self, low: float, high: float) -> tuple[float, float, float]:
        """Ends and score of the best interval between two steps; among equals the widest."""
        inside = (self.thresholds > low) & (self.thresholds < high)
        ends = np.concatenate([[low], self.thresholds[inside], [high]])
        first = int(np.searchsorted(self.thresholds, low, side="right"))
        scores = self.scores[first : first + len(ends) - 1]
        best = np.flatnonzero(scores == scores.max())
        widest = int(best[np.argmax(np.diff(ends)[best])])
        return float(ends[widest]), float(ends[widest + 1]), float(scores[widest])


@dataclass(frozen=True)
class Moved:
    """A sentence whose first-best differs between two points.

    Attributes:
        sentence: line of the input, from 0.
        before, after: what is chosen at the two points.
        before_score, after_score: their metric (BLEU+1 for BLEU).
    """

    sentence: int
    before: str
    after: str
    before_score: float
    after_score: float


def line_of(run: Run, merged: TuningSet, direction: str, origin: Weights | None = None) -> Line:
    """The score along a line.

    Args:
        run: the run.
        merged: its lists, merged.
        direction: a feature (``LM0_0``, or a group of one value), whose weight changes; or ``N:M``,
            the way from the weights of iteration N (step 0) to those of M (step 1).
        origin: where the line of a feature starts; None: the run's result. It is normalised.

    Raises:
        UsageError: no such feature, or a group of several.
        DataError: no such iteration, or two with the same weights.
    """
    between = _BETWEEN.fullmatch(direction)
    if between:
        if origin is not None:
            raise UsageError("weights are given by the iterations: leave out --weights")
        numbers = int(between[1]), int(between[2])
        start, end = (_decoded_with(run, number) for number in numbers)
        what = f"from the weights of iteration {numbers[0]} (0) to those of {numbers[1]} (1)"
        return _along(run, merged, what, "step", start, end - start, 0.0)
    column = _column(run, direction)
    start = (origin or run.weights).normalised().vector(run.space)
    axis = np.zeros(len(start))
    axis[column] = 1.0
    name = run.space.names[column]
    return _along(
        run,
        merged,
        f"as the weight of {name} changes",
        f"weight of {name}",
        start,
        axis,
        float(start[column]),
    )


def _decoded_with(run: Run, iteration: int) -> NDArray[np.float64]:
    if not 1 <= iteration <= len(run.records):
        raise DataError(f"there is no iteration {iteration}: the store has {len(run.records)}")
    return start_of(run.records[iteration - 1]).weights.normalised().vector(run.space)


def _column(run: Run, name: str) -> int:
    """The column of a feature.

    Raises:
        UsageError: there is none of that name, or several.
    """
    names = list(run.space.names)
    candidates = [name, f"{name}_0"] if f"{name}_1" not in names else [name]
    for candidate in candidates:
        if candidate in names:
            return names.index(candidate)
    near = ", ".join(names[: run.space.n_dense])
    raise UsageError(f"there is no feature {name}: there are {near}, and sparse ones")


def _along(
    run: Run,
    merged: TuningSet,
    what: str,
    axis: str,
    origin: NDArray[np.float64],
    direction: NDArray[np.float64],
    shift: float,
) -> Line:
    active = direction != 0.0
    if not active.any():
        raise DataError("both iterations have the same weights: there is no line between them")
    space = search_space(Problem(merged, run.metric, active=active), origin)
    ((thresholds, scores),) = space.searcher(1).along(
        direction[active][np.newaxis], space.at(origin[active])
    )
    # Between thresholds that coincide there are no weights, whatever the score there.
    apart = np.diff(thresholds, append=np.inf) > _NARROWEST
    return Line(
        what,
        axis,
        origin,
        direction,
        shift,
        np.array(thresholds[apart]),
        np.concatenate([scores[:1], scores[1:][apart]]),
    )


def moved_sentences(run: Run, merged: TuningSet, line: Line, step: float) -> list[Moved]:
    """The sentences whose first-best at a step is not that at step 0.

    Those that the score owes most to come first.
    """
    here = merged.first_best(line.origin)
    there = merged.first_best(line.origin + step * line.direction)
    changed = np.flatnonzero(here != there)
    scores = sentence_scores(run.metric, merged.stats)
    filled = np.flatnonzero(np.diff(merged.offsets) > 0)
    found = []
    for place in changed.tolist():
        sentence = int(filled[place])
        texts = run.store.hypotheses(sentence)
        first = int(merged.offsets[sentence])
        before, after = int(here[place]), int(there[place])
        found.append(
            Moved(
                sentence,
                decode_text(texts[before - first]),
                decode_text(texts[after - first]),
                float(scores[before]),
                float(scores[after]),
            )
        )
    return sorted(found, key=lambda each: -abs(each.after_score - each.before_score))
