"""Search graphs that decoders wrote into files, taken into a store of the working directory.

Graphs of a tuning set are gigabytes of text. They are read once, and kept as arrays that are
mapped into memory; a later run with the same files takes the store as it is.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph_directory import hypergraph_files
from formats.graphs.hypergraph_features import GraphColumns
from formats.graphs.hypergraph_reader import HypergraphFile
from mosesplug.errors import DataError
from mosesplug.metrics import Metric, Prepared
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.tuning.events import GraphsRead, Note, Watcher
from mosesplug.tuning.graphs.features import ConfiguredFeatures
from mosesplug.tuning.parallel.ordered_map import start_in_order
from mosesplug.tuning.workdir import caches
from mosesplug.tuning.workdir.workspace import remove_tree

__all__ = ["DecodedText", "taken_in"]


@dataclass(frozen=True)
class DecodedText:
    """The text whose search graphs they are.

    Attributes:
        path: of its file.
        sentences: its lines.
        metric: that it is scored with.
        references: its translations, compiled for the metric.
    """

    path: Path
    sentences: Sequence[bytes]
    metric: Metric
    references: Prepared


def taken_in(
    place: Path,
    store: Path,
    features: ConfiguredFeatures,
    text: DecodedText,
    threads: int,
    watch: Watcher,
) -> None:
    """Make a store of graphs, or leave the one that is there if it has these.

    Args:
        place: a directory with a file for each sentence, or one file with all, in any format that
            ``formats.graphs.any_graph`` reads. An empty sentence may lack a graph.
        store: where it goes.
        features: of the configuration, which are those of the graphs.
        text: that was decoded.
        threads: files that are read at once, by a process each.
        watch: told of progress.

    Raises:
        DataError: there are no graphs; or there are some of other sentences than there are, or
            none of one; or their features are not those of the configuration.
        FormatError: a file is no search graph.
    """
    files = _files(place)
    made_from = {
        "graphs": _digest(files.values()),
        "input": caches.content(text.path),
        "features": f"{features.columns}, not tuned {sorted(features.fixed)}",
    }
    if caches.is_fresh(store, made_from):
        return
    caches.forget(store)
    if store.is_dir():
        remove_tree(store)
    watch(Note(f"reading the search graphs in {place}"))
    graphs = _Counted(place, text, features, watch)
    try:
        with (
            _read(place, files, features.core, threads) as read,
            NBestStore.open(store, writable=True) as target,
        ):
            target.require({"input": fingerprint_files([text.path]), "graphs": made_from["graphs"]})
            target.add_graphs(
                1, graphs.of(read), groups=features.columns, fixed=tuple(features.fixed)
            )
            graphs.check()
            target.add_iteration(
                1,
                (),
                metric=text.metric,
                references=text.references,
                n_sentences=len(text.sentences),
                record={},
            )
    except BaseException:
        shutil.rmtree(store, ignore_errors=True)
        raise
    caches.remember(store, made_from)


def _files(place: Path) -> Mapping[int, Path]:
    """The files of a directory by sentence, or the one file as that of sentence 0."""
    if place.is_file():
        return {0: place}
    try:
        return hypergraph_files(place)
    except FormatError as error:
        raise DataError(
            f"there are no search graphs in {place}: it is neither the working directory of a run"
            f" with --forest, nor a directory with 0.gz, 1.gz, ... ({error})"
        ) from error


@contextmanager
def _read(
    place: Path, files: Mapping[int, Path], names: Sequence[str], threads: int
) -> Iterator[Iterator[tuple[int, HypergraphFile]]]:
    """The graphs with their sentences, read by several processes if there are several files."""
    if place.is_file():
        yield read_graphs(place, core_names=names)
        return
    with start_in_order(
        partial(_read_one, tuple(files.values()), names), len(files), threads
    ) as graphs:
        yield zip(files, graphs, strict=True)


def _read_one(paths: Sequence[Path], names: Sequence[str], number: int) -> HypergraphFile:
    return next(read_graphs(paths[number], core_names=names))[1]


class _Counted:
    """What has been seen of the graphs."""

    def __init__(
        self, place: Path, text: DecodedText, features: ConfiguredFeatures, watch: Watcher
    ) -> None:
        self._place, self._text, self._features, self._watch = place, text, features, watch
        self._columns = GraphColumns(features.columns, fixed=tuple(features.fixed))
        self._names: set[str] = set()
        self._seen: set[int] = set()

    def of(
        self, graphs: Iterator[tuple[int, HypergraphFile]]
    ) -> Iterator[tuple[int, HypergraphFile]]:
        """The same graphs; progress is told.

        Raises:
            DataError: there is no such sentence; or a feature without a weight.
        """
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

    def check(self) -> None:
        """See that all sentences have a graph, and every weight of the configuration a feature.

        Raises:
            DataError: it is not so.
        """
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
    """Names, sizes and times of files."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(caches.size_and_time(path).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()
