"""Oracles of the softmax loss, and its regularizers."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.expected.algorithms import SoftmaxOptions
from mosesplug.optimizers.list_candidates import Lists
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.batch.expected.test_family import planted_sparse
from tests.optimizers.problems import planted_bleu

softmax = algorithm("softmax").optimize

PROBLEM = planted_bleu(31, noise=1.0)[0]
LISTS = cast(Lists, PROBLEM.candidates)


def test_oracles_are_those_of_the_greedy_search() -> None:
    found = corpus_oracles(PROBLEM.tuning_set, PROBLEM.metric, np.random.default_rng(2))
    sets, costs = LISTS.choose_oracles("corpus", False, 0.0, 0.0, np.random.default_rng(2))
    np.testing.assert_array_equal(np.flatnonzero(sets), found.rows)
    assert costs is None
    single, _ = LISTS.choose_oracles("corpus", True, 0.0, 0.0, np.random.default_rng(2))
    np.testing.assert_array_equal(np.flatnonzero(single), found.first)


def test_the_tolerance_includes_nearly_equal_hypotheses() -> None:
    """Return the cost of a hypothesis: the loss of corpus BLEU with it, times sentences."""
    tuning_set, offsets = PROBLEM.tuning_set, PROBLEM.tuning_set.offsets
    best = corpus_oracles(tuning_set, PROBLEM.metric, np.random.default_rng(2)).first
    stats = tuning_set.stats.astype(np.float64)
    is_oracle, costs = LISTS.choose_oracles("corpus", False, 0.2, 3.0, np.random.default_rng(2))
    assert costs is not None
    for sentence, own in enumerate(best):
        others = stats[best].sum(axis=0) - stats[own]
        for row in range(offsets[sentence], offsets[sentence + 1]):
            top, here = (PROBLEM.metric.score(others + stats[k]) for k in (own, row))
            less = len(best) * float(top - here)
            assert is_oracle[row] == (less <= 0.2)
            assert costs[row] == pytest.approx(0.0 if less <= 0.2 else 3.0 * less, abs=1e-9)


def test_l1_leaves_few_weights() -> None:
    problem, hidden = planted_sparse(32)
    start = np.append(np.ones(2), np.zeros(30))
    found = [
        softmax(
            problem,
            start,
            np.random.default_rng(0),
            SoftmaxOptions(l1=l1, l2=0.0, error_margin=0.0),
        ).weights
        for l1 in (0.005, 0.03)
    ]
    kept = [int(np.count_nonzero(weights)) for weights in found]
    assert 32 >= kept[0] > kept[1] > 0
    # Those that are left are large ones.
    assert np.abs(hidden[found[1] != 0.0]).mean() > np.abs(hidden[found[1] == 0.0]).mean()


def test_a_regularizer_that_leaves_nothing_is_too_strong() -> None:
    with pytest.raises(OptimizerError, match="too strong"):
        softmax(PROBLEM, np.ones(5), np.random.default_rng(0), SoftmaxOptions(l1=100.0))
