"""The program mert: its files, the line that mert-moses.pl reads, and the recorded problems."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.weights.files import read_weights_txt
from mosesplug.cli.moses.mert import PROGRAM, main
from mosesplug.metrics import metric

BLEU = metric("BLEU", "case:true")
BEST_POINT = re.compile(r"Best point:\s*([\s\d\.\-e]+?)\s*=> ([\-\d\.]+)")
"""What mert-moses.pl looks for."""

HIDDEN = np.array([0.6, -0.4, 0.3])
NAMES = ("LM0_0", "TM0_0", "TM0_1")


class Data:
    """Hypotheses whose quality follows hidden weights, in extractor files."""

    def __init__(self, directory: Path, *, sparse: bool = False, n_sentences: int = 40) -> None:
        rng = np.random.default_rng(3)
        n_hyps = 12
        self.dense = rng.standard_normal((n_sentences * n_hyps, 3)).astype(np.float32)
        self.offsets = np.arange(n_sentences + 1) * n_hyps
        ids = np.arange(n_sentences)
        quality = self.dense @ HIDDEN
        columns = None
        if sparse:
            on = rng.integers(0, 2, len(self.dense))
            quality = quality + on
            ends = np.arange(len(on) + 1)
            columns = SparseColumns(
                ("wt_a", "wt_b"), ends, on.astype(np.int32), np.ones(len(on), dtype=np.float32)
            )
        ranks = quality.reshape(-1, n_hyps).argsort(axis=1).argsort(axis=1).ravel()
        matches = ranks[:, None] + np.array([8, 7, 6, 5])
        totals = np.broadcast_to(np.array([20, 19, 18, 17]), matches.shape)
        self.stats = np.zeros((len(ranks), 9), dtype=np.int32)
        self.stats[:, 0:8:2], self.stats[:, 1:8:2], self.stats[:, 8] = matches, totals, 20
        write_features(directory / "features.data", NAMES, ids, self.offsets, self.dense, columns)
        write_scores(directory / "statscore.data", "BLEU", ids, self.offsets, self.stats)
        size = 4 if sparse else 3
        rows = ("0.3 " * size, "0 " * size, "1 " * size)
        (directory / "init.opt").write_text("".join(f"{row}\n" for row in rows))

    def score(self, weights: NDArray[np.float64]) -> float:
        """BLEU of decoding with dense weights."""
        scores = (self.dense @ weights).reshape(len(self.offsets) - 1, -1)
        chosen = self.offsets[:-1] + scores.argmax(axis=1)
        return float(BLEU.score(self.stats[chosen].sum(axis=0)))


def run(words: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def best_point(text: str) -> tuple[list[float], float]:
    """Weights and score, read as mert-moses.pl reads them."""
    match = BEST_POINT.search(text)
    assert match is not None
    return [float(word) for word in match[1].split()], float(match[2])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_finds_hidden_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = Data(here)
    assert run(["-d3", "-n", "5", "-r", "7"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "Seeding random numbers with 7" in said.err
    weights, score = best_point(said.err)
    assert read_weights_txt("weights.txt") == tuple(weights)
    assert np.abs(weights).sum() == pytest.approx(1.0)
    assert data.score(np.array(weights)) == pytest.approx(score, abs=1e-6)
    assert score >= data.score(HIDDEN) - 1e-6
    # The same seed gives the same weights for any number of threads.
    assert run(["-d3", "-n", "5", "-r", "7", "--threads=2"]) == 0
    assert best_point(capsys.readouterr().err)[0] == weights


def test_other_files_and_starts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Data(here)
    for name in ("features.data", "statscore.data", "init.opt"):
        (here / name).rename(here / f"run1.{name}")
    (here / "historic").write_text(" ".join(map(repr, HIDDEN.tolist())))
    words = ["--pdim=3", "-t", "random", "-n0", "--ffile", "run1.features.data,run1.features.data"]
    words += ["--scfile=run1.statscore.data,run1.statscore.data"]
    assert run([*words, "--ifile", "run1.init.opt,historic"]) == 0
    said = capsys.readouterr().err
    assert "480 distinct hypotheses of 960" in said
    assert best_point(said)[0] == pytest.approx(HIDDEN / np.abs(HIDDEN).sum())


def test_some_weights_only(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Data(here)
    assert run(["-d3", "-n2", "-r1", "-o", "LM0_0,TM0_1"]) == 0
    weights, _ = best_point(capsys.readouterr().err)
    assert weights[1] == 0.3
    assert weights[0] != 0.3
    assert run(["-d3", "-n2", "-r1", "-P", "TM0_0"]) == 0
    assert best_point(capsys.readouterr().err)[0][1] > 0.0


def test_factor_of_sparse_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Data(here, sparse=True)
    (here / "sparse").write_text("wt_b 2.5\nwt_other 7\n")
    assert run(["-d3", "-n5", "-r1", "-p", "sparse"]) == 0
    weights, score = best_point(capsys.readouterr().err)
    assert len(weights) == 4
    assert weights[3] > 0.0
    (here / "init.opt").write_text("0.3 0.3 0.3\n0 0 0\n1 1 1\n")
    assert run(["-d3", "-n5", "-r1"]) == 0
    without = best_point(capsys.readouterr().err)
    assert len(without[0]) == 3
    assert without[1] < score


@pytest.mark.parametrize("size", ["0", "0.4"])
def test_shards(here: Path, capsys: pytest.CaptureFixture[str], size: str) -> None:
    data = Data(here)
    words = ["-d3", "-n3", "-r1", "--shard-count", "4", "--shard-size", size, "-v", "2"]
    assert run(words) == 0
    said = capsys.readouterr().err
    weights, score = best_point(said)
    shards = [float(text) for text in re.findall(r"shard \d best score: (\S+)", said)]
    assert len(shards) == 4
    assert np.mean(shards) == pytest.approx(score, abs=2e-6)
    assert data.score(np.array(weights)) > data.score(np.array([0.3, 0.3, 0.3]))


def test_intervals_judged_by_their_neighbors(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Data(here)
    words = ["-d3", "-n3", "-r1", "--scconfig", "case:true,regtype:average,regwin:2"]
    assert run(words) == 0
    weights, score = best_point(capsys.readouterr().err)
    assert data.score(np.array(weights)) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "number of dense weights"),
        (["-d", "many"], 2, "whole number"),
        (["-d3", "-t", "simplex"], 2, "-t takes powell, random-direction or random"),
        (["-d3", "-n", "-1"], 2, "--ntry must be at least 0, not -1"),
        (["-d3", "--scconfig", "regtype:average,regwin:x"], 2, "regwin:x"),
        (["-d3", "--shard-size=0.5"], 2, "--shard-count"),
        (["-d3", "--shard-count=2", "--shard-size=2"], 2, "--shard-size must be at most 1, not 2"),
        (["-d3", "--scconfig", "regtype:max"], 2, "regtype:max"),
        (["-d3", "--sctype", "FLUENCY"], 2, "FLUENCY"),
        (["-d3", "--ifile", ","], 2, "--ifile"),
        (["-d4"], 1, "3 dense features, but -d is 4"),
        (["-d3", "-o", "LM1_0"], 1, "there is no feature LM1_0"),
        (["-d3", "-P", "LM1_0"], 1, "there is no feature LM1_0"),
        (["-d3", "--sctype", "PER"], 1, "9 statistics of BLEU"),
        (["-d3", "--ifile", "bad"], 1, "bad: 2 numbers"),
        (["-d3", "--ifile", "worse"], 1, "'x' is not a finite number"),
        (["-d3", "--ffile", "none"], 1, "none: cannot be read"),
        (["-d3", "--ffile=features.data,features.data"], 2, "2 feature files and 1 score files"),
        (["-d3", "--shard-count=41"], 1, "41 shards of 40 sentences"),
        (["-d3", "-p", "none"], 1, "none: cannot be read"),
    ],
)
def test_errors_are_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    Data(here)
    (here / "bad").write_text("1 2\n")
    (here / "worse").write_text("1 2 x\n")
    assert run(words) == code
    said = capsys.readouterr().err
    assert message in said.splitlines()[-1]
    assert said.splitlines()[-1].startswith("mert: ")
    assert not (here / "weights.txt").exists()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"--{option.name}" in text for option in PROGRAM.options)


@pytest.mark.parametrize(
    ("recording", "lists", "words"),
    [
        ("seven.powell.n20", 7, "-n 2 -r 7000 --threads 2"),
        ("one.powell.n20", 1, "-n 5 -r 1000"),
        ("one.random-direction.m20.n5", 1, "-n 1 -m 20 -t random-direction -r 1000"),
        ("one.active3.n20", 1, "-n 10 -r 1000 -o LM0_0,WordPenalty0_0,TranslationModel0_0"),
    ],
)
def test_recorded_scores_are_reached(
    multi30k: Path,
    extracted: list[tuple[Path, Path]],
    here: Path,
    capsys: pytest.CaptureFixture[str],
    recording: str,
    lists: int,
    words: str,
) -> None:
    """With as many starts as the recording had, or fewer."""
    features, scores = zip(*extracted[:lists], strict=True)
    call = ["-d", "14", "--scconfig", "case:true", *words.split()]
    call += ["--ffile", ",".join(map(str, features)), "--scfile", ",".join(map(str, scores))]
    call += ["--ifile", str(multi30k / "mert-work" / f"run{lists}.init.opt")]
    assert run(call) == 0
    weights, score = best_point(capsys.readouterr().err)
    recorded = (multi30k / "mert" / f"{recording}.log").read_text()
    assert len(weights) == 14
    assert score >= best_point(recorded)[1]
