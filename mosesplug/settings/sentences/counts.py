"""Check that each source sentence has a value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError


def check_sentence_ids(
    option: str, noun: str, n_values: int, sentence_ids: NDArray[np.int64]
) -> None:
    """Check that each sentence id has a value.

    Args:
        option: the name of the option that gives the values.
        noun: what messages call a value, such as ``weight``.
        n_values: number of values, those of the sentences 0 to ``n_values - 1``.

    Raises:
        DataError: a sentence has no value.
    """
    if (last := int(sentence_ids.max(initial=-1))) >= n_values:
        raise DataError(
            f"{{--{option}}} has {n_values} {noun}s, but the lists have sentence {last} (counted "
            f"from 0). Give one {noun} for each source sentence"
        )


def check_count(option: str, noun: str, n_values: int, n_sentences: int) -> None:
    """Check that there are as many values as source sentences.

    Raises:
        DataError: there are more or fewer.
    """
    if n_values != n_sentences:
        raise DataError(
            f"{{--{option}}} has {n_values} {noun}s for {n_sentences} source sentences. Give one "
            "for each"
        )
