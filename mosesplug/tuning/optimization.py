"""Learn new weights from the lists or search graphs of a run's iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.text import write_atomic
from formats.weights.files import InitOpt, format_init_opt
from mosesplug.errors import OptimizerError
from mosesplug.events import Clock, Note, OptimizerProgress, PhaseStarted
from mosesplug.features import FeatureSpace
from mosesplug.large_arrays import release_memory
from mosesplug.optimizers import Problem, Progress, Solution, corpus_score
from mosesplug.optimizers.online.learner import LearnerState
from mosesplug.optimizers.problem import can_scale
from mosesplug.store import IterationRecord
from mosesplug.tuning.context import Context
from mosesplug.tuning.graphs.learning import use_graphs
from mosesplug.tuning.online.state import (
    decode_states,
    encode_states,
)
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning.selection import require_matches
from mosesplug.tuning.weights import Weights, arrange_ranges
from mosesplug.tuning.workdir.records import (
    IterationResult,
    read_result,
    read_start,
)
from mosesplug.tuning_set import TuningSet


def optimize_weights(context: Context, current: IterationRecord) -> IterationResult:
    """Return new weights, from the lists of this and earlier iterations.

    Raises:
        OptimizerError: there are no usable weights.
    """
    iteration, weights = current.iteration, read_start(current).weights
    context.watch(PhaseStarted(iteration, "optimize"))
    clock = Clock()
    release_memory()
    problem, copies = build_problem(context, iteration), None
    if context.domains is not None:
        problem, copies = context.domains.extend(problem)
    release_memory()
    space = problem.tuning_set.space
    minima, maxima = (box[: space.n_dense].tolist() for box in problem.box)
    box = InitOpt(weights.dense, tuple(minima), tuple(maxima))
    write_atomic(context.workspace.run(iteration, "init.opt"), format_init_opt(box))
    if context.configuration.keep_extractor_files:
        _write_extractor_files(context, iteration)

    def progress(done: int, total: int, what: str) -> None:
        context.watch(OptimizerProgress(iteration, done, total, what))

    selection = context.configuration.optimization.selection
    for note in selection.describe_counts(problem.active, space):
        context.watch(Note(note))
    problem = replace(problem, states=_kept_states(context, space))
    initial = _restart_cut_features(context, problem, context.vector(weights, space))
    solution = _solution(context, problem, initial, iteration, progress)
    for note in solution.notes:
        context.watch(Note(note))
    if context.domains is not None and copies is not None:
        solution = context.domains.center(problem, copies, solution)
    optimized = Weights.of_vector(space, solution.weights, context.fixed_weights)
    optimized = optimized.complete(weights, space)
    if not np.isfinite(solution.weights).all() or not any(optimized.dense):
        raise OptimizerError(
            f"{context.optimizer.name} found no usable weights in iteration {iteration}; its lists"
            " are kept: try another algorithm with {--continue}"
        )
    optimization, score = context.configuration.optimization, solution.score
    share = optimization.interpolation
    if share and iteration >= optimization.interpolation_start:
        # Starting weights have the scale of moses.ini, and shares count at one scale.
        is_scaled = iteration == 1 and can_scale(problem)
        optimized = optimized.mix(weights.normalize() if is_scaled else weights, share)
        score = corpus_score(problem, context.vector(optimized, space))
    change = optimized.largest_change(context.decoded_weights(iteration, weights))
    return IterationResult(
        optimized,
        score,
        change,
        clock.seconds(),
        _plain_curve(solution.history),
        learner=encode_states(solution.states, space) if _keeps_states(context) else None,
    )


def _restart_cut_features(
    context: Context, problem: Problem, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return weights, the run's first ones for features that are no longer tuned.

    Only the number of features cuts one that was tuned: others become more frequent, while counts
    of sentences only grow.
    """
    if not context.configuration.optimization.sparse_max:
        return weights
    space = problem.tuning_set.space
    start = context.start.normalize() if can_scale(problem) else context.start
    is_cut = ~problem.active_mask & (np.arange(len(space)) >= space.n_dense)
    return np.where(is_cut, context.vector(start, space), weights)


def _keeps_states(context: Context) -> bool:
    """Return whether an online learner keeps its state until the next decoding."""
    return context.optimizer.is_online and context.optimizer.online.keep_state


def _kept_states(context: Context, space: FeatureSpace) -> tuple[LearnerState, ...]:
    """Return the learner's states after the previous iteration."""
    done = [record for record in context.store.iterations() if record.result is not None]
    if not (done and _keeps_states(context)):
        return ()
    return decode_states(read_result(done[-1]).learner, space, context.optimizer.learner())


def _solution(
    context: Context,
    problem: Problem,
    initial: NDArray[np.float64],
    iteration: int,
    progress: Progress,
) -> Solution:
    optimizer, generator = context.optimizer, context.generator(iteration)
    sharding = context.configuration.optimization.sharding
    if sharding is None:
        return optimizer.optimize(problem, initial, generator, progress)
    return optimize_sharded(problem, optimizer, sharding, initial, generator, progress)


def _plain_curve(history: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return numbers and strings of the optimizer's report; None if not finite."""
    return tuple(
        {name: _plain(value) for name, value in step.items() if np.ndim(value) == 0}
        for step in history
    )


def _plain(value: Any) -> int | float | str | None:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else str(value)


def find_window(context: Context, iteration: int) -> range:
    """Return the iterations whose lists an iteration learns from."""
    window = context.configuration.optimization.window
    return range(1 if window < 0 else max(1, iteration - window), iteration + 1)


def build_problem(context: Context, iteration: int) -> Problem:
    """Return the merged lists, or search graphs, of an iteration and those before it."""
    configuration, store = context.configuration, context.store
    optimization, iterations = configuration.optimization, find_window(context, iteration)
    first = iterations.start
    has_graphs = any(record.n_graphs for record in store.iterations()[first - 1 : iteration])
    from_graphs = context.learns_from_graphs and has_graphs
    tuning_set = store.batch(
        () if from_graphs else np.arange(store.n_sentences),
        iterations,
        metric=configuration.metric,
        references=context.references,
        threads=optimization.threads,
    )
    space = tuning_set.space
    earlier = store.iterations()[first - 1 : iteration - 1] if optimization.historic_bests else ()
    minima, maxima = arrange_ranges(optimization.ranges, space.group_names)
    problem = Problem(
        tuning_set,
        configuration.metric,
        select_features(context, tuning_set),
        np.array([*minima, *np.zeros(space.n_sparse)]),
        np.array([*maxima, *np.ones(space.n_sparse)]),
        tuple(context.vector(read_start(record).weights, space) for record in earlier),
        optimization.threads,
        grows=True,
        center=context.vector(context.start, space),
        source_lengths=context.source_lengths,
    )
    if not from_graphs:
        return problem
    return use_graphs(problem, context, context.optimizer.algorithm, store, iterations)


def _write_extractor_files(context: Context, iteration: int) -> None:
    """Write the files of an iteration, and those of earlier ones that have none."""
    metric, workspace = context.configuration.metric, context.workspace
    for number in range(1, iteration + 1):
        if number < iteration and workspace.run(number, "features.dat").is_file():
            continue
        lists = context.store.tuning_set(number, metric=metric, references=context.references)
        sparse = None
        if (rows := lists.sparse) is not None:
            sparse = SparseColumns(lists.space.sparse, rows.indptr, rows.indices, rows.data)
        names = lists.space.names[: lists.space.n_dense]
        ids, offsets = lists.sentence_ids, lists.offsets
        path = workspace.run(number, "features.dat")
        write_features(path, names, ids, offsets, lists.dense, sparse)
        write_scores(workspace.run(number, "scores.dat"), metric.name, ids, offsets, lists.stats)


def select_features(context: Context, lists: TuningSet) -> NDArray[np.bool_] | None:
    """Return which weights may change; None leaves it to the algorithm.

    Raises:
        UsageError: a pattern of names matches no feature of the lists. (A sparse feature that is
            named without asterisk may come in a later decoding.)
    """
    selection = context.configuration.optimization.selection
    require_matches(selection, lists.space)
    return selection.select(lists, tunes_sparse=context.optimizer.algorithm.tunes_sparse)
