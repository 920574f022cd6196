"""Search graphs into the database: before the lists of their iteration, a few megabytes at a time.

Graphs are large, so they are not kept until all of them are there: each transaction takes a few.
Until the last one has said how many there are, they are nothing; until their iteration is
committed, nobody sees them.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from formats.errors import FormatError
from formats.graphs.hypergraph import GraphColumns, infer_groups
from formats.graphs.hypergraph_reader import HypergraphFile
from mosesplug.errors import StoreError, StoreMismatch
from mosesplug.features import spelled_groups
from mosesplug.store import writing
from mosesplug.store.checksums import keep_checksums
from mosesplug.store.claims import MOST_SENTENCES
from mosesplug.store.environment import Environment
from mosesplug.store.graph_records import encode_graph
from mosesplug.store.records import encode_value
from mosesplug.store.state import (
    GRAPHS,
    NAMES,
    StoreState,
    iteration_key,
    kbest_key,
    names_key,
    put_meta,
    put_sorted,
)
from mosesplug.store.views import GraphReport

__all__ = ["add_graphs"]

_TRANSACTION_BYTES = 32 << 20

Groups = tuple[tuple[str, int], ...]


def add_graphs(
    environment: Environment,
    state: StoreState,
    iteration: int,
    graphs: Iterable[tuple[int, HypergraphFile]],
    groups: Groups | None,
    fixed: Collection[str],
) -> GraphReport:
    """See ``NBestStore.add_graphs``."""
    began = time.perf_counter()
    _check(environment, state, iteration, groups)
    environment.write(lambda transaction: _begin(transaction, environment, state, iteration))
    encoder = _Encoder(environment, state, iteration, state.groups or groups, fixed)
    seconds_writing = 0.0
    for records in _batches(encoder.records(graphs)):
        started = time.perf_counter()
        environment.write(partial(_put, environment=environment, records=records))
        seconds_writing += time.perf_counter() - started
    environment.write(lambda transaction: _end(transaction, environment, state, encoder))
    return GraphReport(
        iteration=iteration,
        sentences=len(encoder.seen),
        nodes=encoder.nodes,
        edges=encoder.edges,
        stored_bytes=encoder.stored_bytes,
        seconds=time.perf_counter() - began,
        seconds_writing=seconds_writing,
    )


def _check(
    environment: Environment, state: StoreState, iteration: int, groups: Groups | None
) -> None:
    path = environment.path
    if not environment.writable:
        raise StoreError(f"the n-best store at {path} is open read-only")
    writing.refuse_growing(environment, state, f"add search graphs to iteration {iteration} of")
    if iteration != len(state.iterations) + 1:
        raise StoreError(
            f"search graphs of iteration {iteration} cannot be added to the n-best store at "
            f"{path}: the next one is {len(state.iterations) + 1}"
        )
    if state.groups is not None and groups not in (None, state.groups):
        raise StoreMismatch(
            f"the features are {spelled_groups(groups)}, but the n-best store at "
            f"{path} has {spelled_groups(state.groups)}. Graphs of another configuration "
            "need a store of their own"
        )


@dataclass
class _Encoder:
    """Makes records of graphs, and counts.

    Attributes:
        groups: dense groups, or None as long as no graph had a feature.
        fixed: features that are not tuned, which no group has.
        columns: of the features.
        seen: the sentences that have a graph.
        nodes, edges, stored_bytes: of all graphs.
        checksums: of the records, by sentence; stored with the last, as an iteration that has
            checksums alone do not count.
    """

    environment: Environment
    state: StoreState
    iteration: int
    groups: Groups | None
    fixed: Collection[str]
    columns: GraphColumns = field(init=False)
    seen: set[int] = field(default_factory=set)
    nodes: int = 0
    edges: int = 0
    stored_bytes: int = 0
    checksums: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = GraphColumns(self.groups or (), self.state.sparse, self.fixed)

    def records(
        self, graphs: Iterable[tuple[int, HypergraphFile]]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and records."""
        for sentence, file in graphs:
            self._check_sentence(sentence, file)
            if self.groups is None and file.names:
                self.groups = infer_groups(file.names, self.fixed)
                self.columns = GraphColumns(self.groups, (), self.fixed)
            record = encode_graph(file, self._columns(file))
            self.seen.add(sentence)
            self.nodes += len(file.covered)
            self.edges += len(file.tail_offsets) - 1
            self.stored_bytes += len(record)
            self.checksums[sentence] = zlib.crc32(record)
            yield kbest_key(self.iteration, sentence), record

    def _columns(self, file: HypergraphFile) -> dict[str, int]:
        try:
            return self.columns.of(file.names)
        except KeyError as error:
            raise StoreMismatch(
                f"{file.path} has the feature {error.args[0]}, but the dense features of the "
                f"n-best store at {self.environment.path} are "
                f"{spelled_groups(self.groups)}. Graphs of another configuration need "
                "a store of their own"
            ) from None

    def _check_sentence(self, sentence: int, file: HypergraphFile) -> None:
        n_sentences = self.state.n_sentences if self.state.iterations else MOST_SENTENCES
        if not 0 <= sentence < n_sentences:
            raise FormatError(
                f"there is no sentence {sentence}: the input has {n_sentences}"
                + " at most" * (not self.state.iterations),
                path=file.path,
                remedy="The search graph must come from this input",
            )
        if sentence in self.seen:
            raise FormatError(
                f"sentence {sentence} has a search graph already",
                path=file.path,
                remedy="Give one graph a sentence",
            )


def _batches(records: Iterable[tuple[bytes, bytes]]) -> Iterator[dict[bytes, bytes]]:
    """Records for one transaction each."""
    batch: dict[bytes, bytes] = {}
    size = 0
    for key, record in records:
        batch[key] = record
        size += len(record)
        if size >= _TRANSACTION_BYTES:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch


def _put(transaction: Any, environment: Environment, records: Mapping[bytes, bytes]) -> None:
    put_sorted(transaction, environment["forest"], records)


def _begin(transaction: Any, environment: Environment, state: StoreState, iteration: int) -> None:
    """Take away the graphs of a run that was cut off.

    Says the schema before the first graph: what knows none must not take this for a store of its
    own.
    """
    put_meta(transaction, environment, graphs=True)
    writing.delete_iteration(transaction, environment, iteration, len(state.kinds))


def _end(transaction: Any, environment: Environment, state: StoreState, encoder: _Encoder) -> None:
    """Say that all graphs are there."""
    iteration, sparse = encoder.iteration, list(encoder.columns.sparse)
    said = {
        "groups": encoder.groups,
        "n_graphs": len(encoder.seen),
        "last_sentence": max(encoder.seen, default=-1),
    }
    values = {iteration_key(iteration, GRAPHS): encode_value(said)}
    if len(sparse) > len(state.sparse):
        key = names_key(iteration, NAMES, len(state.sparse))
        values[key] = encode_value(sparse[len(state.sparse) :])
    put_sorted(transaction, environment["iterations"], values)
    keep_checksums(transaction, environment, iteration, {("forest", 0): encoder.checksums})
