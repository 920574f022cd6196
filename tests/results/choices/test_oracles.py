"""Oracles by every method, against brute force and against each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mosesplug.metrics import Bleu
from mosesplug.metrics.bleu.sentence import sentence_bleu_lin_och
from mosesplug.results.choices.oracle_lists import rank_lists
from mosesplug.results.choices.oracles import METHODS, OracleSettings, find_oracle
from mosesplug.tuning_set import TuningSet
from tests.optimizers.test_oracles import bleu_statistics, with_statistics


def lists(seed: int, sizes: list[int]) -> TuningSet:
    return with_statistics(sizes, bleu_statistics(np.random.default_rng(seed), sum(sizes)))


def test_ranking_puts_high_scores_first_and_keeps_equals() -> None:
    made = lists(1, [3, 0, 4])
    scores = np.array([0.1, 0.3, 0.2, 0.5, 0.7, 0.5, 0.7])
    found = rank_lists(made, scores)
    assert found.rows.tolist() == [1, 2, 0, 4, 6, 3, 5]
    np.testing.assert_array_equal(found.lists.stats, made.stats[found.rows])
    assert found.first_rows.tolist() == [0, 3]
    two = found.truncate(2)
    assert two.rows.tolist() == [1, 2, 4, 6]
    assert two.lists.offsets.tolist() == [0, 2, 2, 4]
    np.testing.assert_array_equal(two.lists.stats, made.stats[two.rows])
    assert found.truncate(None) is found
    assert rank_lists(made, None).rows.tolist() == list(range(7))


@pytest.mark.parametrize("method", METHODS)
def test_the_score_is_that_of_the_choice(method: str) -> None:
    made = lists(2, [4, 0, 5, 3, 6, 4])
    found = find_oracle(method, made, Bleu(), 1, OracleSettings(batch=2))  # type: ignore[arg-type]
    owners = np.searchsorted(made.offsets, found.rows, side="right") - 1
    assert owners.tolist() == [0, 2, 3, 4, 5]
    assert (found.equals >= 1).all()
    totals = made.stats[found.rows].sum(axis=0)
    assert found.score == max(found.scores) == float(Bleu().score(totals))
    again = find_oracle(method, made, Bleu(), 1, OracleSettings(batch=2))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.rows, again.rows)


def test_greedy_is_as_good_as_any_choice_and_the_others_are_close() -> None:
    made = lists(3, [3, 4, 3, 4])
    spans = [range(a, b) for a, b in itertools.pairwise(made.offsets.tolist())]
    best = max(
        float(Bleu().score(made.stats[list(rows)].sum(axis=0)))
        for rows in itertools.product(*spans)
    )
    scores = {
        method: find_oracle(method, made, Bleu(), 1, OracleSettings(restarts=5, batch=2)).score
        for method in METHODS
    }
    assert scores["greedy"] == best
    assert len(find_oracle("greedy", made, Bleu(), 1, OracleSettings(restarts=5)).scores) == 5
    assert all(score <= best for score in scores.values())
    assert min(scores.values()) > 0.8 * best


def test_sentence_oracles_are_the_highest_smoothed_bleu_and_their_equals() -> None:
    stats = np.repeat(bleu_statistics(np.random.default_rng(4), 6), [1, 2, 1, 3, 1, 1], axis=0)
    made = with_statistics([4, 5], stats)
    found = find_oracle("sentence", made, Bleu(), 1)
    worth = sentence_bleu_lin_och(stats.astype(np.float64))
    for place, (start, end) in enumerate(itertools.pairwise(made.offsets.tolist())):
        assert found.rows[place] == start + int(np.argmax(worth[start:end]))
        assert found.equals[place] == np.count_nonzero(worth[start:end] == worth[start:end].max())


def test_one_batch_of_all_sentences_is_the_greedy_search() -> None:
    made = lists(5, [5] * 6)
    whole = find_oracle("batch", made, Bleu(), 1, OracleSettings(batch=6))
    greedy = find_oracle("greedy", made, Bleu(), 1, OracleSettings(restarts=8))
    assert whole.score == pytest.approx(greedy.score, rel=0.02)
    alone = find_oracle("batch", made, Bleu(), 1, OracleSettings(batch=1))
    assert alone.score <= greedy.score


def test_no_lists() -> None:
    made = with_statistics([0, 0], np.zeros((0, 9), dtype=np.int32))
    for method in METHODS:
        found = find_oracle(method, made, Bleu(), 1)
        assert len(found.rows) == len(found.equals) == 0
        assert found.score == 0.0
