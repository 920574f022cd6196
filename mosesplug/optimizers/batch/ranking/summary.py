"""Summary features: a group of weighted sparse features as one dense feature.

Dyer et al. (2009), He and Deng (2012) and others learn sparse weights first and then condense each
group of them into the dense feature ``w_sparse . h_sparse`` (survey, equation 7), whose weight is
tuned with the dense ones. The sparse weights times their summary's weight are sparse weights again.
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
    """Return the group of each sparse feature; None for features outside all groups.

    Args:
        names: of the features, such as ``WT_haus~house``.
        by: ``first`` or ``last``: the text before the first or the last separator (the whole name
            without one); ``one``: one group for all, ``sparse``; ``pattern``: the first group of a
            regular expression, or its whole match if it has no group; names that do not match stay
            sparse features.
        separator: not empty.
        pattern: matched at the beginning of the name.

    Raises:
        UsageError: no separator, a missing pattern, or an invalid regular expression.
    """
    if by == "one":
        return ["sparse"] * len(names)
    if by == "pattern":
        if not pattern:
            raise UsageError("group_by=pattern requires a pattern")
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None
        matches = [compiled.match(name) for name in names]
        return [match and match[min(1, compiled.groups)] for match in matches]
    if not separator:
        raise UsageError("the separator is empty; choose one, such as _")
    if by == "first":
        return [name.partition(separator)[0] for name in names]
    return [name.rpartition(separator)[0] or name for name in names]


@dataclass(frozen=True)
class Summaries:
    """Weights of sparse features, split into groups.

    Attributes:
        names: of the groups.
        group_of: int64 ``[n_features]``, the group of each feature; -1 for none.
        weights: float64 ``[n_features]``, of the features in a group.
        n_dense: number of dense features, which come first.
    """

    names: tuple[str, ...]
    group_of: NDArray[np.int64]
    weights: Floats
    n_dense: int

    @classmethod
    def of(cls, problem: Problem, weights: Floats, names: Sequence[str | None]) -> Summaries:
        """Return groups of the active sparse features with weights other than 0.

        Args:
            problem: with the features.
            weights: float64 ``[n_features]``.
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
        with the factor of sparse weights. Summarised features are not active.
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
        """Return start weights of the problem with summaries: 1 each, 0 where summarised."""
        return self._inserted(np.where(self.group_of < 0, weights, 0.0), 1.0)

    def expand_weights(self, weights: Floats) -> Floats:
        """Return the equivalent weights without summaries, float64 ``[n_features]``.

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
