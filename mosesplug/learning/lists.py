"""Tuning without a decoder: existing n-best lists in, weights out.

The lists go through a store of their own, so that they are read, scored, merged and freed of
duplicates exactly as in a tuning run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from formats.nbest.files import read_nbest_blocks
from formats.references import read_references
from mosesplug.metrics import Metric
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet

__all__ = ["Lists", "Stored", "load_lists", "stored_lists"]

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class Lists:
    """Merged lists, and where they came from.

    Attributes:
        tuning_set: distinct hypotheses with the metric's statistics.
        signature: the metric with its settings and the number of references.
        hypotheses: hypotheses read, duplicates included.
    """

    tuning_set: TuningSet
    signature: str
    hypotheses: int


@dataclass(frozen=True)
class Stored:
    """n-best lists in a store, an iteration each, with their texts.

    Attributes:
        store: open to be read.
        signature: the metric with its settings and the number of references.
        hypotheses: hypotheses read, duplicates included.
    """

    store: NBestStore
    signature: str
    hypotheses: int


def load_lists(
    files: Sequence[Path_],
    references: Path_,
    metric: Metric,
    *,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
) -> Lists:
    """Read, score and merge n-best lists.

    Args:
        files: n-best lists of the same text, one for each iteration or shard.
        references: the reference, or the prefix of several.
        metric: scores the hypotheses.
        names: names of the values of unlabelled lists.
        dense: names of the dense features of lists that name every value.
        threads: for reading and scoring.
        loaded: told how many files are done.

    Raises:
        FormatError: a file that is no n-best list, or no reference.
        DataError: lists that do not go together.
    """
    with stored_lists(
        files, references, metric, names=names, dense=dense, threads=threads, loaded=loaded
    ) as stored:
        return Lists(stored.store.tuning_set(), stored.signature, stored.hypotheses)


@contextmanager
def stored_lists(
    files: Sequence[Path_],
    references: Path_,
    metric: Metric,
    *,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
) -> Iterator[Stored]:
    """Read and score n-best lists into a store that goes with the context.

    Arguments and errors are those of ``load_lists``.
    """
    lines = read_references(references)
    prepared = metric.prepare(lines)
    hypotheses = 0
    with (
        tempfile.TemporaryDirectory(prefix="mosesplug-") as directory,
        NBestStore.open(Path(directory) / "lists", writable=True) as store,
    ):
        for number, file in enumerate(files, start=1):
            report = store.add_iteration(
                number,
                read_nbest_blocks(file, names=names, dense=dense),
                metric=metric,
                references=prepared,
                n_sentences=len(lines[0]),
                record={},
                threads=threads,
            )
            hypotheses += report.hypotheses
            loaded(number)
        yield Stored(store, prepared.signature, hypotheses)
