"""Resampling tests against sacrebleu's, against all samples counted, and in clear cases."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.metrics import metric
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.protocol import Metric
from mosesplug.results.scores.significance import (
    approximate_randomization,
    bootstrap_interval,
    estimate_variation,
    paired_bootstrap,
)

SENTENCES = 120


def texts(seed: int, noise: float) -> tuple[list[str], list[str]]:
    """References of made-up words, and a translation with some of them replaced."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number}" for number in range(40)])
    references, translations = [], []
    for _ in range(SENTENCES):
        reference = rng.choice(words, rng.integers(6, 15))
        wrong = rng.random(len(reference)) < noise
        references.append(" ".join(reference))
        translations.append(" ".join(np.where(wrong, rng.choice(words, len(reference)), reference)))
    return references, translations


def statistics(judge: Metric, references: list[str], translations: list[str]) -> NDArray[np.int32]:
    prepared = judge.prepare([[line.encode() for line in references]])
    lines = HypothesisRanges.of_lines(
        [line.encode() for line in translations], np.arange(SENTENCES)
    )
    return judge.statistics(prepared, lines.sentence_ids, lines.buffer, lines.starts, lines.ends)


@pytest.fixture(scope="module")
def systems() -> tuple[list[str], list[str], list[str]]:
    """References, a translation, and one that is a little worse."""
    references, good = texts(1, 0.2)
    _, other = texts(1, 0.23)
    return references, good, other


def test_p_values_are_sacrebleus(systems: tuple[list[str], list[str], list[str]]) -> None:
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    references, good, other = systems
    judge = metric("BLEU")
    one, two = (statistics(judge, references, each) for each in (good, other))
    for kind in ("ar", "bs"):
        theirs = PairedTest(
            [("one", good), ("two", other)],
            {"BLEU": BLEU(tokenize="none", smooth_method="none", references=[references])},
            references=None,
            test_type=kind,
            n_samples=1000,
        )
        _, scores = theirs()
        expected = scores["BLEU"][1].p_value
        rng = np.random.default_rng(12345)  # the seed that sacrebleu takes by itself
        if kind == "ar":
            found = approximate_randomization(judge, [one], [two], 1000, rng)
        else:
            found = paired_bootstrap(judge, one, two, 1000, rng).p_value
        assert 0.0 < expected < 1.0
        assert found == pytest.approx(expected, abs=1.5e-3)


def test_randomization_counts_every_swap() -> None:
    judge = metric("BLEU")
    references, good = texts(3, 0.3)
    _, other = texts(4, 0.3)
    few = 8
    one = statistics(judge, references, good)[:few]
    two = statistics(judge, references, [*other[:4], *good[4:]])[:few]
    real = abs(float(judge.score(one.sum(axis=0)) - judge.score(two.sum(axis=0))))
    extreme = 0
    for swaps in itertools.product([False, True], repeat=few):
        mask = np.array(swaps)[:, np.newaxis]
        ours, theirs = np.where(mask, two, one).sum(axis=0), np.where(mask, one, two).sum(axis=0)
        extreme += abs(float(judge.score(ours) - judge.score(theirs))) >= real - 1e-12
    exact = extreme / 2**few
    found = approximate_randomization(judge, [one], [two], 20_000, np.random.default_rng(1))
    assert found == pytest.approx(exact, abs=0.015)


def test_equal_systems_are_not_significantly_different(
    systems: tuple[list[str], list[str], list[str]],
) -> None:
    judge = metric("BLEU")
    one = statistics(judge, systems[0], systems[1])
    rng = np.random.default_rng(5)
    assert approximate_randomization(judge, [one], [one], 200, rng) == 1.0
    assert paired_bootstrap(judge, one, one, 200, rng) == (1.0, 0.5, 0.0, 0.0)


@pytest.mark.parametrize("name", ["BLEU", "TER", "CHRF"])
def test_a_clear_difference_is_found(name: str) -> None:
    judge = metric(name)
    references, good = texts(7, 0.1)
    _, bad = texts(7, 0.6)
    one, two = (statistics(judge, references, each) for each in (good, bad))
    rng = np.random.default_rng(2)
    p_value, wins, low, high = paired_bootstrap(judge, two, one, 500, rng)
    assert 0.0 < low < high
    assert p_value < 0.01
    assert wins == 1.0
    assert approximate_randomization(judge, [one], [two], 500, rng) == pytest.approx(1 / 501)


def test_false_alarms_are_as_rare_as_they_should_be() -> None:
    judge = metric("BLEU")
    rng = np.random.default_rng(11)
    alarms = 0
    for seed in range(60):
        # The same references; errors of one rate, but independent ones.
        references, one = texts(100 + seed, 0.3)
        swapped = np.random.default_rng(seed).permutation(40)
        renamed = [[f"w{swapped[int(word[1:])]}" for word in line.split()] for line in references]
        two = [
            " ".join(
                word if rng.random() >= 0.3 else other for word, other in zip(*pair, strict=True)
            )
            for pair in zip((line.split() for line in references), renamed, strict=True)
        ]
        pair = [statistics(judge, references, each) for each in (one, two)]
        alarms += approximate_randomization(judge, pair[:1], pair[1:], 200, rng) <= 0.05
    assert alarms <= 8  # of 60, 3 are expected; more than 8 have a probability below 0.005


def test_several_runs() -> None:
    judge = metric("BLEU")
    references, _ = texts(20, 0.0)
    runs = [statistics(judge, references, texts(20, noise)[1]) for noise in (0.20, 0.22, 0.24)]
    scores = [float(judge.score(run.sum(axis=0))) for run in runs]
    found = estimate_variation(judge, runs, 300, np.random.default_rng(3))
    assert found.mean == pytest.approx(np.mean(scores))
    assert found.optimizer == pytest.approx(np.std(scores, ddof=1))
    assert found.low < found.mean < found.high
    assert 0.0 < found.selection < 0.1
    assert np.isnan(estimate_variation(judge, runs[:1], 10, np.random.default_rng(3)).optimizer)
    same = approximate_randomization(judge, runs, runs, 100, np.random.default_rng(4))
    assert same == 1.0
    # A system with fewer runs: they serve again.
    uneven = approximate_randomization(judge, runs, runs[:1], 100, np.random.default_rng(4))
    assert 0.0 < uneven <= 1.0


def test_interval_is_that_of_the_normal_approximation() -> None:
    """Of a mean of independent errors, the bootstrap's deviation is known."""
    judge = metric("WER")
    references, good = texts(30, 0.3)
    rows = statistics(judge, references, good)
    low, high, deviation = bootstrap_interval(judge, rows, 4000, np.random.default_rng(6))
    point = float(judge.score(rows.sum(axis=0)))
    assert low < point < high
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


def test_memory_does_not_grow_with_text_times_samples() -> None:
    ter = metric("TER")
    statistics = np.ones((400_000, ter.n_statistics), dtype=np.int32)
    rng = np.random.default_rng(1)
    tracemalloc.start()
    try:
        assert bootstrap_interval(ter, statistics, 40, rng)[2] == 0.0
        assert approximate_randomization(ter, [statistics], [statistics], 40, rng) == 1.0
        assert tracemalloc.get_traced_memory()[1] < 200e6  # all at once take 520 MB
    finally:
        tracemalloc.stop()


def test_same_seed_same_values(systems: tuple[list[str], list[str], list[str]]) -> None:
    judge = metric("BLEU")
    one, two = (statistics(judge, systems[0], each) for each in systems[1:])
    found = [paired_bootstrap(judge, one, two, 1000, np.random.default_rng(8)) for _ in range(2)]
    assert found[0] == found[1]
