"""Read the weights that a user names: of files, of a run, or of an iteration.

::

    run7.dense                    a file of any format that formats.weights.any_format knows
    run7.dense+run7.sparse        a file of dense and a file of sparse weights
    tuning                        the result of the run in this directory
    tuning:3                      the weights that its iteration 3 was decoded with
    'LM0= 0.5 TM0= 0.1 0.3'       the weights themselves
    'lm=0.5 tm=0.3'               the same for features of one value
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import overload

from formats.text import StrPath
from formats.weights.any_format import WeightFile, read_weights
from formats.weights.files import ShowWeights, WeightGroup, read_sparse
from formats.weights.list_changes import UNCHANGED, ListChanges
from formats.weights.named import find_weight_files, read_named_weights
from formats.weights.weight_format import Format
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.lengths import with_recorded_length
from mosesplug.results.views.run import StoredRun, open_run
from mosesplug.settings.paths import split_iteration
from mosesplug.tuning.repeats.files import find_run_directories
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import read_decoding_weights
from mosesplug.tuning.workdir.stores import find_run, find_store
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace

_COLUMN = re.compile(r"(.+)_([0-9]+)")


@dataclass(frozen=True)
class ResolvedWeights:
    """Weights, and where they came from.

    Attributes:
        format: the format of the file; ``dense`` for a run.
        show: the dense features; empty if they have no names, or there are none.
        weights: the tuned weights.
        fixed_weights: known weights of features that are not tuned, by their names in search
            graphs.
        file: the file; None for a run.
        changes: how the lists were changed that the weights were learned from.
        directory: the directory of a run; None for a file.
    """

    source: str
    format: Format
    show: ShowWeights
    weights: Weights
    fixed_weights: Mapping[str, float] = field(default_factory=dict)
    file: WeightFile | None = None
    changes: ListChanges = UNCHANGED
    directory: Path | None = None

    @property
    def config(self) -> Path | None:
        """The moses.ini of a run's result, or of its last iteration; None without."""
        if self.directory is None:
            return None
        directory = self.directory
        if has_store(directory):
            directory = find_store(directory).parent
        numbered = {
            int(path.name.split(".")[0].removeprefix("run")): path
            for path in directory.glob("run[0-9]*.moses.ini")
            if path.name.split(".")[0].removeprefix("run").isdecimal()
        }
        tuned = Workspace(directory, 0).tuned_config
        return tuned if tuned.is_file() else numbered[max(numbered)] if numbered else None

    @property
    def is_named(self) -> bool:
        """Whether the dense weights have names."""
        return len(self.show.names) == len(self.weights.dense)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dense weights, ``LM0_0``, or ``weight 1`` if they have none."""
        if self.is_named:
            return FeatureSpace.of_names(self.show.names).names
        return tuple(f"weight {place}" for place in range(1, len(self.weights.dense) + 1))

    @property
    def by_name(self) -> dict[str, float]:
        """All tuned weights by name, the dense ones first."""
        return self.weights.by_name(self.names)

    def with_weights(self, weights: Weights, source: str) -> ResolvedWeights:
        """Return other weights of the same dense features."""
        show = self.show.with_values(weights.dense) if self.is_named else self.show
        return replace(self, source=source, show=show, weights=weights)


def resolve_weights(name: str, names_from: Path | None = None) -> ResolvedWeights:
    """Return the weights of a name.

    Args:
        names_from: a file that names the dense weights in their order, for weights without names.

    Raises:
        UsageError: there are no such weights, or ``names_from`` holds no names in an order.
        FormatError: a file cannot be read.
        StoreError, DataError: a directory is no run, or has no such iteration; or ``names_from``
            has another number of names.
    """
    weights = _resolve(name)
    if names_from is None or weights.is_named:
        return weights
    layout = _resolve(str(names_from))
    if not layout.show.names or layout.format == "moses.ini":
        raise UsageError(
            f"{{--names-from}} {names_from} must list the features in the decoder's order, as a "
            "runN.dense or a features.list does"
        )
    if len(layout.show.names) != len(weights.weights.dense):
        raise DataError(
            f"{name} has {len(weights.weights.dense)} weights, but {names_from} names "
            f"{len(layout.show.names)}"
        )
    return replace(weights, show=layout.show.with_values(weights.weights.dense))


@overload
def read_weights_of(name: str, sparse: StrPath | None = None) -> WeightFile: ...


@overload
def read_weights_of(name: str | None, sparse: StrPath | None = None) -> WeightFile | None: ...


def read_weights_of(name: str | None, sparse: StrPath | None = None) -> WeightFile | None:
    """Return the weights of a name as a file holds them; None without a name.

    Args:
        name: a name as described in this module; a file may be a pipe.
        sparse: a file of sparse weights, which replace the others.

    Raises:
        UsageError: sparse weights without a name; or as for ``resolve_weights``.
        FormatError, StoreError, DataError: as for ``resolve_weights``.
    """
    if name is None:
        if sparse is not None:
            raise UsageError("{--sparse-weights} requires {--weights}: give both")
        return None
    paths = find_weight_files(name)
    if not paths or (paths[0].exists() and not paths[0].is_dir()):
        return read_named_weights(name, sparse)
    weights = _resolve(name)
    if weights.file is not None:
        file = replace(weights.file, second=weights.weights.sparse)
        return file.with_sparse(sparse)
    numbers = () if weights.is_named else weights.weights.dense
    file = WeightFile(
        name, "dense", weights.show, weights.weights.sparse, weights.fixed_weights, numbers=numbers
    )
    return file.with_sparse(sparse)


def _resolve(name: str) -> ResolvedWeights:
    paths = find_weight_files(name)
    if not paths:
        return _resolve_file("the string", read_named_weights(name))
    path = paths[0]
    if path.exists() and not path.is_dir():
        return _resolve_file(name, with_recorded_length(read_named_weights(name)))
    if len(paths) > 1:
        weights = _resolve(str(path))
        sparse = read_sparse(paths[1])
        return replace(weights, source=name, weights=Weights(weights.weights.dense, sparse))
    if path.is_dir():
        return _resolve_run(name, path, None)
    if (iteration := split_iteration(name)) is not None:
        return _resolve_run(name, *iteration)
    raise UsageError(
        f"there are no weights {name}: name a file, DENSE+SPARSE, the working directory of a run, "
        "or DIRECTORY:N for those of iteration N"
    )


def arrange_by_group(run: StoredRun) -> ShowWeights:
    """Return the run's dense weights by feature; empty if the features have no names."""
    if run.store.space is not None:
        groups: Sequence[tuple[str, int]] = run.store.space.groups
    else:
        groups = _group_columns(run.names)
    values = iter(run.weights.dense)
    return ShowWeights(
        tuple(
            WeightGroup(name, tuple(next(values) for _ in range(width))) for name, width in groups
        )
    )


def read_iteration_files(directory: Path) -> list[ResolvedWeights]:
    """Read the weights of all iterations of mert-moses.pl.

    The files are ``runN.dense`` and ``runN.sparse-weights``.

    Raises:
        FormatError: a file cannot be read.
    """
    weights: list[ResolvedWeights] = []
    workspace = Workspace(directory, 0)
    while (file := read_decoding_weights(workspace, len(weights) + 1)) is not None:
        weights.append(_resolve_file(file.path, file))
    return weights


def _resolve_file(source: str, file: WeightFile) -> ResolvedWeights:
    weights = Weights.of_file(file)
    return ResolvedWeights(
        source, file.format, file.show, weights, file.fixed_weights, file, file.changes
    )


def _resolve_run(source: str, directory: Path, iteration: int | None) -> ResolvedWeights:
    """Return the result of a run, or the weights that an iteration was decoded with.

    That of several runs may be the mean of their weights, of which there is a file only.
    """
    if iteration is None and (mean := find_mean_file(directory)) is not None:
        return _resolve_file(source, read_named_weights(mean))
    directory = find_run(directory)
    files = [] if has_store(directory) else read_iteration_files(directory)
    if files:
        resolved = _resolve_iteration_files(source, directory, iteration, files)
        return replace(resolved, directory=directory)
    with open_run(directory) as run:
        show = arrange_by_group(run)
        weights = run.weights if iteration is None else run.decoding_weights(iteration)
    resolved = ResolvedWeights(source, "dense", show, run.weights, directory=directory)
    return resolved.with_weights(weights, source)


def _resolve_iteration_files(
    source: str, directory: Path, iteration: int | None, files: list[ResolvedWeights]
) -> ResolvedWeights:
    """Return weights in a working directory of mert-moses.pl."""
    if iteration is None:
        path = Workspace(directory, 0).tuned_config
        if not path.is_file():
            raise DataError(
                f"{directory} has no moses.ini yet: name an iteration, {directory}:1 to "
                f"{directory}:{len(files)}"
            )
        return _resolve_file(source, read_weights(path))
    if not 1 <= iteration <= len(files):
        raise DataError(f"there is no run{iteration}.dense in {directory}")
    return replace(files[iteration - 1], source=source)


def find_mean_file(directory: Path) -> Path | None:
    """Return the file with the mean of several runs' weights, if that is their result."""
    workspace = Workspace(directory, 0)
    if not find_run_directories(directory) or not workspace.summary.is_file():
        return None
    if StoredSummary.read(workspace.summary).document["result"].get("run") is not None:
        return None
    return next((path for path in workspace.results if path.is_file()), None)


def has_store(directory: Path) -> bool:
    """Return whether a directory is or holds a store; that of mert-moses.pl has none."""
    try:
        find_store(directory)
    except DataError:
        return False
    return True


def _group_columns(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the groups of ``LM0_0 TM0_0 TM0_1``; none if the names have another form."""
    matches = [_COLUMN.fullmatch(name) for name in names]
    if not all(matches):
        return ()
    owners = groupby(match[1] for match in matches if match is not None)
    return tuple((name, sum(1 for _ in columns)) for name, columns in owners)
