"""Exact line search in any direction, sparse features included.

MERT's line search arranges every active feature beforehand, which takes too much memory with
thousands of sparse features. Here directions are few and new each time: a hypothesis's slope is its
model score at the direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.line_search.lists import (
    Lines,
    LineScratch,
    LineSpace,
    drop_empty_lists,
    error_surfaces,
)
from mosesplug.optimizers.line_search.space import Surface
from mosesplug.optimizers.lists.arrangement import arrange
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import TuningSet

__all__ = ["DirectionSpace"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class DirectionSpace:
    """The lists of a problem.

    Attributes:
        tuning_set: the lists.
        space: offsets, statistics and metric for line search, without features.
    """

    tuning_set: TuningSet
    space: LineSpace

    @classmethod
    def of(cls, problem: Problem) -> DirectionSpace:
        """Return the lists of a problem; active features do not matter."""
        offsets, stats = drop_empty_lists(problem.tuning_set)
        axes = Lines(np.zeros(0), np.zeros((len(offsets) - 1, 0, 2)))
        return cls(problem.tuning_set, LineSpace(offsets, axes, np.zeros(0), stats, problem.metric))

    def at(self, weights: Vector) -> Vector:
        """Return model scores at ``weights``, float64 ``[n_hyps]``."""
        return self.tuning_set.model_scores(weights)

    def score(self, scores: Vector) -> float:
        """Return the corpus score of the hypotheses of highest model score."""
        return self.space.decode(scores)

    def along(self, directions: Sequence[Vector], scores: Vector) -> list[Surface]:
        """Return the corpus score along some directions, all in one pass.

        Args:
            directions: each float64 ``[n_features]``.
            scores: float64 ``[n_hyps]``, model scores where the lines start.
        """
        columns = np.column_stack([self.at(direction) for direction in directions])
        slopes = np.empty(columns.size)
        arrange(self.space.offsets, columns, slopes)
        lines = Lines.of(self.space.offsets, slopes)
        scratch = LineScratch.of(self.space, len(directions))
        wanted = np.arange(len(directions))
        return list(error_surfaces(self.space, lines, wanted, scores, scratch))
