"""Lists from files into a new store: of any decoder, or of a working directory of mert-moses.pl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from formats.nbest.files import NBestList, read_nbest_blocks
from formats.references import read_references, reference_files
from formats.weights.any_format import WeightFile
from mosesplug.errors import DataError, StoreError
from mosesplug.metrics.protocol import Metric
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.store.views import IngestReport
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import (
    find_nbest_lists,
    read_decoding_weights,
    read_resulting_weights,
)
from mosesplug.tuning.workdir.records import IterationResult, IterationStart
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["Imported", "found_lists", "import_lists"]


@dataclass(frozen=True)
class Imported:
    """One iteration to take over.

    Attributes:
        path: its lists.
        weights: that they were decoded with; None where nobody knows.
        found: the weights that came of it; None where nobody knows.
    """

    path: Path
    weights: Weights | None = None
    found: Weights | None = None


def found_lists(paths: Sequence[Path]) -> list[Imported]:
    """The iterations in some files, or in a working directory, whose weights are read as well.

    Raises:
        DataError: a directory without lists, several directories, or iterations missing.
        FormatError: a file of weights is none.
    """
    if not any(path.is_dir() for path in paths):
        return [Imported(path) for path in paths]
    if len(paths) > 1:
        raise DataError("give one working directory, or n-best files, one an iteration")
    directory = paths[0]
    lists = find_nbest_lists(directory)
    if not lists:
        raise DataError(
            f"{directory} has no lists such as run1.best100.out.gz: name the files themselves"
        )
    missing = sorted(set(range(1, max(lists) + 1)) - set(lists))
    if missing:
        raise DataError(f"{directory} lacks the list of iteration {missing[0]}")
    workspace = Workspace(directory, 0)
    return [
        Imported(
            lists[number],
            _weights(read_decoding_weights(workspace, number)),
            _weights(read_resulting_weights(workspace, number)),
        )
        for number in sorted(lists)
    ]


def _weights(file: WeightFile | None) -> Weights | None:
    return None if file is None else Weights.of_file(file)


def import_lists(
    iterations: Sequence[Imported],
    target: Path,
    *,
    metric: Metric,
    references: Path,
    source: Path | None,
    names: Sequence[str] | None,
    dense: Sequence[str] | None = None,
    threads: int,
) -> Iterator[IngestReport]:
    """Make a store of lists, and say what each iteration brought.

    Weights that nobody knows are 0.

    Args:
        iterations: the lists, the first iteration first.
        target: the new store's directory.
        metric: to score with.
        references: a file, or the prefix of several.
        source: the input, for its fingerprint.
        names: of the columns of lists without labels, one each.
        dense: names of the dense features of lists that name every value.
        threads: of reading and scoring.

    Raises:
        StoreError: something is at the target.
        DataError: weights are not as many as the features, or the references too few.
        FormatError: a list is none.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} is there already: name a new directory")
    prepared = metric.prepare(read_references(references, input_path=source))
    with NBestStore.open(target, writable=True) as store:
        fingerprints = {
            "references": fingerprint_files(reference_files(references)),
            "metric": prepared.signature,
        }
        if source is not None:
            fingerprints["input"] = fingerprint_files([source])
        store.require(fingerprints)
        for number, imported in enumerate(iterations, start=1):
            blocks = read_nbest_blocks(imported.path, names=names, dense=dense)
            # The record is needed with the lists, and their features only they tell.
            first = next(iter(blocks), None)
            if first is None:
                raise DataError(f"{imported.path} holds no hypotheses")
            width = first.dense.shape[1]
            weights = _fitting(imported.weights, width, imported.path)
            start = IterationStart(weights, 0, {"imported from": str(imported.path)}, (), 0.0)
            yield store.add_iteration(
                number,
                _with_first(first, blocks),
                metric=metric,
                references=prepared,
                n_sentences=prepared.n_sentences,
                record=start.as_record(),
                threads=threads,
            )
            if imported.found is not None:
                found = _fitting(imported.found, width, imported.path)
                change = found.largest_change(weights)
                result = IterationResult(found, _score(store, metric, found), change, 0.0)
                store.record_result(number, result.as_record())


def _with_first(first: NBestList, rest: Iterator[NBestList]) -> Iterator[NBestList]:
    yield first
    yield from rest


def _fitting(weights: Weights | None, width: int, path: Path) -> Weights:
    """Weights of as many features as the lists have.

    Raises:
        DataError: there are more or fewer.
    """
    if weights is None:
        return Weights((0.0,) * width)
    if len(weights.dense) != width:
        raise DataError(
            f"{path} has {width} dense features, and {len(weights.dense)} weights stand beside it"
        )
    return weights


def _score(store: NBestStore, metric: Metric, weights: Weights) -> float:
    """Of decoding the merged lists."""
    lists = store.tuning_set()
    return corpus_score(Problem(lists, metric), weights.vector(lists.space))
