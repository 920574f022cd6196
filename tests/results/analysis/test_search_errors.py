"""Search errors and model errors of small graphs and lists, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph, write_hypergraph_weights
from mosesplug.errors import DataError, UsageError
from mosesplug.results.analysis.error_counts import SearchErrors, SentenceErrors
from mosesplug.results.analysis.search_errors import _judge_list, find_search_errors

GRAPHS = {
    "no error": ([("r", -1.0), ("x", -2.0)], []),
    "search error": ([("x", -2.0), ("y", -3.0)], [("r", -1.0), ("x", -2.0)]),
    "pruned": ([("x", -2.0)], [("r", -3.0), ("x", -2.0)]),
    "ranked low": ([("x", -1.0), ("y", -2.0), ("r", -3.0)], []),
    "unreachable": ([("x", -1.0)], [("z", -0.5), ("x", -1.0)]),
}
"""Translations and scores of the search, and of a wider one if it differs; ``r`` is right."""


def write_graphs(directory: Path, weight: float = 1.0) -> tuple[Path, Path, Path]:
    """Write both searches, with a sentence for each kind of error, and the references."""
    places = directory / "narrow", directory / "wide"
    for wide, place in enumerate(places):
        place.mkdir()
        write_hypergraph_weights(place / "weights", ["LM0"], [weight if wide else 1.0])
        for number, searches in enumerate(GRAPHS.values()):
            kept = searches[wide] or searches[0]
            edges = [Edge((0, text.encode()), 1, (score,)) for text, score in kept]
            nodes = [[Edge((b"<s>",), 0)], edges, [Edge((1, b"</s>"), 1)]]
            write_hypergraph(place / f"{number}.gz", ["LM0"], nodes)
    references = directory / "refs"
    references.write_text("r\n" * len(GRAPHS))
    return *places, references


def test_graphs_with_a_wider_search(tmp_path: Path) -> None:
    narrow, wide, references = write_graphs(tmp_path)
    errors = find_search_errors([narrow], references, wider=[wide])
    assert [row.kind for row in errors.rows] == [*GRAPHS]
    assert [row.rank for row in errors.rows] == [1, None, None, 3, None]
    assert [row.reference_score for row in errors.rows] == [-1.0, -1.0, -3.0, -3.0, None]
    assert [row.wider_gain for row in errors.rows] == [0.0, 1.0, 0.0, 0.0, 0.5]
    assert (errors.reachable, errors.search_gains) == (4, 2)
    assert "of 4 sentences: in 1, it is the 1-best; in 1, it scores higher" in errors.advice
    assert "Search errors are frequent" in errors.advice


def test_graphs_alone(tmp_path: Path) -> None:
    """What one search keeps tells pruned references from unreachable ones as little as errors."""
    narrow, _, references = write_graphs(tmp_path)
    errors = find_search_errors([narrow], references)
    missing = "not in the graph"
    assert [row.kind for row in errors.rows] == [
        "no error", missing, missing, "ranked low", missing
    ]  # fmt: skip
    assert "do not show in these graphs alone" in errors.advice
    assert "larger beam will not help" not in errors.advice
    (low,) = [row for row in find_search_errors([narrow], references, top=2).rows
              if row.kind == "ranked low"]  # fmt: skip
    assert low.rank is None


def test_a_reference_with_a_derivation_that_the_search_lost(tmp_path: Path) -> None:
    """The graph has the reference by one derivation, the wider search by a better one."""
    narrow, wide, references = write_graphs(tmp_path)
    edges = [Edge((b"x",), 1, (-1.0,)), Edge((b"r",), 1, (-2.0,))]
    write_hypergraph(narrow / "0.gz", ["LM0"], [edges])
    write_hypergraph(wide / "0.gz", ["LM0"], [[*edges, Edge((b"r",), 1, (-0.5,))]])
    first = find_search_errors([narrow], references, wider=[wide]).rows[0]
    assert (first.kind, first.rank, first.reference_score) == ("search error", 2, -0.5)


def test_searches_that_do_not_fit(tmp_path: Path) -> None:
    narrow, wide, references = write_graphs(tmp_path, weight=0.5)
    with pytest.raises(UsageError, match=r"the weight of LM0 is 1 in .*0.gz, but 0.5 in"):
        find_search_errors([narrow], references, wider=[wide])
    again = find_search_errors([narrow], references, wider=[wide], weights="LM0=1")
    assert [row.kind for row in again.rows] == [*GRAPHS]
    with pytest.raises(UsageError, match=r"--iteration requires a run"):
        find_search_errors([narrow], references, iteration=1)
    (wide / "4.gz").unlink()
    (wide / "weights").write_bytes((narrow / "weights").read_bytes())
    with pytest.raises(DataError, match=r"only one of the two searches has .* sentence 4"):
        find_search_errors([narrow], references, wider=[wide])
    references.write_text("r\n")
    with pytest.raises(DataError, match="belongs to sentence 1, but the references have only 1"):
        find_search_errors([narrow], references)


@pytest.mark.parametrize(
    ("scores", "is_reference", "n_forced", "kind", "rank"),
    [
        ([-1, -2, -1], "r r", 1, "no error", 1),
        ([-2, -3, -1], "  r", 1, "search error", None),
        ([-2, -3, -2.000001], "  r", 1, "pruned", None),
        ([-2, -3, -2.5], "  r", 1, "pruned", None),
        ([-2, -3, -4], "  r", 1, "below the list", None),
        ([-2, -3, -3], " rr", 1, "ranked low", 2),
        ([-2, -3, -1], " rr", 1, "search error", 2),
        ([-2, -3], "  ", 0, "unreachable", None),
        ([-2], "r", 1, "search error", None),
        ([], "", 0, "unreachable", None),
    ],
)
def test_lists(
    scores: list[float], is_reference: str, n_forced: int, kind: str, rank: int | None
) -> None:
    marks = [mark == "r" for mark in is_reference]
    row = _judge_list("7", np.array(scores, dtype=float), marks, n_forced)
    assert (row.sentence, row.kind, row.rank) == ("7", kind, rank)


def test_advice_when_model_errors_prevail() -> None:
    rows = [SentenceErrors(str(n), "ranked low", 2, -3.0, -2.0) for n in range(3)]
    lost = [SentenceErrors(str(n), "unreachable", None, None, -2.0) for n in range(4, 8)]
    advice = SearchErrors((*rows, *lost), tells_reach=True).advice
    assert "Model errors prevail: a larger beam will not help these" in advice
    assert "For 4 of 7 sentences, no derivation of a reference was found" in advice
    assert "no weights and no beam help" in SearchErrors(tuple(lost), tells_reach=True).advice
