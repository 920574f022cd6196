"""Sample pairs of a clearly better and a worse hypothesis, as PRO does.

Hopkins & May (2011), figure 2, with the constants and the order of Moses' ``pro``: many pairs of
each sentence are drawn at random, those with nearly equal scores are dropped, and of the others the
few with the largest differences are kept. Moses keeps the earliest draws above a threshold just
below the smallest of those differences; the figure sorts them.

The largest differences favor *monsters*: overly long hypotheses with very low scores. Weights that
produce them bring more of them into the next lists, and the output drifts away from the references'
length. Nakov, Guzmán and Vogel (2013) compare remedies: cut-offs, outlier filters, sampling by how
typical a difference is, and random acceptance instead of the largest differences. The defaults of
``ConstraintOptions`` set no limit, as in Hopkins and May's PRO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats, Offsets, Scores
from mosesplug.kernels import inlined_kernel, kernel, read_only
from mosesplug.optimizers.lists.rows import drop_empty_sentences
from mosesplug.options import Opt
from mosesplug.tuning_set import SparseRows, TuningSet

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Draw = Callable[[int, int], NDArray[np.int64]]
"""``draw(top, count)`` returns ``count`` random numbers from 0 to ``top - 1``, int64."""

PairRule = Callable[[slice, NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""``rule(rows of the sentence, first, second)`` returns which candidates may be pairs, bool;
``first`` and ``second`` are rows of hypotheses, int64 ``[n_candidates]``."""

_BLOCK = 64
"""Sentences whose candidates are drawn before pairs are selected: 5 MB of them in PRO."""

_EQUAL = 1e-5
"""Differences closer than this count as equal: the pair drawn first is kept."""


@dataclass(frozen=True)
class PairSampling:
    """Settings of the sampler.

    Attributes:
        candidates: pairs drawn per sentence (Gamma).
        kept: maximum pairs kept per sentence (Xi).
        minimum_difference: the minimum difference of the scores of a pair; equal ones are never a
            pair.
        largest: keep those with the largest differences, or those drawn first.
        exact: whether to keep, of many pairs with nearly equal differences, the larger ones instead
            of those drawn first.
    """

    candidates: int = 5000
    kept: int = 50
    minimum_difference: float = 0.05
    largest: bool = True
    exact: bool = False


@dataclass(frozen=True)
class RankedPairs:
    """Pairs of hypotheses, in the order of sentences and of drawing.

    Attributes:
        better: int64 ``[n_pairs]``, rows of the hypotheses with the higher score.
        worse: int64 ``[n_pairs]``, rows of the others.
    """

    better: NDArray[np.int64]
    worse: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.better)

    def take(self, of_rows: NDArray[np.float64] | None) -> NDArray[np.float64] | float:
        """Return each pair's value of ``[n_hyps]`` that sentences share; 1 for None."""
        return 1.0 if of_rows is None else of_rows[self.better]


def sample_pairs(
    offsets: Offsets,
    scores: NDArray[np.float64],
    draw: Draw,
    sampling: PairSampling,
    rule: PairRule | None = None,
) -> RankedPairs:
    """Sample pairs of every sentence.

    Args:
        scores: float64 ``[n_hyps]``, of each hypothesis; larger is better.
        draw: draws, for each non-empty sentence, both hypotheses of each candidate pair, pair by
            pair.
        sampling: settings.
        rule: which candidates may be pairs; None: all.
    """
    filled, n_candidates = drop_empty_sentences(offsets), sampling.candidates
    pairs = [np.zeros((2, 0), dtype=np.int64)]
    for first in range(0, len(filled) - 1, _BLOCK):
        starts = filled[first : first + _BLOCK + 1]
        drawn = np.empty((len(starts) - 1, 2 * n_candidates), dtype=np.int64)
        allowed = np.ones((0 if rule is None else len(drawn), n_candidates), dtype=np.bool_)
        for place, (start, end) in enumerate(pairwise(starts.tolist())):
            np.add(draw(end - start, 2 * n_candidates), start, out=drawn[place])
            if rule is not None:
                allowed[place] = rule(slice(start, end), drawn[place, 0::2], drawn[place, 1::2])
        pairs.append(
            _select_pairs(
                read_only(scores),
                drawn,
                allowed,
                sampling.minimum_difference,
                sampling.kept,
                sampling.largest,
                sampling.exact,
            )
        )
    return RankedPairs(*np.concatenate(pairs, axis=1))


@kernel
def _select_pairs(
    scores: NDArray[np.float64],
    drawn: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    minimum: float,
    most: int,
    largest: bool,
    exact: bool,
) -> NDArray[np.int64]:
    """Return the pairs to keep, int64 ``[2, n_pairs]``, in the order of drawing.

    Args:
        drawn: int64 ``[n_sentences, 2 * n_candidates]``, rows of hypotheses.
        allowed: bool ``[n_sentences, n_candidates]``, which candidates may be pairs; empty: all.
    """
    n_sentences, n_candidates = len(drawn), drawn.shape[1] // 2
    pairs = np.empty((2, n_sentences * min(most, n_candidates)), dtype=np.int64)
    gaps, size = np.empty(n_candidates), 0
    for sentence in range(n_sentences):
        n_wide = 0
        for pair in range(n_candidates):
            one, other = drawn[sentence, 2 * pair], drawn[sentence, 2 * pair + 1]
            gap = abs(scores[one] - scores[other])
            is_wide = gap >= minimum and gap > 0.0 and (not len(allowed) or allowed[sentence, pair])
            gaps[pair] = gap if is_wide else 0.0
            n_wide += is_wide
        smallest, n_equal = 0.0, most
        if largest and n_wide > most:
            smallest = _nth_largest(gaps, most)
            if exact:
                for gap in gaps:
                    n_equal -= gap > smallest
            else:
                smallest -= _EQUAL
        end = size + min(most, n_wide)
        for pair in range(n_candidates):
            if size == end:
                break
            if gaps[pair] == 0.0 or gaps[pair] < smallest:
                continue
            if exact and gaps[pair] == smallest:
                if n_equal == 0:
                    continue
                n_equal -= 1
            one, other = drawn[sentence, 2 * pair], drawn[sentence, 2 * pair + 1]
            if scores[one] < scores[other]:
                one, other = other, one
            pairs[0, size], pairs[1, size] = one, other
            size += 1
    return pairs[:, :size]


@inlined_kernel
def _nth_largest(values: NDArray[np.float64], rank: int) -> float:
    """Return the value of a rank from 1 to ``len(values)``, by a heap."""
    heap = np.full(rank, -np.inf)
    for value in values:
        if value > heap[0]:
            place = 0
            while 2 * place + 1 < rank:
                child = 2 * place + 1
                if child + 1 < rank and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[place] = heap[child]
                place = child
            heap[place] = value
    return float(heap[0])


def differences(
    tuning_set: TuningSet, pairs: RankedPairs, columns: FeatureMask | None = None
) -> csr_array:
    """Return the features of the better hypotheses minus those of the worse.

    Args:
        tuning_set: the hypotheses.
        pairs: rows of them.
        columns: the requested features; None: all.

    Returns:
        float64 ``[n_pairs, number of columns]``, without stored zeros.
    """
    # SciPy takes a tenth of a second to import, and other algorithms do not need it.
    from scipy.sparse import csr_array, hstack

    dense = tuning_set.dense[pairs.better].astype(np.float64) - tuning_set.dense[pairs.worse]
    rows = csr_array(dense)
    if tuning_set.sparse is not None:
        n_sparse = tuning_set.space.n_sparse
        better = _as_csr(tuning_set.sparse.take(pairs.better), n_sparse)
        tail = better - _as_csr(tuning_set.sparse.take(pairs.worse), n_sparse)
        rows = hstack([rows, tail], format="csr")
    if columns is not None and not columns.all():
        rows = rows[:, np.flatnonzero(columns)]
    rows.eliminate_zeros()
    return rows


def _as_csr(rows: SparseRows, width: int) -> csr_array:
    from scipy.sparse import csr_array

    shape = (len(rows.indptr) - 1, width)
    return csr_array((rows.data.astype(np.float64), rows.indices, rows.indptr), shape=shape)


_FINE = 1 << 30
"""Random integers below this represent numbers between 0 and 1."""


@dataclass(frozen=True)
class ConstraintOptions:
    """Settings of the pairs; the defaults are Hopkins and May's own rules."""

    acceptance: Annotated[
        Literal["largest", "sorted", "random"],
        Opt(
            "candidate pairs to keep: largest score differences, or a random sample",
            details="largest: the earliest draws above a threshold, as Moses. sorted: exactly the "
            "largest differences, as in the paper. random: the earliest draws.",
            source="pro of Moses; Hopkins & May 2011, Figure 2; after Nakov et al. 2013",
        ),
    ] = "largest"
    maximum_difference: Annotated[
        float,
        Opt(
            "largest difference in sentence score; 0: any",
            source="after Nakov et al. 2013",
            minimum=0.0,
        ),
    ] = 0.0
    maximum_length_difference: Annotated[
        int,
        Opt(
            "largest difference of lengths in words; 0: any",
            source="after Nakov et al. 2013",
            minimum=0,
        ),
    ] = 0
    score_outliers: Annotated[
        float,
        Opt(
            "ignore scores beyond this many deviations within a sentence; 0: none",
            source="after Nakov et al. 2013, outliers",
            minimum=0.0,
        ),
    ] = 0.0
    length_outliers: Annotated[
        float,
        Opt(
            "ignore lengths beyond this many deviations within a sentence; 0: none",
            source="after Nakov et al. 2013, outliers",
            minimum=0.0,
        ),
    ] = 0.0
    typical: Annotated[
        Literal["none", "score", "length"],
        Opt(
            "accept pairs with typical differences of score or length",
            details="Each with the probability of its difference, relative to none, if hypotheses "
            "were normally distributed.",
            source="after Nakov et al. 2013",
        ),
    ] = "none"

    def rule(self, scores: Scores, lengths: NDArray[np.int32], draw: Draw) -> PairRule | None:
        """Return the settings as a rule for ``sample_pairs``; None: all pairs are allowed.

        Args:
            lengths: int32 ``[n_hyps]``, tokens of each.
            draw: for sampling by how typical a difference is; otherwise not called.
        """
        length = lengths.astype(np.float64)
        tests: list[PairRule] = []
        if self.maximum_difference > 0.0:
            tests.append(_close(scores, self.maximum_difference))
        if self.maximum_length_difference > 0:
            tests.append(_close(length, float(self.maximum_length_difference)))
        if self.score_outliers > 0.0:
            tests.append(_usual(scores, self.score_outliers))
        if self.length_outliers > 0.0:
            tests.append(_usual(length, self.length_outliers))
        if self.typical != "none":
            tests.append(_typical(scores if self.typical == "score" else length, draw))
        if not tests:
            return None
        return lambda *pairs: np.logical_and.reduce([test(*pairs) for test in tests])


def _close(values: Floats, most: float) -> PairRule:
    return lambda sentence, first, second: np.abs(values[first] - values[second]) <= most


def _usual(values: Floats, deviations: float) -> PairRule:
    """Return a rule for pairs within so many standard deviations of the mean."""

    def test(
        sentence: slice, first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        own = values[sentence]
        reach = deviations * own.std()
        usual = np.abs(own - own.mean()) <= reach
        allowed: NDArray[np.bool_] = usual[first - sentence.start] & usual[second - sentence.start]
        return allowed

    return test


def _typical(values: Floats, draw: Draw) -> PairRule:
    """Return a rule that draws pairs by the density of their difference.

    If values are normally distributed with variance ``v``, their differences are so with ``2v``.
    The density is relative to that of no difference.
    """

    def test(
        sentence: slice, first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        gaps, variance = values[first] - values[second], values[sentence].var()
        density = np.exp(-(gaps**2) / (4.0 * variance)) if variance > 0.0 else np.ones(len(gaps))
        return np.asarray(draw(_FINE, len(gaps)) < density * _FINE)

    return test
