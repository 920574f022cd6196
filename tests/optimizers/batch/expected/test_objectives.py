"""Objectives of lists against their definitions, differences, and the objectives of graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from mosesplug.forest import objectives as forest
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.metrics.bleu.expected import expected_bleu
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.optimizers import losses
from mosesplug.optimizers.batch.expected.objectives import (
    Objective,
    evaluate_scaled,
    risk,
    softmax,
    xbleu,
)
from mosesplug.optimizers.lists.shards import WholeLists, split_into_blocks
from mosesplug.tuning_set import TuningSet
from tests.forest.every_derivation import made
from tests.optimizers.batch.expected.small import bleu_lists, features, probabilities

Floats = NDArray[np.float64]

SETS = [bleu_lists(1), bleu_lists(2, n_sparse=0)]


def weights_for(lists: TuningSet) -> Floats:
    return np.random.default_rng(5).standard_normal(len(lists.space))


def is_oracle(lists: TuningSet) -> NDArray[np.bool_]:
    """A random few of each sentence, its first one among them."""
    found = np.random.default_rng(6).random(lists.n_hyps) < 0.3
    found[lists.offsets[:-1][np.diff(lists.offsets) > 0]] = True
    return found


def errors_of(lists: TuningSet) -> Floats:
    return np.random.default_rng(7).random(lists.n_hyps)


def made_from(lists: TuningSet, threads: int = 1) -> dict[str, Objective]:
    own = WholeLists(lists, threads)
    errors = errors_of(lists)
    costs = np.where(is_oracle(lists), 0.0, 2.0 * errors)
    return {
        "softmax": softmax(own, is_oracle(lists)),
        "softmax-margin": softmax(own, is_oracle(lists), costs),
        "risk": risk(own, errors),
        "risk-entropy": risk(own, errors, 0.7),
        "xbleu": xbleu(own),
        "xbleu-entropy": xbleu(own, -0.3),
    }


def by_definition(lists: TuningSet, weights: Floats) -> dict[str, float]:
    """All of them from the probabilities of hypotheses."""
    shares = probabilities(lists, weights)
    filled = [
        slice(a, b) for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True) if b > a
    ]
    oracles, errors = is_oracle(lists), errors_of(lists)
    pairs = list(zip(shares, filled, strict=True))
    entropy = np.mean([-(p * np.log(p)).sum() for p in shares])
    mean_error = float(np.mean([p @ errors[rows] for p, rows in pairs]))
    totals = np.sum([p @ lists.stats[rows] for p, rows in pairs], axis=0)
    margins = []
    for p, rows in pairs:
        costed = p * np.exp(np.where(oracles[rows], 0.0, 2.0 * errors[rows]))
        margins.append(np.log(costed.sum() / p[oracles[rows]].sum()))
    bleu = expected_bleu(totals)[0]
    return {
        "softmax": float(np.mean([-np.log(p[oracles[rows]].sum()) for p, rows in pairs])),
        "softmax-margin": float(np.mean(margins)),
        "risk": mean_error,
        "risk-entropy": mean_error - 0.7 * float(entropy),
        "xbleu": -bleu,
        "xbleu-entropy": -bleu + 0.3 * float(entropy),
    }


@pytest.mark.parametrize("lists", SETS, ids=["sparse", "dense"])
def test_values_are_those_of_the_definitions(lists: TuningSet) -> None:
    weights = weights_for(lists)
    expected = by_definition(lists, weights)
    for name, objective in made_from(lists).items():
        assert objective(weights)[0] == pytest.approx(expected[name], rel=1e-12), name


@pytest.mark.parametrize("lists", SETS, ids=["sparse", "dense"])
def test_gradients_by_weights_and_scale(lists: TuningSet) -> None:
    weights, scale, step = weights_for(lists), 1.3, 1e-6
    for name, objective in made_from(lists).items():
        _, by_weights, by_scale = evaluate_scaled(objective, weights, scale)

        def value(change: Floats, more: float, of: Objective = objective) -> float:
            return evaluate_scaled(of, weights + change, scale + more)[0]

        for column in range(len(weights)):
            change = step * np.eye(len(weights))[column]
            slope = (value(change, 0.0) - value(-change, 0.0)) / (2 * step)
            assert by_weights[column] == pytest.approx(slope, rel=1e-6, abs=1e-8), name
        slope = (value(0.0 * weights, step) - value(0.0 * weights, -step)) / (2 * step)
        assert by_scale == pytest.approx(slope, rel=1e-6, abs=1e-8), name


def test_list_losses_of_online_learners_are_the_same() -> None:
    lists = SETS[0]
    weights, offsets = weights_for(lists), lists.offsets
    scores = features(lists) @ weights
    for loss, goals, name in (
        (losses.SOFTMAX, is_oracle(lists).astype(np.float64), "softmax"),
        (losses.EXPECTED_ERROR, errors_of(lists), "risk"),
    ):
        values, derivatives = loss.value_and_gradient(scores, offsets, goals)
        found, gradient = made_from(lists)[name](weights)
        assert found == pytest.approx(values.sum() / 5, rel=1e-12)
        np.testing.assert_allclose(gradient, derivatives @ features(lists) / 5, atol=1e-14)


def test_nothing_overflows() -> None:
    lists = SETS[0]
    weights = 1e5 * weights_for(lists)
    for name, objective in made_from(lists).items():
        value, gradient = objective(weights)
        assert np.isfinite(value), name
        assert np.isfinite(gradient).all(), name


def test_threads_change_nothing() -> None:
    lists = bleu_lists(3, sizes=tuple(np.random.default_rng(3).integers(0, 900, 50).tolist()))
    assert len(split_into_blocks(lists.offsets)) > 3
    weights = weights_for(lists)
    for one, three in zip(made_from(lists).values(), made_from(lists, 3).values(), strict=True):
        (value, gradient), (other, other_gradient) = one(weights), three(weights)
        assert value == other
        assert gradient.tobytes() == other_gradient.tobytes()


def test_same_as_on_graphs_of_the_same_hypotheses() -> None:
    """A graph that has nothing but some whole translations is a list; it scores in float32."""
    texts = [b"a b c d e f g", b"a b c x e f", b"b c d e f g h h", b"x x x x a b c d"]
    rng = np.random.default_rng(8)
    values = rng.standard_normal((4, 3)).astype(np.float32)
    edges = [
        Edge(tuple(text.split()), 1, tuple(row.tolist()))
        for text, row in zip(texts, values, strict=True)
    ]
    graph, reference = made([edges]), b"z a b c d e f g".split()
    scored = forest.ScoredGraph.of(graph, ReferenceNgramTree.of([reference]))
    grams = [_ngrams(text.split()) for text in texts]
    known = _ngrams(reference)
    stats = np.empty((4, 9))
    for row, (text, own) in enumerate(zip(texts, grams, strict=True)):
        for order in range(4):
            stats[row, 2 * order] = sum(gram in known[order] for gram in own[order])
            stats[row, 2 * order + 1] = len(text.split()) - order
    stats[:, 8] = len(reference)
    lists = bleu_lists(0, sizes=(4,), n_sparse=0)
    lists = replace(lists, dense=values, stats=stats.astype(np.float32))
    own_lists, weights, scale = WholeLists(lists), np.array([0.9, -0.7, 0.31]), 1.7
    gains = LinearBleu(-0.02, np.array([0.05, 0.07, 0.11, 0.2]))
    chosen = np.argsort(values.astype(np.float64) @ weights)[-2:]
    kept = np.isin(scored.split.origins, chosen)
    errors = -gains.gains(stats)
    pairs: list[tuple[Objective, Objective]] = [
        (
            softmax(own_lists, np.isin(np.arange(4), chosen)),
            lambda w: forest.softmax_margin([scored], [kept], None, w),
        ),
        (risk(own_lists, errors), lambda w: forest.risk([scored], w, gains)),
        (
            lambda w: tuple(-each for each in xbleu(own_lists)(w)),  # type: ignore[return-value]
            lambda w: forest.xbleu([scored], w),
        ),
    ]
    for of_lists, of_graphs in pairs:
        expected, slopes = of_graphs(scale * weights)
        value, by_weights, by_scale = evaluate_scaled(of_lists, weights, scale)
        assert value == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(by_weights, scale * slopes, rtol=1e-5, atol=1e-7)
        assert by_scale == pytest.approx(weights @ slopes, rel=1e-5)


def _ngrams(words: list[bytes]) -> list[list[tuple[bytes, ...]]]:
    """The n-grams of each order."""
    return [
        [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
        for n in range(1, 5)
    ]
