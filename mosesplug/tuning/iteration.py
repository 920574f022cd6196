"""The steps of an iteration: decode, store and score, optimize, write.

Files are written atomically, and only from what the store holds, so each step can be repeated after
a kill.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.nbest.block import NBestList
from formats.text import write_atomic
from formats.weights.files import InitOpt, format_dense, format_init_opt
from mosesplug.decoders.layout import arrange_groups
from mosesplug.decoders.lists.files import check_blocks, read_decoded, reuse_decoding
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import OptimizerError
from mosesplug.events import Clock, IterationFinished, Note, OptimizerProgress, PhaseStarted
from mosesplug.features import FeatureSpace
from mosesplug.large_arrays import release_memory
from mosesplug.optimizers import Problem, Progress, Solution, corpus_score
from mosesplug.optimizers.online.learner import LearnerState
from mosesplug.optimizers.problem import can_scale
from mosesplug.store import IterationRecord
from mosesplug.tuning.context import Context
from mosesplug.tuning.graphs.learning import use_graphs
from mosesplug.tuning.graphs.storing import store_graphs
from mosesplug.tuning.guarding import guard_decoded, guard_weights
from mosesplug.tuning.heldout import HeldOutScorer
from mosesplug.tuning.online.source import drop_open_epoch, is_same_start
from mosesplug.tuning.online.state import (
    decode_states,
    encode_states,
    find_start_weights,
    forget_earlier_states,
)
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning.score_budget import ListBudget, count_unscored, make_list_budget
from mosesplug.tuning.selection import require_matches
from mosesplug.tuning.stopping import find_reason_to_stop
from mosesplug.tuning.weights import Weights, arrange_ranges, to_model_weights
from mosesplug.tuning.workdir.iteration_files import (
    weights_path,
    write_config,
    write_finished_step,
    write_optimizer_files,
    write_sparse_weights,
    write_weights,
)
from mosesplug.tuning.workdir.records import (
    IterationResult,
    IterationStart,
    read_evaluations,
    read_result,
    read_start,
)
from mosesplug.tuning_set import TuningSet


def finish_iteration(context: Context) -> None:
    """Optimize on the lists of all iterations so far; store the result.

    Raises:
        OptimizerError: there are no usable weights.
        DataError: there is a new sign that the run goes wrong, and it is strict.
        DecoderError: the decoder failed on the held-out set.
    """
    store = context.store
    current = store.iterations()[-1]
    if current.result is None:
        guard_decoded(context)
        result = optimize_weights(context, current)
        # A strict run must end before weights that it rejects can be resumed from.
        guard_weights(context, result.weights)
        unscored = count_unscored(context, current.iteration, result.weights)
        result = replace(result, unscored_first_bests=unscored)
    else:
        result = replace(read_result(current), is_evaluated=True)
    if context.held_out is not None:
        result = _evaluate(context, context.held_out, current, result)
    # Before its files: a run that is killed in between writes them again from the store.
    store.record_result(current.iteration, result.as_record())
    if result.learner is not None:
        forget_earlier_states(store)
    write_result_files(context, current.iteration, result)
    # Those that the result chooses are scored at the end of the run.
    if (n_unscored := result.unscored_first_bests) is not None and not find_reason_to_stop(context):
        context.watch(
            Note(
                f"iteration {current.iteration}: in {n_unscored} of "
                f"{context.references.n_sentences} sentences, the new weights choose a hypothesis "
                "of its lists that the score budget left out"
            )
        )
    context.watch(
        IterationFinished(
            current.iteration,
            context.configuration.metric.name,
            current.first_best_score,
            result.optimum,
            result.largest_change,
            current.hypotheses,
            context.learns_from_graphs,
        )
    )


def _evaluate(
    context: Context, held_out: HeldOutScorer, current: IterationRecord, result: IterationResult
) -> IterationResult:
    """Score the weights of a result on held-out texts.

    The result is stored before, so that a killed run does not repeat it.
    """
    store, start = context.store, read_start(current).weights
    before = (*read_evaluations(store.iterations()[:-1]), *result.heldout)
    done = replace(result, is_evaluated=False)
    store.record_result(current.iteration, done.as_record())
    for new in held_out.evaluate_iteration(current.iteration, start, result.weights, before):
        done = replace(done, heldout=(*done.heldout, new))
        if new.updates < current.iteration:  # the last one is stored with the whole result
            store.record_result(current.iteration, done.as_record())
    return replace(done, is_evaluated=True)


def write_decoding_files(
    context: Context, iteration: int, weights: Weights, optimum: float | None
) -> None:
    """Write the configuration or weights of a decoding, and sparse weights.

    Args:
        context: the run.
        iteration: that is decoded with the weights.
        weights: of the iteration, before the first are normalized.
        optimum: the score of the weights, or None if it is unknown.
    """
    configuration, workspace = context.configuration, context.workspace
    decoded = decoded_weights(context, iteration, weights)
    if iteration == 1 and weights.sparse:
        write_sparse_weights(workspace, 1, decoded)
    reads_file = configuration.decoding.decoder.reads_weight_file
    # Moses takes the starting weights of sparse features from its own moses.ini.
    names_sparse = weights.sparse and (iteration > 1 or reads_file)
    write_config(
        configuration,
        context.config,
        weights_path(configuration, workspace, iteration),
        context.show,
        decoded if reads_file else weights,
        workspace.run(iteration, "sparse-weights") if names_sparse else None,
        iteration,
        optimum,
    )
    pairs = zip(context.show.names, weights.dense, strict=True)
    dense = format_dense(((name, (weight,)) for name, weight in pairs), one_value_a_line=True)
    write_atomic(workspace.run(iteration, "dense"), dense)


def decode_input(context: Context, iteration: int, weights: Weights, *, skip: bool) -> DecodedInput:
    """Decode the input, or take the lists or search graphs of an earlier decoding."""
    release_memory()  # the decoder's models need the memory
    if skip:
        graphs = context.configuration.decoding.graphs is not None
        return reuse_decoding(context.workspace, iteration, graphs=graphs)
    context.watch(PhaseStarted(iteration, "decode"))
    model = to_model_weights(context.show, decoded_weights(context, iteration, weights))
    if context.makes_graphs(iteration):
        return context.decoder.search_graphs(iteration, model)
    return context.decoder.nbest_lists(iteration, model)


def decoded_weights(context: Context, iteration: int, weights: Weights) -> Weights:
    """Return weights as the decoder gets them; starting weights are normalized."""
    if iteration > 1 or context.configuration.decoding.config_weights_first:
        return weights
    return weights.normalize()


def store_lists(context: Context, iteration: int, weights: Weights, lists: DecodedInput) -> None:
    """Check the n-best lists, score them, and commit them to the store.

    Raises:
        DecoderError: the lists cannot be used.
    """
    context.watch(PhaseStarted(iteration, "score"))
    start = IterationStart(weights, context.seed, context.settings, lists.command, lists.seconds)
    n_sentences = context.references.n_sentences
    groups = context.space.groups
    if lists.graphs is not None:
        model = decoded_weights(context, iteration, weights)
        store_graphs(context, iteration, model, lists)
    parsed = read_decoded(lists.path, groups) if lists.lists is None else lists.lists
    if context.configuration.decoding.decoder.reads_weight_file:
        # Moses announces its features in the order of its lists; other decoders announce nothing.
        parsed = (arrange_groups(block, groups) for block in parsed)
    blocks = check_blocks(
        parsed,
        lists,
        groups=groups,
        n_sentences=n_sentences,
        watch=context.watch,
    )
    record, budget = start.as_record(), make_list_budget(context, iteration, weights)
    if budget is not None:
        blocks = _record_cost(budget, blocks, record)
    try:
        context.store.add_iteration(
            iteration,
            blocks,
            metric=context.configuration.metric,
            references=context.references,
            n_sentences=n_sentences,
            record=record,
            threads=context.configuration.optimization.threads,
        )
    except FormatError as error:
        raise lists.failure(f"the decoder wrote a list that cannot be used: {error}") from error
    if budget is not None:
        context.watch(Note(budget.describe(iteration)))


def _record_cost(
    budget: ListBudget, blocks: Iterator[NBestList], record: dict[str, Any]
) -> Iterator[NBestList]:
    """Yield lists within a budget; complete the record of the iteration at their end."""
    yield from budget.limit(blocks)
    record["budget"] = asdict(budget.cost)


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
    change = optimized.largest_change(decoded_weights(context, iteration, weights))
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


def write_result_files(context: Context, iteration: int, result: IterationResult) -> None:
    """Write the files that follow from the result of an iteration."""
    workspace = context.workspace
    write_weights(workspace, iteration, result.weights)
    if context.configuration.keep_extractor_files:
        write_optimizer_files(workspace, iteration, result.weights, result.optimum)
    write_finished_step(workspace, iteration)


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


def make_graphs(context: Context) -> None:
    """Make the search graphs of an online epoch, if they are due and missing.

    ``--redecode-every N`` makes them before epochs 1, N+1, ...; all mini-batches are decoded
    from the graphs so far (Watanabe 2012, section 5.1, made his once). They are stored before the
    first list of the epoch.

    Raises:
        DecoderError: the decoder failed.
    """
    store = context.store
    records = store.iterations()
    iteration = len(records) + 1
    if not context.makes_graphs(iteration):
        return
    if records and records[-1].result is None:
        return  # all of its lists are stored
    last = read_result(records[-1]) if records else None
    weights = last.weights if last else find_start_weights(context)
    if (opened := store.open_iteration()) is not None:
        start = IterationStart(weights, context.seed, context.settings, (), 0.0)
        if is_same_start(start.as_record(), opened.progress["start"]):
            return
        context.watch(drop_open_epoch(store))
    if last:
        # A kill may have come between the result and its files.
        write_result_files(context, iteration - 1, last)
    write_decoding_files(context, iteration, weights, last.optimum if last else None)
    lists = decode_input(context, iteration, weights, skip=False)
    store_graphs(context, iteration, weights, lists)
