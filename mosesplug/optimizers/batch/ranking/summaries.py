"""Groups of sparse weights as dense features, each with one weight.

Each group is condensed into the feature ``w_sparse . h_sparse`` (survey, equation 7). The sparse
weights times their summary's weight are sparse weights again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Weights
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.problem import Problem

Scalar = TypeVar("Scalar", np.float64, np.bool_)


@dataclass(frozen=True)
class Summaries:
    """Weights of sparse features, split into groups.

    Attributes:
        names: the names of the groups.
        group_of: int64 ``[n_features]``, the group of each feature; -1 for none.
        weights: float64 ``[n_features]``, of the features in a group.
        n_dense: number of dense features, which come first.
    """

    names: tuple[str, ...]
    group_of: NDArray[np.int64]
    weights: Floats
    n_dense: int

    @classmethod
    def of(cls, problem: Problem, weights: Weights, names: Sequence[str | None]) -> Summaries:
        """Return groups of the active sparse features with weights other than 0.

        Args:
            problem: with the features.
            names: the group of each sparse feature; None for none.
        """
        n_dense = problem.tuning_set.space.n_dense
        used = problem.active_mask & (weights != 0.0)
        group_of = np.full(len(weights), -1, dtype=np.int64)
        numbers: dict[str, int] = {}
        for column in np.flatnonzero(used[n_dense:]).tolist():
            name = names[column]
            if name is not None:
                group_of[n_dense + column] = numbers.setdefault(name, len(numbers))
        return cls(tuple(numbers), group_of, np.where(group_of >= 0, weights, 0.0), n_dense)

    def sizes(self) -> dict[str, int]:
        """Return the number of features by group name."""
        counts = np.bincount(self.group_of[self.group_of >= 0], minlength=len(self.names))
        return dict(zip(self.names, counts.tolist(), strict=True))

    def add_to(self, problem: Problem) -> Problem:
        """Return the problem with a summary of each group as a last active dense feature.

        Their weights start at 1, and random starts draw them from 0 to 1, as ``mert-moses.pl`` does
        with the factor of sparse weights. Summarized features are not active.
        """
        tuning_set, (minima, maxima) = problem.tuning_set, problem.box
        space, positive, fixed = tuning_set.space, problem.positive, problem.is_fixed
        columns = [
            tuning_set.model_scores(np.where(self.group_of == group, self.weights, 0.0))
            for group in range(len(self.names))
        ]
        added = np.array(columns, dtype=np.float32).reshape(len(columns), tuning_set.n_hyps).T
        groups = tuple((name, 1) for name in self.names)
        return replace(
            problem,
            tuning_set=replace(
                tuning_set,
                space=FeatureSpace((*space.groups, *groups), space.sparse),
                dense=np.concatenate([tuning_set.dense, added], axis=1),
            ),
            active=self._inserted(problem.active_mask & (self.group_of < 0), True),
            minima=self._inserted(minima, 0.0),
            maxima=self._inserted(maxima, 1.0),
            starts=tuple(self.start(start) for start in problem.starts),
            center=None if problem.center is None else self.start(problem.center),
            positive=None if positive is None else self._inserted(positive, False),
            is_fixed=None if fixed is None else self._inserted(fixed, False),
        )

    def start(self, weights: Floats) -> Floats:
        """Return start weights of the problem with summaries: 1 each, 0 where summarized."""
        return self._inserted(np.where(self.group_of < 0, weights, 0.0), 1.0)

    def expand_weights(self, weights: Floats) -> Floats:
        """Return the equivalent weights without summaries, float64 ``[n_features]``.

        Args:
            weights: float64 ``[n_features + n_groups]``, of the problem with summaries.
        """
        ends = self.n_dense, self.n_dense + len(self.names)
        factors, own = weights[slice(*ends)], np.delete(weights, slice(*ends))
        summarized = self.group_of >= 0
        own[summarized] = factors[self.group_of[summarized]] * self.weights[summarized]
        return np.asarray(own)

    def _inserted(self, values: NDArray[Scalar], value: float) -> NDArray[Scalar]:
        return np.insert(values, [self.n_dense] * len(self.names), value)
