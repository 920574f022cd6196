"""The loop: decode, score, optimise, until no weight moves; and where to go on after a kill.

The store is the truth about how far a run is. An iteration is in it or not, with a result or not;
everything else in the working directory is derived from it and can be written again. Random
numbers depend on the seed and the iteration only. So a run that was killed anywhere goes on, and
ends with the same bytes as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np

from formats.references import read_references, reference_files
from formats.text import read_lines
from mosesplug.errors import UsageError
from mosesplug.optimizers import Algorithm, Optimizer, algorithms
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.settings.algorithm_options import algorithm_options, idle_options
from mosesplug.settings.configuration import Configuration, Online, Optimising
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.tuning.conclude import conclude, reason_to_stop
from mosesplug.tuning.context import Context, RunData, RunFiles
from mosesplug.tuning.decoding.faults import naming_the_iteration
from mosesplug.tuning.decoding.prepare import announced_features, decoding_config
from mosesplug.tuning.events import Note, Optimised, Watcher, ignore
from mosesplug.tuning.graphs.learning import check_graphs, fixed_weights
from mosesplug.tuning.graphs.redecoding import make_graphs
from mosesplug.tuning.graphs.run import check_forest, forest_of, own_forest
from mosesplug.tuning.guarding import guard_decoded, guard_input, guard_weights
from mosesplug.tuning.heldout import Judge
from mosesplug.tuning.heldout import judge as find_judge
from mosesplug.tuning.online.decoder import check_online, online_decoder, recipe_of
from mosesplug.tuning.online.epoch import online_iteration
from mosesplug.tuning.online.sharded import Sharded, sharded_iteration
from mosesplug.tuning.online.state import forget_earlier_states
from mosesplug.tuning.online.workers import decoding_workers
from mosesplug.tuning.parallel.executors import workers
from mosesplug.tuning.parallel.sharding import dealt
from mosesplug.tuning.resume import (
    EarlierRun,
    adopt_files,
    check_earlier_run,
    report_changed_settings,
    seed_of_run,
    unstored_iterations,
)
from mosesplug.tuning.start import check_names, starting_weights
from mosesplug.tuning.steps import before_decoding, decoded, ingest, optimised, write_after
from mosesplug.tuning.workdir.records import evaluations_of, result_of, start_of
from mosesplug.tuning.workdir.summary import Result
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["check_apart", "tune"]

_CONFUSION_NETWORK = 1
"""The input type that takes many lines a sentence."""


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
        with _context(configuration, workspace, watch, earlier) as (context, judge):
            store = context.files.store
            _drop_unrecorded_epoch(store)
            forget_earlier_states(store)
            with naming_the_iteration(store):
                if configuration.online is None:
                    _run(context, judge)
                elif not reason_to_stop(context):
                    _run_online(context, configuration.online, judge)
            return conclude(context, reason_to_stop(context))


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
        _iterate(context, judge, skip_decoder=skip_decoder)
        skip_decoder = False


def _run_online(context: Context, online: Online, judge: Judge | None) -> None:
    """Decode a few sentences, learn from them, and again."""
    texts = read_lines(context.data.configuration.input)
    sharding = context.data.configuration.optimising.sharding
    if sharding is not None:
        run = _run_workers if sharding.asynchronous else _run_shards
        run(context, online, judge, texts, sharding)
        return
    with online_decoder(context, online, texts) as decoder:
        while not reason_to_stop(context):
            make_graphs(context)
            online_iteration(context, texts, decoder, judge)


def _run_workers(
    context: Context,
    online: Online,
    judge: Judge | None,
    texts: Sequence[bytes],
    sharding: Sharding,
) -> None:
    """As one learner, with several decoders at once, which have weights of some time ago."""
    with online_decoder(context, online, texts) as decoder:
        recipe = recipe_of(context, online, decoder)
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
    with online_decoder(context, online, texts) as decoder:
        recipe = recipe_of(context, online, decoder)
    with workers(sharding.workers, sharding.shards, sharding.scheduler) as executor:
        run = Sharded(context, texts, parts, sharding, executor, recipe, judge)
        while not reason_to_stop(context):
            make_graphs(context)
            sharded_iteration(run)


def check_apart(configuration: Configuration, workspace: Workspace) -> None:
    """See that the run would not destroy what it is made from.

    Raises:
        UsageError: a file that is read has the place of one that is written.
    """
    files = [configuration.input, configuration.config]
    files += reference_files(configuration.references)
    if configuration.sparse_weights is not None:
        files.append(configuration.sparse_weights)
    if (held_out := configuration.held_out) is not None:
        files += [held_out.input, *reference_files(held_out.references)]
    for path in files:
        if workspace.replaces(path):
            raise UsageError(
                f"a run in {workspace.directory} would replace {path}, which it is to read: name"
                " another --working-dir, or copy that file elsewhere"
            )


@contextmanager
def _context(
    configuration: Configuration, workspace: Workspace, watch: Watcher, earlier: EarlierRun
) -> Iterator[tuple[Context, Judge | None]]:
    """Everything an iteration needs, checked; only then is an earlier run replaced."""
    optimising = configuration.optimising
    if optimising.seed is not None and optimising.seed < 0:
        raise UsageError(f"the seed must not be negative, as {optimising.seed} is")
    algorithm = find_algorithm(optimising.algorithm)
    optimizer = algorithm.bind(algorithm_options(algorithm, optimising.options))
    _check_regime(configuration, algorithm)
    _tell_idle(optimising, optimizer, watch)
    prefix = configuration.references
    lines = read_references(prefix, _input_lines(configuration), input_path=configuration.input)
    guard_input(configuration, lines, watch)
    references = configuration.metric.prepare(lines)
    # Here, before anything is decoded or an earlier run replaced, settings that cannot be used and
    # too many shards are refused.
    if optimizer.is_online:
        optimizer.learner()
    if optimising.sharding is not None and not optimising.sharding.asynchronous:
        dealt(np.arange(references.n_sentences), optimising.sharding.shards, 0)
    config = decoding_config(configuration, workspace, watch)
    forest = forest_of(configuration, workspace, references, watch)
    if forest is not None:
        show = forest.show
    else:
        show = announced_features(configuration, workspace, config, watch)
    check_names(optimising, show)
    start = starting_weights(show, configuration)
    judge = find_judge(configuration, config, show, watch)
    if earlier == "replaced":
        watch(
            Note(
                f"replacing the earlier run in {workspace.directory} (--continue would have gone"
                " on with it)",
                warning=True,
            )
        )
    if earlier != "continued":
        workspace.clear(keep_list=configuration.skip_decoder)
    with NBestStore.open(workspace.store, writable=True) as store:
        store.require(
            {
                "input": fingerprint_files([configuration.input]),
                "references": fingerprint_files(reference_files(prefix)),
                "configuration": fingerprint_files([configuration.config]),
                # Scores of other metrics could not be compared when the best is chosen.
                "metric": references.signature,
            }
        )
        context = Context(
            RunData(
                configuration,
                show,
                start,
                references,
                seed=seed_of_run(configuration, store),
                fixed=fixed_weights(configuration, config, algorithm),
            ),
            RunFiles(workspace, config, store, watch),
            optimizer,
            forest or own_forest(configuration, workspace, store, show),
        )
        if unstored := unstored_iterations(workspace, store):
            adopt_files(context, unstored)
        report_changed_settings(context)
        with nullcontext() if context.forest is None else context.forest.decoder:
            yield context, judge


def _check_regime(configuration: Configuration, algorithm: Algorithm) -> None:
    """Refuse what this algorithm does not do, and settings that exclude each other.

    Raises:
        UsageError: there is such a thing.
    """
    online_learners = sorted(each.name for each in algorithms().values() if each.learner)
    if configuration.select == "best-heldout" and configuration.held_out is None:
        raise UsageError("the best weights on held-out text need such text: give --heldout, too")
    check_graphs(configuration, algorithm)
    if configuration.online is None:
        return
    if algorithm.learner is None:
        raise UsageError(
            f"{algorithm.name} learns from all lists at once, so it cannot learn while decoding:"
            f" leave out --online, or take one of {', '.join(online_learners)}"
        )
    check_online(configuration, configuration.online)


def _tell_idle(optimising: Optimising, optimizer: Optimizer, watch: Watcher) -> None:
    """Say which settings do nothing for this algorithm, or beside its others."""
    for said in idle_options(optimizer, optimising.options):
        watch(Note(said, warning=True))
    if optimizer.algorithm.restarts:
        return
    idle = {"--range": bool(optimising.ranges), "--historic-bests": optimising.historic_bests}
    for name in (name for name, given in idle.items() if given):
        watch(
            Note(
                f"{name} is for algorithms that start from several points; {optimizer.name}"
                " starts from one",
                warning=True,
            )
        )


def _input_lines(configuration: Configuration) -> int | None:
    """Lines that the references must have; None where the input is not one sentence a line."""
    if configuration.decoding.decoder.input_type == _CONFUSION_NETWORK:
        return None
    return len(read_lines(configuration.input))


def _iterate(context: Context, judge: Judge | None, *, skip_decoder: bool) -> None:
    """Do what is left to do of the current iteration, or the whole of the next."""
    store = context.files.store
    iterations = store.iterations()
    if not iterations or iterations[-1].result is not None:
        iteration = len(iterations) + 1
        weights, optimum = context.data.start, None
        if iterations:
            last = result_of(iterations[-1])
            weights, optimum = last.weights, last.optimum
            # A kill may have come between the result and its files.
            write_after(context, iteration - 1, last)
        before_decoding(context, iteration, weights, optimum)
        lists = decoded(context, iteration, weights, skip=skip_decoder)
        ingest(context, iteration, weights, lists)
    current = store.iterations()[-1]
    guard_decoded(context)
    result = optimised(context, current)
    guard_weights(context, result.weights)
    if judge is not None:
        before, start = evaluations_of(store.iterations()[:-1]), start_of(current).weights
        found = judge.of_iteration(current.iteration, start, result.weights, before)
        result = replace(result, heldout=found)
    store.record_result(current.iteration, result.as_record())
    write_after(context, current.iteration, result)
    context.files.watch(
        Optimised(
            current.iteration,
            context.data.configuration.metric.name,
            current.first_best_score,
            result.optimum,
            result.largest_change,
            current.hypotheses,
            context.learns_from_graphs,
        )
    )
