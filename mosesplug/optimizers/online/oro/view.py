"""A batch as rank learners see it, and the frame that their updates share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.rows import CompactRows, compact_rows
from mosesplug.optimizers.online.ball import (
    FILLS,
    all_weights,
    exponential_rate,
    init_state,
    present_weights,
    project_all,
    take_step,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.oro.options import OroOptions
from mosesplug.optimizers.oracles import OracleSets, corpus_oracles, sentence_oracles
from mosesplug.tuning_set import Batch

__all__ = ["BatchView", "make_change", "make_learner", "make_view"]


@dataclass(frozen=True)
class BatchView:
    """A batch, for rank learners.

    Attributes:
        rows: all hypotheses; its columns are the features that they have.
        oracles: int64; the oracles, sentence by sentence.
        oracle_offsets: int64 ``[n_sentences + 1]``; empty sentences have none.
        is_good: bool ``[n_hyps]``; the hypotheses that are at least as good as an oracle of their
            sentence, and need not be outscored.
        gains: float64 ``[n_hyps]``; None if neither the oracles nor the margins need them.
        weights: float64 ``[n_columns]``, the current weights.
        scores: float64 ``[n_hyps]``, by these weights.
        active: bool ``[n_columns]``.
        memory: the learner's memory after this batch.
    """

    rows: CompactRows
    oracles: NDArray[np.int64]
    oracle_offsets: NDArray[np.int64]
    is_good: NDArray[np.bool_]
    gains: NDArray[np.float64] | None
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]
    active: NDArray[np.bool_]
    memory: Mapping[str, NDArray[np.float64]]


def make_view(
    options: OroOptions, state: LearnerState, batch: Batch, step: Step, *, needs_gains: bool = False
) -> BatchView:
    """Return the batch with its oracles and the current weights of its features.

    Args:
        options: the options of the learner, which say which hypotheses are oracles.
        state: the learner's state before the update.
        batch: the hypotheses.
        step: the current step.
        needs_gains: whether margins depend on gains.
    """
    rows = compact_rows(batch, np.arange(batch.n_hyps))
    weights = present_weights(state, rows.columns, step, from_zero=options.zero_start)
    scores = rows.scores(weights)
    oracles, gains, memory = _find_oracles(
        options, state, batch, step, scores, needs_gains=needs_gains
    )
    is_good = np.zeros(batch.n_hyps, dtype=np.bool_)
    is_good[oracles.rows] = True
    chosen, offsets = oracles.rows, oracles.offsets
    if options.oracles == "hope" and gains is not None:
        chosen = first_of_largest(batch.offsets, scores + gains)
        offsets = np.searchsorted(chosen, batch.offsets).astype(np.int64)
        least = np.repeat(gains[chosen], np.diff(batch.offsets)[np.diff(batch.offsets) > 0])
        is_good = gains >= least
    active = step.active[rows.columns]
    return BatchView(rows, chosen, offsets, is_good, gains, weights, scores, active, memory)


def _find_oracles(
    options: OroOptions,
    state: LearnerState,
    batch: Batch,
    step: Step,
    scores: NDArray[np.float64],
    *,
    needs_gains: bool,
) -> tuple[OracleSets, NDArray[np.float64] | None, Mapping[str, NDArray[np.float64]]]:
    """Return the best hypotheses, gains if needed, and the memory after the batch."""
    if options.cost == "corpus":
        metric = FewSentences(step.metric)
        oracles = corpus_oracles(batch, metric, step.rng)
        if not needs_gains and options.oracles == "best":
            return oracles, None, {}
        stats = batch.stats.astype(np.float64)
        filled = np.diff(batch.offsets) > 0
        owners = np.repeat(np.arange(int(filled.sum())), np.diff(batch.offsets)[filled])
        own = stats[oracles.oracle_rows]
        gains = metric.score(own.sum(axis=0) - own[owners] + stats) * len(own)
        return oracles, gains, {}
    costs = options.costs()
    memory = costs.memory(step.metric)
    memory |= {name: state.memory[name] for name in memory if name in state.memory}
    gains = costs.gains(batch, step.metric, memory, step.rng)
    kept = costs.update_memory(batch, memory, costs.choose(batch, scores, gains))
    return sentence_oracles(batch.offsets, gains), gains, kept


def make_change(
    view: BatchView, coefficients: NDArray[np.float64], loss: float, violations: int
) -> Change:
    """Return the change by ``coefficients``, ``[n_hyps]``, times the hypotheses.

    Only active features change. Values that cancel out give exactly 0, without rounding errors:
    features that all hypotheses of a sentence share do not change.
    """
    rows = view.rows
    values = rows.combine_exactly(coefficients)[view.active]
    report = {"loss": loss, "violations": float(violations)}
    return Change(rows.columns[view.active], values, memory=view.memory, report=report)


def make_learner(
    options: OroOptions, change: Callable[[LearnerState, Batch, Step], Change]
) -> Learner:
    """Return a learner that shrinks weights, adds the change and projects into a ball."""

    def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
        return take_step(
            state,
            change,
            step,
            rate=exponential_rate(step, options.rate, options.rate_decay),
            regularization=options.regularization,
            from_zero=options.zero_start,
        )

    return Learner(
        fills=FILLS,
        init=init_state,
        change=change,
        apply=apply,
        weights=all_weights,
        project=project_all,
        line_search=options.line_search,
        zero_start=options.zero_start,
        initial_memory=options.costs().memory,
    )
