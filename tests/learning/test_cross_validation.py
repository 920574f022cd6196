"""Cross-validation and shares held out, against counting by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.cross_validation import cross_validate, split_sentences
from mosesplug.learning.inputs import LearningData, make_list_data
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, Solution, corpus_score
from mosesplug.tuning_set import TuningSet

BLEU = metric("BLEU", "case:true")


def problem(n_sentences: int = 11, seed: int = 3) -> Problem:
    """Lists of 4 hypotheses with 2 features; sentence 5 has none."""
    rng = np.random.default_rng(seed)
    widths = np.where(np.arange(n_sentences) == 5, 0, 4)
    offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    n_hyps = int(offsets[-1])
    totals = np.array([8, 7, 6, 5])
    stats = np.zeros((n_hyps, 9), dtype=np.int32)
    stats[:, 0:8:2] = np.sort(rng.integers(0, totals + 1, (n_hyps, 4)), axis=1)[:, ::-1]
    stats[:, 0:8:2] = np.minimum(stats[:, 0:8:2], totals)
    stats[:, 1:8:2], stats[:, 8] = totals, 8
    return Problem(
        TuningSet(
            space=FeatureSpace((("A", 1), ("B", 1))),
            sentence_ids=np.arange(n_sentences),
            offsets=offsets,
            dense=rng.normal(size=(n_hyps, 2)).astype(np.float32),
            sparse=None,
            stats=stats,
            lengths=np.full(n_hyps, 8, dtype=np.int32),
        ),
        BLEU,
    )


def lists_to_learn_from(start: Sequence[float] = (1.0, 1.0)) -> LearningData:
    whole = problem()
    weights = StartingWeights(np.array(start))
    return make_list_data(whole.tuning_set, whole.metric, weights, "", 0, 1)


def learner(seen: list[tuple[Problem, Solution]]) -> Callable[..., Solution]:
    """The better of two fixed points on what it is given; remembers it."""

    def learn(given: Problem, rng: np.random.Generator, progress: object) -> Solution:
        points = [np.array([1.0, 0.0]), np.array([0.0, 1.0]), rng.normal(size=2)]
        best = max(points, key=lambda point: corpus_score(given, point))
        seen.append((given, Solution(best, corpus_score(given, best))))
        return seen[-1][1]

    return learn


def test_every_sentence_is_decided_once_by_weights_that_never_saw_it() -> None:
    lists, seen = lists_to_learn_from((0.5, 0.5)), list[tuple[Problem, Solution]]()
    told: list[tuple[int, int, str]] = []
    found = cross_validate(
        lists, learner(seen), 4, seed=7, progress=lambda *done: told.append(done)
    )
    assert [fold.sentences for fold in found.folds] == [3, 3, 2, 2]
    everything = set(lists.sentences.tolist())
    totals, decided = np.zeros(9), []
    for (given, solution), fold in zip(seen, found.folds, strict=True):
        learned_from = set(given.tuning_set.sentence_ids.tolist())
        left_out = sorted(everything - learned_from)
        decided += left_out
        chosen = []
        for sentence in left_out:
            rows = slice(*lists.problem.tuning_set.offsets[sentence : sentence + 2])
            scores = lists.problem.tuning_set.dense[rows].astype(np.float64) @ solution.weights
            chosen.append(lists.problem.tuning_set.stats[rows][int(np.argmax(scores))])
        statistics = np.sum(chosen, axis=0, dtype=np.float64)
        assert fold.held_out == pytest.approx(float(BLEU.score(statistics)))
        assert fold.learning == solution.score
        totals += statistics
    assert sorted(decided) == sorted(everything)
    assert found.held_out == pytest.approx(float(BLEU.score(totals)))
    assert found.start == pytest.approx(corpus_score(lists.problem, lists.start.weights))
    scores = [(fold.learning, fold.held_out) for fold in found.folds]
    mean, deviation = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1)
    assert (*found.learning, *found.left_out) == pytest.approx(
        (mean[0], deviation[0], mean[1], deviation[1])
    )
    assert found.gap == pytest.approx(mean[0] - mean[1])
    assert told == [(1, 4, "folds"), (2, 4, "folds"), (3, 4, "folds"), (4, 4, "folds")]


def test_a_seed_gives_the_same_folds_and_another_others() -> None:
    lists = lists_to_learn_from()

    def held_out(seed: int) -> list[float]:
        found = cross_validate(lists, learner([]), 3, seed)
        return [fold.held_out for fold in found.folds]

    assert held_out(1) == held_out(1)
    assert held_out(1) != held_out(2)


@pytest.mark.parametrize("count", [1, 11])
def test_folds_without_sentences_are_rejected(count: int) -> None:
    with pytest.raises(UsageError, match=rf"10 sentences cannot be split into {count} folds"):
        cross_validate(lists_to_learn_from(), learner([]), count, 1)


def test_a_share_is_drawn_once_and_rounded() -> None:
    sentences = np.array([3, 4, 8, 9, 11, 20, 21], dtype=np.int64)
    kept, away = split_sentences(sentences, 0.3, seed=4)
    assert len(away) == 2
    assert sorted([*kept, *away]) == sentences.tolist()
    assert (np.diff(kept) > 0).all()
    assert (np.diff(away) > 0).all()
    again = split_sentences(sentences, 0.3, seed=4)
    assert again[1].tolist() == away.tolist()
    assert any(
        split_sentences(sentences, 0.3, seed)[1].tolist() != away.tolist() for seed in range(5)
    )
    assert len(split_sentences(sentences, 0.01, seed=4)[1]) == 1
    with pytest.raises(UsageError, match="none left to learn from"):
        split_sentences(sentences, 0.99, seed=4)
    with pytest.raises(UsageError, match="more than 0 and less than 1"):
        split_sentences(sentences, 1.0, seed=4)


def test_statistics_of_parts_add_up() -> None:
    lists, weights = lists_to_learn_from(), np.array([0.3, -0.7])
    halves = (lists.sentences[::2], lists.sentences[1::2])
    parts = [lists.take_sentences(half).candidates.first_best(weights) for half in halves]
    np.testing.assert_array_equal(sum(parts), lists.problem.candidates.first_best(weights))
