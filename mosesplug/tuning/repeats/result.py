"""The result of several runs: select weights, write ``moses.ini`` and the summary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from formats.text import write_atomic
from formats.weights.files import ShowWeights, format_sparse, read_show_weights
from mosesplug.errors import DataError
from mosesplug.events import Note, Watcher
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.conclude import has_free_scale
from mosesplug.tuning.graphs.features import read_configured_features
from mosesplug.tuning.graphs.learning import read_fixed_weights
from mosesplug.tuning.repeats.scores import (
    FinishedRun,
    Spread,
    find_median_run,
    measure_spread,
    select_scores,
)
from mosesplug.tuning.weights import Weights, average_weights
from mosesplug.tuning.workdir.iteration_files import format_date, result_path, write_config
from mosesplug.tuning.workdir.records import list_changes
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.version import __version__


@dataclass(frozen=True)
class SeveralResult:
    """The result of several runs.

    Attributes:
        choice: how the result was selected.
        chosen_run: the run with the resulting weights; None for the mean of all runs.
        by: the scores that it was selected by, ``dev`` or ``heldout``; None for the mean.
        weights: those in ``moses.ini``.
        dev: spread of the scores on the tuning set, if known.
        heldout: spread of the scores on the held-out set, if there is one.
        monitors: spread of the scores on each monitor.
        reported: spread of the scores by each metric that is reported only.
    """

    runs: tuple[FinishedRun, ...]
    choice: str
    chosen_run: FinishedRun | None
    by: str | None
    weights: Weights
    dev: Spread | None
    heldout: Spread | None
    monitors: Mapping[str, Spread | None] = field(default_factory=dict)
    reported: Mapping[str, Spread | None] = field(default_factory=dict)

    def as_json(self, algorithm: str, finished: str) -> bytes:
        """Return ``summary.json``; only ``finished`` differs between calls."""
        first, chosen = self.runs[0], self.chosen_run
        monitors = {name: _as_json(spread) for name, spread in self.monitors.items()}
        reported = {name: _as_json(spread) for name, spread in self.reported.items()}
        document = {
            "program": f"mosesplug {__version__}",
            "finished": finished,
            "algorithm": algorithm,
            "metric": first.metric,
            "signature": first.signature,
            **({"report_metrics": dict(first.report_signatures)} if reported else {}),
            "seed": first.seed,
            "result": {
                "selected": self.choice,
                "by": self.by,
                "run": None if chosen is None else chosen.number,
                "dev": None if chosen is None else chosen.dev,
                "heldout": None if chosen is None else chosen.heldout,
                "weights": self.weights.by_name(first.names),
            },
            "dev": _as_json(self.dev),
            "heldout": _as_json(self.heldout),
            **({"monitors": monitors} if monitors else {}),
            **({"reported": reported} if reported else {}),
            "runs": [
                {
                    "run": run.number,
                    "directory": run.directory.name,
                    "seed": run.seed,
                    "iterations": run.iterations,
                    "reason": run.reason,
                    "dev": run.dev,
                    "dev_of": run.dev_of,
                    "heldout": run.heldout,
                    **({"monitors": dict(run.monitors)} if run.monitors else {}),
                    **({"reported": dict(run.reported)} if run.reported else {}),
                    "weights": run.weights.by_name(run.names),
                }
                for run in self.runs
            ],
        }
        return (json.dumps(document, indent=1) + "\n").encode()


def conclude_several(
    configuration: Configuration,
    workspace: Workspace,
    runs: Sequence[FinishedRun],
    choice: str,
    watch: Watcher,
) -> SeveralResult:
    """Write ``moses.ini`` and ``summary.json`` into the working directory of all runs.

    Raises:
        DataError: the runs have different features or metrics, or lack scores to select by.
    """
    _compare(runs, watch)
    note_idle_runs(runs, watch)
    by: str | None = None
    chosen: FinishedRun | None = None
    if choice == "average":
        weights = _mean(configuration, runs)
        _write_mean(configuration, workspace, runs[0], weights)
    else:
        by = "heldout"
        if choice == "median":
            by, chosen = select_scores(runs)[0], find_median_run(runs)
        else:
            chosen = max(runs, key=_get_heldout_score)
        weights = chosen.weights
        # Unchanged: the sparse weights that it names stay in that run's directory.
        tuned = result_path(configuration, Workspace(chosen.directory, 0))
        workspace.tuned_sparse.unlink(missing_ok=True)
        write_atomic(result_path(configuration, workspace), tuned.read_bytes())
    result = SeveralResult(
        runs=tuple(runs),
        choice=choice,
        chosen_run=chosen,
        by=by,
        weights=weights,
        dev=measure_spread([run.dev for run in runs]),
        heldout=measure_spread([run.heldout for run in runs]),
        monitors={
            name: measure_spread([run.monitors.get(name) for run in runs])
            for name in dict.fromkeys(name for run in runs for name in run.monitors)
        },
        reported={
            name: measure_spread([run.reported.get(name) for run in runs])
            for name in runs[0].report_signatures
        },
    )
    document = result.as_json(configuration.optimization.algorithm, format_date())
    write_atomic(workspace.summary, document)
    return result


def _compare(runs: Sequence[FinishedRun], watch: Watcher) -> None:
    """Check that runs are comparable; warn if settings differ from the first run's."""
    first = runs[0]
    for run in runs[1:]:
        if (run.names, run.signature) != (first.names, first.signature):
            raise DataError(
                f"{run.directory} has other features or another metric than {first.directory}: the"
                " runs cannot be compared"
            )
        if changed := list_changes(first.settings, run.settings):
            text = f"run {run.number} was done with other settings than run 1: {'; '.join(changed)}"
            watch(Note(text, is_warning=True))


def note_idle_runs(runs: Sequence[FinishedRun], watch: Watcher) -> None:
    """Warn of runs that learned nothing, and of runs that are all alike."""
    idle = [str(run.number) for run in runs if run.is_start]
    if idle:
        several = len(idle) > 1
        text = (
            f"{'runs' if several else 'run'} {', '.join(idle)} of {len(runs)}"
            f" {'end' if several else 'ends'} with the starting weights: nothing was learned, and"
            " the scores say nothing about the algorithm. Give more iterations"
            " ({--max-iterations}), or select other weights of each run ({--select-run last})"
        )
        watch(Note(text, is_warning=True))
    elif all(run.weights.has_direction(runs[0].weights) for run in runs[1:]):
        text = (
            "all runs end with the same weights: their seeds change nothing, so the spread of the"
            " scores does not measure the algorithm"
        )
        watch(Note(text, is_warning=True))


def _get_heldout_score(run: FinishedRun) -> float:
    if run.heldout is None:
        raise DataError(
            f"{run.directory} was done without held-out text: {{--select median}} or average, or"
            " {--overwrite} the runs"
        )
    return run.heldout


def _mean(configuration: Configuration, runs: Sequence[FinishedRun]) -> Weights:
    """Return the mean of all runs' weights, normalized unless their scale matters."""
    algorithm = find_algorithm(configuration.optimization.algorithm)
    fixed = read_fixed_weights(configuration, configuration.config, algorithm)
    free = has_free_scale(configuration, fixed)
    mean = average_weights([run.weights for run in runs], normalize=free)
    if not any(mean.dense):
        raise DataError("the runs' weights cancel out: {--select median} takes those of one run")
    return mean


def _write_mean(
    configuration: Configuration, workspace: Workspace, first: FinishedRun, weights: Weights
) -> None:
    """Write ``moses.ini`` with the mean, and its sparse weights."""
    workspace.tuned_sparse.unlink(missing_ok=True)
    sparse = None
    if weights.sparse:
        sparse = workspace.tuned_sparse
        write_atomic(sparse, format_sparse(weights.sparse))
    write_config(
        configuration,
        configuration.config,
        result_path(configuration, workspace),
        _features(first),
        weights,
        sparse,
        first.iterations,
        None,
    )


def _features(run: FinishedRun) -> ShowWeights:
    """Return the decoder's features, or those of the run's configuration."""
    workspace = Workspace(run.directory, 0)
    if workspace.features_list.is_file():
        show = read_show_weights(workspace.features_list)
    else:  # search graphs were the decoder
        known = read_configured_features(workspace.tuned_config)
        names = dict.fromkeys(name.rpartition("_")[0] for name in run.names)
        groups = {group.name: group for group in known.groups}
        matching = tuple(groups[name] for name in names if name in groups)
        show = ShowWeights(matching, known.untuneable, known.sparse)
    announced = FeatureSpace.of_names(show.names).names
    if announced != run.names:
        raise DataError(
            f"{run.directory}: its features are {', '.join(announced)}, but its weights belong"
            f" to {', '.join(run.names)}"
        )
    return show


def _as_json(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    fields = asdict(spread)
    return {
        "runs": fields["runs"],
        "mean": fields["mean"],
        "s_opt": fields["optimizer"],
        "min": fields["low"],
        "median": fields["median"],
        "max": fields["high"],
    }
