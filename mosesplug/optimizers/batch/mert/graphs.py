"""MERT on search graphs: restarts on lists of the graphs, then a climb on graphs.

A climb on graphs takes a hundred times as long as one on their 100-best lists. So restarts and the
polish search lists. New lists are taken from the graphs at the weights found, and merged with the
earlier ones, as if the graphs were decoded again, until the score in the graphs rises no more. A
climb on the graphs from the best of these weights ends in an optimum of the graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.candidates import LIST_SIZE
from mosesplug.optimizers.problem import Problem, Progress, Solution
from mosesplug.tuning_set import SparseRows, TuningSet

Search = Callable[[Problem, NDArray[np.float64], Progress], Solution]

ROUNDS = 5
"""Maximum number of searches of lists."""


def search_lists_first(
    problem: Problem,
    initial: Weights,
    tolerance: float,
    search: Search,
    climb: Search,
    progress: Progress,
) -> Solution:
    """Search lists of the graphs, then climb on the graphs from the best weights.

    Args:
        problem: with search graphs.
        initial: checked and normalized.
        tolerance: smallest gain of score in the graphs that continues the searches of lists.
        search: searches lists with restarts.
        climb: climbs on graphs from the weights that it is given.
        progress: called with the work done.

    Returns:
        The weights of the climb with their score in the graphs, and the climbs of all searches.
    """
    graphs = problem.candidates
    best, score = initial, graphs.score(initial)
    parts, history = [graphs.best_lists(initial, LIST_SIZE)], []
    listed = replace(problem, source=None, grows=True)
    for number in range(1, ROUNDS + 1):

        def told(done: int, total: int, what: str, number: int = number) -> None:
            progress(done, total, f"{what} on lists of the graphs ({number})")

        solution = search(replace(listed, tuning_set=merge_lists(parts)), best, told)
        history += [{**step, "searched": "lists"} for step in solution.history]
        now = graphs.score(solution.weights)
        gain = now - score
        if gain >= 0.0:  # in a tie, those that suit the lists
            best, score = solution.weights, now
        if gain <= tolerance or number == ROUNDS:
            break
        parts.append(graphs.best_lists(solution.weights, LIST_SIZE))
    progress(0, 1, "climbs on the graphs")
    end = climb(problem, best, progress)
    return replace(end, history=(*history, *end.history))


def merge_lists(parts: Sequence[TuningSet]) -> TuningSet:
    """Return the lists of all parts, sentence by sentence; duplicates are kept.

    Args:
        parts: at least one, of the same sentences and features.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    starts = np.cumsum([0, *(part.n_hyps for part in parts)])
    widths = np.array([np.diff(part.offsets) for part in parts])
    rows = np.concatenate(
        [
            np.arange(part.offsets[sentence], part.offsets[sentence + 1]) + start
            for sentence in range(first.n_sentences)
            for part, start in zip(parts, starts, strict=False)
        ]
    )
    sparse = None
    tails = [part.sparse for part in parts if part.sparse is not None]
    if len(tails) == len(parts):
        sparse = SparseRows.concatenate(tails).take(rows)
    return TuningSet(
        first.space,
        first.sentence_ids,
        np.concatenate([[0], np.cumsum(widths.sum(axis=0))]).astype(np.int64),
        np.concatenate([part.dense for part in parts])[rows],
        sparse,
        np.concatenate([part.stats for part in parts])[rows],
        np.concatenate([part.lengths for part in parts])[rows],
        sentence_weights=first.sentence_weights,
    )
