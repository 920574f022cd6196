"""Working sets of violated constraints, for cutting planes (Eidelman et al. 2013).

A constraint is a lower or upper bound on the difference of two model scores:
``sign w . (h(reference) - h(other)) >= least``. The constraints of a group share their slack, and
``qp`` finds their multipliers. A set has spare room, so that adding a constraint rarely copies it.
Kernels call all functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.rows import (
    CompactArrays,
    add_difference,
    difference,
    difference_product,
)
from mosesplug.optimizers.solvers.qp import solve_groups

__all__ = ["Walk", "WorkingSet", "empty_set", "join", "solve", "with_room"]


class Walk(NamedTuple):
    """The weights within a batch; the arrays are outputs of the kernels.

    Attributes:
        weights: float64 ``[n_columns]``; the current weights.
        total_step: float64 ``[n_columns]``; sum of the steps so far, exactly 0 if they cancel out.
        scores: float64 ``[n_hyps]``; model scores when the sentence was processed.
        losses: float64 ``[n_sentences]``; the loss of its worst constraint at that time.
    """

    weights: NDArray[np.float64]
    total_step: NDArray[np.float64]
    scores: NDArray[np.float64]
    losses: NDArray[np.float64]

    @classmethod
    def start(cls, weights: NDArray[np.float64], n_hyps: int, n_sentences: int) -> Walk:
        """Return the walk before its first sentence, from float64 ``[n_columns]``."""
        return cls(weights, np.zeros(len(weights)), np.zeros(n_hyps), np.zeros(n_sentences))


class WorkingSet(NamedTuple):
    """Constraints with multipliers, in order of arrival; arrays have spare room.

    Attributes:
        groups: int64 ``[room]``; the groups, which share a slack.
        references: int64 ``[room]``; rows.
        others: int64 ``[room]``; rows.
        signs: float64 ``[room]``, 1 or -1.
        goals: float64 ``[room]``; violation of each constraint before any step.
        multipliers: float64 ``[room]``, at least 0.
        gram: float64 ``[room, room]``, products of the steps ``sign (h(reference) - h(other))``.
    """

    groups: NDArray[np.int64]
    references: NDArray[np.int64]
    others: NDArray[np.int64]
    signs: NDArray[np.float64]
    goals: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    gram: NDArray[np.float64]


@kernel
def empty_set(room: int) -> WorkingSet:
    """Return an empty set with room for ``room`` constraints."""
    return WorkingSet(
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros((room, room)),
    )


@kernel
def with_room(working: WorkingSet, size: int, more: int) -> WorkingSet:
    """Return the first ``size`` constraints with room for ``more``.

    A set that has this room is returned as it is.
    """
    room = len(working.others)
    if size + more <= room:
        return working
    wider = empty_set(max(2 * room, size + more))
    wider.groups[:size] = working.groups[:size]
    wider.references[:size] = working.references[:size]
    wider.others[:size] = working.others[:size]
    wider.signs[:size] = working.signs[:size]
    wider.goals[:size] = working.goals[:size]
    wider.multipliers[:size] = working.multipliers[:size]
    wider.gram[:size, :size] = working.gram[:size, :size]
    return wider


@kernel
def join(
    features: CompactArrays,
    working: WorkingSet,
    size: int,
    group: int,
    reference: int,
    other: int,
    sign: float,
    goal: float,
) -> None:
    """Add a constraint with multiplier 0 after the first ``size`` ones.

    Args:
        features: the rows.
        working: the set, updated in place.
        size: number of constraints in the set.
        group, reference, other, sign, goal: see ``WorkingSet``.
    """
    working.groups[size], working.signs[size] = group, sign
    working.references[size], working.others[size] = reference, other
    working.goals[size], working.multipliers[size] = goal, 0.0
    along = difference(features, reference, other)
    for i in range(size + 1):
        earlier = difference(features, working.references[i], working.others[i])
        value = sign * working.signs[i] * difference_product(along, earlier)
        working.gram[i, size] = working.gram[size, i] = value


@kernel
def solve(
    features: CompactArrays,
    working: WorkingSet,
    size: int,
    caps: NDArray[np.float64],
    tolerance: float,
    exchanges: int,
    walk: Walk,
    weights: NDArray[np.float64],
    moved: NDArray[np.float64],
) -> None:
    """Find the multipliers of the first ``size`` constraints and update the weights.

    Args:
        features: the rows.
        working: the set; its multipliers are the starting point and an output.
        size: number of constraints in the set.
        caps, tolerance, exchanges: see ``qp.solve_groups``.
        walk: ``weights`` and ``moved`` are outputs.
        weights, moved: float64 ``[n_columns]``; their values before any step of this set.
    """
    solve_groups(
        working.gram,
        working.goals[:size],
        working.groups[:size],
        caps,
        tolerance,
        exchanges,
        working.multipliers[:size],
    )
    walk.weights[:], walk.total_step[:] = weights, moved
    for i in range(size):
        if working.multipliers[i] > 0.0:
            along = difference(features, working.references[i], working.others[i])
            add_difference(walk.weights, along, working.signs[i] * working.multipliers[i])
            add_difference(walk.total_step, along, working.signs[i] * working.multipliers[i])
