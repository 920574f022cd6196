"""A metric as the utility of minimum Bayes risk: each hypothesis of a list against each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.metrics.protocol import Metric, needs_outside, needs_texts

__all__ = ["check_utility", "pairwise_scores"]


def check_utility(metric: Metric) -> None:
    """Check that a metric can compare two hypotheses.

    Raises:
        UsageError: it reads scores from outside.
    """
    if needs_outside(metric) or not needs_texts(metric):
        raise UsageError(
            f"{metric.name} needs scores from outside, which compare no two hypotheses: name a"
            " metric of texts"
        )


def pairwise_scores(metric: Metric, texts: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the sentence scores of all pairs of ``n`` texts, float64 ``[n, n]``.

    Row ``h`` has the scores of text ``h`` where the text of each column is the reference. Equal
    texts are compared once.
    """
    distinct = list(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(distinct)}
    n = len(distinct)
    ends = np.cumsum([len(text) for text in distinct], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    # Hypotheses of the same reference follow each other, which prepares references once.
    rows = metric.statistics(
        metric.prepare([distinct]),
        np.repeat(np.arange(n, dtype=np.int64), n),
        np.frombuffer(b"".join(distinct), dtype=np.uint8),
        np.tile(starts, n),
        np.tile(ends, n),
    )
    scores = metric.sentence_scores(rows.astype(np.float64)).reshape(n, n).T
    columns = [places[text] for text in texts]
    return np.asarray(scores[np.ix_(columns, columns)], dtype=np.float64)
