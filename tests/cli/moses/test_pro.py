"""The programs pro and megam_i686.opt: same bytes as Moses' pro, and what mert-moses.pl parses."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.extractor.data import SparseColumns, write_features, write_scores
from mosesplug.cli.moses import megam, pro

HIDDEN = np.array([0.6, -0.4, 0.3, 1.0, -0.5])
NAMES = ("LM0_0", "TM0_0", "TM0_1")
SPARSE = ("wt_a", "wt_b~ü")


def make_files(directory: Path, name: str, seed: int) -> tuple[str, str]:
    """Extractor files of 30 sentences whose quality follows hidden weights."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((1800, 3)).astype(np.float32)
    on = rng.integers(0, 3, 1800)  # one of two sparse features, or none
    values = np.column_stack([on == 0, on == 1])
    quality = dense @ HIDDEN[:3] + values @ HIDDEN[3:]
    ranks = quality.reshape(-1, 60).argsort(axis=1).argsort(axis=1).ravel()
    stats = np.zeros((1800, 9), dtype=np.int32)
    stats[:, 0:8:2] = ranks[:, None] + np.array([40, 30, 20, 10])
    stats[:, 1:8:2] = rng.integers(110, 130, 1800)[:, None] - np.arange(4)
    stats[:, 8] = 120
    ids, offsets = np.arange(30), np.arange(31) * 60
    columns = SparseColumns(
        SPARSE,
        np.concatenate([[0], np.cumsum(on < 2)]),
        on[on < 2].astype(np.int32),
        np.ones(int((on < 2).sum()), dtype=np.float32),
    )
    files = str(directory / f"{name}.features.dat"), str(directory / f"{name}.scores.dat")
    write_features(files[0], NAMES, ids, offsets, dense, columns)
    write_scores(files[1], "BLEU", ids, offsets, stats)
    return files


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Files of features and of statistics."""
    return make_files(tmp_path, "run1", 1)


def run_pro(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        pro.main(words)
    return int(ended.value.code or 0)


def run_megam(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        megam.main(words)
    return int(ended.value.code or 0)


def as_the_script_parses(text: str, count: int) -> tuple[list[float], dict[str, float]]:
    """Dense and sparse weights by the regular expressions of mert-moses.pl."""
    dense, sparse = [0.0] * count, {}
    for line in text.splitlines():
        if found := re.match(r"F(\d+) ([\-\.\de]+)", line):
            dense[int(found[1])] = float(found[2])
        elif found := re.match(r"(.+_.+) ([\-\.\de]+)", line):
            sparse[found[1]] = float(found[2])
    return dense, sparse


def cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_same_bytes_as_moses(multi30k: Path, tmp_path: Path) -> None:
    scores = multi30k / "scores"
    output = tmp_path / "pro.data"
    words = ["-r", "1000", "--output-file", str(output)]
    words += ["--ffile", str(scores / "first100.features.dat.gz")]
    words += ["--scfile", str(scores / "first100.BLEU.scores.dat.gz")]
    assert run_pro(*words) == 0
    recorded = gzip.decompress((multi30k / "pro" / "first100.seed1000.gz").read_bytes())
    assert output.read_bytes() == recorded


def test_from_files_to_weights(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    features, scores = files
    data = str(tmp_path / "run1.pro.data")
    assert run_pro("-r", "1000", "--ffile", features, "--scfile", scores, "-o", data) == 0
    assert "Initialising random seed to 1000" in capfd.readouterr().err
    lines = Path(data).read_text().splitlines()
    assert len(lines) == 2 * 30 * 50
    for one, other in zip(lines[0::2], lines[1::2], strict=True):
        assert (one[:2], other[:2]) == ("1 ", "0 ")
        forth, back = one.split()[1:], other.split()[1:]
        assert forth[0::2] == back[0::2]
        assert [float(v) for v in forth[1::2]] == [-float(v) for v in back[1::2]]
    assert run_megam("-fvals", "-maxi", "30", "-nobias", "binary", data) == 0
    dense, sparse = as_the_script_parses(capfd.readouterr().out, 3)
    assert set(sparse) == set(SPARSE)
    found = np.array([*dense, *(sparse[name] for name in SPARSE)])
    assert cosine(found, HIDDEN) > 0.9


def test_output_goes_to_stdout_by_default(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    features, scores = files
    assert run_pro(f"-F{features}", f"-S{scores}", "-r5") == 0
    printed = capfd.readouterr().out
    assert run_pro("--ff", features, "--sc", scores, "--random=5", "--out", f"{tmp_path}/x") == 0
    assert (tmp_path / "x").read_text() == printed
    assert run_pro("-F", features, "-S", scores, "-r", "6") == 0
    assert capfd.readouterr().out != printed


def test_smoothed_brevity_penalty_ranks_otherwise(
    files: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    common = ("-F", files[0], "-S", files[1], "-r", "1")
    outputs = []
    for more in ((), ("-b",), ("--smooth-brevity-penalty",)):
        assert run_pro(*common, *more) == 0
        outputs.append(capfd.readouterr().out)
    assert outputs[1] == outputs[2] != outputs[0]


def test_iterations_are_put_together(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    more = make_files(tmp_path, "run2", 2)
    words = ["-r", "1", "-F", files[0], "-F", more[0], "-S", files[1], "-S", more[1]]
    assert run_pro(*words) == 0
    both = capfd.readouterr().out
    assert both.count("\n") == 2 * 30 * 50
    # Hypotheses are drawn as often as they were listed: twice the same list is not one list.
    twice = ["-r", "1", "-F", files[0], "-F", files[0], "-S", files[1], "-S", files[1]]
    assert run_pro(*twice) == 0
    assert capfd.readouterr().out.count("\n") == 2 * 30 * 50


def test_unusable_arguments_are_rejected(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    features, scores = files
    assert run_pro("-S", scores) == 2
    assert run_pro("-F", features, "-S", scores, "--nothing") == 2
    assert run_pro("-F", features, "-S", str(tmp_path / "absent")) == 1
    ids, offsets = np.arange(30), np.arange(31) * 60
    other = str(tmp_path / "ter.dat")
    write_scores(other, "TER", ids, offsets, np.ones((1800, 2), dtype=np.int32))
    capfd.readouterr()
    assert run_pro("-F", features, "-S", other) == 1
    assert "--sctype BLEU" in capfd.readouterr().err
    short = str(tmp_path / "short.dat")
    write_scores(short, "BLEU", ids, offsets, np.ones((1800, 5), dtype=np.int32))
    assert run_pro("-F", features, "-S", short) == 1
    assert "5 statistics of BLEU, not the 9" in capfd.readouterr().err
    same = str(tmp_path / "same.dat")
    write_scores(same, "BLEU", ids, offsets, np.full((1800, 9), 5, dtype=np.int32))
    target = tmp_path / "none"
    assert run_pro("-F", features, "-S", same, "-o", str(target)) == 1
    assert "no two hypotheses" in capfd.readouterr().err
    assert not target.exists()


def test_weights_are_plain_decimals(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    examples = [(y, x) for x in (1, 2, -1, 3) for y in (1, 0, 1)]
    rows = [f"{y} F0 {x * 1e-9}\n{y} F1 {x * 1e7}\n" for y, x in examples]
    data.write_text("".join(rows))
    assert run_megam("-fvals", "-nobias", "-lambda", "1e-20", "binary", str(data)) == 0
    printed = capfd.readouterr().out
    assert re.fullmatch(r"(F\d -?\d+\.\d+\n){2}", printed)
    dense, _ = as_the_script_parses(printed, 2)
    assert abs(dense[0]) > 1e3
    assert 0 < abs(dense[1]) < 1e-4


def test_prior_and_iterations(
    files: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "data")
    assert run_pro("-F", files[0], "-S", files[1], "-r", "1", "-o", data) == 0
    norms = []
    for words in (["-lambda", "100"], [], ["-maxi", "1"]):
        capfd.readouterr()
        assert run_megam("-fvals", *words, "-nobias", "binary", data) == 0
        printed = capfd.readouterr()
        norms.append(np.linalg.norm(as_the_script_parses(printed.out, 3)[0]))
    assert "stopped by -maxi" in printed.err
    assert norms[0] < norms[1]
    assert norms[2] != norms[1]
    assert run_megam("-quiet", "-fvals", "-nobias", "binary", data) == 0
    assert capfd.readouterr().err == ""


def test_features_without_values(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.write_text("1 a_x b_x\n0 b_x\n1 a_x\n0 b_x c_x\n")
    assert run_megam("-nobias", "binary", str(data)) == 0
    _, sparse = as_the_script_parses(capfd.readouterr().out, 0)
    assert sparse["a_x"] > 0 > sparse["b_x"]
    assert sparse["c_x"] < 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-fvals", "binary", "data"), "-nobias"),
        (("-fvals", "-nobias", "multiclass", "data"), "binary FILE"),
        (("-fvals", "-nobias", "binary"), "binary FILE"),
        (("-fvals", "-nobias", "-maxi", "0", "binary", "data"), "-maxi"),
        (("-fvals", "-nobias", "-lambda", "-1", "binary", "data"), "-lambda"),
        (("-predict", "w", "-nobias", "binary", "data"), "-predict"),
    ],
)
def test_megam_rejects_other_models(
    words: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_megam(*words) == 2
    assert message in capfd.readouterr().err


def test_megam_rejects_useless_examples(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    for text, message in (
        ("", "no example"),
        ("1 F0 1\n0 F0 x\n", "data:2"),
        ("1 F0 1\n0 F0 1\n", "all weights are zero"),
        ("1\n0\n", "all weights are zero"),
    ):
        data.write_text(text)
        assert run_megam("-fvals", "-nobias", "binary", str(data)) == 1
        captured = capfd.readouterr()
        assert message in captured.err
        assert captured.out == ""
