"""Coordinates: variances, the start, and the way back to weights of the decoder."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.metrics import metric
from mosesplug.optimizers.batch.expected.descent import (
    Coordinates,
    feature_variances,
    variance_in_lists,
)
from mosesplug.optimizers.problem import Problem
from tests.optimizers.batch.expected.small import bleu_lists, features

LISTS = bleu_lists(1)
SOME = np.array([True, False, True, True, True, False, True, True])
INITIAL = np.array([0.5, -0.2, 0.1, 0.0, 0.3, 0.7, 0.0, 0.0])


def test_variances_within_lists() -> None:
    made = features(LISTS)
    parts = [made[a:b] for a, b in zip(LISTS.offsets[:-1], LISTS.offsets[1:], strict=True) if b > a]
    expected = np.mean([part.var(axis=0) for part in parts], axis=0)
    np.testing.assert_allclose(feature_variances(LISTS), expected, rtol=1e-12)


def test_the_start_is_the_given_weights_scaled_to_unit_deviation() -> None:
    problem = Problem(LISTS, metric("BLEU"), active=SOME)
    for factor in (1e-200, 1.0, 1e99):
        where = Coordinates.of(problem, factor * INITIAL)
        weights = where.weights(where.start)
        assert variance_in_lists(LISTS, LISTS.model_scores(weights)) == pytest.approx(1.0)
        np.testing.assert_allclose(weights / weights[0], INITIAL / INITIAL[0])


def test_inactive_weights_are_returned_unchanged() -> None:
    where = Coordinates.of(Problem(LISTS, metric("BLEU"), active=SOME), INITIAL)
    assert where.inactive is not None
    assert len(where.start) == SOME.sum() + 1
    x = np.arange(1.0, 8.0)
    weights, found = where.weights(x), where.decoder_weights(x, INITIAL)
    np.testing.assert_array_equal(found[~SOME], INITIAL[~SOME])
    np.testing.assert_allclose(found / found[0], weights / weights[0])


def test_weights_of_constant_inactive_features_do_not_count() -> None:
    where = Coordinates.of(Problem(LISTS, metric("BLEU"), active=SOME), np.where(SOME, INITIAL, 0))
    assert where.inactive is None
    x = np.arange(1.0, 7.0)
    found = where.decoder_weights(x, np.where(SOME, INITIAL, 0.0))
    assert np.abs(found).sum() == pytest.approx(0.9)
    np.testing.assert_allclose(found[SOME] / found[0], x)


def test_gradient_is_by_the_coordinates() -> None:
    where = Coordinates.of(Problem(LISTS, metric("BLEU"), active=SOME), INITIAL)
    by_weights = np.random.default_rng(0).standard_normal(8)
    for column in range(len(where.start)):
        unit = np.eye(len(where.start))[column]
        assert where.gradient(by_weights)[column] == pytest.approx(by_weights @ where.weights(unit))


def test_nothing_to_start_from_is_zero() -> None:
    where = Coordinates.of(Problem(LISTS, metric("BLEU")), np.zeros(8))
    assert not where.start.any()
