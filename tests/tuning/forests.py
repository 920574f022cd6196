"""Search graphs of the toy system: each says all that its decoder could, and nothing else."""

from __future__ import annotations

import functools
import importlib.util
import operator
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TextIO

from formats.graphs.hypergraph import Edge, hypergraph_names, write_hypergraph
from formats.text import read_lines

ROOT = Path(__file__).parents[2]
TOY_DECODER = ROOT / "tests" / "data" / "toy" / "decoder.py"


@functools.cache
def toy_decoder() -> ModuleType:
    """The toy decoder as a module."""
    spec = importlib.util.spec_from_file_location("toy_decoder", TOY_DECODER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["hypotheses"] = functools.cache(module.hypotheses)  # nobody changes them here
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


GRAPH_PROGRAM = (
    f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    "from tests.tuning.forests import main\nmain()\n"
)


def graph_decoder(path: Path) -> Path:
    """The toy decoder as a program that also writes search graphs, of what its beam of 20 kept."""
    if not path.exists():
        path.write_text(GRAPH_PROGRAM)
        path.chmod(0o755)
    return path


def main(
    arguments: Sequence[str] | None = None,
    directory: str = "",
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> None:
    """Run as the toy decoder does, with ``-output-search-graph-hypergraph true gz DIRECTORY``.

    The arguments are those of the toy decoder's ``main``.
    """
    toy = toy_decoder()
    given = toy.options(sys.argv[1:] if arguments is None else arguments)
    if "output-search-graph-hypergraph" not in given:
        toy.main(arguments, directory, out, err)
        return
    weights = toy.read_config(Path(directory, given["config"][0]))
    for words in given.get("weight-overwrite", []):
        weights.update(toy.parse_weights(words.split()))
    names = hypergraph_names([("UnknownWordPenalty0", 1), *toy.GROUPS])
    vector = [0.0, *(weight for name, _ in toy.GROUPS for weight in weights[name])]
    for number, line in enumerate(read_lines(Path(directory, given["input-file"][0]))):
        begin, edges, end = nodes_of(line.decode())
        edges.sort(key=lambda edge: -sum(map(operator.mul, vector, edge.dense)))
        graphs = Path(directory, given["output-search-graph-hypergraph"][2])
        write_hypergraph(graphs / f"{number}.gz", names, [begin, edges[:20], end])
        best = [word.decode() for word in edges[0].target if isinstance(word, bytes)]
        print(" ".join(best), file=out, flush=True)
