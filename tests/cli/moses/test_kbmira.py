"""The program kbmira: recordings of Moses', what mert-moses.pl reads, and what is refused."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

from formats.extractor.data import SparseColumns, write_features, write_scores
from mosesplug.cli.moses.kbmira import main

NAMES = ("LM0_0", "TM0_0", "TM0_1")
SPARSE = ("wt_a", "wt_ö~b", "wt_c")
HIDDEN = np.array([0.6, -0.4, 0.3])


def make_files(directory: Path, run: int, *, best_match: int = 9, shift: int = 0) -> None:
    """Extractor files of 30 sentences whose quality follows hidden weights."""
    rng = np.random.default_rng(run)
    dense = rng.standard_normal((300, 3)).astype(np.float32)
    on = rng.integers(0, 3, 300)
    quality = dense @ HIDDEN + 0.5 * (on == 0) - 0.5 * (on == 1)
    ranks = quality.reshape(30, 10).argsort(axis=1).argsort(axis=1).ravel() * best_match // 9
    stats = np.zeros((300, 9), dtype=np.int32)
    stats[:, 0:8:2] = ranks[:, None] + (np.array([8, 7, 6, 5]) if best_match else 0)
    stats[:, 1:8:2] = np.array([20, 19, 18, 17])
    stats[:, 8] = 20
    columns = SparseColumns(
        SPARSE, np.arange(301), np.roll(on, shift).astype(np.int32), np.ones(300, dtype=np.float32)
    )
    ids, offsets = np.arange(30), np.arange(31) * 10
    write_features(directory / f"run{run}.features.dat", NAMES, ids, offsets, dense, columns)
    write_scores(directory / f"run{run}.scores.dat", "BLEU", ids, offsets, stats)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the files of two iterations and starting weights."""
    monkeypatch.chdir(tmp_path)
    for run in (1, 2):
        make_files(tmp_path, run)
    Path("init.dense").write_text("LM0= 0.5\nTM0= 0.25\nTM0= 0.25\n")
    return tmp_path


ONE = ("--ffile", "run1.features.dat", "--scfile", "run1.scores.dat")
BOTH = (*ONE, "-Frun2.features.dat", "-S", "run2.scores.dat")
START = ("--dense-init=init.dense", "-r", "7", "-J", "4")


def kbmira(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


def weights(path: Path) -> dict[str, float]:
    """The output file, read as mert-moses.pl reads it; no line may be left over."""
    found = {}
    for line in path.read_text().splitlines():
        match = re.match(r"^F(\d+) ([\-\.\de]+)$", line) or re.match(
            r"^(.+_.+) ([\-\.\de]+)$", line
        )
        assert match is not None, line
        found[match[1]] = float(match[2])
    return found


def best(text: str) -> float:
    """Best BLEU, read as mert-moses.pl reads it."""
    found = re.findall(r"Best BLEU = ([\-\d\.]+)", text)
    assert len(found) == 1
    return float(found[0])


def test_learns_dense_and_sparse_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbmira(*BOTH, *START, "-o", "out") == 0
    found = weights(here / "out")
    assert list(found)[:3] == ["0", "1", "2"]
    assert found["wt_a"] > 0 > found["wt_ö~b"]
    log = capsys.readouterr().err
    initial = float(re.findall(r"Initial BLEU = (\S+)", log)[0])
    epochs = [float(score) for score in re.findall(r"avg loss = \S+, BLEU = (\S+)", log)]
    assert len(epochs) == 4
    assert best(log) == max(epochs)
    assert best(log) > initial + 0.05


def test_seed_decides(here: Path) -> None:
    outputs = []
    for seed in ("1", "1", "2"):
        assert kbmira(*ONE, "-d", "init.dense", "-J2", "-r", seed, "-o", "out") == 0
        outputs.append((here / "out").read_bytes())
    assert outputs[0] == outputs[1] != outputs[2]


def test_the_default_seed_is_the_clock(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbmira(*ONE, "-d", "init.dense", "-J2", "-o", "out") == 0
    assert "random seed from system clock" in capsys.readouterr().err
    assert weights(here / "out")


def test_streaming_is_not_shuffling(here: Path) -> None:
    assert kbmira(*BOTH, *START, "--streaming", "-o", "streamed") == 0
    assert kbmira(*BOTH, *START, "--no-shuffle", "-o", "in-order") == 0
    assert kbmira(*BOTH, *START, "-o", "shuffled") == 0
    assert (here / "streamed").read_bytes() == (here / "in-order").read_bytes()
    assert (here / "streamed").read_bytes() != (here / "shuffled").read_bytes()


def test_each_better_epoch_is_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbmira(*BOTH, *START, "-o", "out") == 0
    capsys.readouterr()
    assert kbmira(*BOTH, *START) == 0
    text = capsys.readouterr().out
    assert text.endswith((here / "out").read_text())


def test_starts_from_sparse_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("init.sparse").write_text("wt_c 0.25\nother_d -0.5\n")
    words = ("--dense-init=init.dense", "-r7", "-J1", "-s", "init.sparse", "-C1e-9", "-o", "out")
    assert kbmira(*ONE, *words) == 0
    found = weights(here / "out")
    # Steps are too small to see: the weights are those of the start, in one scale.
    assert list(found)[3:5] == ["wt_c", "other_d"]
    scale = found["0"] / 0.5
    assert found["wt_c"] == pytest.approx(scale * 0.25, rel=1e-4)
    assert found["other_d"] == pytest.approx(scale * -0.5, rel=1e-4)
    assert "Found 2 initial sparse features" in capsys.readouterr().err


def test_dense_weights_in_any_form(here: Path) -> None:
    Path("row").write_text("0.5 0.25 0.25\n")
    Path("init.opt").write_text("0.5 0.25 0.25\n0 0 0\n1 1 1\n")
    outputs = []
    for name in ("init.dense", "row", "init.opt"):
        assert kbmira(*ONE, "-d", name, "-r1", "-J2", "-o", "out") == 0
        outputs.append((here / "out").read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]
    assert kbmira(*ONE, "-r1", "-J2", "-o", "out") == 0
    assert list(weights(here / "out"))[:3] == ["0", "1", "2"]


def test_streamed_weights_precede_the_result(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written))
    assert kbmira(*ONE, "-d", "init.dense", "-r1", "-J1", "--streaming-out") == 0
    lines = written.getvalue().decode().splitlines()
    assert [line.startswith("F") for line in lines[:31]] == [False] * 30 + [True]


def test_an_interpolated_metric_may_be_named_with_its_weights(here: Path) -> None:
    ids, offsets = np.arange(30), np.arange(31) * 10
    write_scores("both", "BLEU,TER", ids, offsets, np.ones((300, 12), dtype=np.int32))
    files = ("--ffile", "run1.features.dat", "--scfile", "both")
    assert kbmira(*files, *START, "--sctype", "BLEU:0.6+TER:0.4", "-o", "out") == 0


def test_shows_updates_and_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (*ONE, "-d", "init.dense", "-r1", "-J1", "--no-shuffle", "-o", "out")
    assert kbmira(*words) == 0
    capsys.readouterr()
    plain = (here / "out").read_bytes()
    assert kbmira(*words, "--verbose", "--streaming-out") == 0
    assert (here / "out").read_bytes() == plain
    shown = capsys.readouterr()
    assert "Initial BLEU" not in shown.err
    rows = [line.split() for line in shown.out.splitlines()]
    assert len(rows) == 30
    blocks = re.findall(
        r"^Updating sent (\d+)\nWght: (.*)\nHope: (.*) BLEU:(\S+) Score:(\S+)\n"
        r"Fear: (.*) BLEU:(\S+) Score:(\S+)\nDiff: (.*) BLEU:(\S+) Score:(\S+)\n"
        r"Loss: (\S+) Scale: 1\n\n",
        shown.err,
        re.MULTILINE,
    )
    assert len(blocks) > 10
    assert blocks[0][1] == "0:0.5 1:0.25 2:0.25"
    for block in blocks:
        hope, fear, difference = (
            {int(c): float(v) for c, v in (pair.split(":") for pair in block[place].split())}
            for place in (2, 5, 8)
        )
        assert set(hope) - {0, 1, 2} <= {6, 7, 8}  # Moses counts them behind the dense names
        for column, value in difference.items():
            expected = hope.get(column, 0.0) - fear.get(column, 0.0)
            assert value == pytest.approx(expected, abs=1e-5)
        worth, score, loss = (float(block[place]) for place in (9, 10, 11))
        assert worth == pytest.approx(float(block[3]) - float(block[6]), abs=1e-3)
        assert loss == pytest.approx(worth - score, abs=1e-3)


def test_writes_weights_where_no_score_is_above_zero(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moses then writes no weights, and mert-moses.pl continues with earlier ones."""
    make_files(here, 3, best_match=0)
    words = ("-F", "run3.features.dat", "-S", "run3.scores.dat")
    assert kbmira(*words, *START, "-o", "out") == 0
    assert weights(here / "out")
    log = capsys.readouterr().err
    assert "no weights score above 0" in log
    assert best(log) == 0.0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((*ONE, "--type", "lattice"), 2, "nbest or hypergraph"),
        ((*ONE, "-J", "0"), 2, "--iters"),
        ((*ONE, "-C", "0"), 2, "--cparam"),
        ((*ONE, "-D", "1.5"), 2, "--decay"),
        ((*ONE, "--sparse-init", "init.dense"), 2, "--dense-init"),
        ((), 2, "feature files"),
        ((*BOTH, "-F", "run1.features.dat"), 2, "3 feature files and 2 score files"),
        ((*ONE, "-d", "missing"), 1, "missing"),
        ((*ONE, "-d", "short"), 1, "2 dense weights, and the hypotheses have 3"),
        ((*ONE, "-d", "order"), 1, "TM0, LM0"),
        ((*ONE, "--sctype", "TER"), 1, "9 statistics of BLEU, not the 3 of TER"),
        ((*ONE, "--sctype", "SEMPOS"), 2, "SEMPOS"),
        ((*ONE, "--unknown"), 2, "--unknown"),
    ],
)
def test_usage_and_data_errors(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    Path("short").write_text("0.5 0.5\n")
    Path("order").write_text("TM0= 0.5\nTM0= 0.5\nLM0= 1\n")
    assert kbmira(*words, "-o", "out") == code
    lines = capsys.readouterr().err.splitlines()
    assert message in lines[-1]
    assert lines[-1].startswith("kbmira: ")
    assert not (here / "out").exists()


def test_other_metrics(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Statistics of WER: the metric comes from the file."""
    rng = np.random.default_rng(5)
    dense = rng.standard_normal((300, 3)).astype(np.float32)
    ranks = (dense @ HIDDEN).reshape(30, 10).argsort(axis=1).argsort(axis=1).ravel()
    stats = np.column_stack([15 - ranks, np.full(300, 20)]).astype(np.int32)
    ids, offsets = np.arange(30), np.arange(31) * 10
    write_features(here / "wer.features.dat", NAMES, ids, offsets, dense)
    write_scores(here / "wer.scores.dat", "WER", ids, offsets, stats)
    words = ("-F", "wer.features.dat", "-S", "wer.scores.dat", *START[:3], "-J", "30")
    assert kbmira(*words, "-o", "out") == 0
    log = capsys.readouterr().err
    assert best(log) > float(re.findall(r"Initial BLEU = (\S+)", log)[0]) + 0.05
    found = list(weights(here / "out").values())
    assert np.dot(found, HIDDEN) / np.linalg.norm(found) / np.linalg.norm(HIDDEN) > 0.95


def recorded_files(multi30k: Path) -> list[str]:
    """The recorded extractor files of lists 1 and 2."""
    scores = multi30k / "scores"
    return [
        word
        for run in (1, 2)
        for word in (
            *("-F", str(scores / f"run{run}.features.dat.gz")),
            *("-S", str(scores / f"run{run}.scores.dat.gz")),
        )
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plain", ()),
        ("model-bg", ("--model-bg",)),
        ("safe-hope", ("--safe-hope",)),
        ("C0.1", ("-C", "0.1")),
        ("D0.9", ("--decay=0.9",)),
    ],
)
def test_same_lines_and_weights_as_moses(
    multi30k: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: tuple[str, ...],
) -> None:
    start = multi30k / "mert-work" / "run1.dense"
    common = ("--dense-init", str(start), "--no-shuffle", "-J", "5", "-r", "1")
    out = tmp_path / "out"
    assert kbmira(*recorded_files(multi30k), *common, *words, "-o", str(out)) == 0
    assert out.read_text() == (multi30k / "kbmira" / f"noshuffle.{name}.weights").read_text()
    log = capsys.readouterr().err
    assert log == (multi30k / "kbmira" / f"noshuffle.{name}.log").read_text()


def test_same_sparse_weights_as_moses(
    multi30k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sparse = multi30k / "sparse"
    out = tmp_path / "out"
    words = ["-F", str(sparse / "features.dat.gz"), "-S", str(sparse / "scores.dat.gz")]
    words += ["-d", str(sparse / "init.dense"), "--no-shuffle", "-J3", "-r1", "-o", str(out)]
    assert kbmira(*words) == 0
    assert out.read_text() == (sparse / "noshuffle.weights").read_text()
    assert capsys.readouterr().err == (sparse / "noshuffle.log").read_text()


def test_same_weights_as_moses_when_shuffled(
    multi30k: Path,
    extracted: list[tuple[Path, Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All 60,840 updates of a run, in Moses' random order."""
    out = tmp_path / "out"
    start = multi30k / "mert-work" / "run7.dense"
    lists = [
        f"-{option}{file}" for files in extracted for option, file in zip("FS", files, strict=True)
    ]
    assert kbmira(*lists, "-d", str(start), "-r", "10", "-o", str(out)) == 0
    recorded = multi30k / "kbmira" / "seven.seed10"
    assert out.read_text() == Path(f"{recorded}.weights").read_text()
    assert best(capsys.readouterr().err) == best(Path(f"{recorded}.log").read_text())
