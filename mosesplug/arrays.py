"""The arrays that functions exchange, by the names that docstrings use.

A name fixes the type and says the shape; type checkers see the type only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]
"""``[n_features]``: a weight, a limit, a direction or a gradient for each feature."""

FeatureMask = NDArray[np.bool_]
"""``[n_features]``: which features an operation concerns."""

Scores = NDArray[np.float64]
"""``[n_hyps]``: a model score, metric score, cost or probability for each hypothesis."""

SentenceValues = NDArray[np.float64]
"""``[n_sentences]``: a score, a loss or a factor for each sentence."""

Choice = NDArray[np.int64]
"""``[n_sentences]``: the row of the chosen hypothesis of each sentence."""

Offsets = NDArray[np.int64]
"""``[n_sentences + 1]``: rows ``offsets[i]:offsets[i + 1]`` are those of sentence ``i``."""

Statistics = NDArray[np.float64]
"""``[n_stats]``: summed sufficient statistics of a metric."""

StatisticsTable = NDArray[np.float64]
"""``[n, n_stats]``: sufficient statistics of hypotheses, sentences or intervals."""

Columns = NDArray[np.int64]
"""``[n]``: some features, ascending and distinct, such as those of a mini-batch."""

ColumnValues = NDArray[np.float64]
"""``[n]``: a weight, a step or a derivative for each of some features."""

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]
"""Arrays of these types whose shape the docstring says, such as one number for each edge."""
