"""What lies in a store: sizes, and whether every record can be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from mosesplug.store.environment import Environment
from mosesplug.store.merge import Reader, assemble, list_scores, select_list, texts_of
from mosesplug.store.state import State, iteration_key, kbest_key, statistics_key

__all__ = ["faults", "stored_bytes"]


def stored_bytes(transaction: Any, environment: Environment, state: State, iteration: int) -> int:
    """Bytes of all records of an iteration: lists, graphs, statistics, and what else is kept."""
    ranges = [
        ("iterations", iteration_key(iteration, 0), iteration_key(iteration + 1, 0)),
        ("kbest", kbest_key(iteration, 0), kbest_key(iteration + 1, 0)),
        ("forest", kbest_key(iteration, 0), kbest_key(iteration + 1, 0)),
    ]
    for kind in range(len(state.kinds)):
        first, end = statistics_key(kind, iteration, 0), statistics_key(kind, iteration + 1, 0)
        ranges.append(("statistics", first, end))
    return sum(
        len(key) + len(value)
        for database, first, end in ranges
        for key, value in _between(transaction, environment[database], first, end)
    )


def _between(
    transaction: Any, database: Any, first: bytes, end: bytes
) -> Iterator[tuple[bytes, Any]]:
    cursor = transaction.cursor(database)
    if not cursor.set_range(first):
        return iter(())
    return takewhile(lambda item: bytes(item[0]) < end, cursor)


def faults(reader: Reader, state: State, iteration: int, sentence: int) -> list[str]:
    """What is wrong with one list and its search graph, in words; nothing if they are sound.

    The record is taken apart, every hypothesis that it refers to is looked up, and features,
    scores and statistics must be numbers, as many as there are hypotheses. So is the graph; its
    nodes stand in topological order.
    """
    try:
        found = _faults(reader, state, iteration, sentence)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        found = [f"it cannot be read: {error}"]
    buffer = reader.graph(iteration, sentence)
    if buffer is not None:
        from mosesplug.store.graph_faults import graph_faults  # Numba comes with it

        found += graph_faults(buffer, len(state.space or ()))
    return found


def _faults(reader: Reader, state: State, iteration: int, sentence: int) -> list[str]:
    record = reader.record(iteration, sentence)
    if record is None:
        return []
    found = []
    selection = select_list(reader, sentence, iteration)
    if selection.n_hyps != record.n_list:
        found.append(f"{record.n_list} hypotheses are announced, {selection.n_hyps} are there")
    texts = texts_of(selection)
    if any(b"\n" in text for text in texts):
        found.append("a hypothesis has a line break")
    space = state.space
    sentences = np.array([sentence])
    for kind in state.kinds:
        if space is None:
            break
        rows = assemble(reader, space, kind, sentences, [selection])
        if not np.isfinite(rows.dense).all():
            found.append("a feature is not a finite number")
        if rows.sparse is not None and not (
            np.isfinite(rows.sparse.data).all() and (rows.sparse.indices < space.n_sparse).all()
        ):
            found.append("a sparse feature is not a finite number, or has no name")
        if not np.isfinite(rows.stats).all():
            found.append(f"statistics of {kind.signature} are not finite numbers")
    scores, homes, home_rows = list_scores(reader, iteration, sentences)
    if np.isinf(scores).any():
        found.append("a model score is infinite")
    if (homes > iteration).any() or (homes < 1).any() or (home_rows < 0).any():
        found.append("it refers to hypotheses of a later iteration")
    return list(dict.fromkeys(found))
