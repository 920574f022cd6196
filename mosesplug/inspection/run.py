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

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.inspection.texts import mark_invalid_utf8
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import result_of, start_of
from mosesplug.tuning.workdir.stores import open_run_store
from mosesplug.tuning.workdir.workspace import Workspace

if TYPE_CHECKING:
    # At run time it would bring Numba, which looking at a sentence does not need.
    from mosesplug.metrics.protocol import Metric

__all__ = ["Run", "opened"]


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
    with open_run_store(path, with_lists=with_lists) as (place, store):
        records = store.iterations()
        names, weights, where = _result(records, place)
        if store.space is not None:
            names = store.space.names[: store.space.n_dense]
        yield Run(place, store, records, tuple(map(mark_invalid_utf8, names)), weights, where)


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
