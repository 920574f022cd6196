"""An online run: its decoders and workers, and its iterations, one epoch each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from formats.text import read_lines
from mosesplug.decoders.batch import BatchDecoder
from mosesplug.events import Note
from mosesplug.tuning.context import Context
from mosesplug.tuning.iteration import (
    report_first_bests,
    write_decoding_files,
    write_result_files,
)
from mosesplug.tuning.online.discarding import discard_lists
from mosesplug.tuning.online.epoch import Epoch, run_batches
from mosesplug.tuning.online.sharded import ShardWorkers, run_shards
from mosesplug.tuning.online.state import (
    find_start_weights,
    forget_earlier_states,
    start_epoch,
)
from mosesplug.tuning.online.workers import (
    DecodingWorkers,
    open_decoding_workers,
)
from mosesplug.tuning.parallel.executors import open_executor
from mosesplug.tuning.parallel.shards import (
    split_into_shards,
)
from mosesplug.tuning.weights import to_model_weights
from mosesplug.tuning.workdir.records import (
    IterationStart,
    read_evaluations,
    read_result,
)


@contextmanager
def open_online_run(context: Context) -> Iterator[Callable[[], None]]:
    """Start the decoders and workers of an online run; they end with the block.

    Returns:
        A function that finishes the interrupted iteration, or runs the next one; see
        ``_run_iteration``.

    Raises:
        UsageError: a server is requested, and this decoder cannot be one.
        DecoderError: a server is requested and does not start; or it is not exact, and must be.
        DataError: a cluster does not answer.
    """
    source = context.configuration.input
    # Whoever is asked for lists may have the source sentences alone.
    texts = [b""] * context.references.n_sentences if source is None else read_lines(source)
    sharding = context.configuration.optimization.sharding
    workers: BatchDecoder | DecodingWorkers | ShardWorkers
    with ExitStack() as stack:
        decoding = context.decoder.serve(texts, to_model_weights(context.show, context.start))
        if sharding is None:
            workers = stack.enter_context(decoding)
        else:
            # This decoder shows what decoders can do; each shard or worker has one of its own.
            with decoding as decoder:
                recipe = context.decoder.recipe(decoder, sharding.shards)
            if sharding.asynchronous:
                workers = stack.enter_context(
                    open_decoding_workers(recipe, sharding, context.watch)
                )
            else:
                parts = split_into_shards(context.learned_sentences, sharding.shards, context.seed)
                executor = stack.enter_context(
                    open_executor(sharding.workers, sharding.shards, sharding.scheduler)
                )
                workers = ShardWorkers(sharding, parts, executor, recipe)
        yield partial(_run_iteration, context, texts, workers)


def _run_iteration(
    context: Context,
    texts: Sequence[bytes],
    workers: BatchDecoder | DecodingWorkers | ShardWorkers,
) -> None:
    """Finish the interrupted iteration, or run the next one.

    Raises:
        DecoderError: a decoder failed; the next run resumes from the stored batches.
        OptimizerError: the weights are no longer usable.
        DataError: workers died; or a check failed, and ``strict`` is set.
    """
    store = context.store
    shards = len(workers.parts) if isinstance(workers, ShardWorkers) else None
    if shards is not None:
        _drop_unsharded_epoch(context)
    records = store.iterations()
    current = records[-1] if records and records[-1].result is None else None
    done = records[:-1] if current else records
    last = read_result(done[-1]) if done else None
    iteration = len(done) + 1
    weights = last.weights if last else find_start_weights(context)
    if last:
        # A kill may have come between the result and its files.
        write_result_files(context, iteration - 1, last)
    write_decoding_files(context, iteration, weights, last.optimum if last else None)
    record = IterationStart(weights, context.seed, context.settings, (), 0.0)
    before = read_evaluations(done)
    learner, states, numbering = start_epoch(context, weights, last, shards)
    epoch = Epoch(context, texts, iteration, record, learner, states, numbering, before)
    if isinstance(workers, ShardWorkers):
        result = run_shards(epoch, workers, last)
    else:
        result = run_batches(epoch, workers, current, last)
    result = replace(result, reported=report_first_bests(context, iteration))
    store.record_result(iteration, result.as_record())
    forget_earlier_states(store)
    discard_lists(context)
    write_result_files(context, iteration, result)


def _drop_unsharded_epoch(context: Context) -> None:
    """Drop the lists of an interrupted epoch without shards: shards cannot use them."""
    store = context.store
    records = store.iterations()
    opened = store.open_iteration()
    unfinished = bool(records) and records[-1].result is None
    if opened is not None:
        store.drop_open()
    elif unfinished:
        store.drop_last(records[-1].iteration)
    if opened is not None or (unfinished and records[-1].n_lists):
        note = "the interrupted epoch starts again: it was started without shards"
        context.watch(Note(note, is_warning=True))
