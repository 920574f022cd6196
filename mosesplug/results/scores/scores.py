"""Read translations; score them as Moses' ``evaluator`` and ``sentence-bleu`` do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.files import read_nbest
from formats.references import read_reference
from formats.text import StrPath
from mosesplug.errors import DataError
from mosesplug.metrics import Metric
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.moses_tools.c_rand import CRand

OUTSIDE = np.float32(0.05)
"""Share of the samples outside an interval."""


@dataclass(frozen=True)
class ScoreInterval:
    """Mean and 95 % interval of the scores of random samples."""

    mean: float
    low: float
    high: float


Translation = StrPath | Sequence[bytes]
"""A file with one translation a line, or the lines."""


def read_translation(path: Translation, n_sentences: int | None) -> HypothesisRanges:
    """Read a translation, one sentence a line.

    Args:
        n_sentences: the lines of the references; None without references.

    Raises:
        FormatError: it cannot be read, or the references have another number of lines.
        DataError: there are other lines in memory than in the references.
    """
    if not isinstance(path, str | PathLike):
        if n_sentences not in (None, len(path)):
            raise DataError(
                f"{len(path)} translations, but the references have {n_sentences} sentences: give "
                "one for each"
            )
        return HypothesisRanges.of_lines(path, np.arange(len(path)))
    lines = read_reference(path)
    if not lines:
        raise FormatError(
            "the file is empty", path=path, remedy="Give the translation, one sentence a line"
        )
    if n_sentences not in (None, len(lines)):
        raise FormatError(
            f"{len(lines)} lines, but the references have {n_sentences}",
            path=path,
            remedy="Line N must be the translation that line N of a reference translates",
        )
    return HypothesisRanges.of_lines(lines, np.arange(len(lines)))


def read_first_best(path: StrPath, n_sentences: int) -> HypothesisRanges:
    """Read the first hypothesis of each sentence in an n-best list.

    Raises:
        FormatError: it cannot be read, or a sentence has no reference.
    """
    block = read_nbest(path)
    block.require_references(n_sentences)
    return HypothesisRanges(*block.ranges).first_of_lists()


def corpus_score(metric: Metric, statistics: NDArray[np.int32]) -> float:
    """Return the corpus score of statistics, int32 ``[n, n_statistics]``."""
    return float(metric.score(statistics.sum(axis=0, dtype=np.int64)))


def bootstrap(
    metric: Metric, statistics: NDArray[np.int32], samples: int, random: CRand
) -> ScoreInterval:
    """Score sentences drawn with replacement.

    See Koehn (2004), "Statistical significance tests". Draws and bounds are those of Moses'
    ``evaluator``, so a seed gives the same interval.

    Args:
        statistics: int32 ``[n, n_statistics]``, ``n`` > 0.
        samples: number of samples, at least 1.
    """
    n = len(statistics)
    totals = np.stack(
        [statistics[random.below(n, n)].sum(axis=0, dtype=np.int64) for _ in range(samples)]
    )
    scores = np.sort(metric.score(totals))
    half = OUTSIDE / np.float32(2)
    low, high = (int(np.float32(samples) * share) for share in (half, np.float32(1) - half))
    return ScoreInterval(float(scores.mean()), float(scores[low]), float(scores[high]))


def sentence_bleu(statistics: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return what ``sentence-bleu`` prints: sentence BLEU in single precision.

    The formula is that of ``metrics.sentence_bleu_moses``. Each step is rounded as in Moses, since
    the last digits differ from double precision.

    Args:
        statistics: int32 ``[n, 9]``.

    Returns:
        float32 ``[n]``, in 0 to 1.
    """
    counts = statistics.astype(np.float32)
    logarithm = np.zeros(len(counts), dtype=np.float32)
    for order in range(4):
        logarithm += _log(counts[:, 2 * order] + 1) - _log(counts[:, 2 * order + 1] + 1)
    logarithm /= np.float32(4)
    length, reference = counts[:, 1], counts[:, 8]
    ratio = np.zeros_like(length)
    np.divide(reference, length, out=ratio, where=length > 0)
    logarithm += np.minimum(np.float32(1) - ratio, np.float32(0))
    scores: NDArray[np.float32] = np.exp(logarithm.astype(np.float64)).astype(np.float32)
    scores[(length == 0) & (reference > 0)] = 0
    return scores


def _log(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return logarithms rounded to the nearest float32; NumPy's float32 may differ.

    C rounds so, too.
    """
    logarithms: NDArray[np.float32] = np.log(values.astype(np.float64)).astype(np.float32)
    return logarithms
