"""Search graphs of the toy system: each says all that its decoder could, and nothing else."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from formats.hypergraph import Edge, hypergraph_names, write_hypergraph
from formats.text import read_lines

TOY_DECODER = Path(__file__).parents[1] / "data" / "toy" / "decoder.py"


def toy_decoder() -> ModuleType:
    """The toy decoder as a module."""
    spec = importlib.util.spec_from_file_location("toy_decoder", TOY_DECODER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nodes_of(sentence: str, *, sparse: bool = False) -> list[list[Edge]]:
    """The graph of a sentence: between its two ends, an edge for each of the hypotheses."""
    edges = []
    for text, (features, named) in toy_decoder().hypotheses(sentence).items():
        dense = [0.0, *(value for values in features.values() for value in values)]
        words = tuple(word.encode() for word in text.split())
        others = tuple((name, float(count)) for name, count in named.items()) if sparse else ()
        edges.append(Edge((0, *words), 1, tuple(dense), others))
    return [[Edge((b"<s>",), 0)], edges, [Edge((1, b"</s>"), 1)]]


def write_toy_graphs(
    text: Path, directory: Path, *, sparse: bool = False, wanted: Sequence[int] | None = None
) -> Path:
    """The graphs of all sentences of a text, or of those wanted, as Moses writes them."""
    directory.mkdir()
    names = hypergraph_names([("UnknownWordPenalty0", 1), *toy_decoder().GROUPS])
    for number, line in enumerate(read_lines(text)):
        if wanted is None or number in wanted:
            nodes = nodes_of(line.decode(), sparse=sparse)
            write_hypergraph(directory / f"{number}.gz", names, nodes)
    (directory / "weights").write_text("LM0 1\n")
    return directory
