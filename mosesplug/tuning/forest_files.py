"""Search graphs that Moses wrote into files, taken into a store of the working directory.

Graphs of a tuning set are gigabytes of text. They are read once, and kept as arrays that are
mapped into memory; a later run with the same files takes the store as it is.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from formats.hypergraph_reader import HypergraphFile, read_hypergraph
from mosesplug.decoders.parallel import begun
from mosesplug.errors import DataError
from mosesplug.metrics import Metric, Prepared
from mosesplug.store import NBestStore, fingerprint_files
from mosesplug.tuning import caches
from mosesplug.tuning.clock import Clock
from mosesplug.tuning.events import Decoded, Note, Watcher
from mosesplug.tuning.forest_features import ConfiguredFeatures

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
    files: Mapping[int, Path],
    store: Path,
    features: ConfiguredFeatures,
    text: DecodedText,
    threads: int,
    watch: Watcher,
) -> None:
    """Make a store of graphs, or leave the one that is there if it has these.

    Args:
        files: of each sentence that has a graph; an empty sentence may lack one.
        store: where it goes.
        features: of the configuration, which are those of the graphs.
        text: that was decoded.
        threads: files that are read at once, by a process each.
        watch: told of progress.

    Raises:
        DataError: there are graphs of other sentences than there are, or none of one; or a
            feature of the configuration is in no graph.
        StoreMismatch: a graph has a feature that the configuration has not.
        FormatError: a file is no search graph.
    """
    directory = next(iter(files.values())).parent
    _check_sentences(files, text, directory)
    made_from = {
        "graphs": _digest(files),
        "input": caches.content(text.path),
        "features": f"{features.columns}, not tuned {sorted(features.fixed)}",
    }
    if caches.is_fresh(store, made_from):
        return
    caches.forget(store)
    if store.is_dir():
        shutil.rmtree(store)
    watch(Note(f"reading the search graphs of {len(files)} sentences in {directory}"))
    paths = list(files.values())
    seen: set[str] = set()
    with (
        begun(partial(_read, paths), len(paths), threads) as graphs,
        NBestStore.open(store, writable=True) as target,
    ):
        target.require({"input": fingerprint_files([text.path])})
        numbered = zip(files, _watched(graphs, len(paths), seen, watch), strict=True)
        target.add_graphs(1, numbered, groups=features.columns, fixed=tuple(features.fixed))
        _check_features(features, seen, directory)
        target.add_iteration(
            1,
            (),
            metric=text.metric,
            references=text.references,
            n_sentences=len(text.sentences),
            record={},
        )
    caches.remember(store, made_from)


def _read(paths: Sequence[Path], place: int) -> HypergraphFile:
    return read_hypergraph(paths[place])


def _watched(
    graphs: Iterator[HypergraphFile], total: int, seen: set[str], watch: Watcher
) -> Iterator[HypergraphFile]:
    """The same graphs; their features are gathered, and progress is told."""
    clock = Clock()
    for done, graph in enumerate(graphs, start=1):
        seen.update(graph.names)
        watch(Decoded(0, done, total, clock.seconds()))
        yield graph


def _check_sentences(files: Mapping[int, Path], text: DecodedText, directory: Path) -> None:
    last = max(files)
    if last >= len(text.sentences):
        raise DataError(
            f"{directory} has a search graph of sentence {last}, but {text.path} has only"
            f" {len(text.sentences)}, counted from 0: give the text that was decoded"
        )
    for number, sentence in enumerate(text.sentences):
        if sentence.strip() and number not in files:
            raise DataError(
                f"{directory} has no search graph of sentence {number}, counted from 0, of"
                f" {text.path}: give the text that was decoded"
            )


def _check_features(features: ConfiguredFeatures, seen: set[str], directory: Path) -> None:
    """See that every weight of the configuration is that of a feature."""
    for name in features.names:
        if name not in seen:
            raise DataError(
                f"{features.path} has a weight of {name}, and no search graph in {directory} has"
                " that feature: give the configuration that they were made with"
            )


def _digest(files: Mapping[int, Path]) -> str:
    """Names, sizes and times of all files."""
    digest = hashlib.sha256()
    for path in files.values():
        digest.update(caches.size_and_time(path).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()
