"""Length exponents: the search, against the searches of fairseq and icefall on the same scores."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mosesplug
from formats.errors import FormatError
from formats.weights.any_format import read_weights
from mosesplug.cli.main import main
from mosesplug.errors import DataError, UsageError
from mosesplug.learning.lengths import find_recorded_length, spell_exponent
from mosesplug.learning.weights import read_initial_weights
from mosesplug.optimizers.registry import Optimizer
from mosesplug.settings.lengths import LengthRange, parse_length_range

pytestmark = pytest.mark.usefixtures("few_restarts")

Floats = NDArray[np.float64]


def make_scores(
    seed: int, n_sentences: int, n_hyps: int
) -> tuple[Floats, NDArray[np.int64], Floats, list[str]]:
    """Return dumped scores of a forward, a backward and a language model, lengths, and a metric.

    Sums of log-probabilities of words, so that long hypotheses have low scores.
    """
    rng = np.random.default_rng(seed)
    n = n_sentences * n_hyps
    lengths = np.clip(
        np.repeat(rng.integers(5, 40, n_sentences), n_hyps) + rng.integers(-4, 5, n), 1, None
    )
    quality = rng.normal(0.0, 1.0, n)
    models = [
        lengths * (-1.5 + strength * quality + rng.normal(0.0, 0.25, n))
        for strength in (0.06, 0.04, 0.02)
    ]
    metric = 0.5 + 0.1 * quality + 0.03 * rng.normal(0.0, 1.0, n)
    texts = [" ".join(["w"] * length) for length in lengths.tolist()]
    return np.column_stack(models).astype(np.float32).astype(np.float64), lengths, metric, texts


def best_scores(model: Floats, metric: Floats, n_hyps: int) -> float:
    """Return the mean metric of the first hypothesis of highest score of each sentence."""
    chosen = model.reshape(-1, n_hyps).argmax(axis=1)
    return float(metric.reshape(-1, n_hyps)[np.arange(len(chosen)), chosen].mean())


@pytest.mark.parametrize("seed", range(2))
def test_never_below_the_random_search_of_fairseq(seed: int) -> None:
    """Its score is (w1 s1 + w2 s2 + w3 lm) / len**lenpen, at 1,000 random points in 0..3."""
    n_hyps = 10
    features, lengths, metric, texts = make_scores(seed, 40, n_hyps)
    random.seed(seed)
    points = [[random.uniform(0.0, 3.0) for _ in range(4)] for _ in range(1000)]
    theirs = max(
        best_scores(features @ weights / lengths**exponent, metric, n_hyps)
        for exponent, *weights in points
    )
    fit = mosesplug.optimize(
        features=features,
        sentence_ids=np.repeat(np.arange(40), n_hyps),
        hypotheses=texts,
        scores=metric,
        names=["S1", "S2", "LM"],
        length_exponent="0:3",
        options={"restarts": 1},
        threads=1,
    )
    assert fit.length_exponent is not None
    assert 0.0 <= fit.length_exponent <= 3.0
    assert fit.score >= theirs
    ours = features @ fit.vector / lengths**fit.length_exponent
    assert fit.score == pytest.approx(best_scores(ours, metric, n_hyps), abs=2e-3)


ICEFALL = (0.01, 0.05, 0.08, 0.1, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 1.9, 2.0,
           2.1, 2.2, 2.3, 2.5, 3.0, 4.0, 5.0)  # fmt: skip


@pytest.mark.parametrize("exponent", [None, "0:1"])
@pytest.mark.parametrize("seed", range(2))
def test_never_below_the_grid_of_icefall(seed: int, exponent: str | None) -> None:
    """Its score is am + n_scale lm + a_scale attention, for 24 x 24 scales; errors are counted."""
    n_hyps = 12
    features, _, metric, texts = make_scores(100 + seed, 30, n_hyps)
    rng = np.random.default_rng(seed)
    words = np.full(len(metric), 20.0)
    errors = rng.poisson(np.clip(20.0 * (1.0 - metric), 0.1, None)).astype(np.float64)
    theirs = max(
        1.0
        - errors.reshape(-1, n_hyps)[
            np.arange(30),
            (features @ [1.0, n_scale, a_scale]).reshape(-1, n_hyps).argmax(axis=1),
        ].sum()
        / (30 * 20)
        for n_scale in ICEFALL
        for a_scale in ICEFALL
    )
    fit = mosesplug.optimize(
        features=features,
        sentence_ids=np.repeat(np.arange(30), n_hyps),
        hypotheses=texts,
        statistics=np.column_stack([errors, words]),
        metric=mosesplug.StatisticsMetric(lambda sums: 1.0 - sums[..., 0] / sums[..., 1]),
        names=["AM", "LM", "ATT"],
        bounds={"AM": 1.0, "LM": (0, 5), "ATT": (0, 5)},
        length_exponent=exponent,
        options={"restarts": 1},
        threads=1,
    )
    assert fit.weights["AM"] == 1.0
    assert fit.score >= theirs - 1e-12


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:2", LengthRange(0.0, 2.0)),
        ("-1:1e0", LengthRange(-1.0, 1.0)),
        ("1.3", LengthRange(1.3, 1.3)),
        ("lm,rev:0:2", LengthRange(0.0, 2.0, ("lm", "rev"))),
        ("lm:0.5", LengthRange(0.5, 0.5, ("lm",))),
    ],
)
def test_ranges(text: str, expected: LengthRange) -> None:
    assert parse_length_range(text) == expected
    assert parse_length_range(str(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "2:1", "0:99", "nan", "0:inf", "a,,b:0:1", "a:b", ":0:1"]
)
def test_rejected_ranges(text: str) -> None:
    with pytest.raises(UsageError, match="--length-exponent"):
        parse_length_range(text)


def fit_lists(**more: Any) -> mosesplug.Fit:
    features, lengths, metric, texts = make_scores(7, 20, 8)
    columns = np.column_stack([features[:, :2], lengths])
    keywords = {"hypotheses": texts, "length_exponent": "0:2", "threads": 1} | more
    return mosesplug.optimize(
        features=columns,
        sentence_ids=np.repeat(np.arange(20), 8),
        scores=metric,
        names=["A", "B", "L"],
        options={"restarts": 3, "polish": 0},
        **keywords,
    )


def test_a_feature_can_be_the_length() -> None:
    by_words = fit_lists(bounds={"L": 0.0}, length_exponent="A,B:0:2")
    by_feature = fit_lists(bounds={"L": 0.0}, length_by="L")
    assert by_words.vector.tolist() == by_feature.vector.tolist()
    assert by_words.length_exponent == by_feature.length_exponent
    with pytest.raises(DataError, match="length_by A: a length is -"):
        fit_lists(length_by="A")
    with pytest.raises(UsageError, match="there is no feature C"):
        fit_lists(length_by="C")
    with pytest.raises(DataError, match="no hypothesis has more than one word"):
        fit_lists(hypotheses=None)


def test_a_known_exponent_is_that_of_divided_features() -> None:
    features, lengths, metric, _ = make_scores(7, 20, 8)
    ids = np.repeat(np.arange(20), 8)
    options = {"restarts": 3, "polish": 0}
    known = fit_lists(length_exponent="0.7")
    assert known.length_exponent == 0.7
    columns = np.column_stack([features[:, :2], lengths]).astype(np.float32)
    divided = (columns / lengths[:, None] ** 0.7).astype(np.float32)
    direct = mosesplug.optimize(
        features=divided, sentence_ids=ids, scores=metric, names=["A", "B", "L"], options=options
    )
    assert known.score == pytest.approx(direct.score, abs=0.01)
    assert (
        fit_lists(length_exponent="0").vector.tolist()
        == fit_lists(length_exponent="0:0").vector.tolist()
    )


def test_folds_and_held_out_choose_their_own_exponent() -> None:
    fit = fit_lists(held_out=0.3)
    assert fit.held_out is not None
    folds = fit_lists(folds=2)
    assert folds.validation is not None
    assert folds.validation.held_out <= 1.0


def write_lists(directory: Path) -> tuple[Path, Path]:
    features, _, metric, texts = make_scores(3, 15, 8)
    lists, scores = directory / "lists", directory / "scores"
    lists.write_text(
        "".join(
            f"{row // 8} ||| {text} ||| A= {values[0]:.5f} B= {values[1]:.5f} "
            f"LM= {values[2]:.5f} ||| 0\n"
            for row, (text, values) in enumerate(zip(texts, features.tolist(), strict=True))
        )
    )
    scores.write_text("".join(f"{value}\n" for value in metric.tolist()))
    return lists, scores


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("some", ["", "A,LM:"])
def test_rerank_applies_what_optimize_has_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], some: str
) -> None:
    lists, scores = write_lists(tmp_path)
    weights = tmp_path / "weights"
    found = run("optimize", lists, "--scores", f"Q={scores}", "--length-exponent", f"{some}0:2",
                "-o", weights, "--option", "restarts=1")  # fmt: skip
    said = capsys.readouterr().err
    assert found == 0
    kept = Path(f"{weights}.length").read_text().strip()
    assert "does not record the length exponent" not in said
    assert run("optimize", lists, "--scores", f"Q={scores}", "--length-exponent", f"{some}1",
               "-o", f"{weights}.tsv", "--option", "restarts=1") == 0  # fmt: skip
    note = f"tsv does not record the length exponent: keep {weights}.tsv.length beside"
    assert note in capsys.readouterr().err
    assert f"rerank --length-exponent {kept}" in said
    assert run("rerank", "--nbest", lists, "--weights", weights, "--length-by", "L") == 2
    assert "--length-by requires --length-exponent" in capsys.readouterr().err
    end = float(said.split("score at the end")[1].split()[0])
    for words in ([], ["--length-exponent", kept]):
        best = tmp_path / "best"
        sorted_lists = tmp_path / "sorted"
        assert run("rerank", "--nbest", lists, "--weights", weights, *words, "-o", best,
                   "--output-nbest", sorted_lists) == 0  # fmt: skip
        rows = [line.split(" ||| ") for line in lists.read_text().splitlines()]
        metric = {
            (row[0], row[2]): float(value)
            for row, value in zip(rows, scores.read_text().split(), strict=True)
        }
        firsts: dict[str, float] = {}
        for line in sorted_lists.read_text().splitlines():
            sentence, _, values, *_ = line.split(" ||| ")
            numbers = [float(word) for word in values.split() if not word.endswith("=")]
            key = next(
                each
                for each in metric
                if each[0] == sentence
                and np.allclose([float(w) for w in each[1].split() if not w.endswith("=")], numbers)
            )
            firsts.setdefault(sentence, metric[key])
        assert np.mean(list(firsts.values())) == pytest.approx(end, abs=1e-6)
    assert run("optimize", lists, "--scores", f"Q={scores}", "-o", weights,
               "--option", "restarts=1") == 0  # fmt: skip
    assert not Path(f"{weights}.length").exists()
    assert read_weights(weights).changes.length_exponent == ""


@pytest.mark.parametrize("to", ["dense", "json", "yaml", "tsv", "equals", "lines", "json-flat"])
@pytest.mark.parametrize("by", [[], ["--length-by", "LM"]])
def test_moved_weights_are_divided_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], to: str, by: list[str]
) -> None:
    lists, _ = write_lists(tmp_path)
    lists.write_text(lists.read_text().replace("LM= -", "LM= "))
    table = mosesplug.WeightTable.of_mapping({"A": 1.0, "B": 0.25, "LM": -0.5})
    weights, moved, best = (tmp_path / name for name in ("weights", "moved", "best"))
    table.save(weights, to)
    exponent = ["--length-exponent", "A,B:1.25", *by]
    rank = ["rerank", "--nbest", lists, "-o", best, "--weights"]
    assert run(*rank, weights, *exponent) == 0
    expected = best.read_text()
    divided = f"A, B: values are divided by {'LM' if by else 'words'}**1.25\n"
    assert divided in capsys.readouterr().err
    length = parse_length_range("A,B:1.25", by[-1] if by else "words")
    Path(f"{weights}.length").write_text(f"{spell_exponent(length)}\n")
    recorded = mosesplug.WeightTable.read(weights)
    recorded.save(moved, to)
    keeps = to in ("dense", "json", "yaml")
    for written in (moved, tmp_path / "converted"):
        if written != moved:
            assert run("weights", "convert", weights, "--to", to, "-o", written) == 0
            message = f"does not record the length exponent: keep {written}.length beside"
            assert (message in capsys.readouterr().err) != keeps
        assert run(*rank, written) == 0
        assert divided in capsys.readouterr().err
        assert best.read_text() == expected
        Path(f"{written}.length").unlink()
        assert run(*rank, written) == 0
        assert (divided in capsys.readouterr().err) == keeps
        assert (best.read_text() == expected) == keeps
    texts = mosesplug.rerank(lists, recorded).texts
    assert texts == expected.splitlines() == mosesplug.rerank(lists, weights).texts
    assert run("weights", "convert", weights, "--to", to) == 0
    message = "length exponent: rerank with --length-exponent A,B:1.25"
    assert (message in capsys.readouterr().err) != keeps
    assert run("weights", "show", weights) == 0
    assert " ".join(["learned with", *exponent]) in capsys.readouterr().out
    if keeps:
        Path(f"{moved}.length").write_text("A,B:0.5\n")
        assert run(*rank, moved) == 1
        message = f"{moved}.length:1: the length exponent is A,B:0.5, but {moved} records A,B:1.25"
        assert message in capsys.readouterr().err
        assert run(*rank, moved, *exponent) == 0
        assert run("weights", "average", weights, "A= 1 B= 0.25 LM= -0.5") == 1
        assert "learned with different length exponents" in capsys.readouterr().err


def test_risk_and_oracles_use_the_recorded_exponent(tmp_path: Path) -> None:
    lists, scores = write_lists(tmp_path)
    weights = tmp_path / "weights"
    weights.write_text("# length-exponent: 1.25\nA= 1\nB= 1\nLM= 1\n")
    ranked = mosesplug.rerank(lists, weights)
    assert ranked.texts != mosesplug.rerank(lists, weights, length_exponent=0.0).texts
    best = tmp_path / "best"
    # A large scale makes the hypothesis with the highest score certain.
    assert run("mbr", "--nbest", lists, "--weights", weights, "--scale", 1e6, "-o", best) == 0
    assert best.read_text().splitlines() == ranked.texts
    assert run("oracle", lists, "--weights", weights, "--scores", f"Q={scores}", "--top", "1",
               "-o", best) == 0  # fmt: skip
    assert best.read_text().splitlines() == ranked.texts
    weights.write_text("# length-exponent: 1:2\nA= 1\nB= 1\nLM= 1\n")
    with pytest.raises(FormatError, match=r"weights: '1:2' is not a length exponent. Correct"):
        mosesplug.rerank(lists, weights)


def test_many_weights_of_a_command_line() -> None:
    words = " ".join(f"TM{k}=0.5" for k in range(300))  # too long for the name of a file
    weights = read_initial_weights(words)
    assert len(weights.groups) == 300
    assert find_recorded_length(weights) is None


def test_rerank_of_the_api() -> None:
    fit = fit_lists()
    assert fit.length_exponent is not None
    assert "; scores are divided by words**" in repr(fit)


def test_restarts_at_few_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most exponents are searched near the weights of others: no restarts, a short polish."""
    optimize = Optimizer.optimize
    restarts: list[int] = []

    def count(self: Optimizer, *arguments: Any) -> Any:
        restarts.append(self.values["restarts"])
        return optimize(self, *arguments)

    monkeypatch.setattr(Optimizer, "optimize", count)
    fit_lists()
    assert 1 <= sum(map(bool, restarts)) <= 4
    assert len(restarts) >= 30
