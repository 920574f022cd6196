"""Recognize n-best lists of earlier iterations that answer a later request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.errors import UsageError
from mosesplug.store import NBestStore
from mosesplug.store.views import IterationList


def reject_repeated_lists(
    blocks: Iterable[NBestList], store: NBestStore, what: str
) -> Iterator[NBestList]:
    """Return all blocks, unless they equal those of an earlier iteration.

    Blocks are read and kept in memory until one differs from each iteration, which is usually the
    first: with other weights, the model scores differ.

    Args:
        blocks: checked lists of the next iteration, with the features in the store's order.

    Raises:
        UsageError: they equal the lists of an iteration.
    """
    candidates = [record.iteration for record in store.iterations()]
    read: list[NBestList] = []
    iterator = iter(blocks)
    while candidates and (block := next(iterator, None)) is not None:
        read.append(block)
        candidates = [iteration for iteration in candidates if _holds(store, iteration, block)]
    if candidates and read:
        due = len(store.iterations()) + 1
        raise UsageError(
            f"{what} has the lists of iteration {candidates[-1]}, which are stored already, but"
            f" the open request is for iteration {due}. Tell the lists that were decoded with its"
            f" weights; if they are the same, name the iteration ({{--iteration}} {due})"
        )
    return itertools.chain(read, iterator)


def _holds(store: NBestStore, iteration: int, block: NBestList) -> bool:
    """Return whether an iteration has the same lists of the sentences of a block."""
    numbers = block.sentence_ids.tolist()
    names = () if store.space is None else store.space.sparse
    return all(
        _is_same(store.iteration_list(iteration, numbers[begin]), names, block, begin, end)
        for begin, end in itertools.pairwise(block.list_offsets.tolist())
    )


def _is_same(
    stored: IterationList, names: tuple[str, ...], block: NBestList, begin: int, end: int
) -> bool:
    """Return whether a stored list equals rows of a block."""
    rows = slice(begin, end)
    if len(stored.texts) != end - begin or not (
        np.array_equal(stored.scores, block.scores[rows], equal_nan=True)
        and np.array_equal(stored.dense, block.dense[rows].astype(np.float32))
    ):
        return False
    if any(text != block.text(row) for row, text in enumerate(stored.texts, start=begin)):
        return False
    own = [_name_values(block, block.sparse_names, row) for row in range(begin, end)]
    if stored.sparse is None:
        return not any(own)
    kept = stored.sparse
    return own == [
        {
            names[column]: value
            for column, value in zip(
                kept.indices[kept.indptr[row] : kept.indptr[row + 1]].tolist(),
                kept.data[kept.indptr[row] : kept.indptr[row + 1]].tolist(),
                strict=True,
            )
        }
        for row in range(len(stored.texts))
    ]


def _name_values(block: NBestList, names: tuple[str, ...], row: int) -> dict[str, float]:
    entries = slice(block.sparse_indptr[row], block.sparse_indptr[row + 1])
    values = block.sparse_data[entries].astype(np.float32)
    columns = block.sparse_indices[entries].tolist()
    return {names[column]: value for column, value in zip(columns, values.tolist(), strict=True)}
