"""Stored hypotheses as a table that is read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from mosesplug.api.tables.table import Column, ColumnType, NamedValues, Table
from mosesplug.errors import DataError
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.views.hypotheses import (
    HypothesisBatch,
    count_hypotheses,
    read_hypotheses,
    split_sentences,
)
from mosesplug.results.views.run import StoredRun


def tabulate_hypotheses(
    open_run: Callable[[], AbstractContextManager[StoredRun]],
    path: Path,
    iteration: int | None,
    sentences: Sequence[int] | None,
) -> Table:
    """Return stored hypotheses, one a row, sorted by sentence; see ``Run.hypotheses``.

    Args:
        open_run: opens the run with its lists.
        path: the path of its store.
    """
    with open_run() as stored:
        wanted = range(stored.n_sentences) if sentences is None else sorted(set(sentences))
        n_rows = count_hypotheses(stored, wanted, iteration)
        parts = tuple(split_sentences(stored, wanted))
        empty = read_hypotheses(stored, (), None)
        types = {name: kind for name, (kind, _) in _make_columns(stored, empty).items()}
        read = _StoredHypotheses(open_run, path, parts, iteration, len(stored.records), types)
    return Table(types, n_rows, read)


@dataclass(frozen=True)
class _StoredHypotheses:
    """Reads the batches of a table of hypotheses.

    An object and no function, so that the table can be pickled.

    Attributes:
        open_run: opens the run with its lists.
        path: the path of its store.
        parts: the sentences of each batch.
        iteration: as for ``tabulate_hypotheses``.
        n_iterations: number of iterations to read; those that were added since are left out.
        types: the columns.
    """

    open_run: Callable[[], AbstractContextManager[StoredRun]]
    path: Path
    parts: tuple[Sequence[int], ...]
    iteration: int | None
    n_iterations: int
    types: Mapping[str, ColumnType]

    def __call__(self) -> Iterator[Mapping[str, Column]]:
        for part in self.parts:
            with self.open_run() as stored:
                as_before = replace(stored, records=stored.records[: self.n_iterations])
                batch = read_hypotheses(as_before, part, self.iteration)
                columns = _make_columns(as_before, batch)
            if not self.types.keys() <= columns.keys():
                raise DataError(f"{self.path} was changed while it was read: open it again")
            yield {name: columns[name][1] for name in self.types}


def _make_columns(run: StoredRun, batch: HypothesisBatch) -> dict[str, tuple[ColumnType, Column]]:
    """Return the columns of a table of hypotheses.

    Names of dense features end with an underscore and a number, so no other column has their name.
    """
    columns: dict[str, tuple[ColumnType, Column]] = {
        "iteration": ("int64", batch.iterations),
        "sentence": ("int64", batch.sentences),
        "rank": ("int64", batch.ranks),
        "text": ("text", [text.decode("utf-8", "replace") for text in batch.texts]),
        "model_score": ("float64", batch.model_scores),
        "sentence_score": ("float64", score_sentences(run.metric, batch.stats)),
    }
    for name, values in zip(run.space.names, batch.dense.T, strict=False):
        columns[_printable(name)] = ("float32", values)
    if batch.sparse is not None:
        names = [_printable(name) for name in run.space.sparse]
        columns["sparse"] = ("features", NamedValues(names, batch.sparse))
    kind: ColumnType = "int64" if batch.stats.dtype.kind == "i" else "float32"
    for place, values in enumerate(batch.stats.T):
        columns[f"statistic{place}"] = (kind, values)
    return columns


def _printable(name: str) -> str:
    """Escape invalid UTF-8 in the name of a feature, so that names stay distinct."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
