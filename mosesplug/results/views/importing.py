"""Import n-best lists into a new store.

The lists are files, or those of a working directory of mert-moses.pl.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from formats.nbest.block import NBestList
from formats.pipes import wrap_files
from formats.references import read_references, reference_files
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.errors import DataError
from mosesplug.learning.lists.blocks import find_dense_features, read_list_blocks
from mosesplug.learning.lists.references import check_reference_count, match_references
from mosesplug.metrics.protocol import Metric, PreparedReferences, needs_outside
from mosesplug.metrics.registry import metric as find_metric
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.scratch import ScratchDirectory
from mosesplug.settings.lists import NO_SETTINGS, ListSettings
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.store.files.replacement import make_store
from mosesplug.store.views import IngestReport
from mosesplug.store.writing import AHEAD_BYTES
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import (
    find_nbest_lists,
    read_decoding_weights,
    read_resulting_weights,
)
from mosesplug.tuning.workdir.records import IMPORTED, IterationResult, IterationStart
from mosesplug.tuning.workdir.workspace import Workspace


@dataclass(frozen=True)
class IterationSource:
    """The files of an iteration to import.

    Attributes:
        weights: the weights that they were decoded with; None if unknown.
        learned_weights: the weights that the optimizer found; None if unknown.
    """

    path: StrPath
    weights: Weights | None = None
    learned_weights: Weights | None = None


def find_iterations(paths: Sequence[StrPath]) -> list[IterationSource]:
    """Return the iterations to import: one per file, or a working directory's.

    Raises:
        DataError: a directory holds no lists or lacks an iteration, or there are several.
        FormatError: a file of weights cannot be read.
    """
    if not any(Path(path).is_dir() for path in paths):
        return [IterationSource(path) for path in wrap_files(paths)]
    if len(paths) > 1:
        raise DataError("give one working directory, or one n-best file for each iteration")
    directory = Path(paths[0])
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
        IterationSource(
            lists[number],
            _weights(read_decoding_weights(workspace, number)),
            _weights(read_resulting_weights(workspace, number)),
        )
        for number in sorted(lists)
    ]


def _weights(file: WeightFile | None) -> Weights | None:
    return None if file is None else Weights.of_file(file)


def import_lists(
    iterations: Sequence[IterationSource],
    target: Path,
    *,
    metric: Metric,
    references: Path | None,
    source: Path | None,
    settings: ListSettings = NO_SETTINGS,
    threads: int,
) -> Iterator[IngestReport]:
    """Create a store of n-best lists, and yield a report of each iteration.

    Unknown weights are stored as 0, and sentence ids that are texts beside their numbers. The store
    gets its name when it is complete: nothing is left of it if an error occurs or the iterator is
    closed early.

    Args:
        iterations: the iterations in order.
        metric: the metric; one of scores from outside has their fingerprint.
        references: a file, or the prefix of several; None for a metric that needs none.
        source: the source sentences, for their fingerprint.

    Raises:
        StoreError: the target exists.
        DataError: the number of weights differs from that of the features, or a sentence has no
            reference.
        FormatError: a list cannot be read.
    """
    with make_store(target) as draft:
        paths = [listed.path for listed in iterations]
        dense = find_dense_features(paths, settings)
        what = f"{references}"
        reference_lines = (
            [] if references is None else read_references(references, input_path=source)
        )
        lines, ids = match_references(paths, settings, reference_lines, what)
        prepared = metric.prepare(lines)
        fingerprints = {}
        if references is not None:
            fingerprints["references"] = fingerprint_files(reference_files(references))
        fingerprints["metric"] = prepared.signature
        if needs_outside(metric):
            fingerprints["scores"] = prepared.fingerprint
        if source is not None:
            fingerprints["input"] = fingerprint_files([source])
        with NBestStore.open(draft, writable=True) as store:
            store.require(fingerprints)
            lists = read_list_blocks(paths, settings, dense=dense, ids=ids)
            for number, blocks in enumerate(lists, start=1):
                iteration = iterations[number - 1]
                yield _import_iteration(store, number, iteration, blocks, metric, prepared, threads)
            check_reference_count(ids, lines, what)
            if len(ids):
                store.keep_sentence_ids(ids.names)


@contextmanager
def open_as_store(
    path: Path, references: Path | None, source: Path | None = None, threads: int = 1
) -> Iterator[Path]:
    """Yield a store or directory, or a temporary store of mert-moses.pl's lists.

    Args:
        path: a store, or a working directory of mosesplug or mert-moses.pl.
        references: the references of the tuning set; without them, lists of mert-moses.pl have no
            scores, and ``find_store`` says how to import them.

    Raises:
        StoreError, DataError, FormatError: as for ``import_lists``.
    """
    workspace = Workspace(path, 0)
    is_known = not path.is_dir() or workspace.store.exists() or (path / "data.mdb").exists()
    if is_known or references is None or not find_nbest_lists(path):
        yield path
        return
    with ScratchDirectory() as directory:
        target = Path(directory) / workspace.store.name
        for _ in import_lists(
            find_iterations([path]),
            target,
            metric=find_metric("BLEU"),
            references=references,
            source=source,
            threads=threads,
        ):
            pass
        yield target


def _import_iteration(
    store: NBestStore,
    number: int,
    iteration: IterationSource,
    blocks: Iterator[NBestList],
    metric: Metric,
    references: PreparedReferences,
    threads: int,
) -> IngestReport:
    # The first block tells the number of features, which the record needs.
    first = next(iter(blocks), None)
    if first is None:
        raise DataError(f"{iteration.path} holds no hypotheses")
    width = first.dense.shape[1]
    weights = _check_width(iteration.weights, width, iteration.path)
    start = IterationStart(weights, 0, {IMPORTED: str(iteration.path)}, (), 0.0)
    report = store.add_iteration(
        number,
        itertools.chain([first], blocks),
        metric=metric,
        references=references,
        n_sentences=references.n_sentences if references.n_references else None,
        record=start.as_record(),
        threads=threads,
        ahead_bytes=AHEAD_BYTES,
    )
    if iteration.learned_weights is not None:
        learned = _check_width(iteration.learned_weights, width, iteration.path)
        lists = store.tuning_set()
        score = corpus_score(Problem(lists, metric), learned.vector(lists.space))
        result = IterationResult(learned, score, learned.largest_change(weights), 0.0)
        store.record_result(number, result.as_record())
    return report


def _check_width(weights: Weights | None, width: int, path: StrPath) -> Weights:
    """Return the weights, or zeros if they are unknown."""
    if weights is None:
        return Weights((0.0,) * width)
    if len(weights.dense) != width:
        raise DataError(
            f"{path} has {width} dense features, but the file beside it has {len(weights.dense)} "
            "weights"
        )
    return weights
