"""Test metrics that are given as arrays against brute force and the metrics of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mosesplug
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.optimizers import algorithms
from tests.api.problems import NAMES, make_problem

NEED_BLEU = sorted(name for name, each in algorithms().items() if each.needs_bleu)
SHORT = {"mert": {"restarts": 2}, "pro+mert": {"restarts": 2}, "pso": {"particles": 4}}


def best_of_all_lines(features: NDArray[Any], ids: NDArray[Any], worth: NDArray[Any]) -> float:
    """Return the best mean worth of the choices by any two weights, at every angle that matters."""
    angles = [0.0]
    for sentence in np.unique(ids):
        rows = np.flatnonzero(ids == sentence)
        difference = features[rows][:, None] - features[rows][None]
        found = np.arctan2(-difference[..., 0], difference[..., 1])
        angles += found.ravel().tolist() + (found + np.pi).ravel().tolist()
    cuts = np.unique(np.mod(angles, 2 * np.pi))
    middles = (cuts + np.append(cuts[1:], cuts[0] + 2 * np.pi)) / 2
    best = -np.inf
    for angle in middles:
        scores = features @ [np.cos(angle), np.sin(angle)]
        chosen = [
            np.flatnonzero(ids == sentence)[np.argmax(scores[ids == sentence])]
            for sentence in np.unique(ids)
        ]
        best = max(best, float(np.mean(worth[chosen])))
    return best


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mert_finds_the_best_mean_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 2)).astype(np.float32)
    ids, worth = np.repeat(np.arange(10), 6), rng.normal(size=60)
    fit = mosesplug.optimize(features=features, sentence_ids=ids, scores=worth)
    assert fit.score == pytest.approx(best_of_all_lines(features, ids, worth), abs=1e-12)
    assert fit.score == pytest.approx(worth[fit.choose(features, ids)].mean(), abs=1e-12)
    assert fit.signature == "MEAN-SCORE|statistics:score+hypotheses"


@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "pro", "rampion", "mira"])
def test_statistics_of_a_metric_give_its_weights(algorithm: str) -> None:
    # No hypothesis occurs twice: texts would remove it, arrays of statistics do not.
    problem, wer = make_problem(3), find_metric("WER")
    kept = np.arange(96) % 8 != 7
    texts = [text for text, keep in zip(problem.hypotheses, kept, strict=True) if keep]
    ids = problem.sentence_ids[kept]
    hypotheses = HypothesisRanges.of_lines([text.encode() for text in texts], ids)
    prepared = wer.prepare([[line.encode() for line in problem.references]])
    statistics = wer.statistics(
        prepared, ids, hypotheses.buffer, hypotheses.starts, hypotheses.ends
    )
    common: dict[str, Any] = {
        "features": problem.features[kept],
        "sentence_ids": ids,
        "hypotheses": texts,
        "names": NAMES,
        "algorithm": algorithm,
        "options": SHORT.get(algorithm, {}),
    }
    expected = mosesplug.optimize(**common, references=problem.references, metric="WER")
    assert expected.result.data.description.startswith("12 sentences, 84 distinct hypotheses of 84")
    own = mosesplug.StatisticsMetric(wer.score, columns=wer.statistics_names)
    for metric in (own, wer, "WER"):
        fit = mosesplug.optimize(**common, statistics=statistics, metric=metric)
        assert fit.vector.tolist() == expected.vector.tolist()
        assert fit.score == expected.score


@pytest.mark.parametrize("algorithm", sorted(set(algorithms()) - set(NEED_BLEU)))
def test_every_algorithm_takes_statistics(algorithm: str) -> None:
    problem = make_problem()
    # Recall of a rare event, with weights between 0 and 1: no sum of sentence scores.
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, size=(96, 2)) * 0.5
    counts[:, 0] = np.minimum(counts[:, 0], counts[:, 1])

    def recall(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(totals[..., 1] > 0, totals[..., 0] / np.maximum(totals[..., 1], 1e-9), 1.0)

    metric = mosesplug.StatisticsMetric(recall, "RECALL", columns=("found", "all"))
    fit = mosesplug.optimize(
        features=problem.features,
        sentence_ids=problem.sentence_ids,
        statistics=counts,
        metric=metric,
        algorithm=algorithm,
        options=SHORT.get(algorithm, {}),
        held_out=0.25,
    )
    chosen = counts[fit.choose(problem.features, problem.sentence_ids)].sum(axis=0)
    assert 0.0 < float(recall(chosen)) <= 1.0
    assert fit.held_out is not None
    assert fit.signature == "RECALL|statistics:found+all"


@pytest.mark.parametrize("algorithm", NEED_BLEU)
def test_algorithms_that_need_bleu_reject_in_one_line(algorithm: str) -> None:
    problem = make_problem()
    with pytest.raises(UsageError, match=f"{algorithm} requires the metric BLEU, not MEAN-SCORE"):
        mosesplug.optimize(
            features=problem.features,
            sentence_ids=problem.sentence_ids,
            scores=np.arange(96),
            algorithm=algorithm,
        )


def test_error_rates_are_minimized() -> None:
    rng = np.random.default_rng(4)
    features, ids = rng.normal(size=(40, 2)).astype(np.float32), np.repeat(np.arange(8), 5)
    errors = rng.integers(0, 9, size=40)
    statistics = np.column_stack([errors, np.full(40, 10)])

    def rate(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(totals[..., 0] / totals[..., 1])

    metric = mosesplug.StatisticsMetric(rate, "RATE", is_error_rate=True)
    fit = mosesplug.optimize(
        features=features, sentence_ids=ids, statistics=statistics, metric=metric
    )
    by_score = mosesplug.optimize(features=features, sentence_ids=ids, scores=-errors / 10)
    assert fit.score - 1 == pytest.approx(by_score.score)
    assert fit.signature == "RATE|statistics:0+1|rate:yes"


def test_scores_of_lists() -> None:
    problem = make_problem()
    lists = mosesplug.NBest(problem.sentence_ids, problem.hypotheses, problem.features, names=NAMES)
    worth = np.random.default_rng(2).normal(size=96)
    fit = mosesplug.optimize(lists, scores=worth)
    other = mosesplug.optimize(
        features=problem.features, sentence_ids=problem.sentence_ids, scores=worth, names=NAMES
    )
    assert fit.vector.tolist() == other.vector.tolist()
    assert fit.score == pytest.approx(worth[fit.choose(lists)].mean())
    with pytest.raises(UsageError, match="require a single list"):
        mosesplug.optimize([lists, lists], scores=worth)


def test_large_and_small_numbers_are_exact() -> None:
    ids, features = [0, 0, 1, 1], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    worth = [1 + 1e-12, 1.0, 1.0, 1.0]
    fit = mosesplug.optimize(features=features, sentence_ids=ids, scores=worth)
    assert fit.score == pytest.approx(1 + 5e-13, abs=1e-16)
    counts = np.array([[2**40], [1], [1], [0]])
    metric = mosesplug.StatisticsMetric(lambda totals: totals[..., 0])
    large = mosesplug.optimize(
        features=features, sentence_ids=ids, statistics=counts, metric=metric
    )
    assert large.score == 2**40 + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": [1.0] * 3}, r"scores has the shape \(3,\): give one number for each of 4 hyp"),
        ({"scores": [1, 2, np.nan, 4]}, r"scores\[2\] is nan: give finite numbers"),
        ({"scores": [1] * 4, "statistics": [[1]] * 4}, "scores and statistics exclude each other"),
        ({"scores": [1] * 4, "metric": "BLEU"}, "metric is not used with scores"),
        ({"scores": [1] * 4, "references": ["a", "b"]}, "references are not used with scores"),
        ({"statistics": [[1]] * 4}, "statistics requires a metric"),
        ({"statistics": [1] * 4, "metric": 0}, r"statistics has the shape \(4,\): give \[n_hyps"),
        ({"statistics": [["a"]] * 4, "metric": 0}, "statistics has the type <U1"),
        ({"statistics": [[1], [2], [np.inf], [4]], "metric": 0}, r"statistics\[2, 0\] is inf"),
        ({"statistics": [[1, 2]] * 4, "metric": "BLEU"}, "statistics has 2 columns, and the met"),
        ({"metric": 0, "hypotheses": ["a"] * 4, "references": ["a"] * 2}, "requires statistics="),
        ({"scores": [1] * 4, "store": "tuning", "features": None}, "require lists or features"),
        ({"scores": [1] * 4, "heldout_lists": 1}, "heldout_lists and heldout_references require"),
    ],
)
def test_errors_name_argument_and_position(changes: dict[str, Any], message: str) -> None:
    metric = mosesplug.StatisticsMetric(lambda totals: totals[..., 0])
    changes = changes | ({"metric": metric} if changes.get("metric") == 0 else {})
    arguments = {"features": [[1.0], [2]] * 2, "sentence_ids": [0, 0, 1, 1]} | changes
    if arguments["features"] is None:
        del arguments["sentence_ids"]
    with pytest.raises((UsageError, DataError), match=message):
        mosesplug.optimize(**arguments)


def test_score_functions_that_cannot_be_used() -> None:
    arguments: dict[str, Any] = {
        "features": [[1.0, 0], [0, 2]],
        "sentence_ids": [0, 0],
        "statistics": [[0, 0], [0, 0]],
    }
    undefined = mosesplug.StatisticsMetric(lambda totals: totals[..., 0] / totals[..., 1])
    with pytest.raises(DataError, match=r"returned nan for the totals \[0.0, 0.0\]: return a fin"):
        mosesplug.optimize(**arguments, metric=undefined)
    single = mosesplug.StatisticsMetric(lambda totals: totals[0])
    with pytest.raises(UsageError, match="use their last axis"):
        mosesplug.optimize(**arguments, metric=single)
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(UsageError, match="scores no texts: give statistics="):
        single.statistics(None, nothing, nothing.astype(np.uint8), nothing, nothing)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="has no references"):
        mosesplug.score(["a"], ["a"], metrics=[single])
