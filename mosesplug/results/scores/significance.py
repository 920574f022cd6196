"""Resampling tests of whether two systems differ, on sufficient statistics.

All tests take the statistics of every sentence and score sums of them, so that no text is scored
twice. A system may have several *runs* of an optimizer with different seeds, whose scores vary by
more than the choice of sentences explains (Clark et al. 2011, "Better hypothesis testing for
statistical machine translation: controlling for optimizer instability").

All p-values are two-sided. A sample that differs by exactly as much as the systems do counts as
extreme, so that two equal systems have a p-value of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.metrics.protocol import Metric

_ROWS = 512
"""Largest number of samples drawn at a time."""

_NUMBERS = 1 << 22
"""Numbers of 8 bytes drawn at a time, unless one sample needs more."""

_ROUNDING = 1e-12

Statistics = NDArray[Any]


@dataclass(frozen=True)
class ScoreVariation:
    """How a system's score varies with the text and with the optimizer.

    Attributes:
        mean: mean score of the runs.
        low, high: 95 % interval of the scores of texts drawn from this one, mean over the runs.
        selection: standard deviation of these scores (s_sel), mean over the runs.
        optimizer: standard deviation of the runs' scores (s_opt); NaN for a single run.
    """

    mean: float
    low: float
    high: float
    selection: float
    optimizer: float


def bootstrap_interval(
    metric: Metric, statistics: Statistics, samples: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the 95 % interval and standard deviation of bootstrap scores.

    Args:
        statistics: ``[n_sentences, n_statistics]``.
        samples: number of samples of sentences drawn with replacement.

    Returns:
        Low and high percentile, and the standard deviation (Koehn 2004, section 3).
    """
    scores = np.concatenate(
        [metric.score(_sums(drawn, statistics)) for drawn in _draws(len(statistics), samples, rng)]
    )
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high), float(scores.std(ddof=1)) if samples > 1 else 0.0


def estimate_variation(
    metric: Metric, runs: Sequence[Statistics], samples: int, rng: np.random.Generator
) -> ScoreVariation:
    """Return a system's mean score, and how it varies with the text and over the runs."""
    scores = np.array([_score(metric, run) for run in runs])
    intervals = np.array([bootstrap_interval(metric, run, samples, rng) for run in runs])
    low, high, selection = intervals.mean(axis=0).tolist()
    optimizer = float(scores.std(ddof=1)) if len(runs) > 1 else float("nan")
    return ScoreVariation(float(scores.mean()), low, high, selection, optimizer)


class PairedBootstrap(NamedTuple):
    """The comparison of two systems on the same samples of sentences.

    Attributes:
        p_value: see ``paired_bootstrap``.
        wins: share of samples in which the system is better (ties are half).
        low, high: the 95 % interval of the difference, system minus baseline.
    """

    p_value: float
    wins: float
    low: float
    high: float


def paired_bootstrap(
    metric: Metric,
    baseline: Statistics,
    system: Statistics,
    samples: int,
    rng: np.random.Generator,
) -> PairedBootstrap:
    """Compare two systems on the same samples of sentences (Koehn 2004, section 4).

    The p-value is that of Riezler & Maxwell (2005), table 2: how often the absolute difference of
    a sample exceeds the mean of all samples by the difference of the systems or more.

    Args:
        baseline, system: ``[n_sentences, n_statistics]`` each.
    """
    real = abs(_score(metric, system) - _score(metric, baseline))
    # Side by side: the sentences of each sample are counted once.
    both = np.hstack([system, baseline])
    sums = (_sums(drawn, both) for drawn in _draws(len(both), samples, rng))
    scores = np.concatenate(
        [metric.score(drawn.reshape(len(drawn), 2, baseline.shape[1])) for drawn in sums]
    )
    differences = scores[:, 0] - scores[:, 1]
    sizes = np.abs(differences)
    extreme = int((sizes - sizes.mean() >= real - _ROUNDING).sum())
    ties = np.abs(differences) <= _ROUNDING
    wins = float(((differences > 0.0) & ~ties).mean() + 0.5 * ties.mean())
    low, high = np.percentile(differences, [2.5, 97.5]).tolist()
    return PairedBootstrap(_p_value(extreme, samples), wins, low, high)


def approximate_randomization(
    metric: Metric,
    baseline: Sequence[Statistics],
    system: Sequence[Statistics],
    trials: int,
    rng: np.random.Generator,
) -> float:
    """Return the p-value of a difference between systems.

    It is how often systems differ as much after their translations are swapped at random: Riezler &
    Maxwell (2005), "On some pitfalls in automatic evaluation and significance testing for MT". With
    several runs, mean scores are compared and sentences are swapped within pairs of runs (Clark et
    al. 2011, section 4.2). If one system has fewer runs, its runs are used again, in order.

    Args:
        baseline, system: the runs, ``[n_sentences, n_statistics]`` each.

    Returns:
        The p-value.
    """
    pairs = max(len(baseline), len(system))
    ours = [baseline[number % len(baseline)] for number in range(pairs)]
    theirs = [system[number % len(system)] for number in range(pairs)]
    real = abs(
        float(np.mean([_score(metric, run) for run in ours]))
        - float(np.mean([_score(metric, run) for run in theirs]))
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
    """Return the p-value; the real outcome counts as one of the samples (Noreen 1989)."""
    return (extreme + 1) / (samples + 1)


def _rows(n_sentences: int) -> int:
    """Return how many samples of ``n_sentences`` sentences to draw at a time."""
    return min(_ROWS, max(1, _NUMBERS // max(1, n_sentences)))


def _score(metric: Metric, statistics: Statistics) -> float:
    return float(metric.score(statistics.sum(axis=0, dtype=np.float64)))


def _draws(n_sentences: int, samples: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw sentences with replacement in parts, int64 ``[rows, n_sentences]``."""
    at_once = _rows(n_sentences)
    for start in range(0, samples, at_once):
        yield rng.choice(n_sentences, size=(min(at_once, samples - start), n_sentences))


_EXACT = 2.0**53
"""Float64 adds integers up to this without an error, in whatever order."""


def _are_exact(values: Statistics, terms: int) -> bool:
    """Return whether sums of that many rows of ``values`` have no rounding errors."""
    whole = values.dtype.kind in "iu" or bool(np.all(values == np.rint(values)))
    return whole and float(np.abs(values).max(initial=0)) * terms < _EXACT


def _sums(drawn: NDArray[np.int64], statistics: Statistics) -> NDArray[np.float64]:
    """Sum the statistics of each row of draws, float64 ``[rows, n_statistics]``."""
    rows, n_drawn = drawn.shape
    if not _are_exact(statistics, n_drawn):
        return _add_drawn(drawn, statistics)
    # Count how often each sentence is drawn: the sums are a product, and nothing is compiled.
    n_sentences = len(statistics)
    places = drawn + np.arange(rows)[:, np.newaxis] * n_sentences
    counts = np.bincount(places.ravel(), minlength=rows * n_sentences)
    product = counts.reshape(rows, n_sentences).astype(np.float64) @ statistics.astype(np.float64)
    return np.asarray(product, dtype=np.float64)


def _sums_where(chosen: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum values of sentences chosen in each row, float64 ``[rows, n_statistics]``."""
    if not _are_exact(values, chosen.shape[1]):
        return _add_chosen(chosen, values)
    return np.asarray(chosen.astype(np.float64) @ values, dtype=np.float64)


@kernel
def _add_drawn(drawn: NDArray[np.int64], statistics: Statistics) -> NDArray[np.float64]:
    """Sum the statistics of each row of draws, in their order."""
    totals = np.zeros((drawn.shape[0], statistics.shape[1]))
    for row in range(drawn.shape[0]):
        for sentence in drawn[row]:
            for column in range(statistics.shape[1]):
                totals[row, column] += statistics[sentence, column]
    return totals


@kernel
def _add_chosen(chosen: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the values of the sentences chosen in each row, in their order."""
    totals = np.zeros((chosen.shape[0], values.shape[1]))
    for row in range(chosen.shape[0]):
        for sentence in range(chosen.shape[1]):
            if chosen[row, sentence]:
                for column in range(values.shape[1]):
                    totals[row, column] += values[sentence, column]
    return totals
