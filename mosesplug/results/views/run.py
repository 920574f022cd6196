"""Open a run for inspection: its store, its metric, and its last weights."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.metrics.error_rates import label_metric
from mosesplug.settings.sentences.weights import describe_weights
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import REPORTED, keeps_lists, read_result, read_start
from mosesplug.tuning.workdir.stores import find_run, open_run_store
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.tuning_set import TuningSet

if TYPE_CHECKING:
    from formats.weights.any_format import WeightFile

    # Importing metrics loads Numba, which showing one sentence does not need.
    from mosesplug.metrics.protocol import Metric


@dataclass(frozen=True)
class StoredRun:
    """A run that is open for reading.

    Attributes:
        records: the finished iterations, at least one.
        names: names of the dense columns, printable.
        weights: the run's result, or the latest weights that are known.
        weights_origin: what these weights are, in words.
        summary: that of the finished run; None before its end, and for a copy of a store.
    """

    path: Path
    store: NBestStore
    records: tuple[IterationRecord, ...]
    names: tuple[str, ...]
    weights: Weights
    weights_origin: str
    summary: StoredSummary | None

    @property
    def signature(self) -> str:
        """Signature of the metric that the run optimizes."""
        return self.records[-1].signature

    @property
    def metric_name(self) -> str:
        """Name of the metric that the run optimizes."""
        return self.signature.partition("|")[0]

    @property
    def report_signatures(self) -> dict[str, str]:
        """The signature of each metric that the run reports, by its name."""
        stored = self.store.fingerprints.items()
        return {
            name.removeprefix(REPORTED): signature
            for name, signature in stored
            if name.startswith(REPORTED)
        }

    @property
    def score_label(self) -> str:
        """Label of corpus scores, as ``1 - WER`` of an error rate."""
        return label_metric(self.metric_name, self.signature)

    @property
    def sentence_score_label(self) -> str:
        """Label of sentence scores, as ``BLEU+1``."""
        return label_metric(self.metric.sentence_metric, self.signature)

    @cached_property
    def metric(self) -> Metric:
        """The metric that the run optimizes."""
        from mosesplug.metrics.registry import metric_of_signature

        return metric_of_signature(self.signature)

    @property
    def space(self) -> FeatureSpace:
        """The columns of the lists; empty if the lists are in the stores of shards."""
        return self.store.space or FeatureSpace(())

    @property
    def n_sentences(self) -> int:
        """Number of source sentences."""
        return self.records[-1].n_sentences

    @property
    def where_lists_are(self) -> str:
        """Location of the lists if this store has none, as part of a message."""
        if keeps_lists(self.records[-1]):
            return "in the stores of its shards"
        return "not kept ({--no-keep-lists})"

    @property
    def has_lists(self) -> bool:
        """Whether this store holds hypotheses."""
        return any(record.n_lists for record in self.records)

    @cached_property
    def merged(self) -> TuningSet:
        """The merged lists of these iterations, which stay in memory.

        Raises:
            StoreError: the store cannot be read.
        """
        return self.store.tuning_set(record.iteration for record in self.records)

    @property
    def weighting(self) -> str:
        """Its sentence weights, and which scores count them; empty without any."""
        if (weights := self.store.sentence_weights) is not None:
            return (
                f"{describe_weights(weights)}. All corpus scores of its lists are weighted; scores"
                " of sentences and of held-out text are not"
            )
        if "sentence weights" in read_start(self.records[-1]).settings:
            return (
                "sentence weights that its store does not hold. The scores that the run recorded"
                " are weighted; other scores of its lists, as of oracles, are not"
            )
        return ""

    @property
    def vector(self) -> NDArray[np.float64]:
        """The weights divided by the L1 norm of the dense ones, float64 ``[len(space)]``."""
        return self.weights.normalize().vector(self.space)

    def name_sentence(self, number: int) -> str:
        """Return the id of a sentence as messages show it: its number, if ids are numbers."""
        ids = self.store.sentence_ids
        return mark_invalid_utf8(ids[number]) if number < len(ids) else str(number)

    def find_sentence(self, word: str) -> int:
        """Return the number of a sentence, by its id or its number.

        Raises:
            UsageError: there is no such sentence.
        """
        ids = self.store.sentence_ids
        if word in ids:
            return ids.index(word)
        if word.isascii() and word.isdigit():
            return int(word)
        known = f"the ids are {', '.join(ids[:3])}, ..." if ids else "sentences count from 0"
        raise UsageError(f"there is no sentence {word!r} in {self.path}: {known}")

    def record(self, iteration: int) -> IterationRecord:
        """Return the record of an iteration, counted from 1.

        Raises:
            DataError: there is no such iteration.
        """
        if not 1 <= iteration <= len(self.records):
            raise DataError(
                f"there is no iteration {iteration} in {self.path}, which has {len(self.records)}"
            )
        return self.records[iteration - 1]

    def decoding_weights(self, iteration: int) -> Weights:
        """Return the weights that an iteration was decoded with, not normalized.

        Raises:
            DataError: there is no such iteration.
        """
        return read_start(self.record(iteration)).weights

    @overload
    def arrange_weights(self, file: WeightFile) -> Weights: ...

    @overload
    def arrange_weights(self, file: WeightFile | None) -> Weights | None: ...

    def arrange_weights(self, file: WeightFile | None) -> Weights | None:
        """Return weights of the run's features; None without a file.

        Raises:
            FormatError: the file does not hold weights of these features.
            UsageError: the weights are of scores divided by a length, or of features that were
                added to lists.
        """
        if file is None:
            return None
        from mosesplug.learning.lengths import require_undivided
        from mosesplug.learning.sparse_coverage import warn_of_sparse
        from mosesplug.learning.weights import arrange_weights

        require_undivided(file, "a run")
        arranged = arrange_weights(file, self.space, str(self.path))
        warn_of_sparse(file, self.space.sparse, str(self.path))
        return Weights.of_vector(self.space, arranged.weights)


def choose_run(path: Path) -> Path:
    """Return the directory of a single run; note which of several it is.

    Raises:
        UsageError: the directory holds several runs, and no single one is the result.
    """
    run = find_run(path)
    if run != path:
        logging.getLogger(__name__).warning(
            "note: %s holds several runs: this is %s, whose weights are the result", path, run
        )
    return run


@contextmanager
def open_run(
    path: Path, *, with_lists: bool = False, opened: NBestStore | None = None
) -> Iterator[StoredRun]:
    """Open a run for reading.

    Args:
        path: the store, or the working directory that holds it. Of several runs, that whose weights
            are the result is opened.
        opened: the same store, if this process has it open: it is used, and stays open.

    Raises:
        StoreError: there is no store, or it cannot be read.
        UsageError: the directory holds several runs, and no single one is the result.
        DataError: it has no finished iteration, or no hypotheses, or ``summary.json`` beside it is
            damaged.
    """
    with open_run_store(choose_run(path), with_lists=with_lists, opened=opened) as (place, store):
        records = store.iterations()
        summary = _find_summary(place)
        names, weights, origin = _read_result(records, place, summary)
        if store.space is not None:
            names = store.space.names[: store.space.n_dense]
        names = tuple(map(mark_invalid_utf8, names))
        yield StoredRun(place, store, records, names, weights, origin, summary)


def _find_summary(store: Path) -> StoredSummary | None:
    workspace = Workspace(store.parent, 0)
    # A copy of a store may lie beside the summary of another run.
    if workspace.store != store or not workspace.summary.is_file():
        return None
    with _blame_summary(workspace.summary):
        return StoredSummary.read(workspace.summary)


def _read_result(
    records: tuple[IterationRecord, ...], store: Path, summary: StoredSummary | None
) -> tuple[tuple[str, ...], Weights, str]:
    """Return dense names, the result or else the latest weights, and their origin."""
    last = records[-1]
    decoded = read_start(last).weights
    if summary is not None:
        workspace = Workspace(store.parent, 0)
        with _blame_summary(summary.path):
            names, weights = summary.weights(len(decoded.dense))
        written = (path for path in workspace.results if path.is_file())
        file = next(written, workspace.tuned_config)
        return names, weights, f"the result, those of {file.name}"
    names = tuple(f"feature {column}" for column in range(len(decoded.dense)))
    if last.result is not None:
        return names, read_result(last).weights, f"those found in iteration {last.iteration}"
    return names, decoded, f"those that iteration {last.iteration} was decoded with"


@contextmanager
def _blame_summary(path: Path) -> Iterator[None]:
    """Say what to do about a damaged ``summary.json``."""
    try:
        yield
    except DataError as error:
        raise DataError(
            f"{path} is not the summary of this run: remove it to use the last iteration's weights"
        ) from error
