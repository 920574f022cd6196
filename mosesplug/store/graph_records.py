"""The record of one sentence's search graph, in the encoding of lists.

The arrays are those of ``Hypergraph``, and its concatenated words::

    edge_offsets     int64    [n_nodes + 1]
    tail_offsets     int64    [n_edges + 1]
    tails            int32
    target_offsets   int64    [n_edges + 1]
    targets          int32
    feature_indptr   int64    [n_edges + 1]
    feature_indices  int32    [nnz]
    feature_values   float32  [nnz]
    covered          int32    [n_nodes]
    word_offsets     int64    [n_words + 1]
    words            uint8                      byte for byte

Features of value 0, a third of those that Moses writes, are omitted. The first number of the header
marks the record as a graph.

The searches do not check bounds, so a graph is validated whenever it is read. This takes about as
long as finding the best derivation: half a millisecond for 30,000 edges. A damaged or malicious
record leads to a single error.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import TAIL, HypergraphFile
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.hypergraph import Hypergraph
from mosesplug.store.encoding import Record, encode_record
from mosesplug.store.files.environment import Environment
from mosesplug.store.files.handles import PinnedTransaction
from mosesplug.store.records import corruption_error
from mosesplug.store.snapshot import PinnedReader
from mosesplug.store.state import StoreState
from mosesplug.store.stored import OpenGraphs, OpenLists

_LAYOUT = 1
_TYPES = ("<i8", "<i8", "<i4", "<i8", "<i4", "<i8", "<i4", "<f4", "<i4", "<i8", "u1")
_SIZES = tuple(np.dtype(kind).itemsize for kind in _TYPES)


def encode_graph(file: HypergraphFile, columns: Mapping[str, int]) -> bytes:
    """Return the bytes of a record.

    Args:
        file: the graph.
        columns: the column of each of its features.
    """
    renumbered = np.array([columns[name] for name in file.names], dtype=np.int32)
    says = file.feature_values != 0
    said_before = np.concatenate([[0], np.cumsum(says)])
    arrays = (
        file.edge_offsets,
        file.tail_offsets,
        file.tails,
        file.target_offsets,
        file.targets,
        said_before[file.feature_indptr],
        renumbered[file.feature_indices[says]],
        file.feature_values[says],
        file.covered,
        np.cumsum([0, *map(len, file.words)]),
        np.frombuffer(b"".join(file.words), np.uint8),
    )
    typed = [
        np.ascontiguousarray(array, dtype) for array, dtype in zip(arrays, _TYPES, strict=True)
    ]
    return encode_record(_LAYOUT, typed)


def decode_graph(buffer: NDArray[np.uint8]) -> Hypergraph:
    """Return the graph of a record.

    Its arrays are read-only views if the record is aligned.

    Raises:
        ValueError: these are not the bytes of such a record.
    """
    record = Record(buffer, _SIZES)
    if record.first != _LAYOUT:
        raise ValueError("its header belongs to another kind of record")
    arrays = [record.array(2 * number, dtype) for number, dtype in enumerate(_TYPES)]
    edges, tail_at, tails, target_at, targets, indptr, indices, values, covered, at, text = arrays
    n_edges = len(tail_at) - 1
    whole = (
        (edges, len(covered), n_edges),
        (tail_at, n_edges, len(tails)),
        (target_at, n_edges, len(targets)),
        (indptr, n_edges, len(values)),
        (at, len(at) - 1, len(text)),
    )
    if not all(
        len(offsets) == n + 1 > 0 and offsets[0] == 0 and offsets[-1] == end
        for offsets, n, end in whole
    ) or len(indices) != len(values):
        raise ValueError("its arrays have inconsistent sizes")
    # Overlapping words would be copied repeatedly.
    if (at[1:] < at[:-1]).any():
        raise ValueError("its arrays have invalid offsets")
    bounds, words = at.tolist(), text.tobytes()
    return Hypergraph(
        edges, tail_at, tails, target_at, targets, indptr, indices, values, covered,
        tuple(words[i:j] for i, j in itertools.pairwise(bounds)),
    )  # fmt: skip


def decode_sound_graph(buffer: NDArray[np.uint8], n_features: int) -> Hypergraph:
    """Decode and check the graph of a record.

    Args:
        buffer: uint8; the bytes of the record.
        n_features: number of columns of the feature space.

    Raises:
        ValueError: the bytes are not such a record, or the graph is invalid.
    """
    graph = decode_graph(buffer)
    if faults := _list_faults(graph, n_features):
        raise ValueError(faults[0])
    return graph


def list_graph_faults(buffer: NDArray[np.uint8], n_features: int) -> list[str]:
    """Return the errors of a graph's record in words; see ``decode_sound_graph``."""
    try:
        graph = decode_graph(buffer)
    except ValueError as error:
        return [f"its search graph cannot be read: {error}"]
    return _list_faults(graph, n_features)


def _list_faults(graph: Hypergraph, n_features: int) -> list[str]:
    offsets = (graph.edge_offsets, graph.tail_offsets, graph.target_offsets, graph.feature_indptr)
    if any((offset[1:] < offset[:-1]).any() for offset in offsets):
        return ["its search graph has invalid offsets"]
    n_edges = np.diff(graph.edge_offsets)
    checks = {
        "its search graph has an edge whose tail does not precede its head": _is_ordered(
            graph, n_edges
        ),
        "an edge of its search graph has tails that do not match its target": _has_matching_tails(
            graph
        ),
        "its search graph has an invalid word": _are_within(graph.targets, TAIL, len(graph.words)),
        "a feature of its search graph has no name": _are_within(
            graph.feature_indices, 0, n_features
        ),
        "a feature of its search graph is not a finite number": bool(
            np.isfinite(graph.feature_values).all()
        ),
        "a node of its search graph has a negative coverage": bool((graph.covered >= 0).all()),
    }
    faults = [fault for fault, is_sound in checks.items() if not is_sound]
    if not faults and not (n_edges.all() or _has_derivation(graph)):
        faults.append("the goal of its search graph has no derivation")
    return faults


def _are_within(values: NDArray[np.int32], low: int, end: int) -> bool:
    return not len(values) or bool(low <= values.min() and values.max() < end)


def _is_ordered(graph: Hypergraph, n_edges: NDArray[np.int64]) -> bool:
    """Return whether every tail precedes the head of its edge."""
    heads = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), n_edges)
    of_tails = np.repeat(heads, np.diff(graph.tail_offsets))
    return bool((graph.tails < of_tails).all()) and _are_within(graph.tails, 0, graph.n_nodes)


def _has_matching_tails(graph: Hypergraph) -> bool:
    """Return whether every target has as many tail symbols as its edge has tails."""
    before = np.zeros(len(graph.targets) + 1, dtype=np.int32)
    np.cumsum(graph.targets == TAIL, out=before[1:], dtype=np.int32)
    return bool((before[graph.target_offsets] == graph.tail_offsets).all())


def _has_derivation(graph: Hypergraph) -> bool:
    """Return whether a derivation ends at the goal; exact if all nodes have edges."""
    bounds, tails = graph.tail_offsets.tolist(), graph.tails.tolist()
    is_built: list[bool] = []
    for first, end in itertools.pairwise(graph.edge_offsets.tolist()):
        is_built.append(
            any(
                all(is_built[tail] for tail in tails[bounds[edge] : bounds[edge + 1]])
                for edge in range(first, end)
            )
        )
    return is_built[-1]


class StoredGraphs(PinnedReader):
    """The search graphs of some iterations.

    Attributes:
        space: the columns of their features.
        n_sentences: number of sentences of the input; before the first list, as far as known.
        iterations: iterations with graphs, ascending.
    """

    what = "these search graphs are"

    def __init__(
        self,
        environment: Environment,
        pinned: PinnedTransaction,
        state: StoreState,
        iterations: tuple[int, ...],
        opened: OpenLists | OpenGraphs | None = None,
    ) -> None:
        super().__init__(environment, pinned)
        space, self.n_sentences = state.space, state.n_sentences
        self.iterations = tuple(i for i in iterations if state.iterations[i - 1].n_graphs)
        if opened is not None and opened.n_graphs:
            space = FeatureSpace(opened.groups or (), opened.sparse)
            self.n_sentences = self.n_sentences or opened.n_sentences
            self.iterations += (opened.iteration,)
        self.space = space or FeatureSpace(())

    def graph(self, iteration: int, sentence: int) -> Hypergraph | None:
        """Return one sentence's graph of one of ``iterations``, or None if there is none.

        Raises:
            StoreError: this object is closed, or the stored graph is damaged.
            DataError: the sentence does not exist.
        """
        self._check()
        if not 0 <= sentence < self.n_sentences:
            raise DataError(
                f"there is no sentence {sentence}: the input has {self.n_sentences} sentences"
            )
        if iteration not in self.iterations:
            return None
        record = self._get("forest", iteration, sentence)
        if record is None:
            return None
        try:
            return decode_sound_graph(record, len(self.space))
        except ValueError as error:
            raise corruption_error(iteration, sentence, str(error), "the search graph") from None

    def of_sentence(self, sentence: int) -> list[Hypergraph]:
        """Return all graphs of a sentence, the oldest first.

        Raises:
            StoreError, DataError: as ``graph``.
        """
        graphs = (self.graph(iteration, sentence) for iteration in self.iterations)
        return [graph for graph in graphs if graph is not None]
