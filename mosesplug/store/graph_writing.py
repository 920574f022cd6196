"""Store search graphs before the lists of their iteration, in pieces.

A piece has a few megabytes. Graphs are large, so each transaction writes a few of them. They are
ignored until the last transaction records their number, and invisible until their iteration is
committed.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from formats.errors import FormatError
from formats.graphs.hypergraph import GraphColumns, HypergraphFile, infer_groups
from mosesplug.errors import StoreError, StoreMismatch
from mosesplug.features import spelled_groups
from mosesplug.store import writing
from mosesplug.store.checksums import keep_checksums, put_checksums
from mosesplug.store.encoding import encode_value
from mosesplug.store.files.environment import Environment
from mosesplug.store.graph_records import encode_graph
from mosesplug.store.state import (
    GRAPHS,
    StoreState,
    iteration_key,
    kbest_key,
    put_meta,
    put_sorted,
)
from mosesplug.store.stored import MOST_SENTENCES
from mosesplug.store.sums import OWN
from mosesplug.store.views import GraphReport

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
    _check(environment, state, iteration, groups)
    environment.write(lambda transaction: _begin(transaction, environment, state, iteration))
    encoder = _Encoder(environment, state, iteration, state.groups or groups, fixed)
    for records in _batches(encoder.records(graphs)):
        environment.write(partial(_put, environment=environment, records=records))
    environment.write(lambda transaction: _end(transaction, environment, state, encoder))
    return GraphReport(
        iteration=iteration,
        sentences=len(encoder.seen),
        nodes=encoder.nodes,
        edges=encoder.edges,
        stored_bytes=encoder.stored_bytes,
    )


def _check(
    environment: Environment, state: StoreState, iteration: int, groups: Groups | None
) -> None:
    path = environment.path
    if not environment.writable:
        raise StoreError(f"the n-best store at {path} is open read-only")
    writing.reject_open_iteration(
        environment, state, f"add search graphs to iteration {iteration} of"
    )
    if iteration != len(state.iterations) + 1:
        raise StoreError(
            f"search graphs of iteration {iteration} cannot be added to the n-best store at "
            f"{path}: the next one is {len(state.iterations) + 1}"
        )
    if state.groups is not None and groups not in (None, state.groups):
        raise StoreMismatch(
            f"the features are {spelled_groups(groups)}, but the n-best store at "
            f"{path} has {spelled_groups(state.groups)}. Use a separate store for "
            "graphs of another configuration"
        )


@dataclass
class _Encoder:
    """Encodes graphs as records, and counts them.

    Attributes:
        groups: dense groups, or None before the first feature.
        fixed: features that are not tuned and in no group.
        columns: the columns of the features.
        seen: sentences with a graph.
        nodes, edges, stored_bytes: sums over all graphs.
        checksums: checksums of the records by sentence, stored with the last record: an iteration
            cannot consist of checksums only.
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
                f"{spelled_groups(self.groups)}. Use a separate "
                "store for graphs of another configuration"
            ) from None

    def _check_sentence(self, sentence: int, file: HypergraphFile) -> None:
        n_sentences = self.state.n_sentences if self.state.iterations else MOST_SENTENCES
        if not 0 <= sentence < n_sentences:
            raise FormatError(
                f"sentence {sentence} does not exist: the input has {n_sentences}"
                + " at most" * (not self.state.iterations),
                path=file.path,
                remedy="Use search graphs of this input",
            )
        if sentence in self.seen:
            raise FormatError(
                f"sentence {sentence} already has a search graph",
                path=file.path,
                remedy="Give one graph per sentence",
            )


def _batches(records: Iterable[tuple[bytes, bytes]]) -> Iterator[dict[bytes, bytes]]:
    """Yield the records of each transaction."""
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
    """Remove the graphs of an interrupted run.

    Sets the schema before the first graph, so that versions without graphs reject the store.
    """
    put_meta(transaction, environment, graphs=True)
    writing.delete_iteration(transaction, environment, iteration, len(state.kinds))


def _end(transaction: Any, environment: Environment, state: StoreState, encoder: _Encoder) -> None:
    """Record that the graphs are complete."""
    iteration, sparse = encoder.iteration, list(encoder.columns.sparse)
    record = {
        "groups": encoder.groups,
        "n_graphs": len(encoder.seen),
        "last_sentence": max(encoder.seen, default=-1),
    }
    values = {iteration_key(iteration, GRAPHS): encode_value(record)}
    put_sorted(transaction, environment["iterations"], values)
    put_checksums(transaction, environment, iteration, OWN, values)
    writing.put_names(transaction, environment, iteration, len(state.sparse), sparse)
    keep_checksums(transaction, environment, iteration, {("forest", 0): encoder.checksums})
