"""Taking over a working directory that has files of finished iterations, but no n-best store.

That is what ``mert-moses.pl`` leaves, and what is left where a store was lost. Lists and weights
are all that matters, and both are in files.
"""

from __future__ import annotations

from pathlib import Path

from formats.weights.files import ShowWeights, read_dense, read_sparse, read_weights_txt
from mosesplug.errors import DataError
from mosesplug.optimizers import corpus_score
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.decoding.decode import skipped
from mosesplug.tuning.events import Note
from mosesplug.tuning.steps import ingest, problem
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationResult
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["adopt", "unstored_iterations"]


def unstored_iterations(workspace: Workspace, store: NBestStore) -> range:
    """Iterations that are finished by the working directory's word, and not in the store.

    A run of this program stores an iteration before it calls it finished, so there are none.

    Raises:
        DataError: ``finished_step.txt`` holds no number.
    """
    path = workspace.finished_step
    if not path.is_file():
        return range(0)
    try:
        finished = int(path.read_text())
    except ValueError as error:
        raise DataError(f"{path} holds no number: start anew in another directory") from error
    # Where it runs out of iterations, mert-moses.pl counts one that it did not begin.
    if finished > 1 and not workspace.run(finished, "dense").is_file():
        finished -= 1
    stored = sum(record.result is not None for record in store.iterations())
    return range(stored + 1, finished + 1)


def adopt(context: Context, iterations: range) -> None:
    """Fill the store from the files of iterations that are finished.

    Raises:
        DataError: a file is missing, or belongs to another system.
        DecoderError: a list is not one of this input.
        FormatError: a file cannot be read.
    """
    workspace, store = context.files.workspace, context.files.store
    context.files.watch(
        Note(f"taking over lists and weights of iterations {iterations[0]} to {iterations[-1]}")
    )
    for iteration in iterations:
        weights = _read(workspace, context.data.show, iteration)
        found = _weights_after(context, iteration)
        if len(store.iterations()) < iteration:
            # mert-moses.pl --hg-mira leaves none.
            _present(workspace.nbest_packed(iteration))
            ingest(context, iteration, weights, skipped(workspace, iteration))
        given = problem(context, iteration)
        optimum = corpus_score(given, context.data.vector(found, given.tuning_set.space))
        result = IterationResult(found, optimum, found.largest_change(weights), 0.0)
        store.record_result(iteration, result.as_record())


def _weights_after(context: Context, iteration: int) -> Weights:
    """The weights that came of an iteration: those of the next, or those the optimizer wrote."""
    workspace, show = context.files.workspace, context.data.show
    if workspace.run(iteration + 1, "dense").is_file():
        return _read(workspace, show, iteration + 1)
    path = workspace.run(iteration, "weights.txt")
    dense = read_weights_txt(_present(path))
    if len(dense) != len(show.names):
        raise DataError(f"{path} has {len(dense)} weights, the decoder {len(show.names)}")
    return Weights(dense, _sparse(workspace, iteration + 1))


def _read(workspace: Workspace, show: ShowWeights, iteration: int) -> Weights:
    """Weights from ``runN.dense`` and, where there is one, ``runN.sparse-weights``."""
    path = workspace.run(iteration, "dense")
    groups = read_dense(_present(path))
    if tuple(name for name, values in groups for _ in values) != show.names:
        raise DataError(f"{path} has other features than the decoder announces: start anew")
    dense = tuple(value for _, values in groups for value in values)
    return Weights(dense, _sparse(workspace, iteration))


def _sparse(workspace: Workspace, iteration: int) -> dict[str, float]:
    path = workspace.run(iteration, "sparse-weights")
    return read_sparse(path) if path.is_file() else {}


def _present(path: Path) -> Path:
    if not path.is_file():
        raise DataError(
            f"the run in {path.parent} cannot be continued: {path.name} is missing; start anew in"
            " another working directory"
        )
    return path
