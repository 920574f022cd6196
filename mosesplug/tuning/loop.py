"""The tuning loop: decode, score, optimize, until no weight moves.

The store alone tells how far a run is: it has an iteration or not, with a result or without. All
other files in the working directory are derived from it and can be written again. Random numbers
depend on the seed and the iteration only. So a run that was killed anywhere resumes, and ends with
the same bytes as one that was not.

``tune`` is ``while request := ask(context): tell(context, request, decode(request))``:
whoever decodes elsewhere asks and tells. A request without an answer is asked again, and lists are
stored before anything is learned from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Watcher, ignore_event
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.conclude import conclude
from mosesplug.tuning.context import Context
from mosesplug.tuning.graphs.forest import check_forest
from mosesplug.tuning.iteration import (
    decode_input,
    finish_iteration,
    make_graphs,
    store_lists,
    write_decoding_files,
    write_result_files,
)
from mosesplug.tuning.online.run import open_online_run
from mosesplug.tuning.resume import check_earlier_run
from mosesplug.tuning.score_budget import make_list_budget
from mosesplug.tuning.setup import check_outputs, prepare_run
from mosesplug.tuning.stopping import find_reason_to_stop
from mosesplug.tuning.templates import add_templates, check_functions
from mosesplug.tuning.warming import compile_while_decoding
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import is_finished, read_result
from mosesplug.tuning.workdir.summary import Result
from mosesplug.tuning.workdir.workspace import Workspace

_HOW_TO_CONTINUE = (
    "Finished iterations are kept. Repair the decoder, then continue with the same command and "
    "{--continue}."
)


def tune(configuration: Configuration, watch: Watcher = ignore_event) -> Result:
    """Tune a system's weights; the result is ``moses.ini`` in the working directory.

    Raises:
        UsageError: the configuration contradicts itself or the data.
        DataError: the working directory holds another run, or input and references differ.
        DecoderError: the decoder failed; ``existing="continue"`` continues from there.
        StoreMismatch: the run to continue had another input, references, metric or configuration.
        OptimizerError: no usable weights can come of these lists.
        FormatError: a file cannot be read.
    """
    workspace = Workspace(configuration.working_directory, configuration.decoding.nbest)
    check_forest(configuration)
    check_outputs(configuration, workspace)
    check_functions(configuration)
    with workspace.lock():
        earlier = check_earlier_run(configuration, workspace, watch)
        configuration = add_templates(configuration)
        with prepare_run(configuration, workspace, earlier, watch) as context:
            return finish_run(context)


def finish_run(context: Context) -> Result:
    """Run all iterations that are missing, and write the result.

    Raises:
        DecoderError, DataError, OptimizerError: as ``tune``.
    """
    with _failures_name_the_iteration(context.store):
        if context.configuration.online is None:
            _run(context)
        elif not find_reason_to_stop(context):
            run_epochs(context)
    return conclude(context, find_reason_to_stop(context))


@dataclass(frozen=True)
class DecodingRequest:
    """The whole input is to be decoded.

    Attributes:
        iteration: from 1.
        weights: to decode with, before the starting weights are normalized.
    """

    iteration: int
    weights: Weights


def ask(context: Context) -> DecodingRequest | None:
    """Return what must be decoded next; None if the run is finished.

    It first finishes an iteration that has its lists but no result, because a run was killed in
    between, and writes the files that the decoder reads. The same request is returned until its
    lists are told.

    Raises:
        UsageError: the run was interrupted within an online epoch.
        OptimizerError, DataError, DecoderError: as ``finish_iteration``.
    """
    store = context.store
    if (opened := store.open_iteration()) is not None:
        raise UsageError(
            f"iteration {opened.iteration} in {context.workspace.directory} was cut off in an"
            " online run: go on with {--online}, or begin anew in another {--working-dir}"
        )
    iterations = store.iterations()
    if iterations and not is_finished(iterations[-1]):
        finish_iteration(context)
    if find_reason_to_stop(context):
        return None
    iterations = store.iterations()
    iteration = len(iterations) + 1
    weights, optimum = context.start, None
    if iterations:
        last = read_result(iterations[-1])
        weights, optimum = last.weights, last.optimum
        # The run may have been killed between the result and its files.
        write_result_files(context, iteration - 1, last)
    write_decoding_files(context, iteration, weights, optimum)
    return DecodingRequest(iteration, weights)


def tell(context: Context, request: DecodingRequest, lists: DecodedInput) -> None:
    """Check, score and store the lists of a request, optimize, and write the result.

    Raises:
        UsageError: the request is not the newest one: its lists have been told.
        DecoderError: the lists cannot be used; nothing of them is stored.
        OptimizerError, DataError: as ``finish_iteration``; the lists are stored.
    """
    due = len(context.store.iterations()) + 1
    if request.iteration != due:
        raise UsageError(
            f"the lists are for iteration {request.iteration}, but iteration {due} is next."
            " Ask for the next request."
        )
    store_lists(context, request.iteration, request.weights, lists)
    finish_iteration(context)


@contextmanager
def _failures_name_the_iteration(store: NBestStore) -> Iterator[None]:
    """Add the iteration, and how to continue, to the message of a decoder that fails."""
    try:
        yield
    except DecoderError as error:
        iteration = 1 + sum(map(is_finished, store.iterations()))
        raise type(error)(f"iteration {iteration}: {error.template}\n{_HOW_TO_CONTINUE}") from error


def _run(context: Context) -> None:
    """Alternate between decoding the whole input and optimizing on all lists."""
    iterations = context.store.iterations()
    is_unfinished = bool(iterations) and not is_finished(iterations[-1])
    skip = context.configuration.skip_decoder and not is_unfinished
    while (request := ask(context)) is not None:
        with compile_while_decoding(context, finish_run):
            budget = make_list_budget(context, request.iteration, request.weights)
            reduce = None if budget is None else budget.reduce
            with nullcontext() if context.ahead is None else context.ahead.score(reduce):
                lists = decode_input(context, request.iteration, request.weights, skip=skip)
            # Other processes read search graphs, while this one waits.
            store_lists(context, request.iteration, request.weights, lists)
        finish_iteration(context)
        skip = False


def run_epochs(context: Context) -> None:
    """Run the missing epochs of an online run; each decodes and learns in turn.

    Raises:
        DecoderError, DataError, OptimizerError: as ``tune``.
    """
    with ExitStack() as compiling:
        # Starting servers and decoding the first epoch take time, too.
        compiling.enter_context(compile_while_decoding(context, finish_run))
        with open_online_run(context) as run_iteration:
            while not find_reason_to_stop(context):
                make_graphs(context)
                run_iteration()
                compiling.close()
