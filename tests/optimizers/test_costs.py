"""Gains against the equations of the survey, spelled out sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.bleu.sentence import sentence_bleu_lin_och, sentence_bleu_nakov
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter.moses import Ter
from mosesplug.optimizers.costs import Costs, first_of_largest
from mosesplug.optimizers.online.options import CostOptions
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.tuning_set import Batch
from tests.optimizers.test_oracles import bleu_statistics, ter_statistics, with_statistics

RNG = np.random.default_rng


def batch_of(seed: int, sizes: list[int]) -> Batch:
    return with_statistics(sizes, bleu_statistics(RNG(seed), sum(sizes)))


def gains(
    costs: Costs,
    batch: Batch,
    metric: Metric | None = None,
    memory: dict[str, NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    metric = metric or Bleu()
    return costs.gains(batch, metric, costs.memory(metric) if memory is None else memory, RNG(1))


def test_smoothed_variants_are_named() -> None:
    batch = batch_of(1, [3, 4])
    for kind, function in (("lin-och", sentence_bleu_lin_och), ("nakov", sentence_bleu_nakov)):
        found = gains(Costs(kind), batch)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, function(batch.stats.astype(np.float64)))
    assert np.any(gains(Costs("moses"), batch) != gains(Costs("lin-och"), batch))


def test_other_metrics_score_sentences_themselves() -> None:
    batch = with_statistics([3, 2], ter_statistics(RNG(2), 5))
    np.testing.assert_array_equal(gains(Costs("nakov"), batch, Ter()), Ter().score(batch.stats))


def test_mixtures_smooth_their_bleu() -> None:
    bleu, ter = bleu_statistics(RNG(3), 5), ter_statistics(RNG(4), 5)
    batch = with_statistics([3, 2], np.concatenate([bleu, ter], axis=1))
    found = gains(Costs("lin-och"), batch, InterpolatedMetric((Bleu(), Ter()), (3.0, 1.0)))
    wanted = 0.75 * sentence_bleu_lin_och(bleu.astype(np.float64)) + 0.25 * Ter().score(ter)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_background_of_equations_57_and_58() -> None:
    batch = batch_of(5, [3, 0, 2])
    costs = Costs("background", decay=0.9)
    stats = batch.stats.astype(np.float64)
    memory = costs.memory(Bleu())
    found = gains(costs, batch)
    for row in range(5):
        assert found[row] == pytest.approx(1.9 * Bleu().score(0.9 * np.ones(9) + stats[row]))
    after = costs.update_memory(batch, memory, np.array([2, 3]))
    wanted = 0.9 * (0.9 * np.ones(9) + stats[2]) + stats[3]
    np.testing.assert_allclose(after["background"][:-1], wanted)
    assert after["background"][-1] == pytest.approx(0.9 * (0.9 + 1) + 1)
    again = gains(costs, batch, memory=after)
    sentences = 0.9 * after["background"][-1] + 1
    assert again[0] == pytest.approx(sentences * Bleu().score(0.9 * wanted + stats[0]))


def test_pseudo_corpus_of_equation_56() -> None:
    costs, metric = Costs("pseudo-corpus"), Bleu()
    few = FewSentences(metric)
    everything = batch_of(6, [3, 3, 3])
    first = everything.take_sentences(np.array([2, 0]))
    memory = costs.update_memory(first, costs.memory(metric), np.array([1, 3]))
    assert memory["pseudo-corpus"].shape == (3, 10)
    # Sentence 1 is new: its own oracle takes part until something is remembered.
    second = everything.take_sentences(np.array([1, 2]))
    found = gains(costs, second, memory=memory)
    oracle = corpus_oracles(second, few, RNG(1)).first[0]
    stats = second.stats.astype(np.float64)
    zero, two = first.stats[3], first.stats[1]
    for row in range(3):
        assert found[row] == pytest.approx(3 * few.score(zero + two + stats[row]))
        assert found[3 + row] == pytest.approx(3 * few.score(zero + stats[oracle] + stats[3 + row]))


def test_corpus_of_the_batch() -> None:
    batch = batch_of(7, [4, 4])
    found = gains(Costs("corpus"), batch)
    few = FewSentences(Bleu())
    oracles = corpus_oracles(batch, few, RNG(1)).first
    stats = batch.stats.astype(np.float64)
    for row in range(4):
        assert found[row] == pytest.approx(2 * few.score(stats[row] + stats[oracles[1]]))
    np.testing.assert_array_equal(first_of_largest(batch.offsets, found), oracles)


def test_remembered_statistics() -> None:
    batch = batch_of(8, [2, 0, 3])
    scores, worth = np.array([1.0, 0.9, 0.0, 2.0, 2.0]), np.array([0.1, 0.5, 3.0, 0.0, 0.5])
    wanted = {"one-best": [0, 3], "hope": [1, 2], "oracle": [1, 2]}
    for remember, rows in wanted.items():
        costs = Costs("background", remember)  # type: ignore[arg-type]
        np.testing.assert_array_equal(costs.choose(batch, scores, worth), rows)
    assert Costs("lin-och").update_memory(batch, {}, np.array([0, 2])) == {}


def test_gains_of_a_batch_without_hypotheses() -> None:
    batch = batch_of(9, [0, 0])
    for kind in ("corpus", "lin-och", "pseudo-corpus", "background"):
        costs = Costs(kind)
        assert len(gains(costs, batch)) == 0
        memory = costs.memory(Bleu())
        after = costs.update_memory(batch, memory, np.zeros(0, dtype=np.int64))
        assert after.keys() == memory.keys()


def test_a_decay_that_grows_is_rejected() -> None:
    with pytest.raises(UsageError, match="background_decay"):
        CostOptions(background_decay=1.5).costs()


def test_background_in_source_words_as_in_the_program_of_eidelman() -> None:
    """kbest_cut_mira -e: source words times BLEU, each of all sentences so far with decay 0.95."""
    costs, metric = Costs("background", decay=0.95, unit="source"), Bleu()
    everything = batch_of(11, [3, 0, 2])
    lengths = np.array([7, 5, 0], dtype=np.int64)
    sizes = costs.sizes(everything, metric, lengths)
    assert sizes.tolist() == [7.0, 5.0, 1.0]
    document, words = np.ones(metric.n_statistics), 1.0
    memory = costs.memory(metric)
    for sentence, best in ((2, 4), (0, 1)):
        batch = everything.take_sentences(np.array([sentence]))
        own = costs.sizes(batch, metric, lengths)
        found = costs.gains(batch, metric, memory, RNG(1), own)
        document, words = 0.95 * document, 0.95 * words
        wanted = [
            (words + max(lengths[sentence], 1)) * metric.score(document + row)
            for row in batch.stats.astype(np.float64)
        ]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        first = np.array([best - everything.offsets[sentence]])
        memory = costs.update_memory(batch, memory, first, own)
        document, words = document + everything.stats[best], words + max(lengths[sentence], 1)


@pytest.mark.parametrize("kind", ["lin-och", "corpus", "pseudo-corpus"])
def test_costs_of_words_are_those_of_sentences_times_the_size(kind: Any) -> None:
    batch = batch_of(12, [3, 4])
    lengths = np.array([4, 9], dtype=np.int64)
    costs = Costs(kind, unit="source")
    sizes = costs.sizes(batch, Bleu(), lengths)
    found = costs.gains(batch, Bleu(), costs.memory(Bleu()), RNG(1), sizes)
    plain = gains(Costs(kind), batch)
    factors = np.repeat(lengths, [3, 4]) if kind == "lin-och" else np.full(7, 13 / 2)
    np.testing.assert_allclose(found, plain * factors, rtol=1e-12)


def test_pseudo_corpus_remembers_sizes() -> None:
    costs, metric, few = Costs("pseudo-corpus", unit="source"), Bleu(), FewSentences(Bleu())
    everything, lengths = batch_of(6, [3, 3]), np.array([4, 9], dtype=np.int64)
    first, second = (everything.take_sentences(np.array([number])) for number in (0, 1))
    sizes = costs.sizes(first, metric, lengths)
    memory = costs.update_memory(first, costs.memory(metric), np.array([1]), sizes)
    found = costs.gains(second, metric, memory, RNG(1), costs.sizes(second, metric, lengths))
    wanted = 13 * few.score(first.stats[1] + second.stats.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_reference_words_are_a_mean_of_the_closest_references() -> None:
    batch = batch_of(13, [2, 0])
    stats = batch.stats.copy()
    stats[:, -1] = [8, 10]
    sizes = Costs(unit="reference").sizes(replace(batch, stats=stats), Bleu())
    assert sizes.tolist() == [9.0, 1.0]


def test_unknown_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="cost_unit=source needs the source sentences"):
        Costs(unit="source").sizes(batch_of(1, [2]), Bleu())
    ter = with_statistics([2], ter_statistics(RNG(2), 2))
    with pytest.raises(UsageError, match="cost_unit=reference needs the metric BLEU, not TER"):
        Costs(unit="reference").sizes(ter, Ter())
