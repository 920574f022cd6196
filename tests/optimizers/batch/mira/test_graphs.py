"""MIRA by search: over lists it does what MIRA on those lists does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.candidates import Candidates
from mosesplug.errors import OptimizerError
from mosesplug.metrics import metric
from mosesplug.metrics.sentence_bleu import single_bleu
from mosesplug.optimizers.batch.mira.hypotheses import subtract_features
from mosesplug.optimizers.batch.mira.kbmira import (
    KbmiraOptions,
    list_learner,
    search_learner,
)
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import TuningSet
from tests.optimizers.batch.mira.background import background_bleu
from tests.optimizers.batch.mira.test_kbmira import bleu_problem, dense_features

kbmira = algorithm("kbmira").optimize

OPTIONS = KbmiraOptions()


@dataclass(frozen=True)
class Hypothesis:
    """A row of a list."""

    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    statistics: NDArray[np.float32]


@dataclass(frozen=True)
class Pair:
    """Hope and fear."""

    hope: Hypothesis
    fear: Hypothesis
    hope_gain: np.float32
    fear_gain: np.float32


@dataclass(frozen=True)
class ListSearch(Candidates):
    """Looks through the lists of a tuning set."""

    made: TuningSet
    sentences: NDArray[np.int64]

    answers = frozenset({"updates"})

    def score(self, weights: NDArray[Any]) -> float:
        single = weights.astype(np.float32)
        best = [self.model_best(k, single).statistics for k in range(self.n_sentences)]
        return float(single_bleu(np.sum(best, axis=0)))

    @property
    def n_sentences(self) -> int:
        return len(self.sentences)

    def _list(self, sentence: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = slice(*self.made.offsets[self.sentences[sentence] :][:2])
        return dense_features(self.made)[rows], self.made.stats[rows].astype(np.float64)

    def _found(self, sentence: int, values: NDArray[np.float64]) -> tuple[Hypothesis, int]:
        features, statistics = self._list(sentence)
        row = int(np.argmax(np.round(values, 5)))
        columns = np.flatnonzero((features[row] != 0) | (np.arange(features.shape[1]) < 3))
        made = Hypothesis(
            columns.astype(np.int32),
            features[row, columns].astype(np.float32),
            statistics[row].astype(np.float32),
        )
        return made, row

    def hope_and_fear(
        self,
        sentence: int,
        weights: NDArray[np.float32],
        background: NDArray[np.float32],
        *,
        safe_hope: bool,
    ) -> Pair:
        features, statistics = self._list(sentence)
        scores = features @ weights
        gains = background_bleu(statistics, background.astype(np.float64))
        hope, best = self._found(sentence, scores + gains)
        if safe_hope and abs(scores[best]) > 1e-8:
            scale = min(1.0, abs(5 * gains[best] / scores[best]))
            hope, best = self._found(sentence, scale * scores + gains)
        fear, worst = self._found(sentence, scores - gains)
        return Pair(hope, fear, np.float32(gains[best]), np.float32(gains[worst]))

    def model_best(self, sentence: int, weights: NDArray[np.float32]) -> Hypothesis:
        features, _ = self._list(sentence)
        return self._found(sentence, features @ weights)[0]


@pytest.mark.parametrize("n_sparse", [0, 6])
@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        replace(OPTIONS, background="model", decay=0.9),
        replace(OPTIONS, safe_hope=True, step_cap=0.1),
    ],
)
def test_learns_as_lists_do(n_sparse: int, options: KbmiraOptions) -> None:
    for seed in range(4):
        problem = bleu_problem(seed, n_sparse)
        start = np.array([0.5, -0.25, 1.0] + [0.125] * n_sparse)
        expected = list_learner(problem, start, options)
        search = ListSearch(problem.tuning_set, np.flatnonzero(np.diff(problem.tuning_set.offsets)))
        found = search_learner(search, 3, start, options)
        order = np.arange(expected.n_sentences)
        for _ in range(3):
            there, here = expected.visit(order), found.visit(order)
            np.testing.assert_array_equal(here.occasion, there.occasion)
            np.testing.assert_allclose(here.loss, there.loss, atol=1e-4)
            np.testing.assert_allclose(found.average(), expected.average(), atol=1e-4)
            weights = expected.average()
            assert found.score(weights) == pytest.approx(expected.score(weights), rel=1e-6)
        np.testing.assert_allclose(found.state.background, expected.state.background, rtol=1e-5)


@pytest.mark.parametrize("active", [None, (True, False, True)])
def test_the_optimizer_takes_a_search_for_lists(active: tuple[bool, ...] | None) -> None:
    problem = replace(bleu_problem(2), active=None if active is None else np.array(active))
    made = problem.tuning_set
    search = ListSearch(made, np.flatnonzero(np.diff(made.offsets)))
    nothing = replace(
        made,
        offsets=0 * made.offsets,
        dense=made.dense[:0],
        stats=made.stats[:0],
        lengths=made.lengths[:0],
    )
    start = np.array([0.5, -0.25, 1.0])
    options = replace(OPTIONS, epochs=3)
    expected = kbmira(problem, start, np.random.default_rng(1), options)
    found = kbmira(
        replace(problem, tuning_set=nothing, source=search),
        start,
        np.random.default_rng(1),
        options,
    )
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)
    assert found.score == pytest.approx(expected.score, rel=1e-6)
    assert [step["updates"] for step in found.history] == [
        step["updates"] for step in expected.history
    ]
    if active is not None:
        assert found.weights[1] == -0.25


def test_a_search_is_for_bleu() -> None:
    problem = bleu_problem(2)
    search = ListSearch(problem.tuning_set, np.arange(1))
    other = replace(problem, metric=metric("TER", ""), source=search)
    with pytest.raises(OptimizerError, match="by BLEU only, not by TER"):
        kbmira(other, np.ones(3), np.random.default_rng(1), OPTIONS)


def test_equal_sparse_features_are_omitted() -> None:
    def hypothesis(**values: float) -> Hypothesis:
        columns = np.array([int(name[1:]) for name in values], dtype=np.int32)
        return Hypothesis(
            columns, np.array([*values.values()], np.float32), np.zeros(9, np.float32)
        )

    hope = hypothesis(f0=1.0, f1=2.0, f2=3.0, f4=1e-7)
    fear = hypothesis(f0=1.0, f2=3.0, f3=5.0, f5=0.0)
    columns, values = subtract_features(hope, fear, 1)
    assert columns.tolist() == [0, 1, 3, 4, 5]
    np.testing.assert_allclose(values, [0.0, 2.0, -5.0, 1e-7, 0.0])
