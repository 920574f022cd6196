"""Envelopes against brute force: who wins at the middle of every interval."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.kernels import read_only
from mosesplug.optimizers.line_search.envelope import HullMemory, envelopes
from mosesplug.optimizers.line_search.hull import KNOWN
from mosesplug.optimizers.line_search.wrapping import wrap_hull
from mosesplug.optimizers.lists.arrangement import (
    arrange,
    model_scores,
    project_slopes,
)


def search(
    offsets: NDArray[np.int64],
    slopes: NDArray[Any],
    intercepts: NDArray[np.float64],
    known: NDArray[np.int32],
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
    """Thresholds, changes and totals along one direction; statistics name the row (one-hot)."""
    n_hyps = int(offsets[-1])
    thresholds = np.empty((1, n_hyps))
    changes = np.empty((1, n_hyps, n_hyps), dtype=np.int32)
    totals = np.empty((1, n_hyps))
    found = np.empty(1, dtype=np.int64)
    envelopes(
        offsets,
        slopes,
        np.zeros(1, dtype=np.int64),
        intercepts,
        read_only(np.eye(n_hyps, dtype=np.int32)),
        known,
        thresholds,
        changes,
        np.empty((1, len(offsets) - 1), dtype=np.int32),
        totals,
        found,
        *HullMemory.of(offsets).arrays,
    )
    size = int(found[0])
    return thresholds[0, :size], changes[0, :size], totals[0]


def nothing_known(n_sentences: int) -> NDArray[np.int32]:
    """Before any search."""
    return np.zeros((n_sentences, 1, 1 + KNOWN), dtype=np.int32)


def run(
    sizes: list[int], slopes: NDArray[Any], intercepts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
    """The same of sentences of some sizes, with nothing known."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return search(offsets, slopes, intercepts, nothing_known(len(sizes)))


@given(
    seed=st.integers(0, 2**32 - 1),
    grid=st.sampled_from([0, 2, 9]),
    shift=st.sampled_from([0.0, 1e5]),
    scale=st.sampled_from([1.0, 1e-33, 1e33]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rows_of_the_last_hull_change_nothing(
    seed: int, grid: int, shift: float, scale: float, dtype: type
) -> None:
    """Any hull of the same lines at other intercepts gives the same thresholds, to the last bit."""
    rng = np.random.default_rng(seed)
    n_hyps = int(rng.integers(1, 80))
    offsets = np.array([0, n_hyps], dtype=np.int64)
    slopes, intercepts = rng.standard_normal((2, n_hyps))
    if grid:
        slopes = rng.integers(-grid, grid + 1, n_hyps).astype(np.float64)
        intercepts = rng.integers(-grid, grid + 1, n_hyps) / 3.0
    slopes = (slopes + shift).astype(dtype)
    known, far = nothing_known(1), rng.standard_normal(n_hyps)
    for each in (far, intercepts + rng.normal(0, 0.1, n_hyps), intercepts, intercepts):
        remembered = search(offsets, slopes, scale * each, known)
        fresh = search(offsets, slopes, scale * each, nothing_known(1))
        assert [array.tobytes() for array in remembered] == [array.tobytes() for array in fresh]


@given(seed=st.integers(0, 2**32 - 1), narrow=st.booleans())
def test_hulls_equal_exact_ones_after_any_other(seed: int, narrow: bool) -> None:
    """Hulls in exact fractions, while the weights move: what the marks leave out matters not."""
    rng = np.random.default_rng(seed)
    n_hyps = int(rng.integers(1, 60))
    offsets = np.array([0, n_hyps], dtype=np.int64)
    slopes = rng.standard_normal(n_hyps).astype(np.float32)
    known, intercepts = nothing_known(1), rng.standard_normal(n_hyps)
    # Double precision cannot tell points that are closer to one line than a thousandth of that.
    for size in (1.0, 0.1, 0.01) if narrow else (1.0, 0.1, 0.01, 1e-5, 1e-7):
        move = size * rng.standard_normal(n_hyps)
        # Points within the rounding of single precision of one line.
        intercepts = (1e-6 * move - slopes if narrow else intercepts + move).astype(np.float64)
        expected = upper_hull(slopes.astype(np.float64), intercepts)
        thresholds, changes, totals = search(offsets, slopes, intercepts, known)
        assert np.argmax(totals) == expected[0]
        np.testing.assert_array_equal(np.argmax(changes, axis=1), expected[1:])
        steps = np.diff(intercepts[expected]) / np.diff(slopes[expected].astype(np.float64))
        np.testing.assert_array_equal(thresholds, -steps)


def test_gift_wrapping_finds_the_exact_hull() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        n_hyps = int(rng.integers(1, 30))
        slopes, intercepts = rng.standard_normal((2, n_hyps))
        points, hull = np.empty((3, n_hyps)), np.empty(n_hyps, dtype=np.int64)
        size = wrap_hull(slopes, intercepts, points, hull)
        assert hull[:size].tolist() == upper_hull(slopes, intercepts)


def winners(
    sizes: list[int], slopes: NDArray[np.float64], intercepts: NDArray[np.float64], x: float
) -> NDArray[np.float64]:
    """One-hot of each sentence's first highest line at ``x``."""
    chosen = np.zeros(len(slopes))
    start = 0
    for size in sizes:
        scores = intercepts[start : start + size] + x * slopes[start : start + size]
        chosen[start + int(np.argmax(scores))] = 1.0
        start += size
    return chosen


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    grid=st.sampled_from([0, 2, 5]),
)
def test_every_interval_has_its_winners(sizes: list[int], seed: int, grid: int) -> None:
    rng = np.random.default_rng(seed)
    n_hyps = sum(sizes)
    slopes, intercepts = rng.standard_normal((2, n_hyps))
    if grid:  # equal slopes, equal lines and triple points abound
        slopes = rng.integers(-grid, grid + 1, n_hyps).astype(np.float64)
        intercepts = rng.integers(-grid, grid + 1, n_hyps).astype(np.float64)
    thresholds, changes, totals = run(sizes, slopes, intercepts)
    order = np.argsort(thresholds)
    edges = thresholds[order]
    points = np.concatenate([[-1e6], edges, [1e6]])
    for i in range(len(points) - 1):
        if points[i + 1] - points[i] < 1e-9:
            continue
        expected = winners(sizes, slopes, intercepts, 0.5 * (points[i] + points[i + 1]))
        found = totals + changes[order][:i].sum(axis=0)
        np.testing.assert_array_equal(found, expected)


def test_hand_computed_envelope() -> None:
    # y = -x, y = 1, y = x - 1, and y = 0.5 below them all; 1 and -x meet at -1, 1 and x-1 at 2.
    slopes = np.array([-1.0, 0.0, 1.0, 0.0])
    intercepts = np.array([0.0, 1.0, -1.0, 0.5])
    thresholds, changes, totals = run([4], slopes, intercepts)
    np.testing.assert_allclose(thresholds, [-1.0, 2.0])
    np.testing.assert_array_equal(totals, [1, 0, 0, 0])
    np.testing.assert_array_equal(changes, [[-1, 1, 0, 0], [0, -1, 1, 0]])


def test_the_first_of_equal_lines_wins() -> None:
    thresholds, _, totals = run([3], np.zeros(3), np.array([1.0, 2.0, 2.0]))
    assert not len(thresholds)
    np.testing.assert_array_equal(totals, [0, 1, 0])


def test_arranged_features_give_model_scores_and_projections() -> None:
    rng = np.random.default_rng(5)
    offsets = np.array([0, 3, 4, 9], dtype=np.int64)
    columns = rng.standard_normal((9, 4)).astype(np.float32)
    columns.flags.writeable = False
    slopes = np.empty(36, dtype=np.float32)
    arrange(offsets, columns, slopes)
    weights, base = rng.standard_normal(4), rng.standard_normal(9)
    scores = np.empty(9)
    model_scores(offsets, slopes, base, weights, scores)
    np.testing.assert_allclose(scores, base + columns.astype(np.float64) @ weights)

    directions = rng.standard_normal((2, 4))
    projected = np.empty(18)
    project_slopes(offsets, slopes, directions, projected)
    products = columns.astype(np.float64) @ directions.T
    expected = np.concatenate([products[a:b].T.ravel() for a, b in pairwise(offsets)])
    np.testing.assert_allclose(projected, expected)


def upper_hull(slopes: NDArray[np.float64], intercepts: NDArray[np.float64]) -> list[int]:
    """Rows of the upper hull by rising slope: Andrew's monotone chain, in exact fractions."""
    points = [(Fraction(s), Fraction(i)) for s, i in zip(slopes, intercepts, strict=True)]
    hull: list[int] = []
    for row in sorted(range(len(points)), key=lambda row: points[row]):
        if hull and points[hull[-1]][0] == points[row][0]:
            hull.pop()
        while len(hull) > 1:
            (ax, ay), (bx, by), (cx, cy) = (points[k] for k in (*hull[-2:], row))
            if (bx - ax) * (cy - ay) < (by - ay) * (cx - ax):
                break
            hull.pop()
        hull.append(row)
    return hull


@pytest.mark.parametrize("shape", ["cloud", "parabola", "steps", "hyperbola"])
def test_thousands_of_hypotheses_in_a_sentence(shape: str) -> None:
    rng = np.random.default_rng(7)
    slopes = rng.permutation(np.arange(1.0, 3001.0))
    intercepts = {
        "cloud": rng.standard_normal(3000),
        "parabola": -(slopes**2),  # every point is on the hull
        "steps": np.round(rng.standard_normal(3000)),
        "hyperbola": -1.0 / slopes,
    }[shape]
    expected = upper_hull(slopes, intercepts)
    thresholds, changes, totals = run([3000], slopes, intercepts)
    assert np.argmax(totals) == expected[0]
    np.testing.assert_array_equal(np.argmax(changes, axis=1), expected[1:])
    steps = np.diff(intercepts[expected]) / np.diff(slopes[expected])
    np.testing.assert_allclose(thresholds, -steps)


def test_slopes_that_hardly_differ_end_in_infinite_thresholds() -> None:
    slopes, intercepts = np.array([0.0, 1e-310, 1.0]), np.array([0.0, 1.0, 0.5])
    thresholds, _, _ = run([3], slopes, intercepts)
    np.testing.assert_array_equal(thresholds, [-np.inf, 0.5])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_scale_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(3)
    slopes, intercepts = rng.standard_normal((2, 50))
    thresholds, changes, _ = run([50], slopes, intercepts)
    scaled, scaled_changes, _ = run([50], slopes * scale, intercepts * scale)
    np.testing.assert_allclose(scaled, thresholds)
    np.testing.assert_array_equal(scaled_changes, changes)
