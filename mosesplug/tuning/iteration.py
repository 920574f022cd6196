"""The steps of an iteration: decode, store and score, optimize, write.

Files are written atomically, and only from what the store holds, so each step can be repeated after
a kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.text import write_atomic
from formats.weights.files import format_dense
from mosesplug.decoders.layout import arrange_groups
from mosesplug.decoders.lists.files import check_blocks, read_decoded, reuse_decoding
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.events import IterationFinished, MetricsReported, Note, PhaseStarted
from mosesplug.large_arrays import release_memory
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.graphs.storing import store_graphs
from mosesplug.tuning.guarding import guard_decoded, guard_weights
from mosesplug.tuning.online.source import drop_open_epoch, is_same_start
from mosesplug.tuning.online.state import (
    find_start_weights,
    forget_earlier_states,
)
from mosesplug.tuning.optimization import optimize_weights
from mosesplug.tuning.reporting import arrange_texts, read_first_bests
from mosesplug.tuning.score_budget import ListBudget, count_unscored, make_list_budget
from mosesplug.tuning.stopping import find_reason_to_stop
from mosesplug.tuning.weights import Weights, to_model_weights
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
    if context.held_out is not None or context.reporter.metrics:
        result = _evaluate(context, current, result)
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
    context: Context, current: IterationRecord, result: IterationResult
) -> IterationResult:
    """Score 1-bests by metrics that are reported, and weights on held-out texts.

    The result is stored before, so that a killed run does not repeat it.
    """
    store, iteration = context.store, current.iteration
    done = replace(result, is_evaluated=False)
    store.record_result(iteration, done.as_record())
    done = replace(done, reported=report_first_bests(context, iteration))
    if context.held_out is not None:
        start = read_start(current).weights
        before = (*read_evaluations(store.iterations()[:-1]), *result.heldout)
        for new in context.held_out.evaluate_iteration(iteration, start, result.weights, before):
            done = replace(done, heldout=(*done.heldout, new))
            if new.updates < iteration:  # the last one is stored with the whole result
                store.record_result(iteration, done.as_record())
    return replace(done, is_evaluated=True)


def report_first_bests(context: Context, iteration: int) -> dict[str, float]:
    """Score the decoder's 1-bests of an iteration by metrics that are reported.

    Raises:
        DataError: a command that scores failed, or its answer cannot be used.
    """
    reporter = context.reporter
    if not reporter.metrics:
        return {}
    n_sentences = context.references.n_sentences
    texts = read_first_bests(context.store, iteration, n_sentences)
    sharding = context.configuration.optimization.sharding
    if not texts and sharding is not None:
        # More shards may be left of an epoch that was killed.
        for path in islice(context.workspace.shard_stores, sharding.shards):
            with NBestStore.open(path) as shard:
                texts |= read_first_bests(shard, shard.iterations()[-1].iteration, n_sentences)
    scores = reporter.score(arrange_texts(texts))
    context.watch(MetricsReported(iteration, reporter.display(scores)))
    return scores


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
    decoded = context.decoded_weights(iteration, weights)
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
    model = to_model_weights(context.show, context.decoded_weights(iteration, weights))
    if context.makes_graphs(iteration):
        return context.decoder.search_graphs(iteration, model)
    return context.decoder.nbest_lists(iteration, model)


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
        model = context.decoded_weights(iteration, weights)
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


def write_result_files(context: Context, iteration: int, result: IterationResult) -> None:
    """Write the files that follow from the result of an iteration."""
    workspace = context.workspace
    write_weights(workspace, iteration, result.weights)
    if context.configuration.keep_extractor_files:
        write_optimizer_files(workspace, iteration, result.weights, result.optimum)
    write_finished_step(workspace, iteration)


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
