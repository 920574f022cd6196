"""Weights by whatever name a person has for them: a file, two, a run, an iteration of it.

::

    run7.dense                    a file of any format that formats.weights.any_format knows
    run7.dense+run7.sparse        dense and sparse weights that lie in two files
    tuning                        the result of the run in this directory
    tuning:3                      the weights that its iteration 3 was decoded with
    'LM0= 0.5 TM0= 0.1 0.3'       the weights themselves
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from formats.weights.any_format import Format, WeightFile, parse_weights, read_weights
from formats.weights.files import ShowWeights, WeightGroup, read_sparse
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.inspection.run import StoredRun, open_run
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import read_decoding_weights
from mosesplug.tuning.workdir.records import start_of
from mosesplug.tuning.workdir.stores import find_store
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "Point",
    "decoded_with",
    "files_of_iterations",
    "has_store",
    "layout_of",
    "read_point",
]

_ITERATION = re.compile(r"(.+):([0-9]+)", re.DOTALL)
_STRING = re.compile(r"\S+=[ \t]+\S.*", re.DOTALL)
_COLUMN = re.compile(r"(.+)_([0-9]+)")


@dataclass(frozen=True)
class Point:
    """Weights, and where they came from.

    Attributes:
        source: as the call names it.
        format: that of the file; of a run, ``dense``.
        show: the dense features; none where they have no names, or where there are none.
        weights: those that are tuned.
        fixed: weights of features that are not, as far as they are known, by their names in
            search graphs.
        file: what was read, if it was a file.
    """

    source: str
    format: Format
    show: ShowWeights
    weights: Weights
    fixed: Mapping[str, float] = field(default_factory=dict)
    file: WeightFile | None = None

    @property
    def is_named(self) -> bool:
        """Whether its dense weights have names."""
        return len(self.show.names) == len(self.weights.dense)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the dense weights, ``LM0_0``, or ``weight 1``."""
        if self.is_named:
            return FeatureSpace.of_names(self.show.names).names
        return tuple(f"weight {place}" for place in range(1, len(self.weights.dense) + 1))

    @property
    def named(self) -> dict[str, float]:
        """All weights that are tuned by name, the dense ones first."""
        return {**dict(zip(self.names, self.weights.dense, strict=True)), **self.weights.sparse}

    def with_weights(self, weights: Weights, source: str) -> Point:
        """Other weights of the same dense features."""
        show = self.show.with_values(weights.dense) if self.is_named else self.show
        return replace(self, source=source, show=show, weights=weights)


def read_point(name: str) -> Point:
    """Weights by their name.

    Args:
        name: as the module says.

    Raises:
        UsageError: it names nothing.
        FormatError: a file is none of weights.
        StoreError, DataError: a directory is no run, or has no such iteration.
    """
    path = Path(name)
    if path.is_dir():
        return _of_run(name, path, None)
    if path.exists():
        return _of_file(name, read_weights(path))
    if _STRING.fullmatch(name):
        return _of_file("the string", parse_weights(name.encode(), "the string"))
    if (found := _ITERATION.fullmatch(name)) and Path(found[1]).is_dir():
        return _of_run(name, Path(found[1]), int(found[2]))
    first, plus, second = name.rpartition("+")
    if plus and Path(second).exists():
        point = read_point(first)
        sparse = read_sparse(second)
        return replace(point, source=name, weights=Weights(point.weights.dense, sparse))
    raise UsageError(
        f"there are no weights {name}: name a file, DENSE+SPARSE, the working directory of a run, "
        "or DIRECTORY:N for those of iteration N"
    )


def decoded_with(run: StoredRun, iteration: int) -> Weights:
    """The weights that an iteration of a run was decoded with, as they were given.

    Raises:
        DataError: there is no such iteration.
    """
    if not 1 <= iteration <= len(run.records):
        raise DataError(
            f"there is no iteration {iteration} in {run.path}, which has {len(run.records)}"
        )
    return start_of(run.records[iteration - 1]).weights


def layout_of(run: StoredRun) -> ShowWeights:
    """The dense features of a run with its weights; none where nothing names them."""
    values = run.weights.dense
    if run.store.space is not None:
        groups: Sequence[tuple[str, int]] = run.store.space.groups
    else:
        groups = _groups_of_columns(run.names)
    rest = iter(values)
    return ShowWeights(
        tuple(WeightGroup(name, tuple(next(rest) for _ in range(width))) for name, width in groups)
    )


def files_of_iterations(directory: Path) -> list[Point]:
    """The weights of ``runN.dense`` and ``runN.sparse-weights``, as mert-moses.pl leaves them.

    Raises:
        FormatError: a file is none of weights.
    """
    points: list[Point] = []
    workspace = Workspace(directory, 0)
    while (file := read_decoding_weights(workspace, len(points) + 1)) is not None:
        points.append(_of_file(file.path, file))
    return points


def _of_file(source: str, file: WeightFile) -> Point:
    return Point(source, file.format, file.show, Weights.of_file(file), file.fixed, file)


def _of_run(source: str, directory: Path, iteration: int | None) -> Point:
    """The result of a run, or the weights of an iteration."""
    files = [] if has_store(directory) else files_of_iterations(directory)
    if files:
        return _of_files(source, directory, iteration, files)
    with open_run(directory) as run:
        show = layout_of(run)
        weights = run.weights if iteration is None else decoded_with(run, iteration)
    point = Point(source, "dense", show, run.weights)
    return point.with_weights(weights, source)


def _of_files(source: str, directory: Path, iteration: int | None, files: list[Point]) -> Point:
    """Weights in a working directory of mert-moses.pl."""
    if iteration is None:
        path = Workspace(directory, 0).tuned_config
        if not path.is_file():
            raise DataError(
                f"{directory} has no moses.ini yet: name an iteration, {directory}:1 to "
                f"{directory}:{len(files)}"
            )
        return _of_file(source, read_weights(path))
    if not 1 <= iteration <= len(files):
        raise DataError(f"there is no run{iteration}.dense in {directory}")
    return replace(files[iteration - 1], source=source)


def has_store(directory: Path) -> bool:
    """Whether a store is there, or in it; what mert-moses.pl leaves has none."""
    try:
        find_store(directory)
    except DataError:
        return False
    return True


def _groups_of_columns(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Groups out of ``LM0_0 TM0_0 TM0_1``; none if names are not like this."""
    found = [_COLUMN.fullmatch(name) for name in names]
    if not all(found):
        return ()
    owners = groupby(match[1] for match in found if match is not None)
    return tuple((name, sum(1 for _ in columns)) for name, columns in owners)
