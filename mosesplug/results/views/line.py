"""The error surface along one line.

It shows how the score changes, and which sentences change it.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError, suggest
from mosesplug.metrics.protocol import score_sentences
from mosesplug.optimizers.problem import Problem
from mosesplug.results.report.data import ErrorSurface
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import decode_text
from mosesplug.settings.spellings import spell_range
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import TuningSet

_ITERATIONS = re.compile(r"([0-9]+):([0-9]+)")
_NARROWEST = 1e-9


@dataclass(frozen=True)
class LineSurface:
    """The score of the merged lists along a line.

    Attributes:
        axis: what the axis shows: ``weight of LM0_0``, or ``step``.
        origin: float64 ``[n_features]``, the weights at step 0.
        direction: float64 ``[n_features]``, the direction of the line.
        shift: position of step 0 on the axis.
        start: the score at step 0. If hypotheses tie there, the first of each sentence counts, as
            in decoding, so it may be the score of neither interval.
        thresholds: float64 ``[m]``, steps at which a 1-best changes, ascending and distinct.
        scores: float64 ``[m + 1]``, the score of each interval.
    """

    what: str
    axis: str
    origin: NDArray[np.float64]
    direction: NDArray[np.float64]
    shift: float
    start: float
    thresholds: NDArray[np.float64]
    scores: NDArray[np.float64]

    def best_interval(self, low: float, high: float) -> tuple[float, float, float]:
        """Return the best interval between two steps; the widest wins ties.

        Returns:
            Its ends and its score.
        """
        ends, scores = self._crop(low, high)
        best = np.flatnonzero(scores == scores.max())
        widest = int(best[np.argmax(np.diff(ends)[best])])
        return float(ends[widest]), float(ends[widest + 1]), float(scores[widest])

    def find_range(self, low: float | None, high: float | None) -> tuple[float, float]:
        """Return the steps between two positions on the axis.

        None stands for an end of a range around the start.

        Raises:
            UsageError: ``low`` is not less than ``high``.
        """
        reach = max(2.0 * abs(self.shift), 0.2)
        ends = (-0.5, 1.5) if self.axis == "step" else (-reach, reach)
        first = ends[0] if low is None else low - self.shift
        last = ends[1] if high is None else high - self.shift
        if first >= last:
            raise UsageError(
                f"{{--from}} {first + self.shift:g} must be less than {{--to}} "
                f"{last + self.shift:g}"
            )
        return first, last

    def sample(self, low: float, high: float, count: int) -> list[tuple[float, float, float]]:
        """Return ends and best score of ``count`` parts of equal width between two steps."""
        width = (high - low) / count
        parts = [(low + row * width, low + (row + 1) * width) for row in range(count)]
        return [(*part, self.best_interval(*part)[2]) for part in parts]

    def surface(self, low: float, high: float) -> ErrorSurface:
        """Return the error surface between two steps, in positions on the axis."""
        ends, _ = self._crop(low, high)
        scores = [self.best_interval(a, b)[2] for a, b in itertools.pairwise(ends.tolist())]
        return ErrorSurface(self.axis, self.shift, ends + self.shift, np.array(scores))

    def _crop(self, low: float, high: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        inside = (self.thresholds > low) & (self.thresholds < high)
        ends = np.concatenate([[low], self.thresholds[inside], [high]])
        first = int(np.searchsorted(self.thresholds, low, side="right"))
        return ends, self.scores[first : first + len(ends) - 1]


@dataclass(frozen=True)
class ChangedSentence:
    """A sentence whose 1-best differs between two weight vectors.

    Attributes:
        before, after: the 1-best hypotheses.
    """

    sentence: int
    before: str
    after: str
    before_score: float
    after_score: float


def trace_line(
    run: StoredRun, merged: TuningSet, direction: str, origin: Weights | None = None
) -> LineSurface:
    """Compute the score of the merged lists along a line.

    Args:
        direction: a feature (``LM0_0``, or a group of one value), whose weight changes; or ``N:M``
            for the line from the weights of iteration N (step 0) to those of M (step 1).
        origin: where the line of a feature starts; None for the run's result. It is normalized.

    Raises:
        UsageError: there is no such feature, or it is a group of several values.
        DataError: there is no such iteration, or both have the same weights.
    """
    iterations = _ITERATIONS.fullmatch(spell_range(direction))
    if iterations:
        if origin is not None:
            raise UsageError("the iterations give the weights: leave out {--weights}")
        first, second = int(iterations[1]), int(iterations[2])
        start, end = (
            run.decoding_weights(number).normalize().vector(run.space) for number in (first, second)
        )
        what = f"from the weights of iteration {first} (0) to those of {second} (1)"
        return _trace(run, merged, what, "step", start, end - start, 0.0)
    column = _find_column(run, direction)
    start = (origin or run.weights).normalize().vector(run.space)
    axis = np.zeros(len(start))
    axis[column] = 1.0
    name, shift = run.space.names[column], float(start[column])
    what = f"as the weight of {name} changes"
    return _trace(run, merged, what, f"weight of {name}", start, axis, shift)


def _find_column(run: StoredRun, name: str) -> int:
    """Return the column of a feature."""
    names = list(run.space.names)
    candidates = [name, f"{name}_0"] if f"{name}_1" not in names else [name]
    for candidate in candidates:
        if candidate in names:
            return names.index(candidate)
    dense = ", ".join(names[: run.space.n_dense])
    others = ", and sparse ones" if run.space.n_sparse else ""
    raise UsageError(f"there is no feature {name}: there are {dense}{others}{suggest(name, names)}")


def _trace(
    run: StoredRun,
    merged: TuningSet,
    what: str,
    axis: str,
    origin: NDArray[np.float64],
    direction: NDArray[np.float64],
    shift: float,
) -> LineSurface:
    active = direction != 0.0
    if not active.any():
        raise DataError("both iterations have the same weights: there is no line between them")
    space = Problem(merged, run.metric).candidates.lines(active, origin)
    point = space.at(origin[active])
    ((thresholds, scores),) = space.along(direction[active][np.newaxis], point)
    # Drop empty intervals between thresholds that coincide.
    apart = np.diff(thresholds, append=np.inf) > _NARROWEST
    return LineSurface(
        what,
        axis,
        origin,
        direction,
        shift,
        space.decode(point),
        np.array(thresholds[apart]),
        np.concatenate([scores[:1], scores[1:][apart]]),
    )


def find_changed_sentences(
    run: StoredRun, merged: TuningSet, line: LineSurface, step: float
) -> list[ChangedSentence]:
    """Return the sentences whose 1-best changes between step 0 and ``step``.

    Those whose sentence score changes most come first.
    """
    here = merged.first_best(line.origin)
    there = merged.first_best(line.origin + step * line.direction)
    scores = score_sentences(run.metric, merged.stats)
    filled = np.flatnonzero(np.diff(merged.offsets) > 0)
    found = []
    for place in np.flatnonzero(here != there).tolist():
        sentence = int(filled[place])
        texts = run.store.hypotheses(sentence)
        first = int(merged.offsets[sentence])
        before, after = int(here[place]), int(there[place])
        found.append(
            ChangedSentence(
                sentence,
                decode_text(texts[before - first]),
                decode_text(texts[after - first]),
                float(scores[before]),
                float(scores[after]),
            )
        )
    return sorted(found, key=lambda each: -abs(each.after_score - each.before_score))
