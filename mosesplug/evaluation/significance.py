"""Is one system better than another? Resampling tests on sufficient statistics.

All tests take, of each system, the statistics of every sentence, and score sums of them: no text
is scored twice. A system may have several *runs*, as optimizers with other seeds give them; their
scores differ by more than the sentences' choice explains (Clark et al. 2011, "Better hypothesis
testing for statistical machine translation: controlling for optimizer instability").

P-values are those of two-sided tests. A sample that differs by exactly as much as the systems do
is as extreme as they are, and counts; so two equal systems have a p-value of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.metrics.protocol import Metric

__all__ = [
    "Comparison",
    "Spread",
    "approximate_randomisation",
    "bootstrap_interval",
    "paired_bootstrap",
    "spread",
]

_ROWS = 512
"""Samples drawn at a time, at most."""

_NUMBERS = 1 << 22
"""Numbers of 8 bytes that are drawn at a time, if one sample is not larger."""

_ROUNDING = 1e-12

Statistics = NDArray[Any]


@dataclass(frozen=True)
class Spread:
    """How a system's score varies.

    Attributes:
        mean: over the runs.
        low, high: 95 % of the scores of text drawn at random from this one; mean over the runs.
        selection: standard deviation of these, s_sel, the mean over the runs.
        optimizer: standard deviation of the runs' scores, s_opt; NaN for a single run.
    """

    mean: float
    low: float
    high: float
    selection: float
    optimizer: float


@dataclass(frozen=True)
class Comparison:
    """A system against the baseline.

    Attributes:
        difference: of the mean scores; positive where the system is better.
        p_bootstrap: of the paired bootstrap; NaN where there are several runs.
        wins: share of the bootstrap's samples in which the system is better, a tie being half a
            win (Koehn 2004); NaN where there are several runs.
        p_randomisation: of approximate randomisation, stratified by sentence and run.
    """

    difference: float
    p_bootstrap: float
    wins: float
    p_randomisation: float


def bootstrap_interval(
    metric: Metric, statistics: Statistics, samples: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """95 % interval and standard deviation of the scores of sentences drawn with replacement.

    Args:
        metric: what scores.
        statistics: ``[n_sentences, n_statistics]``.
        samples: how many to draw.
        rng: of the draws.

    Returns:
        Low and high end, by percentiles, and the standard deviation (Koehn 2004, section 3).
    """
    scores = np.concatenate(
        [metric.score(_sums(drawn, statistics)) for drawn in _draws(len(statistics), samples, rng)]
    )
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high), float(scores.std(ddof=1)) if samples > 1 else 0.0


def spread(
    metric: Metric, runs: Sequence[Statistics], samples: int, rng: np.random.Generator
) -> Spread:
    """A system's mean score, and how it varies with the text and with the optimizer's run."""
    scores = np.array([_score(metric, run) for run in runs])
    intervals = np.array([bootstrap_interval(metric, run, samples, rng) for run in runs])
    low, high, selection = intervals.mean(axis=0).tolist()
    optimizer = float(scores.std(ddof=1)) if len(runs) > 1 else float("nan")
    return Spread(float(scores.mean()), low, high, selection, optimizer)


def paired_bootstrap(
    metric: Metric,
    baseline: Statistics,
    system: Statistics,
    samples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Both systems on the same sentences, drawn with replacement (Koehn 2004, section 4).

    The p-value is that of Riezler & Maxwell (2005), table 2: how often the samples' differences
    are further from their mean than the systems are from each other.

    Args:
        metric: what scores.
        baseline, system: ``[n_sentences, n_statistics]`` each.
        samples: how many to draw.
        rng: of the draws.

    Returns:
        The p-value, and the share of samples in which the system is better (ties are half).
    """
    real = abs(_score(metric, system) - _score(metric, baseline))
    differences = np.concatenate(
        [
            metric.score(_sums(drawn, system)) - metric.score(_sums(drawn, baseline))
            for drawn in _draws(len(baseline), samples, rng)
        ]
    )
    sizes = np.abs(differences)
    extreme = int((sizes - sizes.mean() >= real - _ROUNDING).sum())
    ties = np.abs(differences) <= _ROUNDING
    wins = float(((differences > 0.0) & ~ties).mean() + 0.5 * ties.mean())
    return _p_value(extreme, samples), wins


def approximate_randomisation(
    metric: Metric,
    baseline: Sequence[Statistics],
    system: Sequence[Statistics],
    trials: int,
    rng: np.random.Generator,
) -> float:
    """How often systems differ as much if each sentence's translations are swapped at random.

    Riezler & Maxwell (2005), "On some pitfalls in automatic evaluation and significance testing for
    MT"; with several runs, the difference of the mean scores of all of them, sentences being
    swapped within pairs of runs (Clark et al. 2011, section 4.2). Where one system has more runs,
    those of the other serve again, in order.

    Args:
        metric: what scores.
        baseline, system: runs, ``[n_sentences, n_statistics]`` each.
        trials: how many.
        rng: of the swaps.

    Returns:
        The p-value.
    """
    pairs = max(len(baseline), len(system))
    ours = [baseline[number % len(baseline)] for number in range(pairs)]
    theirs = [system[number % len(system)] for number in range(pairs)]
    real = abs(
        float(np.mean([_score(metric, each) for each in ours]))
        - float(np.mean([_score(metric, each) for each in theirs]))
    )
    totals = [one.sum(axis=0, dtype=np.float64) for one in ours]
    changes = [
        other.astype(np.float64) - one.astype(np.float64)
        for one, other in zip(ours, theirs, strict=True)
    ]
    n_sentences = len(ours[0])
    extreme = 0
    at_once = _rows(n_sentences)
    for start in range(0, trials, at_once):
        rows = min(at_once, trials - start)
        difference = np.zeros(rows)
        for total, change in zip(totals, changes, strict=True):
            kept = rng.integers(2, size=(rows, n_sentences), dtype=np.bool_)
            moved = _sums_where(~kept, change)
            swapped = total + moved
            other = total + change.sum(axis=0) - moved
            difference += metric.score(swapped) - metric.score(other)
        extreme += int((np.abs(difference) / pairs >= real - _ROUNDING).sum())
    return _p_value(extreme, trials)


def _p_value(extreme: int, samples: int) -> float:
    """The real outcome is one of those that chance may give (Noreen 1989)."""
    return (extreme + 1) / (samples + 1)


def _rows(n_sentences: int) -> int:
    """How many samples of so many sentences are drawn at a time."""
    return min(_ROWS, max(1, _NUMBERS // max(1, n_sentences)))


def _score(metric: Metric, statistics: Statistics) -> float:
    return float(metric.score(statistics.sum(axis=0, dtype=np.float64)))


def _draws(n_sentences: int, samples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Sentences drawn with replacement, int64 ``[rows, n_sentences]``, some rows at a time."""
    at_once = _rows(n_sentences)
    for start in range(0, samples, at_once):
        yield rng.choice(n_sentences, size=(min(at_once, samples - start), n_sentences))


@kernel
def _sums(drawn: NDArray[np.int64], statistics: Statistics) -> NDArray[np.float64]:
    """Summed statistics of each row of draws, float64 ``[rows, n_statistics]``."""
    totals = np.zeros((drawn.shape[0], statistics.shape[1]))
    for row in range(drawn.shape[0]):
        for sentence in drawn[row]:
            for column in range(statistics.shape[1]):
                totals[row, column] += statistics[sentence, column]
    return totals


@kernel
def _sums_where(chosen: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the values of the sentences chosen in each row, float64 ``[rows, n_statistics]``."""
    totals = np.zeros((chosen.shape[0], values.shape[1]))
    for row in range(chosen.shape[0]):
        for sentence in range(chosen.shape[1]):
            if chosen[row, sentence]:
                for column in range(values.shape[1]):
                    totals[row, column] += values[sentence, column]
    return totals
