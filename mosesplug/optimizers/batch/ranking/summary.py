"""Summary features: a group of sparse features and their weights as one dense feature.

Dyer et al. (2009), He and Deng (2012) and others learn weights of sparse features first, and then
condense each group of them into the dense feature ``w_sparse . h_sparse`` (survey, equation 7),
whose one weight is tuned among the dense ones. The sparse weights times their summary's weight are
again weights of the sparse features.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.problem import Problem

__all__ = ["Grouping", "Summaries", "group_names"]

Floats = NDArray[np.float64]
Scalar = TypeVar("Scalar", np.float64, np.bool_)

Grouping = Literal["first", "last", "one", "pattern"]


def group_names(
    names: Sequence[str], by: Grouping, separator: str = "_", pattern: str = ""
) -> list[str | None]:
    """The group of each sparse feature; None of one that is to stay as it is.

    Args:
        names: of the features, such as ``WT_haus~house``.
        by: ``first`` or ``last``: what is before the first or the last separator (the whole name
            where there is none); ``one``: all are one group, ``sparse``; ``pattern``: what the
            first group of a regular expression holds, or all that it matches if it has no group;
            names that it does not match stay sparse features.
        separator: not empty.
        pattern: matched at the beginning of the name.

    Raises:
        UsageError: no separator, a missing pattern, or one that is not a regular expression.
    """
    if by == "one":
        return ["sparse"] * len(names)
    if by == "pattern":
        if not pattern:
            raise UsageError("features are grouped by a pattern, and there is none: give one")
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None
        matches = [compiled.match(name) for name in names]
        return [match and match[min(1, compiled.groups)] for match in matches]
    if not separator:
        raise UsageError("the separator of group and feature is empty: give one, as _")
    if by == "first":
        return [name.partition(separator)[0] for name in names]
    return [name.rpartition(separator)[0] or name for name in names]


@dataclass(frozen=True)
class Summaries:
    """Weights of sparse features, split into groups.

    Attributes:
        names: of the groups.
        group_of: int64 ``[n_features]``, the group of each feature; -1 of one that is in none.
        weights: float64 ``[n_features]``, of the features that are in a group.
        n_dense: number of dense features, which come first.
    """

    names: tuple[str, ...]
    group_of: NDArray[np.int64]
    weights: Floats
    n_dense: int

    @classmethod
    def of(cls, problem: Problem, weights: Floats, names: Sequence[str | None]) -> Summaries:
        """Groups of the active sparse features whose weight is not 0.

        Args:
            problem: with the features.
            weights: float64 ``[n_features]``.
            names: the group of each sparse feature; None of one that is in none.
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
        """Features of each group, by its name."""
        counts = np.bincount(self.group_of[self.group_of >= 0], minlength=len(self.names))
        return dict(zip(self.names, counts.tolist(), strict=True))

    def add_to(self, problem: Problem) -> Problem:
        """The problem with a summary of each group as one more active dense feature, the last.

        Their weights start at 1, and random starts draw them from 0 to 1, as ``mert-moses.pl``
        has it of the sparse weights' factor. Features that are summarised are not active.
        """
        tuning_set, (minima, maxima) = problem.tuning_set, problem.box
        space, positive, fixed = tuning_set.space, problem.positive, problem.fixed
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
            positive=None if positive is None else self._inserted(positive, False),
            fixed=None if fixed is None else self._inserted(fixed, False),
        )

    def start(self, weights: Floats) -> Floats:
        """Weights of the problem with summaries: 1 of each, and 0 of what is summarised."""
        return self._inserted(np.where(self.group_of < 0, weights, 0.0), 1.0)

    def written_back(self, weights: Floats) -> Floats:
        """Weights of the problem without summaries that score the same, float64 ``[n_features]``.

        Args:
            weights: float64 ``[n_features + n_groups]``, of the problem with summaries.
        """
        ends = self.n_dense, self.n_dense + len(self.names)
        factors, own = weights[slice(*ends)], np.delete(weights, slice(*ends))
        summarised = self.group_of >= 0
        own[summarised] = factors[self.group_of[summarised]] * self.weights[summarised]
        return np.asarray(own)

    def _inserted(self, values: NDArray[Scalar], value: float) -> NDArray[Scalar]:
        return np.insert(values, [self.n_dense] * len(self.names), value)
