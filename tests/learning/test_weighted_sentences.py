"""Weights of sentences in optimize and tune, as a user gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from formats.errors import FormatError
from formats.graphs.hypergraph import Edge, write_hypergraph
from mosesplug.errors import DataError, UsageError
from mosesplug.settings.sentences.weights import (
    describe_weights,
    make_sentence_weights,
    read_sentence_weights,
)

N = 20


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists in which A must be positive in the first sentences, negative in the others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lines, references = [], []
    for sentence in range(N):
        references.append(f"a b c d{sentence}\n")
        sign = 1 if sentence < N // 2 else -1
        for wrong in range(4):
            text = " ".join(["a", "b", "c", f"d{sentence}"][wrong:] + ["x"] * wrong)
            lines.append(f"{sentence} ||| {text} ||| A= {-sign * wrong} B= {rng.normal()} ||| 0\n")
    Path("lists").write_text("".join(lines))
    Path("refs").write_text("".join(references))
    return tmp_path


@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "softmax"])
def test_weights_decide_between_sentences_that_disagree(algorithm: str, lists: Path) -> None:
    given: dict[str, Any] = {
        "references": "refs",
        "algorithm": algorithm,
        "initial": {"A": 0.1, "B": 0.1},
    }
    for first, sign in ((20.0, 1), (0.05, -1)):
        weights = [first] * (N // 2) + [1.0] * (N // 2)
        Path("weights").write_text("".join(f"{weight}\n" for weight in weights))
        by_file = mosesplug.optimize("lists", sentence_weights="weights", **given)
        assert np.sign(by_file.weights["A"]) == sign
        assert by_file.score > 0.9
        by_array = mosesplug.optimize("lists", sentence_weights=np.array(weights), **given)
        assert dict(by_array.weights) == dict(by_file.weights)


@pytest.fixture
def graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Search graphs in which A must be positive in the first sentences, negative in the others."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphs").mkdir()
    references = []
    for sentence in range(N):
        words = [b"a", b"b", b"c", b"d%d" % sentence]
        sign = 1.0 if sentence < N // 2 else -1.0
        nodes = [[Edge((b"<s>",), 0)]]
        for place, word in enumerate(words):
            wrong = Edge((place, b"x"), place + 1, (-sign, 0.3 * place))
            nodes.append([Edge((place, word), place + 1, (0.0, 0.5)), wrong])
        nodes.append([Edge((len(words), b"</s>"), len(words))])
        write_hypergraph(tmp_path / "graphs" / f"{sentence}.gz", ("A", "B"), nodes)
        references.append(b" ".join(words) + b"\n")
    Path("refs").write_bytes(b"".join(references))
    return tmp_path


@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "softmax", "mira"])
def test_weights_decide_between_graphs_that_disagree(algorithm: str, graphs: Path) -> None:
    given: dict[str, Any] = {
        "references": "refs",
        "algorithm": algorithm,
        "initial": {"A": 0.01, "B": 0.1},
    }
    for first, sign in ((20.0, 1), (0.05, -1)):
        weights = [0.0] + [first] * (N // 2 - 1) + [1.0] * (N // 2)
        fit = mosesplug.optimize(graphs="graphs", sentence_weights=weights, **given)
        assert np.sign(fit.weights["A"]) == sign
        assert fit.score > 0.8
        assert "1 sentence with weight 0 left out" in fit.result.data.description
        candidates = fit.result.data.problem.candidates
        assert candidates.sentence_weights is not None
        assert candidates.sentence_weights.tolist() == weights[1:]
    halves = mosesplug.optimize(graphs="graphs", sentence_weights=weights, held_out=0.5, **given)
    away = halves.result.learning.held_out_sentences
    assert halves.result.data.hold_out(away).candidates.sentence_weights is None


def test_sentences_of_weight_0_are_never_held_out_and_held_out_ones_count_alike(
    lists: Path,
) -> None:
    weights = np.where(np.arange(N) < 4, 0.0, np.arange(N))
    fit = mosesplug.optimize("lists", references="refs", sentence_weights=weights, held_out=0.5)
    learning = fit.result.learning
    assert learning.sentences == (8, 8)
    assert min(*learning.held_out_sentences, *learning.learned_sentences) == 4
    only = fit.result.data.problem.tuning_set.take_sentences(learning.held_out_sentences)
    totals = only.stats[only.first_best(learning.solution.weights)].sum(axis=0)
    assert fit.held_out == pytest.approx(float(fit.result.data.problem.metric.score(totals)))
    description = fit.result.data.description
    assert "sentence weights from 4 to 19 (4 sentences with weight 0 left out)" in description


def test_shards_learn_as_without_them(lists: Path) -> None:
    weights = np.arange(N) % 4 / 2
    given: dict[str, Any] = {"references": "refs", "sentence_weights": weights, "algorithm": "mert"}
    plain = mosesplug.optimize("lists", **given)
    sharded = mosesplug.optimize("lists", sharding={"shards": 3}, **given)
    assert dict(sharded.weights) == dict(plain.weights)
    assert sharded.score == plain.score


def test_folds_score_each_sentence_once(lists: Path) -> None:
    weights = np.where(np.arange(N) < N // 2, 5.0, 1.0)
    fit = mosesplug.cross_validate(
        "lists", references="refs", sentence_weights=weights, folds=4, initial={"A": 1, "B": 0}
    )
    plain = mosesplug.cross_validate("lists", references="refs", folds=4, initial={"A": 1, "B": 0})
    assert fit.start == plain.start


@pytest.mark.parametrize("text", ["x", "", "-1", "nan", "inf", "1e7"])
def test_a_line_that_is_no_weight_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_text(f"1\n{text}\n2\n")
    with pytest.raises(FormatError, match=r"weights:2: .* is not a weight of a sentence\. Give n"):
        read_sentence_weights(path)


def test_weights_that_leave_nothing_are_errors(lists: Path) -> None:
    Path("zero").write_text("0\n" * N)
    with pytest.raises(FormatError, match="no sentence has a weight above 0"):
        read_sentence_weights(Path("zero"))
    with pytest.raises(UsageError, match=r"sentence_weights\[1\]: 'x' is not a weight"):
        make_sentence_weights([1, "x"])
    with pytest.raises(UsageError, match="no weight above 0"):
        make_sentence_weights([0, 0])
    with pytest.raises(DataError, match="has 3 weights, but the lists have sentence 19"):
        mosesplug.optimize("lists", references="refs", sentence_weights=[1, 2, 3])
    with pytest.raises(DataError, match="weight 0 for all sentences of the lists"):
        mosesplug.optimize("lists", references="refs", sentence_weights=[0] * N + [1])
    references = [*Path("refs").read_text().splitlines(), "no hypothesis"]
    with pytest.raises(DataError, match="weight 0 for all sentences of the lists"):
        mosesplug.optimize("lists", references=references, sentence_weights=[0] * N + [1])
    fit = mosesplug.optimize("lists", references=references, sentence_weights=[1, 2] + [1] * N)
    assert any("has weights for 1 more sentence than the lists" in text for text in fit.warnings)
    with pytest.raises(DataError, match="has 2 weights for 3 source sentences"):
        make_sentence_weights([1, 2]).check_count(3)


def test_weights_are_described() -> None:
    assert describe_weights(np.array([0.0, 1.5, 2.0])) == (
        "sentence weights from 1.5 to 2 (1 sentence with weight 0 left out)"
    )
