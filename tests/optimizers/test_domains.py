"""Copies of features for domains: the same model scores as weights of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers.domains import add_copies, count_domains
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import Accuracy, planted, tuning_set

NAMES = ("news", "talks", "web")


def sparse_problem(rng: np.random.Generator) -> Problem:
    """Sentences of 1 to 4 hypotheses and one without any; two dense and three sparse features."""
    sizes = [*rng.integers(1, 5, 8).tolist(), 0]
    n_hyps = sum(sizes)
    widths = rng.integers(0, 4, n_hyps)
    indptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    indices = rng.integers(0, 3, indptr[-1]).astype(np.int32)
    data = rng.normal(size=indptr[-1]).astype(np.float32)
    dense = rng.integers(-1, 2, (n_hyps, 2))
    rows = SparseRows(indptr, indices, data)
    won = rng.integers(0, 10, n_hyps)
    made = tuning_set(sizes, dense, won, rows, ("S_a", "S_b", "S_c"))
    return Problem(made, Accuracy())


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_copies_score_as_weights_of_each_domain(seed: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    problem = sparse_problem(rng)
    lists = problem.tuning_set
    domains = rng.integers(0, len(NAMES), lists.n_sentences)
    made, space = add_copies(problem, NAMES, domains, sparse=sparse)
    vector = rng.normal(size=len(space.space))
    scores = made.tuning_set.model_scores(vector)
    of_row = np.repeat(domains, np.diff(lists.offsets))
    for number, name in enumerate(NAMES):
        own = space.weights(vector, name)
        np.testing.assert_allclose(
            scores[of_row == number], lists.model_scores(own)[of_row == number], rtol=1e-6
        )
        changed = own != space.weights(vector, None)
        assert changed.tolist() == [True, True, sparse, sparse, sparse]
    assert made.active is not None
    assert made.active.sum() == (5 if sparse else 2) * (1 + len(NAMES))
    assert space.space.sparse[3] == "F0@news"


def test_centered_weights_decide_alike() -> None:
    problem, _ = planted(1, n_sentences=30)
    domains = np.arange(30) % 2
    made, space = add_copies(problem, NAMES, domains, sparse=False)
    counts = count_domains(len(NAMES), domains, made.tuning_set)
    assert counts.tolist() == [15, 15, 0]
    vector = np.random.default_rng(2).normal(size=len(space.space))
    centered = space.center(vector, counts)
    lists = made.tuning_set
    assert lists.first_best(centered).tolist() == lists.first_best(vector).tolist()
    own = [space.weights(centered, name) for name in NAMES]
    np.testing.assert_allclose([np.abs(each).sum() for each in own[:2]], 1.0)
    np.testing.assert_allclose((own[0] + own[1]) / 2, space.weights(centered, None))
    assert own[2].tolist() == space.weights(centered, None).tolist()


def test_a_feature_with_the_name_of_a_copy_is_rejected() -> None:
    problem = sparse_problem(np.random.default_rng(0))
    lists = problem.tuning_set
    taken = replace(lists.space, sparse=("F0@news", "S_b", "S_c"))
    problem = replace(problem, tuning_set=replace(lists, space=taken))
    with pytest.raises(UsageError, match="a feature F0@news, which --domains would make"):
        add_copies(problem, NAMES, np.zeros(lists.n_sentences, dtype=np.int64), sparse=True)
