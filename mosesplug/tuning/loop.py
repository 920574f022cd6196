"""The loop: decode, score, optimise, until no weight moves; and where to go on after a kill.

The store is the truth about how far a run is. An iteration is in it or not, with a result or not;
everything else in the working directory is derived from it and can be written again. Random
numbers depend on the seed and the iteration only. So a run that was killed anywhere goes on, and
ends with the same bytes as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mosesplug.errors import DecoderError, UsageError
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.conclude import conclude, reason_to_stop
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Watcher, ignore_event
from mosesplug.tuning.graphs.forest import check_forest
from mosesplug.tuning.heldout import HeldOutScorer
from mosesplug.tuning.iteration import (
    make_graphs,
    run_iteration,
)
from mosesplug.tuning.online.run import open_online_run, run_online_iteration
from mosesplug.tuning.online.state import forget_earlier_states
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


def tune(configuration: Configuration, watch: Watcher = ignore_event) -> Result:
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
                    _run_online(context, judge)
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


def _run(context: Context, judge: HeldOutScorer | None) -> None:
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


def _run_online(context: Context, judge: HeldOutScorer | None) -> None:
    """Decode a few sentences, learn from them, and again."""
    with open_online_run(context, judge) as run:
        while not reason_to_stop(context):
            make_graphs(context)
            run_online_iteration(run)
