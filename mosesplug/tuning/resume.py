"""Decide whether to continue or replace a run in the working directory.

A run without a store is continued from its files: what ``mert-moses.pl`` leaves, or what is left
after a store was lost. The lists and weights of its finished iterations are all that is needed.
"""

from __future__ import annotations

import secrets
from typing import Literal

from formats.weights.any_format import WeightFile
from mosesplug.decoders.lists.files import reuse_decoding
from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.events import Note, Watcher
from mosesplug.optimizers import corpus_score
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import PREDICTABLE_SEED, Context
from mosesplug.tuning.iteration import store_lists
from mosesplug.tuning.optimization import build_problem
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import (
    read_decoding_weights,
    read_finished_step,
    read_resulting_weights,
)
from mosesplug.tuning.workdir.records import (
    IterationResult,
    keeps_lists,
    list_changes,
    read_start,
)
from mosesplug.tuning.workdir.workspace import Workspace

EarlierRun = Literal["none", "replaced", "continued"]
"""What becomes of an earlier run in the working directory."""


def check_earlier_run(
    configuration: Configuration, workspace: Workspace, watch: Watcher
) -> EarlierRun:
    """Return whether an earlier run in the working directory is continued or replaced.

    Raises:
        UsageError: there is one, and the settings neither continue nor replace it.
        DataError: a link is in the place of a file that the run will write.
    """
    earlier: EarlierRun = "continued" if configuration.existing == "continue" else "replaced"
    if not has_earlier_run(workspace):
        if configuration.existing == "continue":
            watch(Note(f"no run to continue in {workspace.directory}: starting from the beginning"))
        earlier = "none"
    elif configuration.existing == "refuse":
        raise UsageError(
            f"{workspace.directory} holds an earlier run: continue it with {{--continue}}, replace"
            " it with {--overwrite}, or name another {--working-dir}"
        )
    # Before anything is written: a link in the place of a file would lead out of the directory.
    workspace.reject_links(replacing=earlier == "replaced")
    return earlier


def has_earlier_run(workspace: Workspace) -> bool:
    """Return whether the directory holds a run with lists, finished or not."""
    return workspace.finished_step.is_file() or _has_lists(workspace)


def _has_lists(workspace: Workspace) -> bool:
    """Return whether an earlier run left lists; a failed first decoding leaves none."""
    if any(workspace.directory.glob("shard.*")):
        return True
    if not workspace.store.exists():
        return False
    try:
        with NBestStore.open(workspace.store) as store:
            return bool(store.iterations()) or store.open_iteration() is not None
    except StoreError:
        return True  # an unreadable store may hold lists


def choose_seed(configuration: Configuration, store: NBestStore) -> int:
    """Return the seed of the settings, of the run to continue, or a random one."""
    if configuration.optimization.predictable_seeds:
        return PREDICTABLE_SEED
    if configuration.optimization.seed is not None:
        return configuration.optimization.seed
    if iterations := store.iterations():
        return read_start(iterations[0]).seed
    return secrets.randbits(32)


def report_changed_settings(context: Context) -> None:
    """Report how the settings of a continued run differ from those that it began with.

    Raises:
        UsageError: its weights are those of other domains, its scores are those of other weights of
            sentences; or it kept lists, and does so no longer, or the other way round.
    """
    iterations = context.store.iterations()
    if not iterations:
        return
    start = read_start(iterations[-1])
    if (before := start.settings.get("domains")) not in (None, context.settings.get("domains")):
        names = before.rpartition(" ")[0]
        raise UsageError(
            f"{context.workspace.directory} holds a run with weights for the domains {names}:"
            " continue it with the same {--domains}, or name another {--working-dir}"
        )
    if start.settings.get("sentence weights") != context.settings.get("sentence weights"):
        raise UsageError(
            f"{context.workspace.directory} holds a run with other weights of sentences, or with"
            " none, by which its scores were computed: continue it with the same"
            " {--sentence-weights}, or name another {--working-dir}"
        )
    if keeps_lists(iterations[-1]) != context.configuration.keeps_lists:
        kept, remedy = (
            ("keeps its lists", "without {--no-keep-lists}")
            if keeps_lists(iterations[-1])
            else ("did not keep its lists", "with {--online} and {--no-keep-lists}")
        )
        raise UsageError(
            f"the run in {context.workspace.directory} {kept}: continue it {remedy}, or name"
            " another {--working-dir}"
        )
    earlier = {**start.settings, "seed": str(start.seed)}
    now = {**context.settings, "seed": str(context.seed)}
    if changed := list_changes(earlier, now):
        context.watch(
            Note(
                f"continuing with other settings than before: {'; '.join(changed)}", is_warning=True
            )
        )
    if "decoding" in context.configuration.decoding.decoder.capabilities:
        # A run by ask and tell is continued for every request.
        context.watch(Note(f"continuing after iteration {len(iterations)}"))


def drop_unrecorded_epoch(store: NBestStore) -> None:
    """Drop an epoch of shards without a result; the shards can repeat it."""
    records = store.iterations()
    if records and records[-1].result is None and not records[-1].n_lists:
        store.drop_last(records[-1].iteration)


def find_unstored_iterations(workspace: Workspace, store: NBestStore) -> range:
    """Return the iterations that files call finished but the store lacks.

    A run of this program stores an iteration before its files say that it is finished.

    Raises:
        DataError: ``finished_step.txt`` is not a number.
    """
    finished = read_finished_step(workspace)
    # At its limit of iterations, mert-moses.pl counts one that it did not begin.
    if finished > 1 and not workspace.run(finished, "dense").is_file():
        finished -= 1
    # The store counts: files may be older, if a kill came between the two.
    stored = sum(record.result is not None for record in store.iterations())
    return range(stored + 1, finished + 1)


def adopt_files(context: Context, iterations: range) -> None:
    """Fill the store from the files of finished iterations.

    Raises:
        DataError: a file is missing, or belongs to another system.
        DecoderError: a list is not one of this input.
        FormatError: a file cannot be read.
    """
    workspace, store = context.workspace, context.store
    context.watch(
        Note(f"taking over lists and weights of iterations {iterations[0]} to {iterations[-1]}")
    )
    for iteration in iterations:
        weights = _check_weights(
            context, read_decoding_weights(workspace, iteration), f"run{iteration}.dense"
        )
        result = _check_weights(
            context, read_resulting_weights(workspace, iteration), f"run{iteration}.weights.txt"
        )
        # The lists may be stored already: a kill may have come before the result.
        if len(store.iterations()) < iteration:
            lists = workspace.packed_nbest(iteration)
            if not lists.is_file():  # mert-moses.pl --hg-mira leaves none
                raise _missing_file_error(workspace, lists.name)
            store_lists(context, iteration, weights, reuse_decoding(workspace, iteration))
        problem = build_problem(context, iteration)
        optimum = corpus_score(problem, context.vector(result, problem.tuning_set.space))
        adopted = IterationResult(result, optimum, result.largest_change(weights), 0.0)
        store.record_result(iteration, adopted.as_record())


def _check_weights(context: Context, file: WeightFile | None, name: str) -> Weights:
    """Return the weights of a file; check that they match the decoder's features."""
    names = context.show.names
    if file is None:
        raise _missing_file_error(context.workspace, name)
    if file.numbers and len(file.numbers) != len(names):
        raise DataError(f"{file.path} has {len(file.numbers)} weights, the decoder {len(names)}")
    if not file.numbers and file.show.names != names:
        raise DataError(
            f"{file.path} has other features than the decoder. Start from the beginning"
        )
    return Weights.of_file(file)


def _missing_file_error(workspace: Workspace, name: str) -> DataError:
    return DataError(
        f"the run in {workspace.directory} cannot be continued: {name} is missing. Start in another"
        " working directory"
    )
