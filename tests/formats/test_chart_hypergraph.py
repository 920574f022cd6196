"""Hypergraphs of Moses' chart decoder: edges with any number of tails, anywhere among words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.forest.viterbi import viterbi
from mosesplug.hypergraph import Hypergraph
from tests.formats.derivations import derivations, scored

FIRST = "# target ||| features ||| source-covered\n"
GRAPH = """7 10
# node 0
1
<s>  ||| TM0_1=0.000 TM0_2=0.000 LM0=0.000  ||| 1
# node 1
2
the  ||| TM0_1=-0.250 TM0_2=1.000 LM0=-1.000  ||| 1
that  ||| TM0_1=-1.500 TM0_2=1.000 LM0=-2.000  ||| 1
# node 2
1
house  ||| TM0_1=-0.500 TM0_2=1.000 LM0=-1.500  ||| 1
# node 3
2
[2] of [1]  ||| TM0_1=-2.000 TM0_2=1.000 LM0=-0.750  ||| 2
the house [1]  ||| TM0_1=-3.000 TM0_2=1.000 LM0=-0.125  ||| 2
# node 4
1
[0] [1]  ||| TM0_1=0.000 TM0_2=0.000 LM0=-0.250  ||| 2
# node 5
2
[4] [2]  ||| TM0_1=0.000 TM0_2=0.000 LM0=0.500  ||| 3
[0] [3]  ||| TM0_1=0.000 TM0_2=0.000 LM0=-0.500  ||| 3
# node 6
1
[5] </s>  ||| TM0_1=0.000 TM0_2=0.000 LM0=-0.125  ||| 4
"""
EXPECTED = {
    # TM0_1, TM0_2, LM0
    "the house": (-0.25 - 0.5, 2.0, -1.0 - 1.5 - 0.25 + 0.5 - 0.125),
    "that house": (-1.5 - 0.5, 2.0, -2.0 - 1.5 - 0.25 + 0.5 - 0.125),
    "house of the": (-0.5 - 0.25 - 2.0, 3.0, -1.5 - 1.0 - 0.75 - 0.5 - 0.125),
    "house of that": (-0.5 - 1.5 - 2.0, 3.0, -1.5 - 2.0 - 0.75 - 0.5 - 0.125),
    "the house the": (-0.25 - 3.0, 2.0, -1.0 - 0.125 - 0.5 - 0.125),
    "the house that": (-1.5 - 3.0, 2.0, -2.0 - 0.125 - 0.5 - 0.125),
}
NAMES = ("TM0_1", "TM0_2", "LM0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "0"
    path.write_text(FIRST + GRAPH)
    return path


def test_all_derivations(path: Path) -> None:
    expected = {
        text: tuple(sorted(zip(NAMES, values, strict=True))) for text, values in EXPECTED.items()
    }
    assert dict(derivations(read_hypergraph(path))) == expected
    assert len(derivations(read_hypergraph(path))) == len(expected)


def test_arrays(path: Path) -> None:
    graph = read_hypergraph(path)
    assert graph.tails.tolist() == [2, 1, 1, 0, 1, 4, 2, 0, 3, 5]
    assert graph.tail_offsets.tolist() == [0, 0, 0, 0, 0, 2, 3, 5, 7, 9, 10]
    assert graph.covered.tolist() == [1, 1, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("weights", [(1.0, 0.5, 2.0), (0.25, 1.0, 0.125), (-1.0, 0.0, 0.5)])
def test_the_best_derivation(path: Path, weights: tuple[float, float, float]) -> None:
    graph = read_hypergraph(path)
    arrays = Hypergraph.of_file(graph, {name: column for column, name in enumerate(graph.names)})
    found = viterbi(arrays, arrays.edge_scores(np.array(weights)))
    text = b" ".join(arrays.translation(found.edges)[1:-1]).decode()
    best = max(scored(graph, dict(zip(NAMES, weights, strict=True))), key=lambda pair: pair[1])
    assert (text, found.score) == (best[0], pytest.approx(best[1], abs=1e-4))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("[2] of [1]", "[3] of [1]", 15, "tail node 3 does not precede head node 3"),
        ("[2] of [1]", "[2] of [X]", 15, r"'\[X\]' is not a node"),
        ("[2] of [1]", "[2] of [9]", 15, "node 9 does not exist"),
        ("7 10", "6 10", 25, "text after the last of 6 nodes"),
    ],
)
def test_invalid_charts_are_rejected(
    path: Path, old: str, new: str, line: int, message: str
) -> None:
    """The last is what ``-unpruned-search-graph`` writes: more nodes than it announces."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(FormatError, match=message) as raised:
        read_hypergraph(path)
    assert raised.value.line == line
