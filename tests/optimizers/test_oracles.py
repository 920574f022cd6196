"""Oracles against brute force over all choices."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter.moses import Ter
from mosesplug.optimizers import oracles
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.tuning_set import TuningSet
from tests.optimizers.problems import Accuracy, tuning_set


def bleu_statistics(rng: np.random.Generator, n_hyps: int) -> NDArray[np.int32]:
    """Rows as a sentence of 8 reference words has them."""
    lengths = rng.integers(6, 11, n_hyps)
    rows = [np.zeros(n_hyps, dtype=np.int64) for _ in range(9)]
    matches = lengths
    for order in range(4):
        rows[2 * order + 1] = np.maximum(0, lengths - order)
        matches = rng.integers(0, np.minimum(matches, rows[2 * order + 1]) + 1)
        rows[2 * order] = matches
    rows[8] = np.full(n_hyps, 8)
    return np.stack(rows, axis=1).astype(np.int32)


def with_statistics(sizes: list[int], stats: NDArray[np.int32]) -> TuningSet:
    stats.flags.writeable = False
    made = tuning_set(sizes, np.zeros((sum(sizes), 1)), np.zeros(sum(sizes)))
    return replace(made, stats=stats)


def ter_statistics(rng: np.random.Generator, n_hyps: int) -> NDArray[np.int32]:
    edits = 100 * rng.integers(0, 9, n_hyps)
    return np.stack([edits, np.full(n_hyps, 800), edits // 8], axis=1).astype(np.int32)


def choices(made: TuningSet) -> list[tuple[int, ...]]:
    spans = [range(a, b) for a, b in itertools.pairwise(made.offsets.tolist()) if b > a]
    return list(itertools.product(*spans))


def score_of(made: TuningSet, metric: Metric, rows: tuple[int, ...]) -> float:
    return float(metric.score(made.stats[list(rows)].sum(axis=0, dtype=np.float64)))


def check_local_optimum(made: TuningSet, metric: Metric, found: OracleSets) -> None:
    """No change of one sentence improves; ties, and nothing else, are in the sets."""
    first = tuple(found.first.tolist())
    sets = [
        found.rows[a:b].tolist() for a, b in itertools.pairwise(found.offsets.tolist()) if b > a
    ]
    # The choice behind the sets is one of their combinations.
    for chosen in itertools.product(*sets):
        if score_of(made, metric, chosen) != found.score:
            continue
        equals = []
        for place, row in enumerate(chosen):
            sentence = int(np.searchsorted(made.offsets, row, side="right")) - 1
            options = range(made.offsets[sentence], made.offsets[sentence + 1])
            scores = {
                other: score_of(made, metric, (*chosen[:place], other, *chosen[place + 1 :]))
                for other in options
            }
            assert max(scores.values()) <= found.score + 1e-12
            equals.append([other for other in options if scores[other] == found.score])
        if equals == sets:
            return
    raise AssertionError(f"no choice explains the sets; the first is {first}")


@pytest.mark.parametrize("seed", range(8))
def test_greedy_oracles_of_bleu_are_a_local_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = with_statistics([4, 0, 5, 3, 4], bleu_statistics(rng, 16))
    found = corpus_oracles(made, Bleu(), rng)
    check_local_optimum(made, Bleu(), found)
    assert np.diff(found.offsets)[1] == 0
    best = max(score_of(made, Bleu(), rows) for rows in choices(made))
    assert found.score <= best


def test_greedy_reaches_the_best_where_sentences_do_not_compete() -> None:
    rng = np.random.default_rng(3)
    for metric, stats in (
        (Ter(), ter_statistics(rng, 12)),
        (Accuracy(), np.stack([rng.integers(0, 9, 12), np.full(12, 9)], 1).astype(np.int32)),
    ):
        made = with_statistics([3, 4, 0, 5], stats)
        found = corpus_oracles(made, metric, rng)
        assert found.score == max(score_of(made, metric, rows) for rows in choices(made))
        alone = sentence_oracles(made.offsets, metric.score(stats))
        np.testing.assert_array_equal(found.rows, alone.rows)
        np.testing.assert_array_equal(found.offsets, alone.offsets)


def test_mixtures_of_metrics() -> None:
    rng = np.random.default_rng(4)
    both = np.concatenate([bleu_statistics(rng, 14), ter_statistics(rng, 14)], axis=1)
    made = with_statistics([4, 5, 5], both)
    metric = InterpolatedMetric((Bleu(), Ter()), (0.6, 0.4))
    check_local_optimum(made, metric, corpus_oracles(made, metric, rng))


def test_the_score_belongs_to_the_choice_and_the_seed_decides() -> None:
    stats = bleu_statistics(np.random.default_rng(5), 60)
    made = with_statistics([20] * 3, stats)
    first, again = (corpus_oracles(made, Bleu(), np.random.default_rng(6)) for _ in range(2))
    np.testing.assert_array_equal(first.rows, again.rows)
    assert first.score == again.score


def test_ties_are_kept() -> None:
    stats = np.repeat(bleu_statistics(np.random.default_rng(7), 3), 2, axis=0)
    made = with_statistics([2, 2, 2], stats)
    found = corpus_oracles(made, Bleu(), np.random.default_rng(0))
    np.testing.assert_array_equal(found.rows, np.arange(6))
    np.testing.assert_array_equal(found.offsets, [0, 2, 4, 6])


def test_scoring_equal_statistics_once_changes_no_oracles(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    sizes = [40, 0, 1, 25]
    stats = bleu_statistics(rng, 12)[rng.integers(0, 12, sum(sizes))]
    plain = with_statistics(sizes, stats)
    for lists in (plain, plain.weigh(np.array([0.3, 1.0, 2.0, 0.7]))):
        every = corpus_oracles(lists, Bleu(), np.random.default_rng(9))
        with monkeypatch.context() as patched:
            patched.setattr(oracles, "_COMPILED", 0)
            once = corpus_oracles(lists, Bleu(), np.random.default_rng(9))
        assert once.score == every.score
        for name in ("rows", "offsets", "oracle_rows"):
            np.testing.assert_array_equal(getattr(once, name), getattr(every, name))


def test_choices_stay_after_the_last_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    made = with_statistics([9] * 5, bleu_statistics(np.random.default_rng(10), 45))
    monkeypatch.setattr(oracles, "_PASSES", 1)
    rng, same = np.random.default_rng(11), np.random.default_rng(11)
    found = corpus_oracles(made, Bleu(), rng)
    same.integers(0, np.full(5, 9))
    same.permutation(5)
    assert rng.bit_generator.state == same.bit_generator.state
    assert found.score == score_of(made, Bleu(), tuple(found.oracle_rows.tolist()))
    for sentence, row in enumerate(found.oracle_rows.tolist()):
        own = found.rows[found.offsets[sentence] : found.offsets[sentence + 1]].tolist()
        totals = made.stats[found.oracle_rows].sum(axis=0, dtype=np.float64) - made.stats[row]
        scores = [
            Bleu().score(totals + made.stats[other])
            for other in range(*made.offsets[sentence : sentence + 2])
        ]
        start = made.offsets[sentence]
        assert own == [start + i for i, score in enumerate(scores) if score >= scores[row - start]]


def test_nothing_to_choose_from() -> None:
    made = with_statistics([0, 0], np.zeros((0, 9), dtype=np.int32))
    found = corpus_oracles(made, Bleu(), np.random.default_rng(0))
    assert len(found.rows) == len(found.first) == 0
    np.testing.assert_array_equal(found.offsets, [0, 0, 0])
    np.testing.assert_array_equal(sentence_oracles(made.offsets, np.zeros(0)).offsets, [0, 0, 0])


def test_sentence_oracles_keep_ties_and_skip_empty_lists() -> None:
    offsets = np.array([0, 3, 3, 5])
    found = sentence_oracles(offsets, np.array([0.5, 0.7, 0.7, 0.2, 0.1]))
    np.testing.assert_array_equal(found.rows, [1, 2, 3])
    np.testing.assert_array_equal(found.offsets, [0, 2, 2, 3])
    np.testing.assert_array_equal(found.first, [1, 3])
    assert found.score == pytest.approx(0.45)
