"""From the search graphs of one decoding to the store, and to the n-best list of the iteration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from formats.errors import FormatError
from formats.graphs.hypergraph_directory import hypergraph_files
from formats.graphs.hypergraph_reader import HypergraphFile
from formats.references import read_references
from formats.text import atomic_write
from mosesplug.errors import DataError, StoreError
from mosesplug.kernels import load_compiler
from mosesplug.settings.configuration import Configuration, Graphs
from mosesplug.store import NBestStore
from mosesplug.tuning.decoding.decode import Lists
from mosesplug.tuning.events import GraphsRead, Watcher
from mosesplug.tuning.graphs.features import configured_features
from mosesplug.tuning.graphs.reading import GraphFiles
from mosesplug.tuning.parallel.ordered_map import start_in_order
from mosesplug.tuning.weights import Weights

__all__ = ["sentence_references", "store_graphs"]


def store_graphs(
    configuration: Configuration,
    config: Path,
    store: NBestStore,
    iteration: int,
    weights: Weights,
    lists: Lists,
    *,
    groups: tuple[tuple[str, int], ...],
    n_sentences: int,
    watch: Watcher,
) -> None:
    """Put the graphs into the store, and their best translations into ``lists.path``.

    Args:
        configuration: of the run.
        config: the ``moses.ini`` that was decoded with.
        store: of the run.
        iteration: the next one of the store.
        weights: that was decoded with.
        lists: of the iteration, with the directory of the graphs.
        groups: dense groups that the decoder announced.
        n_sentences: sentences of the input.
        watch: told of progress.

    Raises:
        DecoderError: the decoder did not write what was asked for.
        StoreError: the store does not take it.
    """
    try:
        files = hypergraph_files(lists.graphs or "")
    except FormatError as error:
        raise lists.failure(f"the decoder wrote no search graphs: {error}") from error
    if (last := max(files)) >= n_sentences:
        raise lists.failure(
            f"there is a search graph of sentence {last}, but the input has only {n_sentences},"
            " counted from 0"
        )
    graphs = configuration.decoding.graphs or Graphs()
    references = sentence_references(configuration, n_sentences)
    work = GraphFiles(
        sentences=tuple(files),
        paths=tuple(files.values()),
        groups=groups,
        fixed=configured_features(config).fixed,
        weights=weights,
        nbest=configuration.decoding.nbest,
        edges=[graphs.edges * max(1, min(map(len, references[number]))) for number in files],
    )
    load_compiler()  # once for all processes, which are forked
    processes = min(configuration.optimising.threads, os.cpu_count() or 1)
    try:
        with (
            start_in_order(work, len(files), processes) as taken,
            atomic_write(lists.path, compress="gz") as written,
        ):

            def numbered() -> Iterator[tuple[int, HypergraphFile]]:
                pairs = zip(files, taken, strict=True)
                for done, (sentence, found) in enumerate(pairs, start=1):
                    watch(GraphsRead(iteration, done, len(files)))
                    written.write(found.lines)
                    yield sentence, found.graph

            store.add_graphs(iteration, numbered(), groups=groups, fixed=tuple(work.fixed))
    except StoreError:
        raise
    except (FormatError, DataError) as error:
        raise lists.failure(
            f"the decoder wrote search graphs that cannot be used: {error}"
        ) from error


def sentence_references(configuration: Configuration, n_sentences: int) -> list[list[list[bytes]]]:
    """Words of the references of each sentence, one list a reference."""
    lines = read_references(configuration.references, n_sentences, input_path=configuration.input)
    return [
        [[word for word in line.split(b" ") if word] for line in sentence]
        for sentence in zip(*lines, strict=True)
    ]
