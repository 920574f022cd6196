"""A part of a stored search graph that is small enough to draw, with its envelope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph, envelope
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.report.data import LatticeFacts, LatticeLine
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import decode_text
from mosesplug.store import StoredGraphs

_ALTERNATIVES = 10
"""Number of edges to show beside those of the best translation."""

_ENDS = (b"<s>", b"</s>")

_CANDIDATES = 25
"""Number of sentences to choose from, those with the smallest graphs."""


def describe_lattice(run: StoredRun, sentence: int | None = None) -> LatticeFacts | None:
    """Return the best edges of a sentence's newest graph, and an envelope of it.

    The envelope is along the weight of one feature. The feature is the one whose envelope has the
    most segments; so is the sentence, out of those with the smallest graphs, if none is given.

    Args:
        sentence: the sentence of the graph; None selects one.

    Returns:
        The graph, or None if no graph is stored.

    Raises:
        DataError: ``sentence`` has no graph.
    """
    weights = run.vector
    with run.store.graphs() as graphs:
        candidates = (
            _sort_by_size(graphs)
            if sentence is None
            else [(sentence, _find_newest_graph(graphs, sentence))]
        )
        best: tuple[int, int, int, Hypergraph, int] | None = None
        for number, graph in candidates:
            part = _keep_best(graph, weights.astype(np.float32))
            for column in range(len(run.names)):
                parts = len(_trace_envelope(part, weights, column))
                if best is None or parts > best[0]:
                    best = (parts, number, column, part, graph.n_edges)
        if best is None:
            return None
        _, number, column, part, whole = best
        return _describe(run, number, column, part, whole)


def _keep_best(graph: Hypergraph, weights: NDArray[np.float32]) -> Hypergraph:
    """Return the edges of the best translation, and some alternatives to them."""
    best = prune_to_edges(graph, weights, 1)
    return prune_to_edges(graph, weights, best.n_edges + _ALTERNATIVES)


def _find_newest_graph(graphs: StoredGraphs, sentence: int) -> Hypergraph:
    """Return a sentence's graph of the newest iteration that has one."""
    if not 0 <= sentence < graphs.n_sentences:
        raise DataError(f"there is no sentence {sentence}: the input has {graphs.n_sentences}")
    stored = graphs.of_sentence(sentence)
    if not stored:
        raise DataError(f"sentence {sentence} has no search graph in the store")
    return stored[-1]


def _sort_by_size(graphs: StoredGraphs) -> Iterator[tuple[int, Hypergraph]]:
    """Yield sentences and graphs of the newest iteration with graphs, by size."""
    if not graphs.iterations:
        return
    newest = graphs.iterations[-1]
    sizes = {}
    for sentence in range(graphs.n_sentences):
        graph = graphs.graph(newest, sentence)
        if graph is not None:
            sizes[sentence] = graph.n_edges
    for sentence in sorted(sizes, key=sizes.__getitem__)[:_CANDIDATES]:
        graph = graphs.graph(newest, sentence)
        if graph is not None:
            yield sentence, graph


def _trace_envelope(
    graph: Hypergraph, weights: NDArray[np.float64], column: int
) -> list[LatticeLine]:
    """Return the envelope along one weight, without scores."""
    axis = np.zeros(len(weights))
    axis[column] = 1.0
    lines = envelope(graph, graph.edge_scores(weights), graph.edge_scores(axis))
    cuts = [-np.inf, *(lines.thresholds + weights[column]).tolist(), np.inf]
    return [
        LatticeLine(
            text=_join(graph.translation(lines.derivation(number))),
            intercept=float(lines.intercepts[number]),
            slope=float(lines.slopes[number]),
            start=cuts[number],
            end=cuts[number + 1],
            score=None,
        )
        for number in range(len(lines))
    ]


def _join(words: Iterable[bytes]) -> str:
    return decode_text(b" ".join(word for word in words if word not in _ENDS))


def _describe(
    run: StoredRun, sentence: int, column: int, graph: Hypergraph, whole: int
) -> LatticeFacts:
    merged = run.merged
    start, end = merged.offsets[sentence], merged.offsets[sentence + 1]
    scores = score_sentences(run.metric, merged.stats[start:end]).tolist()
    texts = map(decode_text, run.store.hypotheses(sentence))
    known = dict(zip(texts, scores, strict=True))
    lines = [
        LatticeLine(
            line.text, line.intercept, line.slope, line.start, line.end, known.get(line.text)
        )
        for line in _trace_envelope(graph, run.vector, column)
    ]
    return LatticeFacts(
        sentence=sentence,
        feature=run.names[column],
        weight=float(run.vector[column]),
        edges=_list_edges(graph),
        n_nodes=graph.n_nodes,
        whole=whole,
        lines=tuple(lines),
    )


def _list_edges(graph: Hypergraph) -> tuple[tuple[int, int, str], ...]:
    """Return the edges as ``(from, to, words)``; empty if any has several tails.

    An edge without a tail starts at node 0, the empty hypothesis if the graph has one.
    """
    edges = []
    for node in range(graph.n_nodes):
        for edge in range(int(graph.edge_offsets[node]), int(graph.edge_offsets[node + 1])):
            tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]].tolist()
            if len(tails) > 1:
                return ()
            words = [graph.words[word] for word in graph.target(edge).tolist() if word >= 0]
            if not tails and not any(word for word in words if word not in _ENDS):
                continue  # the empty hypothesis
            edges.append((tails[0] if tails else 0, node, decode_text(b" ".join(words))))
    return tuple(edges)
