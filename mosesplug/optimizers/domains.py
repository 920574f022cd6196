"""Weights for each domain of a tuning set, by feature augmentation (Daume 2007).

Each feature has a copy for each domain, which is 0 in the sentences of other domains. The weight of
a sentence's feature is then the sum of a shared weight and of its domain's deviation, and any
optimizer of lists learns both (Clark, Lavie & Dyer 2012 for translation; survey of Neubig &
Watanabe 2016, section 8.2). The copies are sparse features: their memory does not grow with the
number of domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Ints
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["MARK", "DomainSpace", "add_copies", "count_domains"]

MARK = "@"
"""Between a feature and its domain in the name of a copy: ``LM0@news``."""


@dataclass(frozen=True)
class DomainSpace:
    """A feature space with a copy of some features for each domain.

    Attributes:
        base: the features of the lists.
        names: the names of the domains.
        copied_columns: int64, ascending; columns of ``base`` that have copies.
        scales: whether the weights of a domain may be multiplied by a positive factor.
    """

    base: FeatureSpace
    names: tuple[str, ...]
    copied_columns: NDArray[np.int64]
    scales: bool

    @cached_property
    def space(self) -> FeatureSpace:
        """The features of ``base``, then the copies of each domain."""
        labels = self.base.labels
        copies = [f"{labels[i]}{MARK}{name}" for name in self.names for i in self.copied_columns]
        if known := sorted(set(copies).intersection(self.base.sparse)):
            raise UsageError(
                f"the lists have a feature {known[0]}, which {{--domains}} would make: use other "
                "labels"
            )
        return FeatureSpace(self.base.groups, (*self.base.sparse, *copies))

    def weights(self, vector: Floats, domain: str | None) -> Floats:
        """Return the weights of a domain, or the shared ones, float64 ``[len(base)]``.

        Args:
            vector: float64 ``[len(space)]``.
            domain: one of ``names``; None for the shared weights.
        """
        shared = np.array(vector[: len(self.base)])
        if domain is not None:
            shared[self.copied_columns] += self._deviations(vector)[self.names.index(domain)]
        return shared

    def center(self, vector: Floats, counts: Ints) -> Floats:
        """Return equivalent weights whose shared part is the mean of those of the domains.

        Only the sum of shared weight and deviation decides, and its scale decides nothing. So the
        weights of each domain are divided by their L1 norm, if they may be scaled, and the shared
        weights are their mean, weighted by the sentences of the domains. Domains without sentences
        have the shared weights.

        Args:
            vector: float64 ``[len(space)]``.
            counts: int64 ``[n_domains]``, sentences of each domain that were learned from.
        """
        own = np.array([self.weights(vector, name) for name in self.names])
        if self.scales:
            norms = np.abs(own[:, : self.base.n_dense]).sum(axis=1, keepdims=True)
            own /= np.where(norms > 0.0, norms, 1.0)
        shared = np.average(own, axis=0, weights=counts)
        if not shared.any():
            return vector
        deviations = np.where(counts[:, None] > 0, own - shared, 0.0)
        return np.concatenate([shared, deviations[:, self.copied_columns].ravel()])

    def _deviations(self, vector: Floats) -> Floats:
        return vector[len(self.base) :].reshape(len(self.names), len(self.copied_columns))


def add_copies(
    problem: Problem, names: Sequence[str], domains: NDArray[np.int64], *, sparse: bool
) -> tuple[Problem, DomainSpace]:
    """Return a problem with copies of its active features for each domain.

    Random starts of the copies' weights are 0.

    Args:
        problem: lists, without bounds of weights.
        names: the names of the domains.
        domains: int64 ``[n_sentences]``, the domain of each sentence of the problem.
        sparse: whether all sparse features are active where the problem does not say which are.

    Raises:
        UsageError: the problem has no lists, or the lists have a feature with the name of a copy.
    """
    lists = problem.tuning_set
    if "lists" not in problem.candidates.answers:
        raise UsageError("weights for each domain are learned from lists, not from search graphs")
    active = problem.active_mask
    if problem.active is None and sparse:
        active = np.ones(len(lists.space), dtype=np.bool_)
    scales = bool(active[: lists.space.n_dense].all()) and not problem.keeps_scale
    copied = DomainSpace(lists.space, tuple(names), np.flatnonzero(active), scales)
    n_copies = len(copied.space) - len(lists.space)
    minima, maxima = problem.box
    made = replace(
        problem,
        tuning_set=_copy_features(lists, copied, domains),
        active=np.concatenate([active, np.ones(n_copies, dtype=np.bool_)]),
        minima=np.concatenate([minima, np.zeros(n_copies)]),
        maxima=np.concatenate([maxima, np.zeros(n_copies)]),
        starts=tuple(np.concatenate([start, np.zeros(n_copies)]) for start in problem.starts),
        center=None
        if problem.center is None
        else np.concatenate([problem.center, np.zeros(n_copies)]),
        positive=_pad(problem.positive, n_copies),
        is_fixed=_pad(problem.is_fixed, n_copies),
    )
    return made, copied


def count_domains(n_domains: int, domains: NDArray[np.int64], lists: TuningSet) -> Ints:
    """Return each domain's number of non-empty sentences, int64 ``[n_domains]``."""
    return np.bincount(domains[np.diff(lists.offsets) > 0], minlength=n_domains)


def _pad(mask: NDArray[np.bool_] | None, n_copies: int) -> NDArray[np.bool_] | None:
    return None if mask is None else np.concatenate([mask, np.zeros(n_copies, dtype=np.bool_)])


def _copy_features(lists: TuningSet, space: DomainSpace, domains: NDArray[np.int64]) -> TuningSet:
    """Return lists whose sparse features are followed by the copies of their domain."""
    n_dense, n_sparse, n_copied = (
        lists.space.n_dense,
        lists.space.n_sparse,
        len(space.copied_columns),
    )
    of_row = np.repeat(domains, np.diff(lists.offsets))
    first = n_sparse + of_row * n_copied  # the first copy of a row's domain, in the sparse tail
    dense = space.copied_columns[space.copied_columns < n_dense]
    rows, places = np.nonzero(lists.dense[:, dense])
    parts = [(rows, first[rows] + places, lists.dense[rows, dense[places]])]
    if lists.sparse is not None:
        widths = np.diff(lists.sparse.indptr)
        owners = np.repeat(np.arange(lists.n_hyps), widths)
        place = np.full(n_sparse, -1, dtype=np.int64)
        place[space.copied_columns[len(dense) :] - n_dense] = np.arange(len(dense), n_copied)
        places = place[lists.sparse.indices]
        kept = places >= 0
        rows = owners[kept]
        parts.insert(0, (owners, lists.sparse.indices, lists.sparse.data))
        parts.append((rows, first[rows] + places[kept], lists.sparse.data[kept]))
    rows = np.concatenate([part[0] for part in parts])
    order = np.argsort(rows, kind="stable")
    indptr = np.zeros(lists.n_hyps + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=lists.n_hyps), out=indptr[1:])
    indices = np.concatenate([part[1] for part in parts])[order].astype(np.int32)
    data = np.concatenate([part[2] for part in parts])[order].astype(np.float32)
    return replace(lists, space=space.space, sparse=SparseRows(indptr, indices, data))
