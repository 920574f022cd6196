"""Weights over the iterations of a run, and how its lists use sparse features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.results.views.run import StoredRun
from mosesplug.results.weights.algebra import align
from mosesplug.results.weights.sources import (
    ResolvedWeights,
    arrange_by_group,
    read_iteration_files,
    resolve_weights,
)
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.workspace import Workspace

_SENTENCES = 100


@dataclass(frozen=True)
class WeightHistory:
    """The weights that decoded the iterations; the dense ones have an L1 norm of 1.

    Attributes:
        iterations: the weights by name of each iteration; None if unknown, as of imported lists.
        result: the weights that the run ended with; None if unknown.
    """

    source: str
    origin: str
    iterations: tuple[Mapping[str, float] | None, ...]
    result: Mapping[str, float] | None
    dense: tuple[str, ...]

    def of(self, name: str) -> tuple[float | None, ...]:
        """Return the weights of one feature, then that of the result if there is one."""
        last = () if self.result is None else (self.result,)
        every = (*self.iterations, *last)
        return tuple(None if each is None else each.get(name, 0.0) for each in every)

    @property
    def sparse(self) -> dict[str, float]:
        """The sparse weights of the result, or of the newest iteration."""
        newest = self.iterations[-1] if self.result is None else self.result
        dense = set(self.dense)
        return {name: weight for name, weight in (newest or {}).items() if name not in dense}


@dataclass(frozen=True)
class SparseUse:
    """Numbers of distinct hypotheses in which sparse features are active.

    Attributes:
        counts: int64 ``[n_sparse]``, number of hypotheses whose value is not 0.
        hypotheses: number of distinct hypotheses in all lists.
        sentences: number of sentences whose lists were read.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    hypotheses: int
    sentences: int

    @property
    def shares(self) -> dict[str, float]:
        """The share of the hypotheses in which each feature is active."""
        total = max(1, self.hypotheses)
        return {n: c / total for n, c in zip(self.names, self.counts.tolist(), strict=True)}


def read_run_history(run: StoredRun, source: str) -> WeightHistory:
    """Return the history of a run with a store; ``source`` is the user's name of it."""
    result = ResolvedWeights(source, "dense", arrange_by_group(run), run.weights)

    def by_name(weights: Weights) -> Mapping[str, float] | None:
        if not (any(weights.dense) or any(weights.sparse.values())):
            return None
        return result.with_weights(weights.normalize(), source).by_name

    return WeightHistory(
        source=source,
        origin=run.weights_origin,
        iterations=tuple(by_name(read_start(record).weights) for record in run.records),
        result=by_name(run.weights),
        dense=result.names,
    )


def read_file_history(directory: Path) -> WeightHistory | None:
    """Return the history in a working directory of mert-moses.pl; None without one.

    Raises:
        FormatError: a file cannot be read.
    """
    files = read_iteration_files(directory)
    if not files:
        return None
    origin, tuned = "those of the last iteration", Workspace(directory, 0).tuned_config
    if tuned.is_file():
        origin = "the result, those of moses.ini"
        files.append(resolve_weights(str(tuned)))
    weights = tuple(
        each.with_weights(each.weights.normalize(), each.source).by_name for each in align(files)
    )
    n = len(weights) - tuned.is_file()
    result = weights[-1] if tuned.is_file() else None
    return WeightHistory(str(directory), origin, weights[:n], result, files[0].names)


def count_sparse_use(run: StoredRun) -> Iterator[SparseUse]:
    """Yield counts of hypotheses with each sparse feature, after some sentences."""
    names = run.space.sparse
    counts = np.zeros(len(names), dtype=np.int64)
    hypotheses = 0
    for first in range(0, run.n_sentences, _SENTENCES):
        last = min(first + _SENTENCES, run.n_sentences)
        batch = run.store.batch(np.arange(first, last))
        hypotheses += batch.n_hyps
        if batch.sparse is not None:
            active = batch.sparse.indices[batch.sparse.data != 0.0]
            counts += np.bincount(active, minlength=len(names))
        yield SparseUse(names, counts.copy(), hypotheses, last)
