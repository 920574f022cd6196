"""One epoch of one learner: each batch is decoded, stored, and learned from.

The batches are decoded in turn with learning, or by several decoders at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.batch import BatchDecoder
from mosesplug.events import Clock, EpochLearned, EpochProgress, Note, PhaseStarted
from mosesplug.features import FeatureSpace
from mosesplug.large_arrays import release_memory
from mosesplug.optimizers.online.algorithms import weight_facts
from mosesplug.optimizers.online.epochs import (
    BatchProgress,
    EpochReport,
    Plan,
    require_finite_weights,
    run_epoch,
)
from mosesplug.optimizers.online.learner import AVERAGE, Learner, LearnerState, mean_weights
from mosesplug.optimizers.online.mixing import line_search
from mosesplug.optimizers.problem import Problem
from mosesplug.store import IterationRecord
from mosesplug.tuning.context import Context
from mosesplug.tuning.guarding import FirstLook, guard_decoded, guard_weights
from mosesplug.tuning.heldout import count_since_best, find_new
from mosesplug.tuning.online.numbering import FeatureNumbering, name_weights
from mosesplug.tuning.online.source import EpochLists, EpochSetup
from mosesplug.tuning.online.state import averages_weights, encode_counts, encode_state
from mosesplug.tuning.online.workers import (
    DecodingWorkers,
    StaleDecodingSource,
)
from mosesplug.tuning.parallel.stale import run_stale_epoch
from mosesplug.tuning.selection import require_matches
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import (
    HELD_OUT,
    Evaluation,
    IterationResult,
    IterationStart,
)


@dataclass(frozen=True)
class Epoch:
    """What stays the same during an epoch.

    Attributes:
        iteration: from 1; the epoch's number, too.
        before: evaluations of earlier iterations.
    """

    context: Context
    texts: Sequence[bytes]
    iteration: int
    record: IterationStart
    learner: Learner
    states: Sequence[LearnerState]
    numbering: FeatureNumbering
    before: tuple[Evaluation, ...]

    @property
    def plan(self) -> Plan:
        """Seed, batches, metric, active weights and lengths of source sentences."""
        context = self.context
        return Plan(
            context.seed,
            context.optimizer.online.batch,
            context.configuration.metric,
            self.numbering.active,
            source_lengths=context.source_lengths,
        )

    def setup(self, sentences: Iterable[int], **more: int) -> EpochSetup:
        """Return the setup of some sentences; ``more`` goes into the start record."""
        context, configuration = self.context, self.context.configuration
        return EpochSetup(
            texts={sentence: self.texts[sentence] for sentence in sentences},
            show=context.show,
            weights=self.record.weights,
            start={**self.record.as_record(), **more},
            sparse=self.numbering.space.sparse,
            counts_before=self.numbering.counts_before,
            selection=configuration.optimization.selection,
            metric=configuration.metric,
            references=context.references,
            threads=configuration.optimization.threads,
            sentence_weights=context.sentence_weights,
        )

    @property
    def new_sets(self) -> tuple[str, ...]:
        """The held-out set and monitors that were not scored before the epoch.

        A learner that starts from zero weights replaces the configured ones at its first update.
        The held-out set does not choose these.
        """
        held_out = self.context.held_out
        names = () if held_out is None else find_new(held_out.names, self.before)
        if self.learner.zero_start and not any(state.updates for state in self.states):
            return tuple(name for name in names if name != HELD_OUT)
        return names

    def evaluate(
        self,
        weights: Weights,
        updates: int,
        earlier: Sequence[Evaluation] = (),
        names: Collection[str] | None = None,
    ) -> list[Evaluation]:
        """Translate the held-out set and the monitors, if there are any.

        Args:
            earlier: the evaluations of the epoch.
            names: the names of the sets; None for all.
        """
        held_out = self.context.held_out
        if held_out is None:
            return []
        before = (*self.before, *earlier)
        return [held_out.evaluate(self.iteration, updates, weights, before, names)]


def run_batches(
    epoch: Epoch,
    workers: BatchDecoder | DecodingWorkers,
    current: IterationRecord | None,
    last: IterationResult | None,
) -> IterationResult:
    """Run an epoch of one learner, stored batches first.

    Args:
        workers: one decoder, which waits while the learner learns, or several.
        current: the iteration, if all its lists are stored.
        last: the result of the previous epoch, if there is one.
    """
    context, iteration = epoch.context, epoch.iteration
    metric = context.configuration.metric
    release_memory()  # leave memory to the decoder's models
    context.watch(PhaseStarted(iteration, "decode"))
    evaluations: list[Evaluation] = []
    lists = EpochLists(
        context.store,
        epoch.setup(context.learned_sentences.tolist()),
        current,
        context.watch,
        decoder=None if isinstance(workers, DecodingWorkers) else workers,
        progress=lambda: {"heldout": [evaluation.as_record() for evaluation in evaluations]},
        inspect=FirstLook(context),
    )
    learner = lists.numbering.restrict(epoch.learner)
    decoded_before, clock = lists.seconds, Clock()
    scores = _HeldOutScores(epoch, lists, evaluations)

    def after_batch(done: BatchProgress) -> bool:
        score, seconds = float(metric.score(done.tally.totals)), clock.seconds()
        context.watch(
            EpochProgress(iteration, done.place + 1, done.of, metric.name, score, seconds)
        )
        return scores.after_batch(done)

    # Sets may be new in this epoch: then its start is evaluated, too.
    if new := epoch.new_sets:
        scores.add(epoch.states[0], new)
    (state,) = epoch.states
    # The epoch overwrites the state.
    old = learner.weights_before(state, epoch.numbering.active)
    facts: Mapping[str, float] = {}
    if isinstance(workers, DecodingWorkers):
        stale = StaleDecodingSource(lists, workers, learner)
        if iteration == 1:
            _note_staleness(epoch, workers.count)
        report = run_stale_epoch(
            learner,
            state,
            stale,
            epoch.plan,
            iteration,
            workers=workers.count,
            order=workers.order,
            replay=stale.replay,
            on_batch=after_batch,
        )
        order = stale.order
    else:
        report = run_epoch(learner, state, lists, epoch.plan, iteration, on_batch=after_batch)
        order = None
        if learner.line_search and not scores.is_exhausted:
            report, facts = _search_line(epoch, lists, learner, report, old)
    # Decoding and the held-out set have clocks of their own.
    seconds = clock.seconds() - (lists.seconds - decoded_before) - scores.seconds
    counts = lists.numbering.reset_infrequent(epoch.learner, report.states, epoch.record.weights)
    vector = learner.weights(report.state)
    result = make_result(epoch, report, lists.numbering.space, vector, seconds, facts)
    report_epoch(epoch, result)
    if not scores.is_exhausted:
        scores.add(report.state)
    lists.close(order)
    require_finite_weights(vector, context.optimizer.name, iteration)
    average = None
    if AVERAGE in learner.fills:
        mean = mean_weights(learner, report.state)
        average = name_weights(lists.numbering.space, mean, epoch.record.weights)
    elif averages_weights(context.configuration, context.optimizer):
        average = mean_of_epochs(result, last, iteration)
    result = replace(
        result,
        heldout=tuple(evaluations),
        average=average,
        learner={
            **encode_state(report.state, lists.numbering.space, learner.fills),
            **encode_counts(counts),
        },
    )
    guard_decoded(context)
    guard_weights(context, result.weights)
    return result


def _search_line(
    epoch: Epoch,
    lists: EpochLists,
    learner: Learner,
    report: EpochReport,
    old: NDArray[np.float64],
) -> tuple[EpochReport, Mapping[str, float]]:
    """Move the weights to the best corpus score of the epoch's lists along its update.

    (Watanabe 2012, Algorithm 3, with one shard.)

    Returns:
        The report with the new state, and values for the curve.
    """
    weights = learner.weights(report.state)
    require_finite_weights(weights, epoch.context.optimizer.name, epoch.iteration)
    problem = Problem(lists.read(lists.sentences), lists.setup.metric)
    old = np.append(old, np.zeros(len(weights) - len(old)))
    mix = line_search(problem, old, weights)
    vectors = {**report.state.vectors, "weights": mix.weights}
    state = replace(report.state, vectors=vectors)
    return replace(report, states=(state,)), {"rho": mix.rho, "mixed": mix.score}


def _note_staleness(epoch: Epoch, workers: int) -> None:
    """Tell the user if weights are never stale, or never fresh."""
    context = epoch.context
    watch, batches = context.watch, -(-len(context.learned_sentences) // epoch.plan.batch)
    if workers == 1:
        watch(Note("{--async} with one worker learns as without it: {--shards} sets their number"))
    elif workers >= batches > 1:
        note = (
            f"all {batches} mini-batches of an epoch are decoded with the weights before it. Use"
            " fewer {--shards}, or smaller mini-batches"
        )
        watch(Note(note, is_warning=True))


class _HeldOutScores:
    """Evaluations on held-out set and monitors within an epoch.

    Stored ones are not repeated.

    Attributes:
        is_exhausted: whether they have not improved for too long.
    """

    def __init__(self, epoch: Epoch, lists: EpochLists, evaluations: list[Evaluation]) -> None:
        self.seconds = 0.0
        self.is_exhausted = False
        self._epoch, self._lists, self._evaluations = epoch, lists, evaluations
        stored = map(Evaluation.of_record, lists.stored.get("heldout", ()))
        self._stored = {evaluation.updates: evaluation for evaluation in stored}

    def add(self, state: LearnerState, names: Collection[str] | None = None) -> None:
        """Evaluate the weights of a state on some sets; None for all that there are."""
        epoch, evaluations = self._epoch, self._evaluations
        if (held_out := epoch.context.held_out) is None:
            return
        wanted = held_out.names if names is None else names
        stored = self._stored.get(state.updates)
        # The run may have been continued with other monitors.
        missing = wanted if stored is None else find_new(wanted, [stored])
        if not missing and stored is not None:
            evaluations.append(stored)
            return
        clock = Clock()
        mean = mean_weights(epoch.learner, state)
        weights = name_weights(self._lists.numbering.space, mean, epoch.record.weights)
        (new,) = epoch.evaluate(weights, state.updates, evaluations, missing)
        evaluations.append(new if stored is None else stored.join(new))
        self.seconds += clock.seconds()

    def after_batch(self, done: BatchProgress) -> bool:
        """Evaluate if it is time, but not after the last batch; return whether to stop."""
        held_out = self._epoch.context.configuration.held_out
        number = done.place + 1
        # After the last batch, the end of the epoch evaluates.
        if held_out is None or not held_out.every or number % held_out.every or number == done.of:
            return False
        self.add(done.state)
        stale = count_since_best((*self._epoch.before, *self._evaluations))
        self.is_exhausted = bool(held_out.patience and stale >= held_out.patience)
        return self.is_exhausted


def make_result(
    epoch: Epoch,
    report: EpochReport,
    space: FeatureSpace,
    vector: NDArray[np.float64],
    seconds: float,
    facts: Mapping[str, float] | None = None,
) -> IterationResult:
    """Return what every epoch records; ``facts`` are further values for the curve.

    Raises:
        UsageError: a pattern of names matches no feature of the first epoch.
    """
    if epoch.iteration == 1:
        require_matches(epoch.numbering.selection, space)
    score = float(epoch.context.configuration.metric.score(report.tally.totals))
    weights = name_weights(space, vector, epoch.record.weights)
    point = {
        "epoch": epoch.iteration,
        "score": score,
        **report.tally.means,
        **(facts or {}),
        **weight_facts(vector),
        "updates": report.updates,
    }
    return IterationResult(
        weights=weights,
        optimum=score,
        largest_change=weights.largest_change(epoch.record.weights),
        seconds_optimizing=seconds,
        curve=(point,),
    )


def mean_of_epochs(
    result: IterationResult, last: IterationResult | None, iteration: int
) -> Weights:
    """Return the mean of the weights after each epoch, given the last one's mean."""
    if last is None or last.average is None:
        return result.weights
    return result.weights.mix(last.average, 1.0 / iteration)


def report_epoch(epoch: Epoch, result: IterationResult) -> None:
    """Tell the user that an epoch is done."""
    (point,) = result.curve
    report = {name: value for name, value in point.items() if name not in ("epoch", "score")}
    epoch.context.watch(
        EpochLearned(
            epoch.iteration,
            epoch.context.configuration.metric.name,
            result.optimum,
            report,
            result.seconds_optimizing,
        )
    )
