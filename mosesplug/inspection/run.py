"""A run that is looked at: its store, its metric, and the weights that it ended with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, StoreError
from mosesplug.features import FeatureSpace
from mosesplug.inspection.texts import marked
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.repeats.files import run_directories
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import result_of, start_of
from mosesplug.tuning.workdir.workspace import Workspace

if TYPE_CHECKING:
    # At run time it would bring Numba, which looking at a sentence does not need.
    from mosesplug.metrics.protocol import Metric

__all__ = ["Run", "opened", "store_path"]

_DATABASE = "data.mdb"


@dataclass(frozen=True)
class Run:
    """A run to look at.

    Attributes:
        path: of the store.
        store: open to be read.
        records: the finished iterations, at least one.
        names: of the dense columns, to be shown.
        weights: the result, or the last that there are.
        where: what these weights are, in words.
    """

    path: Path
    store: NBestStore
    records: tuple[IterationRecord, ...]
    names: tuple[str, ...]
    weights: Weights
    where: str

    @property
    def signature(self) -> str:
        """Of the metric that its scores are of."""
        return self.records[-1].signature

    @cached_property
    def metric(self) -> Metric:
        """The metric that its scores are of."""
        from mosesplug.metrics.registry import metric_of_signature

        return metric_of_signature(self.signature)

    @property
    def space(self) -> FeatureSpace:
        """The columns of its lists; without any where the lists lie in the stores of shards."""
        return self.store.space or FeatureSpace(())

    @property
    def n_sentences(self) -> int:
        """Sentences of the input."""
        return self.records[-1].n_sentences

    @property
    def has_lists(self) -> bool:
        """Whether there are hypotheses in this store."""
        return any(record.n_lists for record in self.records)

    @property
    def vector(self) -> NDArray[np.float64]:
        """The weights over the L1 norm of the dense ones, float64 ``[len(space)]``."""
        return self.weights.normalised().vector(self.space)


@contextmanager
def opened(path: Path, *, with_lists: bool = False) -> Iterator[Run]:
    """The run whose store, or whose working directory, lies there.

    Args:
        path: of either.
        with_lists: whether a run without hypotheses in this store will not do.

    Raises:
        StoreError: there is none, or it cannot be read.
        DataError: it has no finished iteration, or no lists; or ``summary.json`` beside it is
            damaged.
    """
    place = store_path(path)
    with NBestStore.open(place) as store:
        records = store.iterations()
        if not records:
            raise DataError(f"the n-best store at {place} has no finished iteration yet")
        names, weights, where = _result(records, place)
        if store.space is not None:
            names = store.space.names[: store.space.n_dense]
        run = Run(place, store, records, tuple(map(marked, names)), weights, where)
        if with_lists and not run.has_lists:
            raise _without_lists(place)
        yield run


def _without_lists(store: Path) -> DataError:
    shards = sorted(store.parent.glob("shard.*"))
    if not shards:
        return DataError(f"the n-best store at {store} has no hypotheses")
    return DataError(
        f"the n-best store at {store} has no lists: they lie in the stores of the run's shards; "
        f"name one of them, as {shards[0]}"
    )


def store_path(path: Path) -> Path:
    """The store that lies there: it itself, or that of a working directory.

    Raises:
        StoreError: there is none.
    """
    inside = Workspace(path, 0).store
    for place in (path, inside):
        if (place / _DATABASE).exists():
            return place.absolute()
    if runs := run_directories(path):
        raise StoreError(
            f"{path} holds {len(runs)} runs, each with a store of its own: name one of them, as "
            f"{', '.join(map(str, runs))}"
        )
    raise StoreError(
        f"there is no n-best store at {path}: name a working directory of mosesplug, or the "
        f"{inside.name} in it"
    )


def _result(
    records: tuple[IterationRecord, ...], store: Path
) -> tuple[tuple[str, ...], Weights, str]:
    """The run's result where it is written down, else the last weights that there are.

    Returns:
        Names of the dense columns, the weights, and what they are.
    """
    last = records[-1]
    decoded = start_of(last).weights
    workspace = Workspace(store.parent, 0)
    summary = workspace.summary
    # A copy of a store may lie beside the summary of another run.
    if workspace.store == store and summary.is_file():
        names, weights = _of_summary(summary, len(decoded.dense))
        return names, weights, "the result, those of moses.ini"
    names = tuple(f"feature {column}" for column in range(len(decoded.dense)))
    if last.result is not None:
        return names, result_of(last).weights, f"those found in iteration {last.iteration}"
    return names, decoded, f"those that iteration {last.iteration} was decoded with"


def _of_summary(path: Path, n_dense: int) -> tuple[tuple[str, ...], Weights]:
    """The dense names and the weights in ``summary.json``, where the dense ones come first.

    Raises:
        DataError: it is not what ``tune`` writes.
    """
    try:
        given = dict(json.loads(path.read_bytes())["result"]["weights"])
        values = [(str(name), float(value)) for name, value in given.items()]
    except (ValueError, KeyError, TypeError):
        values = []
    if len(values) < n_dense:
        raise DataError(
            f"{path} is not the summary of this run: remove it, and the last iteration counts"
        )
    names = tuple(name for name, _ in values[:n_dense])
    return names, Weights(tuple(value for _, value in values[:n_dense]), dict(values[n_dense:]))
