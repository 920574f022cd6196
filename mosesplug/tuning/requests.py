"""The tuning loop by ask and tell.

Ask what must be decoded, and tell the n-best lists.

``tune`` is ``while (request := ask(...)) is not None: tell(..., request, decode(request))``. The
store alone tells how far a run is: a request without an answer is asked again, and lists are stored
before anything is learned from them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import UsageError
from mosesplug.tuning.context import Context
from mosesplug.tuning.heldout import HeldOutScorer
from mosesplug.tuning.iteration import (
    finish_iteration,
    store_lists,
    write_decoding_files,
    write_result_files,
)
from mosesplug.tuning.stopping import find_reason_to_stop
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_result


@dataclass(frozen=True)
class DecodingRequest:
    """The whole input is to be decoded.

    Attributes:
        iteration: from 1.
        weights: to decode with, before the starting weights are normalized.
    """

    iteration: int
    weights: Weights


def ask(context: Context, judge: HeldOutScorer | None) -> DecodingRequest | None:
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
            " online run: go on with --online, or begin anew in another --working-dir"
        )
    iterations = store.iterations()
    if iterations and iterations[-1].result is None:
        finish_iteration(context, judge)
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


def tell(
    context: Context, judge: HeldOutScorer | None, request: DecodingRequest, lists: DecodedInput
) -> None:
    """Check, score and store the lists of a request, optimize, and write the result.

    Raises:
        UsageError: the request is not the newest one: its lists have been told.
        DecoderError: the lists cannot be used; nothing of them is stored.
        OptimizerError, DataError: as ``finish_iteration``; the lists are stored.
    """
    due = len(context.store.iterations()) + 1
    if request.iteration != due:
        raise UsageError(
            f"the lists of iteration {request.iteration} are told, but iteration {due} is next."
            " Ask for the next request."
        )
    store_lists(context, request.iteration, request.weights, lists)
    finish_iteration(context, judge)
