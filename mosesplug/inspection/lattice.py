"""A part of a stored search graph that is small enough to be looked at, with its envelope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph, envelope
from mosesplug.forest.pruning import pruned
from mosesplug.inspection.lists import sentence_scores
from mosesplug.inspection.run import Run
from mosesplug.inspection.texts import decode_text
from mosesplug.report.data import LatticeFacts, LatticeLine
from mosesplug.store import StoredGraphs
from mosesplug.tuning_set import TuningSet

__all__ = ["lattice_facts"]

_EDGES = 14
"""Edges that are still readable in a picture."""

_ENDS = (b"<s>", b"</s>")

_LOOKED_AT = 25
"""Sentences among which the clearest picture is sought, those with the smallest graphs first."""


def lattice_facts(run: Run, merged: TuningSet, sentence: int | None = None) -> LatticeFacts | None:
    """The best derivations of one sentence's newest graph, and how they win as a weight changes.

    Of the sentences with the smallest graphs, and of all dense features, those are taken whose
    envelope has the most parts.

    Args:
        run: the run.
        merged: its lists, merged: a translation that is in them has a score.
        sentence: whose graph; None: the clearest.

    Returns:
        None where no graph is stored.

    Raises:
        DataError: ``sentence`` has no graph.
    """
    weights = run.vector
    with run.store.graphs() as graphs:
        candidates = (
            _smallest(graphs) if sentence is None else [(sentence, _newest(graphs, sentence))]
        )
        best: tuple[int, int, int, Hypergraph, int] | None = None
        for number, graph in candidates:
            part = pruned(graph, weights.astype(np.float32), _EDGES)
            for column in range(len(run.names)):
                parts = len(_along(part, weights, column))
                if best is None or parts > best[0]:
                    best = (parts, number, column, part, graph.n_edges)
        if best is None:
            return None
        _, number, column, part, whole = best
        return _facts(run, merged, number, column, part, whole)


def _newest(graphs: StoredGraphs, sentence: int) -> Hypergraph:
    """A sentence's graph of the newest iteration that has one.

    Raises:
        DataError: there is none.
    """
    if not 0 <= sentence < graphs.n_sentences:
        raise DataError(f"there is no sentence {sentence}: the input has {graphs.n_sentences}")
    found = graphs.of_sentence(sentence)
    if not found:
        raise DataError(f"sentence {sentence} has no search graph in the store")
    return found[-1]


def _smallest(graphs: StoredGraphs) -> Iterator[tuple[int, Hypergraph]]:
    """Sentences and graphs of the newest iteration that has any, with the fewest edges first."""
    if not graphs.iterations:
        return
    newest = graphs.iterations[-1]
    sizes = {}
    for sentence in range(graphs.n_sentences):
        graph = graphs.graph(newest, sentence)
        if graph is not None:
            sizes[sentence] = graph.n_edges
    for sentence in sorted(sizes, key=sizes.__getitem__)[:_LOOKED_AT]:
        graph = graphs.graph(newest, sentence)
        if graph is not None:
            yield sentence, graph


def _along(graph: Hypergraph, weights: NDArray[np.float64], column: int) -> list[LatticeLine]:
    """The envelope as one weight changes; scores are not filled in."""
    axis = np.zeros(len(weights))
    axis[column] = 1.0
    found = envelope(graph, graph.edge_scores(weights), graph.edge_scores(axis))
    cuts = [-np.inf, *(found.thresholds + weights[column]).tolist(), np.inf]
    return [
        LatticeLine(
            text=_said(graph.translation(found.derivation(number))),
            intercept=float(found.intercepts[number]),
            slope=float(found.slopes[number]),
            start=cuts[number],
            end=cuts[number + 1],
            score=None,
        )
        for number in range(len(found))
    ]


def _said(words: Iterable[bytes]) -> str:
    """The translation as lists have it, without the marks of its ends."""
    return decode_text(b" ".join(word for word in words if word not in _ENDS))


def _facts(
    run: Run, merged: TuningSet, sentence: int, column: int, graph: Hypergraph, whole: int
) -> LatticeFacts:
    start, end = merged.offsets[sentence], merged.offsets[sentence + 1]
    scores = sentence_scores(run.metric, merged.stats[start:end]).tolist()
    texts = map(decode_text, run.store.hypotheses(sentence))
    known = dict(zip(texts, scores, strict=True))
    lines = [
        LatticeLine(
            line.text, line.intercept, line.slope, line.start, line.end, known.get(line.text)
        )
        for line in _along(graph, run.vector, column)
    ]
    return LatticeFacts(
        sentence=sentence,
        feature=run.names[column],
        weight=float(run.vector[column]),
        edges=_edges(graph),
        n_nodes=graph.n_nodes,
        whole=whole,
        lines=tuple(lines),
    )


def _edges(graph: Hypergraph) -> tuple[tuple[int, int, str], ...]:
    """Edges as ``(from, to, words)``; none where an edge builds on two nodes, as in a forest.

    An edge that builds on nothing begins at the first node: where the graph has a node for the
    empty beginning, that is the one.
    """
    found = []
    for node in range(graph.n_nodes):
        for edge in range(int(graph.edge_offsets[node]), int(graph.edge_offsets[node + 1])):
            tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]].tolist()
            if len(tails) > 1:
                return ()
            words = [graph.words[word] for word in graph.target(edge).tolist() if word >= 0]
            if not tails and not any(word for word in words if word not in _ENDS):
                continue  # the hypothesis that covers nothing, with no translation yet
            found.append((tails[0] if tails else 0, node, decode_text(b" ".join(words))))
    return tuple(found)
