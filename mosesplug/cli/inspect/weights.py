"""``mosesplug weights show`` and ``diff``: print weights and their differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from formats.weights.named import find_directory
from mosesplug.cli.inspect.weight_options import WeightsDiffCommand, WeightsShowCommand
from mosesplug.cli.shared.output import note_weighting, progress_bar
from mosesplug.cli.shared.parameters import THREADS
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.results.views.run import open_run
from mosesplug.results.weights.comparison import compare_weights
from mosesplug.results.weights.history import (
    WeightHistory,
    WeightVector,
    count_sparse_use,
    read_file_history,
    read_run_history,
)
from mosesplug.results.weights.sources import find_mean_file, has_store, resolve_weights
from mosesplug.settings.paths import split_iteration
from mosesplug.tuning.workdir.stores import find_run


def show(options: WeightsShowCommand) -> None:
    """Show the weights of a file or of a run's iterations."""
    directory = find_directory(options.weights)
    if options.importance:
        _show_importance(options)
    elif directory is None or find_mean_file(directory) is not None:
        print_record(WeightVector.of_weights(resolve_weights(options.weights), options.top))
    else:
        print_record(replace(_read_history(options, directory), top=options.top))


def _read_history(options: WeightsShowCommand, named: Path) -> WeightHistory:
    directory = find_run(named)
    name = options.weights if directory == named else str(directory)
    if not has_store(directory) and (history := read_file_history(directory)) is not None:
        return history
    with open_run(directory) as run:
        history = read_run_history(run, name)
        if options.use and run.has_lists and run.space.n_sparse:
            with progress_bar(options.json) as progress:
                for use in count_sparse_use(run):
                    history = replace(history, use=use)
                    progress(use.sentences, run.n_sentences, "lists")
    return history


def _show_importance(options: WeightsShowCommand) -> None:
    # Imported here, since it loads the optimizers, which showing weights does not need.
    from mosesplug.results.views.importance import measure_importance

    name, top = options.weights, options.top
    directory, iteration = split_iteration(name) or (find_directory(name), None)
    if directory is None or not directory.is_dir():
        raise UsageError(
            f"--importance measures how features vary in lists: give a run or a store, not {name}"
        )
    with open_run(directory, with_lists=True) as run, progress_bar(options.json) as progress:
        note_weighting(run)
        weights = None if iteration is None else run.decoding_weights(iteration)
        steps = measure_importance(run, weights, top=top or run.space.n_sparse, threads=THREADS)
        for done, importance in enumerate(steps):
            progress(done, len(importance.features), "features")
        origin = f"those of iteration {iteration}" if iteration else run.weights_origin
    print_record(replace(importance, weights=name, weights_are=origin))


def diff(options: WeightsDiffCommand) -> None:
    """Compare two weight vectors, the largest difference first."""
    a, b = resolve_weights(options.first), resolve_weights(options.second)
    print_record(compare_weights(a, b, normalized=options.normalize, top=options.top))
