"""Of hypotheses that are equally good the first of the list is taken, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.cli.main import main
from mosesplug.extras.optimizers.decoding import PointDecoder
from mosesplug.optimizers.oracles import corpus_oracles, sentence_oracles
from mosesplug.optimizers.problem import Problem
from mosesplug.results.choices.oracles import find_oracle
from tests.optimizers.problems import Accuracy, space_of, tuning_set

# In both sentences the hypotheses 1 and 2 tie in front, by unlike features; what they win differs.
FEATURES = np.array([[0, 1], [2, 1], [1, 2], [0, 0], [1, 3], [3, 1], [1, 3]], dtype=np.float32)
WON = np.array([9, 1, 5, 9, 2, 7, 4])
SIZES = [4, 3]
EVEN = np.array([0.5, 0.5])
FIRST = [1, 4]


@pytest.fixture
def tied() -> Problem:
    return Problem(tuning_set(SIZES, FEATURES, WON), Accuracy())


def test_first_best(tied: Problem) -> None:
    assert tied.tuning_set.first_best(EVEN).tolist() == FIRST
    backwards = tuning_set(SIZES[::-1], FEATURES[::-1], WON[::-1])
    assert backwards.first_best(EVEN).tolist() == [0, 4]


def test_line_search_decodes_as_first_best(tied: Problem) -> None:
    space = space_of(tied, EVEN)
    expected = (1 + 2) / 20
    assert space.decode(space.at(EVEN)) == expected
    assert PointDecoder(space).scores(np.array([EVEN])).tolist() == [expected]


def test_oracles_by_sentence() -> None:
    found = sentence_oracles(np.array([0, 3, 3, 5]), np.array([0.1, 0.7, 0.7, 0.2, 0.2]))
    assert found.first.tolist() == found.oracle_rows.tolist() == [1, 3]
    lists = tuning_set([3, 2], np.zeros((5, 1)), np.array([1, 7, 7, 2, 2]))
    assert find_oracle("sentence", lists, Accuracy(), 1).rows.tolist() == [1, 3]


def test_corpus_oracles_keep_the_hypothesis_drawn() -> None:
    """The exception: of equals any stays that the random start has; all are in the sets."""
    lists = tuning_set([3, 2], np.zeros((5, 1)), np.array([1, 7, 7, 2, 2]))
    drawn = set()
    for seed in range(20):
        found = corpus_oracles(lists, Accuracy(), np.random.default_rng(seed))
        assert found.rows.tolist() == [1, 2, 3, 4]
        assert found.first.tolist() == [1, 3]
        drawn.add(tuple(found.oracle_rows.tolist()))
    assert drawn == {(1, 3), (1, 4), (2, 3), (2, 4)}


Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Calls a command on a list of two features with even weights; the translations it prints."""
    (tmp_path / "weights").write_text("A= 0.5\nB= 0.5\n")

    def call(command: str, lines: list[str], *words: str) -> list[str]:
        (tmp_path / "list").write_text("".join(line + "\n" for line in lines))
        given = ["--nbest", str(tmp_path / "list"), "--weights", str(tmp_path / "weights")]
        with pytest.raises(SystemExit) as end:
            main([command, *given, *words])
        printed = capsysbinary.readouterr()
        assert end.value.code in (0, None), printed.err
        return printed.out.decode().splitlines()

    return call


def listed(texts: list[str], values: NDArray[Any]) -> list[str]:
    """Hypotheses of sentence 0, of which each has these values of the two features."""
    return [
        f"0 ||| {text} ||| A= {a} B= {b} ||| 0" for text, (a, b) in zip(texts, values, strict=True)
    ]


def test_rerank(run: Run) -> None:
    lines = listed(["w", "x", "y", "z"], FEATURES[:4].astype(int))
    assert run("rerank", lines) == ["x"]
    assert run("rerank", lines[::-1]) == ["y"]


def test_rerank_breaks_ties_like_first_best(run: Run, tmp_path: Path) -> None:
    """Where equal sums differ by rounding, the order of adding decides: it is the same."""
    rng = np.random.default_rng(0)
    values = np.array([rng.permutation(np.arange(12)) for _ in range(200)])
    weights = np.full(12, 0.1)
    (tmp_path / "twelve").write_text("A= " + "0.1 " * 12 + "\n")
    for part in np.split(values, 10):
        lines = [
            f"0 ||| t{row} ||| A= {' '.join(map(str, each))} ||| 0" for row, each in enumerate(part)
        ]
        (chosen,) = tuning_set([20], part, np.zeros(20)).first_best(weights)
        assert run("rerank", lines, "--weights", str(tmp_path / "twelve")) == [f"t{chosen}"]


METHODS = [(), ("--list-mbr",), ("--lattice-mbr",)]


@pytest.mark.parametrize("count", [2, 5, 7])
def test_least_risk(run: Run, count: int) -> None:
    """Each differs from all others in one word: sums of the same terms, in other orders."""
    texts = [f"a b c d e w{number}" for number in range(count)]
    lines = listed(texts, np.ones((count, 2), dtype=int))
    for each in (lines, lines[::-1]):
        first = each[0].split(" ||| ")[1]
        assert [run("mbr", each, *method, "--quiet") for method in METHODS] == 3 * [[first]]
        assert run("rerank", each, "--mbr") == [first]


@pytest.mark.parametrize("command", [("mbr", "--list-mbr", "--quiet"), ("rerank", "--mbr")])
def test_least_risk_with_unknown_words(run: Run, command: tuple[str, ...]) -> None:
    """A score that all have in common, of -1200 for a dozen unknown words, changes no choice."""
    texts = ["p q r s t", "a b c d e", "a b c d f"]
    values = np.array([[0.0, 0.0], [-0.2, 0.0], [-0.4, 0.0]])
    unlike = values + np.array([0.0, -2400.0])
    chosen = [run(command[0], listed(texts, each), *command[1:]) for each in (values, unlike)]
    assert chosen == [["a b c d e"], ["a b c d e"]]
