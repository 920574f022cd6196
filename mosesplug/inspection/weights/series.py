"""Weights over the iterations of a run, and which sparse features its lists use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.inspection.run import StoredRun
from mosesplug.inspection.weights.algebra import aligned
from mosesplug.inspection.weights.points import Point, files_of_iterations, layout_of, read_point
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import start_of
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["Series", "Use", "of_files", "of_run", "spark", "sparse_use"]

_SENTENCES = 100
_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "12345678"


@dataclass(frozen=True)
class Series:
    """The weights that the iterations were decoded with, dense ones with an L1 norm of 1.

    Attributes:
        source: the run.
        where: what the result is, in words.
        iterations: of each iteration, the first one first, the weights by name; None where nobody
            knows them, as of lists that were imported.
        result: the weights that the run ended with; None where nobody knows.
        dense: names of the dense features.
    """

    source: str
    where: str
    iterations: tuple[Mapping[str, float] | None, ...]
    result: Mapping[str, float] | None
    dense: tuple[str, ...]

    def of(self, name: str) -> tuple[float | None, ...]:
        """The weights of one feature, and the result's if there is one; 0 where it has none."""
        last = () if self.result is None else (self.result,)
        every = (*self.iterations, *last)
        return tuple(None if each is None else each.get(name, 0.0) for each in every)

    @property
    def last(self) -> Mapping[str, float]:
        """The result, or the newest weights."""
        newest = self.iterations[-1] if self.result is None else self.result
        return newest or {}


@dataclass(frozen=True)
class Use:
    """In how many distinct hypotheses sparse features are active.

    Attributes:
        names: of the sparse features of the lists.
        counts: int64 ``[n_sparse]``, hypotheses in which each has a value other than 0.
        hypotheses: distinct ones in all lists.
        sentences: whose lists were read.
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


def of_run(run: StoredRun, source: str) -> Series:
    """The weights of a run of which there is a store; ``source`` is what the call names it."""
    point = Point(source, "dense", layout_of(run), run.weights)

    def by_name(weights: Weights) -> Mapping[str, float] | None:
        if not (any(weights.dense) or any(weights.sparse.values())):
            return None
        return point.with_weights(weights.normalised(), point.source).named

    return Series(
        source=point.source,
        where=run.weights_origin,
        iterations=tuple(by_name(start_of(record).weights) for record in run.records),
        result=by_name(run.weights),
        dense=point.names,
    )


def of_files(directory: Path) -> Series | None:
    """The weights in a working directory of mert-moses.pl; None if there are none.

    Raises:
        FormatError: a file is none of weights.
    """
    points = files_of_iterations(directory)
    if not points:
        return None
    where, tuned = "those of the last iteration", Workspace(directory, 0).tuned_config
    if tuned.is_file():
        where = "the result, those of moses.ini"
        points.append(read_point(str(tuned)))
    weights = tuple(
        point.with_weights(point.weights.normalised(), point.source).named
        for point in aligned(points)
    )
    n = len(weights) - tuned.is_file()
    result = weights[-1] if tuned.is_file() else None
    return Series(str(directory), where, weights[:n], result, points[0].names)


def sparse_use(run: StoredRun) -> Iterator[Use]:
    """The distinct hypotheses of all lists, some sentences at a time, the sum so far each time."""
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
        yield Use(names, counts.copy(), hypotheses, last)


def spark(values: Sequence[float | None], encoding: str) -> str:
    """Values as a row of bars between their least and their greatest.

    Args:
        values: None where there is nothing to show.
        encoding: of the output; where it has no bars, digits from 1 to 8 stand for them.
    """
    try:
        _BLOCKS.encode(encoding)
        bars = _BLOCKS
    except (UnicodeEncodeError, LookupError):
        bars = _PLAIN
    known = [value for value in values if value is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)
    # Of values that are all the same, half the height.
    width, low, top = (most - least, 0.0, len(bars) - 1) if least < most else (1.0, 3.0, 0)
    return "".join(
        " " if v is None else bars[round(low + top * ((v - least) / width))] for v in values
    )
