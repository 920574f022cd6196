"""BLEU in single precision, in the order of operations of Moses' ``kbmira``.

With a background of thousands of words, the scores of hypotheses become so large that some tie in
single precision but not in double precision. Only the same arithmetic makes the same choices.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

__all__ = ["single_bleu"]


@kernel
def single_bleu(totals: NDArray[np.float32]) -> float:
    """Return BLEU of float32 ``[9]``, statistics of ``metrics.Bleu``, in single precision."""
    log_bleu = np.float32(0.0)
    for column in range(0, 8, 2):
        if totals[column] == 0.0:
            return 0.0
        log_bleu += math.log(totals[column]) - math.log(totals[column + 1])
    log_bleu /= np.float32(4.0)
    brevity = np.float32(1.0) - totals[8] / totals[1]
    if brevity < 0.0:
        log_bleu += brevity
    return math.exp(log_bleu)
