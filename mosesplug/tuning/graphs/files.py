"""Import a decoder's files of search graphs into a store.

The store is in the working directory. The graphs of a tuning set are gigabytes of text. They are
read once and stored as memory-mapped arrays; a later run with the same files uses the store as it
is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from formats.errors import FormatError
from formats.graphs.hypergraph import GraphColumns, HypergraphFile, list_hypergraph_files
from mosesplug.decoders import caches
from mosesplug.errors import DataError, StoreError
from mosesplug.events import GraphsRead, Note, Watcher
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.store.files.replacement import remove_store
from mosesplug.tuning.graphs.features import ConfiguredFeatures
from mosesplug.tuning.graphs.reading import open_graphs


@dataclass(frozen=True)
class DecodedText:
    """The source sentences that search graphs belong to.

    Attributes:
        metric: that scores their translations.
    """

    path: Path
    sentences: Sequence[bytes]
    metric: Metric
    references: PreparedReferences


def import_graphs(
    place: Path,
    store: Path,
    features: ConfiguredFeatures,
    text: DecodedText,
    threads: int,
    watch: Watcher,
) -> None:
    """Import search graphs into a store, unless it already has them.

    Args:
        place: a directory with one file per sentence, or one file with all graphs, in any format
            that ``formats.graphs.any_graph`` reads. An empty sentence may lack a graph.
        features: the features of the configuration; the graphs must have the same.

    Raises:
        DataError: there are no graphs, or not those of these sentences and features.
    """
    files = _files(place)
    made_from = {
        "graphs": _digest(files.values()),
        "input": caches.describe_content(text.path),
        "features": f"{features.columns}, not tuned {sorted(features.fixed_weights)}",
    }
    if caches.is_fresh(store, made_from):
        return
    caches.forget(store)
    remove_store(store)
    watch(Note(f"reading the search graphs in {place}"))
    graphs = _CheckedGraphs(place, text, features, watch)
    try:
        with (
            open_graphs(place, features.core, threads) as read,
            NBestStore.open(store, writable=True) as target,
        ):
            target.require({"input": fingerprint_files([text.path]), "graphs": made_from["graphs"]})
            target.add_graphs(
                1, graphs.check(read), groups=features.columns, fixed=tuple(features.fixed_weights)
            )
            graphs.check_complete()
            target.add_iteration(
                1,
                (),
                metric=text.metric,
                references=text.references,
                n_sentences=len(text.sentences),
                record={},
            )
    except BaseException:
        with suppress(OSError, StoreError):  # the first error tells more
            remove_store(store)
        raise
    caches.remember(store, made_from)


def _files(place: Path) -> Mapping[int, Path]:
    """Return a directory's files by sentence id; a single file is sentence 0's."""
    if place.is_file():
        return {0: place}
    try:
        return list_hypergraph_files(place)
    except FormatError as error:
        raise DataError(
            f"there are no search graphs in {place}: it is neither the working directory of a run"
            f" with {{--forest}}, nor a directory with 0.gz, 1.gz, ... ({error})"
        ) from error


class _CheckedGraphs:
    """Checks that graphs belong to a text and a configuration."""

    def __init__(
        self, place: Path, text: DecodedText, features: ConfiguredFeatures, watch: Watcher
    ) -> None:
        self._place, self._text, self._features, self._watch = place, text, features, watch
        self._columns = GraphColumns(features.columns, fixed=tuple(features.fixed_weights))
        self._names: set[str] = set()
        self._seen: set[int] = set()

    def check(
        self, graphs: Iterator[tuple[int, HypergraphFile]]
    ) -> Iterator[tuple[int, HypergraphFile]]:
        """Yield the same graphs, and report progress."""
        total = len(self._text.sentences)
        for number, graph in graphs:
            if number >= total:
                raise DataError(
                    f"{self._place} has a search graph of sentence {number}, but {self._text.path}"
                    f" has only {total}, counted from 0: give the text that was decoded"
                )
            self._check_names(graph.names)
            self._seen.add(number)
            self._watch(GraphsRead(0, len(self._seen), total))
            yield number, graph

    def _check_names(self, names: Sequence[str]) -> None:
        self._names.update(names)
        try:
            self._columns.of(names)
        except KeyError as error:
            raise DataError(
                f"{self._features.path} has no weight of {error.args[0]}, which the search graphs"
                f" in {self._place} have: give the configuration that they were made with"
            ) from None

    def check_complete(self) -> None:
        """Check that all sentences have a graph, and that all features occur in one."""
        for number, sentence in enumerate(self._text.sentences):
            if sentence.strip() and number not in self._seen:
                raise DataError(
                    f"{self._place} has no search graph of sentence {number}, counted from 0, of"
                    f" {self._text.path}: give the text that was decoded"
                )
        missing = [name for name in self._features.names if name not in self._names]
        if missing:
            raise DataError(
                f"{self._features.path} has a weight of {missing[0]}, and no search graph in"
                f" {self._place} has that feature: give the configuration that they were made with"
            )


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(
            caches.describe_size_and_time(path).encode("utf-8", "surrogateescape") + b"\n"
        )
    return digest.hexdigest()
