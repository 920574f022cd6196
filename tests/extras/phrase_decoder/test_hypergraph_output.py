"""Search graphs as files: every path of the file is a derivation of the sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats.moses.ini import read_moses_ini
from mosesplug.extras.phrase_decoder.model import Model, load_model
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.extras.phrase_decoder.search import Limits, search
from mosesplug.extras.phrase_decoder.search_graph import (
    hypergraph_nodes,
    write_graph,
    write_weights,
)


def load(system: Any, sentence: str) -> Model:
    return load_model(read_features(read_moses_ini(system.ini)), [sentence.encode().split()])


def test_the_paths_of_a_graph_are_the_derivations(random_system: Callable[..., Any]) -> None:
    system = random_system(4)
    model = load(system, "b c a")
    graph = search(model, b"b c a".split(), Limits(stack=0, beam_threshold=0.0))
    nodes = hypergraph_nodes(graph)
    weights = model.features.weights

    def paths(node: int) -> list[tuple[bytes, float]]:
        found = []
        for edge in nodes[node]:
            words = b"".join(b" " + part for part in edge.target if isinstance(part, bytes))
            score = sum(w * v for w, v in zip(weights, edge.dense, strict=False))
            tails = [part for part in edge.target if isinstance(part, int)]
            for before, total in paths(tails[0]) if tails else [(b"", 0.0)]:
                found.append((before + words, total + score))
        return found

    ours = sorted((round(score, 6), words.decode()) for words, score in paths(len(nodes) - 1))
    expected = sorted(
        (round(d.score, 6), " ".join(["", "<s>", *d.words, "</s>"]))
        for d in system.derivations(["b", "c", "a"])
    )
    assert [words for _, words in ours] == [words for _, words in expected]
    assert [score for score, _ in ours] == pytest.approx([score for score, _ in expected], abs=2e-6)


def test_dead_ends_are_omitted(random_system: Callable[..., Any]) -> None:
    model = load(random_system(4), "b c a b c a")
    graph = search(model, b"b c a b c a".split(), Limits(stack=4))
    nodes = hypergraph_nodes(graph)
    assert len(nodes) <= len(graph.node_score) + 1
    used = {part for edges in nodes for e in edges for part in e.target if isinstance(part, int)}
    assert used == set(range(len(nodes) - 1))


def test_files_are_written(random_system: Callable[..., Any], tmp_path: Path) -> None:
    model = load(random_system(6), "a")
    directory = tmp_path / "new" / "graphs"
    write_weights(str(directory), model.features)
    names = [line.split()[0] for line in (directory / "weights").read_text().splitlines()]
    assert names[:5] == ["UnknownWordPenalty0", "WordPenalty0", "PhrasePenalty0", "TM0_1", "TM0_2"]
    write_graph(str(directory), "txt", 7, search(model, [b"a"], Limits()))
    lines = (directory / "7.txt").read_text().splitlines()
    assert lines[0] == "# target ||| features ||| source-covered"
    assert lines[2:5] == ["# node 0", "1", "<s> |||  ||| 0"]
    write_graph(str(directory), "gz", 8, search(model, [], Limits()))
    assert (directory / "8.gz").exists()
