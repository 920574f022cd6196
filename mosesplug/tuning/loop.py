"""The loop: decode, score, optimise, until no weight moves; and where to go on after a kill.

The store is the truth about how far a run is. An iteration is in it or not, with a result or not;
everything else in the working directory is derived from it and can be written again. Random
numbers depend on the seed and the iteration only. So a run that was killed anywhere goes on, and
ends with the same bytes as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from formats.text import read_lines
from mosesplug.decoders.batch import BatchDecoder
from mosesplug.errors import DecoderError, UsageError
from mosesplug.settings.configuration import Configuration, Online
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning.conclude import conclude, reason_to_stop
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Watcher, ignore
from mosesplug.tuning.graphs.forest import check_forest
from mosesplug.tuning.heldout import Judge
from mosesplug.tuning.iteration import (
    make_graphs,
    run_iteration,
)
from mosesplug.tuning.online.epoch import online_iteration
from mosesplug.tuning.online.sharded import Sharded, sharded_iteration
from mosesplug.tuning.online.source import model_weights
from mosesplug.tuning.online.state import forget_earlier_states
from mosesplug.tuning.online.workers import decoding_workers
from mosesplug.tuning.parallel.executors import workers
from mosesplug.tuning.parallel.sharding import dealt
from mosesplug.tuning.resume import (
    check_earlier_run,
)
from mosesplug.tuning.setup import check_apart, prepare_run
from mosesplug.tuning.workdir.summary import Result
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["tune"]

_HOW_TO_CONTINUE = (
    "Finished iterations are kept. Once the decoder is mended, the same command with --continue"
    " goes on."
)


def tune(configuration: Configuration, watch: Watcher = ignore) -> Result:
    """Tune a system's weights; the result is ``moses.ini`` in the working directory.

    Args:
        configuration: what to tune, and how.
        watch: told of everything that happens, from any thread.

    Raises:
        UsageError: the configuration contradicts itself or the data.
        DataError: the working directory holds another run, or input and references differ.
        DecoderError: the decoder failed; ``existing="continue"`` goes on from there.
        StoreMismatch: the run to continue had another input, references, metric or configuration.
        OptimizerError: no usable weights can come of these lists.
        FormatError: a file cannot be read.
    """
    workspace = Workspace(configuration.working_directory, configuration.decoding.nbest)
    check_forest(configuration)
    check_apart(configuration, workspace)
    with workspace.locked():
        earlier = check_earlier_run(configuration, workspace, watch)
        with prepare_run(configuration, workspace, watch, earlier) as (context, judge):
            store = context.files.store
            _drop_unrecorded_epoch(store)
            forget_earlier_states(store)
            with _failures_name_the_iteration(store):
                if configuration.online is None:
                    _run(context, judge)
                elif not reason_to_stop(context):
                    _run_online(context, configuration.online, judge)
            return conclude(context, reason_to_stop(context))


@contextmanager
def _failures_name_the_iteration(store: NBestStore) -> Iterator[None]:
    """Add the iteration, and how to continue, to the message of a decoder that fails."""
    try:
        yield
    except DecoderError as error:
        iteration = 1 + sum(record.result is not None for record in store.iterations())
        raise type(error)(f"iteration {iteration}: {error}\n{_HOW_TO_CONTINUE}") from error


def _drop_unrecorded_epoch(store: NBestStore) -> None:
    """An epoch of shards that a kill cut off from its result: the shards give it again."""
    records = store.iterations()
    if records and records[-1].result is None and not records[-1].n_lists:
        store.drop_last(records[-1].iteration)


def _run(context: Context, judge: Judge | None) -> None:
    """Decode everything, optimise on all lists, and again."""
    if (opened := context.files.store.open_iteration()) is not None:
        raise UsageError(
            f"iteration {opened.iteration} in {context.files.workspace.directory} was cut off in an"
            " online run: go on with --online, or begin anew in another --working-dir"
        )
    skip_decoder = context.data.configuration.skip_decoder
    while not reason_to_stop(context):
        run_iteration(context, judge, skip_decoder=skip_decoder)
        skip_decoder = False


def _run_online(context: Context, online: Online, judge: Judge | None) -> None:
    """Decode a few sentences, learn from them, and again."""
    texts = read_lines(context.data.configuration.input)
    sharding = context.data.configuration.optimising.sharding
    if sharding is not None:
        run = _run_workers if sharding.asynchronous else _run_shards
        run(context, online, judge, texts, sharding)
        return
    with _serve(context, texts) as decoder:
        while not reason_to_stop(context):
            make_graphs(context)
            online_iteration(context, texts, decoder, judge)


def _serve(context: Context, texts: Sequence[bytes]) -> AbstractContextManager[BatchDecoder]:
    """Return the decoder of mini-batches, open until the block ends."""
    return context.decoder.serve(texts, model_weights(context.data.show, context.data.start))


def _run_workers(
    context: Context,
    online: Online,
    judge: Judge | None,
    texts: Sequence[bytes],
    sharding: Sharding,
) -> None:
    """As one learner, with several decoders at once, which have weights of some time ago."""
    with _serve(context, texts) as decoder:
        recipe = context.decoder.recipe(decoder, sharding.shards)
    with decoding_workers(recipe, sharding, context.files.watch) as workers:
        while not reason_to_stop(context):
            online_iteration(context, texts, workers, judge)


def _run_shards(
    context: Context,
    online: Online,
    judge: Judge | None,
    texts: Sequence[bytes],
    sharding: Sharding,
) -> None:
    """Shards decode and learn at once for an epoch, then their weights are mixed, and again."""
    parts = dealt(np.arange(len(texts)), sharding.shards, context.data.seed)
    # It has shown what decoders can do, and whether servers are exact; each shard has its own.
    with _serve(context, texts) as decoder:
        recipe = context.decoder.recipe(decoder, sharding.shards)
    with workers(sharding.workers, sharding.shards, sharding.scheduler) as executor:
        run = Sharded(context, texts, parts, sharding, executor, recipe, judge)
        while not reason_to_stop(context):
            make_graphs(context)
            sharded_iteration(run)
