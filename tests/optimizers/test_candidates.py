"""Answers of candidates: the same questions to lists, shards and search graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.candidates import Candidates, Objective
from mosesplug.errors import UsageError
from mosesplug.metrics import metric
from mosesplug.optimizers.list_candidates import Lists, Sharded
from mosesplug.optimizers.lists.shards import WholeLists
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.list_shards import open_list_shards
from tests.forest.test_derivations import WEIGHTS, derivations_of
from tests.optimizers.batch.expected.small import bleu_lists
from tests.optimizers.problems import Problem

BLEU = metric("BLEU")


@pytest.fixture(params=["lists", "shards", "graphs"])
def candidates(request: pytest.FixtureRequest) -> Iterator[Candidates]:
    if request.param == "graphs":
        yield derivations_of(3, phrase_based=True)
        return
    lists = bleu_lists(5)
    if request.param == "lists":
        yield Lists(lists, BLEU, WholeLists(lists))
        return
    with open_list_shards(Problem(lists, BLEU), Sharding(3)) as shards:
        yield Sharded(lists, BLEU, shards)


def start_of(candidates: Candidates) -> NDArray[np.float64]:
    n_features = len(candidates.best_lists(WEIGHTS, 1).space)
    return np.random.default_rng(4).standard_normal(n_features)


def test_lines_have_the_scores_of_decoding(candidates: Candidates) -> None:
    weights = start_of(candidates)
    everything = np.ones(len(weights), dtype=np.bool_)
    space = candidates.lines(everything, np.zeros(len(weights)))
    point = space.at(weights)
    assert candidates.score(weights) == float(BLEU.score(candidates.first_best(weights)))
    assert space.decode(point) == candidates.score(weights)
    directions = np.random.default_rng(6).standard_normal((2, len(weights)))
    axes = np.array([1, 0])
    surfaces = [*space.along(directions, point), *space.along_axes(axes, point)]
    checked = 0
    for along, (thresholds, scores) in zip(
        [*directions, *np.eye(len(weights))[axes]], surfaces, strict=True
    ):
        ends = np.concatenate([thresholds[:1] - 2.0, thresholds, thresholds[-1:] + 2.0])
        for place in np.flatnonzero(np.diff(ends) > 1e-6)[:5].tolist():
            middle = 0.5 * (ends[place] + ends[place + 1])
            assert scores[place] == pytest.approx(candidates.score(weights + middle * along))
            checked += 1
    assert checked > 5


@pytest.mark.parametrize("name", ["error", "bleu", "oracles"])
def test_gradients_are_those_of_differences(candidates: Candidates, name: str) -> None:
    weights, rng = start_of(candidates), np.random.default_rng(1)
    objective: Objective
    if name == "bleu":
        objective = candidates.expected_bleu(0.3)
    elif name == "error":
        gains = candidates.gains("lin-och", "error", rng)(weights)
        objective = candidates.expected_error(gains, 0.2)
    else:
        objective = candidates.oracle_loss(
            weights, rng, gain="lin-och", oracles="sets", tolerance=0.1, margin=2.0
        )
    _, gradient = objective(weights)
    for direction in np.eye(len(weights)):
        above, below = (objective(weights + step * direction)[0] for step in (1e-5, -1e-5))
        assert gradient @ direction == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-6)


def test_lists_and_shards_need_no_references_of_graphs(candidates: Candidates) -> None:
    sentences, notes = candidates.choose_sentences("local")
    assert notes == ()
    batch = candidates.hopes_and_fears(sentences, lambda: start_of(candidates), 1, 3)
    assert batch.n_sentences == len(sentences) == candidates.n_sentences
    if "lists" in candidates.answers:
        with pytest.raises(UsageError, match="needs search graphs"):
            candidates.choose_sentences("bold")
    else:
        with pytest.raises(UsageError, match="error=moses needs n-best lists"):
            candidates.gains("moses", "error", np.random.default_rng(0))
