"""The record of one sentence's search graph: a small header and raw arrays, as of a list.

The arrays are those of ``Hypergraph``, and its words end to end::

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

Features of value 0, a third of those that Moses writes, are left out. The first number of the
header says that the arrays are these.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph_reader import HypergraphFile
from mosesplug.hypergraph import Hypergraph
from mosesplug.store.records import align, encode_record, read_header

__all__ = ["decode_graph", "encode_graph"]

_LAYOUT = 1
_TYPES = ("<i8", "<i8", "<i4", "<i8", "<i4", "<i8", "<i4", "<f4", "<i4", "<i8", "u1")


def encode_graph(file: HypergraphFile, columns: Mapping[str, int]) -> bytes:
    """Return bytes of a record.

    Args:
        file: the graph.
        columns: the column of every feature that it has.
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
    """Return the graph of a record; its arrays are read-only views where the record is aligned.

    Raises:
        ValueError: these are not the bytes of such a record.
    """
    buffer = align(buffer)
    (layout, *places), begin = read_header(buffer)
    if layout != _LAYOUT or len(places) != 2 * len(_TYPES):
        raise ValueError("its header is that of something else")
    try:
        arrays = [
            np.ndarray((count,), dtype, buffer, begin + at)
            for count, at, dtype in zip(places[::2], places[1::2], _TYPES, strict=True)
        ]
    except (TypeError, OverflowError) as error:
        raise ValueError("its arrays lie outside of it") from error
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
        raise ValueError("its arrays do not fit together")
    # Words that overlap would be copied as often; kernels are made for arrays that are aligned.
    if any(place % 8 for place in places[1::2]) or (at[1:] < at[:-1]).any():
        raise ValueError("its arrays are out of order")
    bounds, words = at.tolist(), text.tobytes()
    return Hypergraph(
        edges, tail_at, tails, target_at, targets, indptr, indices, values, covered,
        tuple(words[i:j] for i, j in itertools.pairwise(bounds)),
    )  # fmt: skip
