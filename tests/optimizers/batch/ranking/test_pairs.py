"""The sampler against its definition, pair by pair, and against what Moses' sampler wrote."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.extractor.reader import read_features, read_scores
from mosesplug.features import FeatureSpace
from mosesplug.metrics.bleu.sentence import sentence_bleu_moses
from mosesplug.moses_tools.c_rand import CRand
from mosesplug.optimizers.batch.ranking.pairs import (
    Draw,
    PairSampling,
    RankedPairs,
    differences,
    sample_pairs,
)
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.optimizers.problems import tuning_set


def drawing(seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    return lambda top, count: rng.integers(0, top, count)


def by_definition(
    sizes: list[int], scores: NDArray[np.float64], draw: Draw, sampling: PairSampling
) -> list[tuple[int, int]]:
    """Pairs, better one first, chosen one at a time."""
    chosen = []
    start = 0
    for size in sizes:
        drawn = draw(size, 2 * sampling.candidates).tolist() if size else []
        candidates = []
        for one, other in zip(drawn[0::2], drawn[1::2], strict=True):
            gap = scores[start + one] - scores[start + other]
            if abs(gap) >= sampling.minimum_difference:
                pair = (one, other) if gap > 0 else (other, one)
                candidates.append((abs(gap), pair))
        if sampling.exact:
            best = sorted(range(len(candidates)), key=lambda place: -candidates[place][0])
            places = sorted(best[: sampling.kept])
            chosen += [tuple(start + row for row in candidates[place][1]) for place in places]
            start += size
            continue
        gaps = sorted((gap for gap, _ in candidates), reverse=True)
        smallest = gaps[min(sampling.kept, len(gaps)) - 1] - 1e-5 if gaps else 0.0
        wide = [pair for gap, pair in candidates if gap >= smallest]
        chosen += [(start + a, start + b) for a, b in wide[: sampling.kept]]
        start += size
    return chosen


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    candidates=st.integers(1, 60),
    kept=st.integers(1, 20),
    steps=st.sampled_from([3, 10, 10**6]),
    exact=st.booleans(),
)
def test_pairs_by_definition(
    sizes: list[int], seed: int, candidates: int, kept: int, steps: int, exact: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, steps, sum(sizes)) / steps  # of few steps, many are equal
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    sampling = PairSampling(candidates, kept, 0.05, exact=exact)
    pairs = sample_pairs(offsets, scores, drawing(seed), sampling)
    expected = by_definition(sizes, scores, drawing(seed), sampling)
    assert list(zip(pairs.better.tolist(), pairs.worse.tolist(), strict=True)) == expected
    gains = scores[pairs.better] - scores[pairs.worse]
    assert (gains >= sampling.minimum_difference).all()
    owner = np.searchsorted(offsets, pairs.better, side="right")
    np.testing.assert_array_equal(owner, np.searchsorted(offsets, pairs.worse, side="right"))
    assert np.bincount(owner).max(initial=0) <= kept


def test_no_pairs_at_all() -> None:
    offsets = np.array([0, 0, 3], dtype=np.int64)
    pairs = sample_pairs(offsets, np.full(3, 0.5), drawing(0), PairSampling())
    assert len(pairs) == 0
    assert pairs.better.dtype == np.int64


def with_sparse() -> tuple[TuningSet, NDArray[np.float64]]:
    """Two sentences with sparse features, and all their values as one dense array."""
    rng = np.random.default_rng(3)
    values = np.where(rng.random((7, 6)) < 0.4, rng.integers(-3, 4, (7, 6)), 0).astype(np.float64)
    dense = rng.standard_normal((7, 2)).astype(np.float32)
    dense[:, 1] = 1.0
    rows, columns = np.nonzero(values)
    sparse = SparseRows(
        np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=7))]).astype(np.int64),
        columns.astype(np.int32),
        values[rows, columns].astype(np.float32),
    )
    names = tuple(f"A_{column}" for column in range(6))
    made = tuning_set([3, 4], dense, np.zeros(7), sparse, names)
    return made, np.concatenate([dense.astype(np.float64), values], axis=1)


def test_differences_of_dense_and_sparse_features() -> None:
    made, values = with_sparse()
    pairs = RankedPairs(np.array([0, 2, 6, 3]), np.array([1, 0, 4, 3]))
    expected = values[pairs.better] - values[pairs.worse]
    found = differences(made, pairs)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.nnz == np.count_nonzero(expected)
    columns = np.array([True, False, True, False, False, True, False, True])
    some = differences(made, pairs, columns)
    np.testing.assert_array_equal(some.toarray(), expected[:, columns])


def recorded(multi30k: Path) -> tuple[TuningSet, NDArray[np.float64]]:
    """The first 100 sentences of the first recorded list, and their sentence BLEU."""
    directory = multi30k / "scores"
    features = read_features(directory / "first100.features.dat.gz")
    scores = read_scores(directory / "first100.BLEU.scores.dat.gz")
    made = TuningSet(
        FeatureSpace.of_names(features.names),
        features.sentence_ids,
        features.offsets,
        features.dense,
        None,
        scores.stats,
        scores.stats[:, 1].astype(np.int32),
    )
    return made, sentence_bleu_moses(scores.stats)


def recorded_sample(multi30k: Path) -> list[dict[int, float]]:
    """Differences that Moses' ``pro -r 1000`` sampled, one way round."""
    with gzip.open(multi30k / "pro" / "first100.seed1000.gz", "rt") as file:
        rows = [line.split() for line in file]
    return [
        {int(name[1:]): float(value) for name, value in zip(row[1::2], row[2::2], strict=True)}
        for row in rows
        if row[0] == "1"
    ]


def test_same_pairs_as_moses_from_the_same_random_numbers(multi30k: Path) -> None:
    made, scores = recorded(multi30k)
    pairs = sample_pairs(made.offsets, scores, CRand(1000).below, PairSampling())
    found = differences(made, pairs).toarray()
    theirs = recorded_sample(multi30k)
    assert len(found) == len(theirs) == 4750
    expected = np.zeros_like(found)
    for row, values in enumerate(theirs):
        expected[row, list(values)] = list(values.values())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_random_numbers_same_distribution(multi30k: Path, seed: int) -> None:
    made, scores = recorded(multi30k)
    pairs = sample_pairs(made.offsets, scores, drawing(seed), PairSampling())
    theirs = sample_pairs(made.offsets, scores, CRand(1000).below, PairSampling())
    assert len(pairs) == len(theirs)
    ours = differences(made, pairs).toarray()
    moses = differences(made, theirs).toarray()
    # Means of two samples differ by about 0.03 of a feature's standard deviation.
    np.testing.assert_array_less(np.abs(ours.mean(0) - moses.mean(0)), 0.1 * moses.std(0) + 1e-9)
    np.testing.assert_allclose(ours.std(0), moses.std(0), rtol=0.1)
    gains = [scores[each.better] - scores[each.worse] for each in (pairs, theirs)]
    assert gains[0].mean() == pytest.approx(gains[1].mean(), rel=0.01)
