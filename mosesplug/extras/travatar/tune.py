"""Tune weights with the counterparts of Travatar's algorithms.

============  =====================================================================================
mert          ``mert``: exact line search along coordinates or random directions, from the given
              weights, from the best feature alone (Travatar starts at zero) and from random ones
greedy-mert   the same along coordinates only, the best of all in each step
lbfgs         BLEU of the expected statistics (``xbleu``), or the expected value of another measure
              (``risk``), by L-BFGS
online        ``perceptron`` or ``adagrad`` with costs by the measure of the whole corpus
============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.errors import DataError, UsageError, suggest
from mosesplug.extras.travatar.bleu import CorpusBleu
from mosesplug.extras.travatar.lists import DENSE_LIMIT
from mosesplug.extras.travatar.measure import Average, Measure
from mosesplug.extras.travatar.weights import WeightRanges
from mosesplug.optimizers import Problem, Solution, algorithm
from mosesplug.settings.algorithm_options import make_options
from mosesplug.tuning_set import TuningSet

ALGORITHMS = ("mert", "greedy-mert", "lbfgs", "online")
"""Values of ``-algorithm``."""

_BY_COORDINATES = 100
"""Up to this number of features, the start at zero is tried along each coordinate."""

_MORE, _CHEAP = 10, 1_000_000
"""Up to so many times the restarts, if restarts times hypotheses are at most so many."""

_NEAR_ZERO = 1e-3
"""Sum of the starting weights of online learning."""


@dataclass(frozen=True)
class TuneSettings:
    """Settings of ``batch-tune``, with Travatar's names and defaults.

    Attributes:
        algorithm: one of ``ALGORITHMS``.
        restarts: random starting points of mert.
        directions: ``coord``, ``rand=NUM``, or both.
        threshold: smallest gain that continues a search.
        update: perceptron, avgperceptron or adagrad.
        rate: learning rate of online learning.
        l1, l2, ent: coefficients of the regularizers of lbfgs.
        threads: maximum number of threads; does not change the result.
    """

    algorithm: str = "mert"
    restarts: int = 18
    directions: str = "coord"
    threshold: float = 1e-6
    ranges: WeightRanges = field(default_factory=WeightRanges)
    update: str = "perceptron"
    rate: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    ent: float = 0.0
    threads: int = 1

    def choose(self, measure: Measure) -> tuple[str, Mapping[str, object]]:
        """Return the algorithm of mosesplug and its options."""
        if self.algorithm == "onlinepro":
            raise UsageError(
                "-algorithm onlinepro: single updates for sampled pairs, the best of several runs, "
                "have no counterpart as good: use -algorithm mert, lbfgs or online, or mosesplug "
                "optimize --algorithm pro"
            )
        if self.algorithm not in ALGORITHMS:
            raise UsageError(
                f"-algorithm {self.algorithm}: unknown; the algorithms are "
                f"{', '.join(ALGORITHMS)}{suggest(self.algorithm, ALGORITHMS)}"
            )
        if measure.minimizing_spelling is not None:
            raise UsageError(
                f"-eval {measure.spelling} is an error rate, and Travatar would tune for more "
                f"errors: write {measure.minimizing_spelling}"
            )
        for name, value in (("l1", self.l1), ("l2", self.l2), ("ent", self.ent)):
            if value and self.algorithm != "lbfgs":
                raise UsageError(f"-{name} is only used by -algorithm lbfgs")
        if self.algorithm in ("mert", "greedy-mert"):
            return "mert", self._mert()
        if self.algorithm == "lbfgs":
            return self._lbfgs(measure)
        return self._online()

    def _mert(self) -> Mapping[str, object]:
        # Travatar never gives a search up.
        options: dict[str, object] = {
            "restarts": self.restarts,
            "tolerance": self.threshold,
            "give_up": 0.0,
            "polish": 64,
        }
        if self.algorithm == "greedy-mert":
            return options
        words = self.directions.split()
        for word in words:
            name, _, count = word.partition("=")
            if name == "rand" and count.isascii() and count.isdigit():
                options |= {"random_directions": int(count), "directions": "symmetric"}
            elif name == "xeval":
                raise UsageError(
                    f"-mert_directions {word}: lines along the gradient of the expected measure "
                    "have no counterpart: use coord, rand=NUM, or -algorithm lbfgs"
                )
            elif word != "coord":
                raise UsageError(f"-mert_directions {word}: must be coord or rand=NUM")
        if "coord" not in words:
            if not options.get("random_directions"):
                raise UsageError("-mert_directions names no direction: use coord or rand=NUM")
            options["method"] = "random-direction"
        return options

    def _lbfgs(self, measure: Measure) -> tuple[str, Mapping[str, object]]:
        if self.l1:
            raise UsageError("-l1: neither Travatar nor mosesplug has it for lbfgs: use -l2")
        if self.ent:
            raise UsageError(
                "-ent has no counterpart: mosesplug sharpens the distribution by annealing; "
                "leave it out"
            )
        if isinstance(measure, CorpusBleu):
            metric, _ = measure.convert(np.zeros((0, measure.n_statistics)))
            if metric is measure:
                raise UsageError(
                    f"-algorithm lbfgs with -eval {measure.spelling}: only bleu without other "
                    "settings has a counterpart (xbleu): use -eval bleu, or -algorithm mert"
                )
            name = "xbleu"
        elif isinstance(measure, Average):
            name = "risk"
        else:
            raise UsageError(
                f"-algorithm lbfgs cannot optimize the expectation of {measure.name}, as in "
                "Travatar: use -algorithm mert"
            )
        if not self.l2:
            return name, {}
        # Travatar subtracts l2 w^2, from weights as they are, and has no annealing.
        zero = {"center": "zero", "scaling": "none", "start_spread": 1.0}
        return name, {"l2": 2.0 * self.l2, **zero}

    def _online(self) -> tuple[str, Mapping[str, object]]:
        if self.ranges != WeightRanges():
            raise UsageError(
                f"-weight_ranges: -algorithm {self.algorithm} cannot keep them (Travatar ignores "
                "them): use -algorithm mert or greedy-mert"
            )
        if self.update not in ("perceptron", "avgperceptron", "adagrad"):
            raise UsageError(
                f"-update {self.update}: must be one of perceptron, avgperceptron, adagrad"
            )
        costs: dict[str, object] = {"cost": "pseudo-corpus", "rate": self.rate}
        if self.update == "adagrad":
            return "adagrad", {**costs, "loss": "hinge", "regularization": 0.0}
        averaging = "all" if self.update == "avgperceptron" else "best"
        return "perceptron", {**costs, "remember": "one-best", "averaging": averaging}


def tune(
    tuning_set: TuningSet,
    measure: Measure,
    weights: Mapping[str, float],
    settings: TuneSettings,
    seed: int,
) -> Solution:
    """Tune the weights of all features.

    Args:
        tuning_set: hypotheses, with statistics of the measure.
        weights: starting weights by name; 0 if missing. Without any, all are 1.

    Raises:
        UsageError: settings without counterpart, or an algorithm that cannot keep the ranges.
        DataError: there are too many features for mert, or a range is of no feature.
    """
    name, options = settings.choose(measure)
    space = tuning_set.space
    if name == "mert" and space.n_sparse:
        raise DataError(
            f"{len(space)} features are too many for -algorithm {settings.algorithm} (at most "
            f"{DENSE_LIMIT}): use -algorithm lbfgs or online"
        )
    initial = np.array([weights.get(label, 0.0) for label in space.labels])
    if not initial.any():
        initial = np.ones(len(space))
    metric, stats = measure.convert(tuning_set.stats.astype(np.float64))
    if name == "risk":
        assert isinstance(measure, Average)
        metric, stats = measure.linear(stats)
    tuning_set = replace(tuning_set, stats=np.ascontiguousarray(stats))
    width = np.abs(initial).mean()
    # Travatar multiplies each weight by a number from 0 to 1; a weight of 0 would stay there.
    problem = Problem(
        tuning_set,
        metric,
        active=np.ones(len(space), dtype=np.bool_),
        minima=np.where(initial, np.minimum(initial, 0.0), -width),
        maxima=np.where(initial, np.maximum(initial, 0.0), width),
        threads=settings.threads,
        bounds=settings.ranges.bounds(space),
    )
    if name == "mert":
        problem = replace(problem, starts=_best_coordinate(problem))
    if name in ("perceptron", "adagrad"):
        # Travatar starts at 0; starting weights next to it decide between hypotheses.
        initial = initial * (_NEAR_ZERO / np.abs(initial).sum())
    tuner = algorithm(name)
    if name == "mert":
        # Searches in a small set are cheap, and more of them find better weights.
        most = min(_MORE * settings.restarts, _CHEAP // tuning_set.n_hyps)
        options = {**options, "restarts": max(settings.restarts, most)}
    optimizer = tuner.bind(make_options(tuner, options))
    return optimizer.optimize(problem, initial, np.random.default_rng(seed))


def _best_coordinate(problem: Problem) -> tuple[Floats, ...]:
    """Return the weights of the best single feature, Travatar's first step from zero."""
    tuning_set, metric = problem.tuning_set, problem.metric
    n = len(tuning_set.space)
    if n > _BY_COORDINATES or problem.bounds is not None:
        return ()
    points = [sign * axis for axis in np.eye(n) for sign in (1.0, -1.0)]
    totals = [tuning_set.stats[tuning_set.first_best(p)].sum(axis=0) for p in points]
    return (points[int(np.argmax(metric.score(np.array(totals, dtype=np.float64))))],)
