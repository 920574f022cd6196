"""Examples for a classifier, sampled as Moses' ``pro`` does (Hopkins & May 2011)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import vstack

from formats.extractor.megam import Examples
from mosesplug.errors import DataError
from mosesplug.metrics.bleu.sentence import sentence_bleu_moses, sentence_bleu_nakov
from mosesplug.optimizers.batch.ranking.pairs import (
    Draw,
    PairSampling,
    RankedPairs,
    differences,
    sample_pairs,
)
from mosesplug.tuning_set import TuningSet

_SMALLEST = 1e-5
"""Feature differences up to this absolute value are left out."""


def sample_examples(
    tuning_set: TuningSet,
    draw: Draw,
    *,
    with_smooth_penalty: bool = False,
) -> Examples:
    """Sample pairs of hypotheses; each gives two examples, the better one first.

    Args:
        tuning_set: hypotheses with statistics of BLEU, and duplicates as they were listed.
        draw: draws hypotheses; see ``sample_pairs``.
        with_smooth_penalty: whether sentence BLEU smooths the brevity penalty, too (Nakov et al.
            2012).

    Raises:
        DataError: no two hypotheses of a sentence differ enough.
    """
    score = sentence_bleu_nakov if with_smooth_penalty else sentence_bleu_moses
    pairs = sample_pairs(tuning_set.offsets, score(tuning_set.stats), draw, PairSampling())
    if not len(pairs):
        raise DataError(
            "no two hypotheses of a sentence differ enough in sentence BLEU: use longer n-best"
            " lists or more sentences"
        )
    return _make_examples(tuning_set, pairs)


def _make_examples(tuning_set: TuningSet, pairs: RankedPairs) -> Examples:
    """Return two examples per pair: better minus worse hypothesis, and the reverse."""
    one_way = differences(tuning_set, pairs)
    one_way.data = one_way.data.astype(np.float32).astype(np.float64)
    one_way.data[np.abs(one_way.data) <= _SMALLEST] = 0.0
    one_way.eliminate_zeros()
    one_way.sort_indices()
    both = vstack([one_way, -one_way], format="csr")
    both = both[np.arange(2 * len(pairs)).reshape(2, -1).T.reshape(-1)]
    return Examples(
        np.tile([1.0, 0.0], len(pairs)),
        (*(f"F{column}" for column in range(tuning_set.space.n_dense)), *tuning_set.space.sparse),
        both.indptr.astype(np.int64),
        both.indices.astype(np.int32),
        both.data,
    )
