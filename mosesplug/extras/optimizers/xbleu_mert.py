"""``xbleu-mert``: MERT along the gradient of expected BLEU (Galley et al. 2013).

MERT has as many axes as features, and most of thousands lead nowhere. The gradient of xBLEU, BLEU
of the statistics that the model's distribution expects, is one direction that changes all weights
at once, sparse ones too. The line search along it is MERT's: exact, and of the metric.

The sharpness of the distribution is not determined by the weights, of which the decoder uses the
direction only: a flat distribution looks far, a sharp one close. Each round searches the gradients
at several sharpnesses. If none improves the score, it searches the axes of the dense features, as
MERT does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Annotated

import numpy as np

from mosesplug.arrays import Bools, Floats
from mosesplug.candidates import Objective, Surface
from mosesplug.errors import UsageError
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.batch.expected.descent import feature_variances, variance_in_lists
from mosesplug.optimizers.batch.fits import make_solution, starting_points
from mosesplug.optimizers.batch.mert.climb import FURTHEST
from mosesplug.optimizers.line_search.lists import Lines, LineSpace, drop_empty_lists
from mosesplug.optimizers.line_search.space import LineMove, Regularizer, best_move
from mosesplug.optimizers.lists.arrangement import arrange
from mosesplug.optimizers.lists.shards import WholeLists
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    normalize,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import Opt
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True)
class DirectionSpace:
    """The lists of a problem.

    Attributes:
        tuning_set: the lists.
        space: offsets, statistics and metric for line search, without features.
    """

    tuning_set: TuningSet
    space: LineSpace

    @classmethod
    def of(cls, problem: Problem) -> DirectionSpace:
        """Return the lists of a problem; active features do not matter."""
        offsets, stats = drop_empty_lists(problem.tuning_set)
        axes = Lines(np.zeros(0), 0)
        return cls(problem.tuning_set, LineSpace(offsets, axes, np.zeros(0), stats, problem.metric))

    def at(self, weights: Floats) -> Floats:
        """Return model scores at ``weights``, float64 ``[n_hyps]``."""
        return self.tuning_set.model_scores(weights)

    def score(self, scores: Floats) -> float:
        """Return the corpus score of the hypotheses of highest model score."""
        return self.space.decode(scores)

    def along(self, directions: Sequence[Floats], scores: Floats) -> list[Surface]:
        """Return the corpus score along some directions, all in one pass.

        Args:
            directions: each float64 ``[n_features]``.
            scores: float64 ``[n_hyps]``, model scores where the lines start.
        """
        columns = np.column_stack([self.at(direction) for direction in directions])
        slopes = np.empty(columns.size)
        arrange(self.space.offsets, columns, slopes)
        return list(self.space.along_lines(Lines(slopes, len(directions)), scores))


SHARPNESSES = (1.0, 3.0, 10.0)
"""Standard deviations of model scores within lists at which gradients are computed. Mosesplug's,
found on recorded lists."""

FEW = 8
"""With L0: number of weights that a sparse direction changes, and that are tried as 0.
Mosesplug's."""


@dataclass(frozen=True)
class XbleuMertOptions:
    """Settings of MERT along gradients of xBLEU."""

    restarts: Annotated[
        int,
        Opt(
            "number of random starting points",
            details="Their dense weights are drawn from the box of the ranges.",
            source="Och 2003; the number: mosesplug's, for the time of a run",
            minimum=0,
            maximum=10_000,
        ),
    ] = 5
    axes: Annotated[
        bool,
        Opt(
            "search the axes of dense features if no gradient improves the score",
            source="mert -t powell",
        ),
    ] = True
    l2: Annotated[
        float,
        Opt(
            "penalty on the distance from the given weights",
            details="It is the factor of the distance after the best scaling, the squared sine of "
            "the angle between them.",
            source="after Galley et al. 2013, who scale L2; this scaling is mosesplug's",
            minimum=0.0,
            maximum=1000.0,
        ),
    ] = 0.0
    l0: Annotated[
        float,
        Opt(
            "penalty of each weight that is not 0, such as 0.00001",
            source="Galley et al. 2013, L0",
            minimum=0.0,
        ),
    ] = 0.0
    tolerance: Annotated[
        float,
        Opt("smallest gain of a round that continues a search", source="Moses mert", minimum=0.0),
    ] = 1e-4


@dataclass(frozen=True)
class _Task:
    """The objective and settings of all climbs.

    Attributes:
        lines: exact line search.
        objective: minus xBLEU of a distribution's weights, and its gradient.
        active: bool ``[n_features]``.
        deviations: float64 ``[n_features]``, of each feature within lists.
        regularizer: the regularizer of the score.
        options: settings.
    """

    lines: DirectionSpace
    objective: Objective
    active: Bools
    deviations: Floats
    regularizer: Regularizer
    options: XbleuMertOptions


@dataclass(frozen=True)
class _Place:
    """Weights, their model scores, the corpus score, and that minus the penalty."""

    weights: Floats
    scores: Floats
    score: float
    value: float

    @classmethod
    def at(cls, task: _Task, weights: Floats) -> _Place:
        scores = task.lines.at(weights)
        score = task.lines.score(scores)
        return cls(weights, scores, score, score - task.regularizer.penalty(weights))


@dataclass(frozen=True)
class _Climb:
    """Start and end of a climb, and its number of rounds."""

    start: _Place
    end: _Place
    rounds: int


def xbleu_mert(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: XbleuMertOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights for the corpus score minus penalties.

    See ``problem`` for the arguments. ``rng`` draws the random starts, which keep the initial
    sparse weights. The result does not depend on the number of threads.

    Raises:
        UsageError: the metric is not BLEU, or ``l2`` with initial weights that are all zero.
        OptimizerError: only zero weights
            were found.
    """
    initial = normalize(problem, initial)
    if options.l2 > 0.0 and not initial.any():
        raise UsageError("l2 is a distance from the given weights, which are all zero")
    task = _task(problem, initial, options)
    starts = _starts(problem, initial, rng, options.restarts)
    finished, one_at_a_time = count(1), Lock()

    def climb(start: Floats) -> _Climb:
        result = _climb(task, start)
        with one_at_a_time:
            progress(next(finished), len(starts), "climbs")
        return result

    with ThreadPoolExecutor(max(1, problem.threads)) as pool:
        climbs = list(pool.map(climb, starts))
    best = max(climbs, key=lambda climbed: (bool(climbed.end.weights.any()), climbed.end.value))
    weights = best.end.weights[task.active]
    return make_solution(problem, initial, weights, _history(task, climbs))


def _task(problem: Problem, initial: Floats, options: XbleuMertOptions) -> _Task:
    made = problem.tuning_set
    active = problem.active_mask
    return _Task(
        lines=DirectionSpace.of(problem),
        # Threads run climbs; sums over blocks do not depend on their number.
        objective=objectives.xbleu(WholeLists(made, threads=1)),
        active=active,
        deviations=np.where(active, np.sqrt(feature_variances(made)), 0.0),
        regularizer=Regularizer(options.l2, options.l0, initial, active),
        options=options,
    )


def _starts(
    problem: Problem, initial: Floats, rng: np.random.Generator, restarts: int
) -> list[Floats]:
    """Return weights of all features: given, historic bests, and random dense ones."""
    active, n_dense = problem.active_mask, problem.tuning_set.space.n_dense
    own, random = starting_points(problem, initial, rng, restarts)
    starts = []
    for number, point in enumerate([*own, *random]):
        start = initial.copy()
        start[active] = point
        if number >= len(own):
            start[n_dense:] = initial[n_dense:]
        starts.append(normalize(problem, start))
    return starts


def _climb(task: _Task, start: Floats) -> _Climb:
    """Search the gradients, then the axes, until neither improves the score."""
    place = first = _Place.at(task, start)
    rounds = 0
    while True:
        rounds += 1
        before = place.value
        place = _move(task, place, _gradients(task, place))
        if place.value - before <= task.options.tolerance:
            place = _move(task, place, _axes(task, place))
        if place.value - before <= task.options.tolerance:
            return _Climb(first, place, rounds)


def _move(task: _Task, place: _Place, directions: list[Floats]) -> _Place:
    """Return the best point of some lines if decoding there is better."""
    if not directions:
        return place
    reach = FURTHEST * max(1.0, float(np.abs(place.weights).sum()))
    best: LineMove | None = None
    surfaces = task.lines.along(directions, place.scores)
    for direction, surface in zip(directions, surfaces, strict=True):
        move = best_move(surface, place.weights, direction, task.regularizer, reach)
        if move is not None and (best is None or move.value > best.value):
            best = move
    if best is None or best.value <= place.value:
        return place
    there = _Place.at(task, best.weights)
    return there if there.value > place.value else place


def _gradients(task: _Task, place: _Place) -> list[Floats]:
    """Return directions of xBLEU's steepest ascent, in units of deviations.

    With L0, each direction also in two sparse variants: on the weights that are not 0, and on its
    largest few components.
    """
    spread = np.sqrt(variance_in_lists(task.lines.tuning_set, place.scores))
    matters = task.deviations > 0.0
    directions = []
    for sharpness in SHARPNESSES if spread > 0.0 else (0.0,):
        scale = sharpness / spread if spread > 0.0 else 1.0
        _, gradient = task.objective(scale * place.weights)
        # The deviation counts twice: to units of deviations and back.
        ascent = np.divide(
            -gradient, task.deviations**2, out=np.zeros_like(gradient), where=matters
        )
        directions.append(ascent)
        if task.options.l0 > 0.0:
            contributions = np.abs(ascent * task.deviations)
            least = np.sort(contributions)[-min(FEW, len(contributions))]
            directions.append(np.where(place.weights != 0.0, ascent, 0.0))
            directions.append(np.where(contributions >= least, ascent, 0.0))
    return [direction / np.abs(direction).sum() for direction in directions if direction.any()]


def _axes(task: _Task, place: _Place) -> list[Floats]:
    """Return axes of dense features; with L0 also of the few least important weights."""
    n_dense = task.lines.tuning_set.space.n_dense
    chosen = np.zeros(len(task.active), dtype=np.bool_)
    if task.options.axes:
        chosen[:n_dense] = task.active[:n_dense]
    if task.options.l0 > 0.0:
        held = task.active & (place.weights != 0.0)
        decides = np.where(held, np.abs(place.weights * task.deviations), np.inf)
        least = np.argsort(decides, kind="stable")[:FEW]
        chosen[least] |= held[least]
    return [np.where(np.arange(len(chosen)) == axis, 1.0, 0.0) for axis in np.flatnonzero(chosen)]


def _history(task: _Task, climbs: list[_Climb]) -> tuple[Mapping[str, object], ...]:
    return tuple(
        {
            "start_score": climbed.start.score,
            "score": climbed.end.score,
            "penalty": climbed.end.score - climbed.end.value,
            "active": int(np.count_nonzero(climbed.end.weights[task.active])),
            "rounds": climbed.rounds,
        }
        for climbed in climbs
    )


XBLEU_MERT = Algorithm(
    name="xbleu-mert",
    summary="Search lines along the gradients of expected BLEU.",
    source="Galley et al. 2013",
    family="direct search",
    options=XbleuMertOptions,
    optimize=xbleu_mert,
    restarts=True,
    needs_bleu=True,
    weighs_sentences=True,
)
