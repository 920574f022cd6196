"""Encode the words of hypotheses as the integers of the words of references.

Metrics that compare whole sentences read each word many times; here each is looked up once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import lean_kernel, read_only
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.words import (
    ReferenceWords,
    count_tokens,
    find_word,
    scan_word,
    skip_blanks,
)


class EncodedHypotheses(NamedTuple):
    """The words of ``n`` hypotheses; arrays are read-only.

    Attributes:
        sentence_ids: int64 ``[n]``; valid lines of the references.
        offsets: int64 ``[n + 1]``; the words of hypothesis ``i`` are
            ``ids[offsets[i]:offsets[i + 1]]``.
        ids: int32; words in the vocabulary of the hypothesis' own sentence, ``UNKNOWN`` for words
            that occur in none of its references.
    """

    sentence_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]


@lean_kernel
def _look_up(
    words: ReferenceWords,
    n_references: int,
    fold: bool,
    hypotheses: HypothesisRanges,
    offsets: NDArray[np.int64],
    ids: NDArray[np.int32],
) -> None:
    """Write the word of every token to ``ids``."""
    buffer = hypotheses.buffer
    for row in range(len(hypotheses.sentence_ids)):
        sentence = hypotheses.sentence_ids[row]
        first_token = words.token_offsets[sentence * n_references]
        first_slot = words.slot_offsets[sentence]
        mask = words.slot_offsets[sentence + 1] - first_slot - 1
        token = offsets[row]
        end = hypotheses.ends[row]
        start = skip_blanks(buffer, hypotheses.starts[row], end)
        while start < end:
            stop, code = scan_word(buffer, start, end, fold)
            ids[token], _ = find_word(
                words, first_slot, mask, first_token, buffer, start, stop, code, fold
            )
            token += 1
            start = skip_blanks(buffer, stop, end)


def encode(
    words: ReferenceWords, n_references: int, fold: bool, hypotheses: HypothesisRanges
) -> EncodedHypotheses:
    """Look up the words of hypotheses; the caller has checked their ranges.

    Args:
        fold: fold ``A`` to ``Z`` to ``a`` to ``z`` in hypotheses, as in ``words``.
        hypotheses: ``n`` of them.
    """
    lengths = count_tokens(hypotheses.buffer, hypotheses.starts, hypotheses.ends)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    ids = np.empty(offsets[-1], dtype=np.int32)
    _look_up(words, n_references, fold, hypotheses, offsets, ids)
    return EncodedHypotheses(
        hypotheses.sentence_ids, read_only(offsets, np.int64), read_only(ids, np.int32)
    )
