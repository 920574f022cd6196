"""All that a search graph can say, and a graph of Moses in the words of other formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from formats.graphs.hypergraph import TAIL, HypergraphFile

__all__ = ["as_extended", "as_lattice", "as_moses_lattice", "derivations", "scored"]

Derivation = tuple[str, tuple[tuple[str, float], ...]]


def derivations(graph: HypergraphFile) -> list[Derivation]:
    """Translation and features of every derivation, sorted; features that are 0 left out."""
    goal = len(graph.edge_offsets) - 2
    found = []
    for words, features in _of_node(graph, goal):
        text = " ".join(w.decode() for w in words if w not in (b"<s>", b"</s>"))
        found.append((text, tuple(sorted((n, round(v, 4)) for n, v in features.items() if v))))
    return sorted(found)


def _of_node(
    graph: HypergraphFile, node: int
) -> Iterator[tuple[tuple[bytes, ...], dict[str, float]]]:
    for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
        tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]].tolist()
        part = slice(graph.feature_indptr[edge], graph.feature_indptr[edge + 1])
        columns, values = graph.feature_indices[part], graph.feature_values[part]
        own = {graph.names[c]: float(v) for c, v in zip(columns, values, strict=True)}
        for ways in product(*[list(_of_node(graph, tail)) for tail in tails]):
            rest = iter(ways)
            words: tuple[bytes, ...] = ()
            total = dict(own)
            for word in graph.targets[graph.target_offsets[edge] : graph.target_offsets[edge + 1]]:
                if word != TAIL:
                    words += (graph.words[word],)
                    continue
                below, features = next(rest)
                words += below
                for name, value in features.items():
                    total[name] = total.get(name, 0.0) + value
            yield words, total


def scored(graph: HypergraphFile, weights: Mapping[str, float]) -> list[tuple[str, float]]:
    """Translation and score of every derivation, sorted."""
    return sorted(
        (text, round(sum(weights[name] * value for name, value in features), 4))
        for text, features in derivations(graph)
    )


def _edges(graph: HypergraphFile, node: int) -> Iterator[tuple[int, list[str], list[float]]]:
    """Tail, words and values of the edges of a node of a phrase-based graph."""
    for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
        targets = graph.targets[graph.target_offsets[edge] : graph.target_offsets[edge + 1]]
        assert targets[0] == TAIL
        words = [graph.words[word].decode() for word in targets[1:]]
        part = slice(graph.feature_indptr[edge], graph.feature_indptr[edge + 1])
        assert not len(values := graph.feature_indices[part]) or values.tolist() == [
            *range(len(graph.names))
        ]
        yield int(graph.tails[graph.tail_offsets[edge]]), words, graph.feature_values[part].tolist()


def _last(graph: HypergraphFile) -> set[int]:
    goal = len(graph.edge_offsets) - 2
    return {tail for tail, _, _ in _edges(graph, goal)}


def as_extended(graph: HypergraphFile, sentence: int) -> str:
    """Moses' extended search graph of one of Moses' hypergraphs; winners come first in nodes."""
    goal = len(graph.edge_offsets) - 2
    last = _last(graph)
    lines = [f"{sentence} hyp=0 stack=0 forward=1 fscore=0.000"]
    loser = goal
    for node in range(1, goal):
        own = node
        for tail, words, values in _edges(graph, node):
            recombined = "" if own == node else f" recombined={node}"
            core = ",".join(f"{value:.6f}" for value in values)
            lines.append(
                f"{sentence} hyp={own} stack={graph.covered[node]} back={tail} score=0.000"
                f" transition=0.000{recombined} forward={-1 if node in last else 1} fscore=0.000"
                f' covered=0-0 scores="core=({core}) " out="x|{" ".join(words)}"'
            )
            loser += 1
            own = loser
    return "\n".join([*lines, ""])


def as_lattice(graph: HypergraphFile) -> str:
    """The same as an HTK lattice, with a score ``x1``, ``x2``, ... for each feature."""
    goal = len(graph.edge_offsets) - 2
    n_nodes = goal + 1
    links = []
    for node in range(1, goal + 1):
        for tail, words, values in _edges(graph, node):
            here = tail
            scores = "".join(f" x{k}={v:.6f}" for k, v in enumerate(values, start=1))
            for place, word in enumerate(words):
                there = node if place == len(words) - 1 else n_nodes
                n_nodes += there == n_nodes
                word = "!NULL" if word == "</s>" else word
                links.append(f"J={len(links)} S={here} E={there} W={word}{scores}")
                here, scores = there, ""
    head = f"VERSION=1.0\nUTTERANCE=0\nend={goal}\nN={n_nodes} L={len(links)}\n"
    return head + "".join(link + "\n" for link in links)


def as_moses_lattice(graph: HypergraphFile) -> str:
    """The same as Moses writes it: no recombination, and sums from the beginning."""
    goal = len(graph.edge_offsets) - 2
    last = _last(graph)
    node_of, totals = {0: 0}, {0: [0.0] * len(graph.names)}
    n_nodes = 0
    links: list[str] = []
    ends = set()
    for node in range(1, goal):
        for number, (tail, words, values) in enumerate(_edges(graph, node)):
            total = [a + b for a, b in zip(totals[tail], values, strict=True)]
            for place, word in enumerate(words):
                start = n_nodes if place else node_of[tail]
                n_nodes += 1
                shown = [0.0 if place else value for value in total]
                scores = "".join(f"x{k}={v:.6f} " for k, v in enumerate(shown, start=1))
                links.append(f"J={len(links)} S={start} E={n_nodes} W={word} {scores}")
            if number == 0:
                node_of[node], totals[node] = n_nodes, total
            if node in last:
                ends.add(len(links))
                links.append(f"J={len(links)} S={n_nodes} E=")
    links = [link + str(n_nodes + 1) if at in ends else link for at, link in enumerate(links)]
    comments = "".join(
        f"# {name} {name} 1 of 1\nx{k}scale=0.0\n" for k, name in enumerate(graph.names, start=1)
    )
    return (
        f"UTTERANCE=Sentence_0\nVERSION=1.1\nbase=2.71828182845905\nNODES={n_nodes + 2}\n"
        f"LINKS={len(links)}\n{comments}" + "".join(link + "\n" for link in links)
    )
