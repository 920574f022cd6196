"""The error surface along one line.

It shows how the score changes, and which sentences change it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError, explain_unknown_feature
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.metrics.protocol import score_sentences
from mosesplug.optimizers.problem import Problem
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable
from mosesplug.results.report.data import ErrorSurface
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import decode_text
from mosesplug.settings.spellings import spell_range
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import TuningSet

_ITERATIONS = re.compile(r"([0-9]+):([0-9]+)")
_NARROWEST = 1e-9
_ROWS = 20
"""Parts of the range in the table."""
_BAR = 30


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


@dataclass(frozen=True)
class AxisPoint:
    """A position on the axis, with its score."""

    at: float
    score: float


@dataclass(frozen=True)
class AxisInterval:
    """An interval of positions on the axis, with its score."""

    JSON_KEYS: ClassVar = "from=low to=high score"

    low: float
    high: float
    score: float


@dataclass(frozen=True)
class ChangedSentences:
    """The sentences whose 1-best changes between the start and a position on the axis."""

    at: float
    sentences: tuple[ChangedSentence, ...]


@dataclass(frozen=True)
class LineReport:
    """The score along a line, and the sentences that change it.

    Positions are on the axis. Scores are those of the metric, larger is better; blocks show error
    rates as rates.

    Attributes:
        start: the score at step 0.
        best: the best interval of the range.
        thresholds: where a 1-best changes, inside the range.
        scores: the score of each interval between them.
        moved: the sentences that change on the way to a point.
        sampled: parts of equal width of the range, with the best score of each; in steps from the
            start.
        n_examples: the number of changed sentences that blocks show.
    """

    JSON_KEYS: ClassVar = "line axis start best thresholds scores moved"

    line: str
    axis: str
    metric: str
    signature: str
    start: AxisPoint
    best: AxisInterval
    thresholds: tuple[float, ...]
    scores: tuple[float, ...]
    moved: ChangedSentences
    sampled: tuple[AxisInterval, ...]
    n_examples: int

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield the start, the best interval, a table of the range, and changed sentences."""
        less = "; less is better" if is_error_rate(self.signature) else ""
        best, moved = self.best, self.moved
        yield f"{self.metric} of the merged lists, {self.line}{less}"
        yield f"start  {self.start.at:.6g}: {self._display(self.start.score):.4f}"
        yield f"best   {best.low:.6g} to {best.high:.6g}: {self._display(best.score):.4f}\n"
        yield TextTable([(self.axis, self.metric, ""), *self._list_parts()], last=1)
        yield f"\n{len(moved.sentences)} sentences change on the way to {moved.at:.6g}"
        for sentence in moved.sentences[: self.n_examples]:
            before, after = map(self._display, (sentence.before_score, sentence.after_score))
            yield f"\n{sentence.sentence}  {before:.4f} -> {after:.4f}"
            yield f"  - {sentence.before}\n  + {sentence.after}"

    def _display(self, score: float) -> float:
        return display_score(self.signature, score)

    def _list_parts(self) -> Iterator[tuple[str, str, str]]:
        """Yield the parts of the range with bars of their scores."""
        shift, scores = self.start.at, [self._display(part.score) for part in self.sampled]
        least, span = min(scores), (max(scores) - min(scores)) or 1.0
        for part, score in zip(self.sampled, scores, strict=True):
            mark = "  <- start" if part.low <= 0.0 < part.high else ""
            bar = "#" * round(_BAR * (score - least) / span)
            ends = f"{part.low + shift:.4f} to {part.high + shift:.4f}"
            yield ends, f"{score:.4f}", f"{bar}{mark}"


def report_line(
    run: StoredRun,
    merged: TuningSet,
    line: LineSurface,
    *,
    low: float | None = None,
    high: float | None = None,
    at: float | None = None,
    n_examples: int,
) -> tuple[LineReport, ErrorSurface]:
    """Return what to show of a line in a range, and its error surface there.

    Args:
        low, high: ends of the range, positions on the axis; None: around the start.
        at: where sentences have changed; None: the middle of the best interval.

    Raises:
        UsageError: ``low`` is not less than ``high``.
    """
    first, last = line.find_range(low, high)
    start, end, best = line.best_interval(first, last)
    target = 0.5 * (start + end) if at is None else at - line.shift
    surface, shift = line.surface(first, last), line.shift
    report = LineReport(
        line.what,
        line.axis,
        run.metric_name,
        run.signature,
        AxisPoint(shift, line.start),
        AxisInterval(start + shift, end + shift, best),
        tuple(surface.ends[1:-1].tolist()),
        tuple(surface.scores.tolist()),
        ChangedSentences(target + shift, tuple(find_changed_sentences(run, merged, line, target))),
        tuple(AxisInterval(*part) for part in line.sample(first, last, _ROWS)),
        n_examples,
    )
    return report, surface


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
    raise UsageError(explain_unknown_feature(name, names))


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
    changed = []
    for place in np.flatnonzero(here != there).tolist():
        sentence = int(filled[place])
        texts = run.store.hypotheses(sentence)
        first = int(merged.offsets[sentence])
        before, after = int(here[place]), int(there[place])
        changed.append(
            ChangedSentence(
                sentence,
                decode_text(texts[before - first]),
                decode_text(texts[after - first]),
                float(scores[before]),
                float(scores[after]),
            )
        )
    return sorted(changed, key=lambda sentence: -abs(sentence.after_score - sentence.before_score))
