"""``nbest-optimize``: SRILM's files, against brute force, and its messages."""

from __future__ import annotations

import gzip
import itertools
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.cli.moses.install import write_launchers
from mosesplug.extras.srilm.nbest_optimize import main as nbest_optimize

Floats = NDArray[np.float64]


class Data:
    """Lists of utterances whose further score knows the errors best."""

    def __init__(self, seed: int = 1, n: int = 15, k: int = 6) -> None:
        rng = np.random.default_rng(seed)
        self.errors = rng.integers(0, 5, (n, k)).astype(float)
        noise = rng.normal(size=(n, k, 2))
        acoustic = -200.0 + 10.0 * noise[:, :, 0] - self.errors
        lm = -20.0 + noise[:, :, 1] * 2.0 - self.errors * 0.5
        words = 5.0 + rng.integers(0, 3, (n, k))
        neural = -self.errors + rng.normal(size=(n, k))
        self.scores = np.stack([acoustic, lm, words, neural], axis=2).round(4)

    def best(self, weights: Floats) -> float:
        chosen = (self.scores @ weights).argmax(axis=1)
        return float(self.errors[np.arange(len(chosen)), chosen].sum())

    def write(self) -> None:
        for name in ("lists", "neural", "errors"):
            Path(name).mkdir()
        refs, files = [], []
        for i, scores in enumerate(self.scores):
            lines, errors = [], []
            for j, (acoustic, lm, count, _) in enumerate(scores.tolist()):
                wrong = int(self.errors[i, j])
                words = " ".join(["x"] * wrong + ["a", "b", "c", "d"][wrong:])
                lines.append(f"{acoustic} {lm} {count:.0f} {words} -pau-\n")
                errors.append(f"0 0 {wrong} 0 0 {wrong} 4\n")
            Path(f"lists/u{i}.score").write_text("".join(lines))
            files.append(f"lists/u{i}.score\n")
            text = "".join(f"{value}\n" for value in scores[:, 3].tolist())
            if i % 2:
                Path(f"neural/u{i}").write_text(text)
            else:
                Path(f"neural/u{i}.gz").write_bytes(gzip.compress(text.encode()))
            Path(f"errors/u{i}").write_text("".join(errors))
            refs.append(f"u{i} a b c d\n")
        Path("files").write_text("".join(files))
        Path("refs").write_text("".join(refs))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    monkeypatch.chdir(tmp_path)
    made = Data()
    made.errors = np.minimum(made.errors, 4.0)
    made.write()
    return made


def call(*words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        nbest_optimize(words)
    printed = capfd.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def tuned(*words: str, capfd: pytest.CaptureFixture[str]) -> tuple[Floats, float, str]:
    """Return the weights, the errors, and all that is printed."""
    code, out, err = call("-1best", "-nbest-files", "files", *words, capfd=capfd)
    assert code == 0, err
    weights = re.findall(r"^ {3}weights = (.*)$", out, re.M)[-1]
    best = re.search(r"^best errors = (\S+) \(", out, re.M)
    assert best is not None
    return np.array(weights.split(), dtype=np.float64), float(best[1]), out


def test_the_result_is_the_best_of_a_grid(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    weights, errors, out = tuned("-refs", "refs", "neural", capfd=capfd)
    grid = np.array(list(itertools.product(np.linspace(0, 1, 9), repeat=4)))
    assert errors <= min(map(data.best, grid))
    assert data.best(weights) == pytest.approx(errors, abs=1)  # printed with 6 digits
    start = np.array([1 / 8, 1.0, 0.0, 0.0])
    assert out.startswith("   weights = 0.125 1 0 0\n   normed = 1 8 0 0\n   scale = 8\n")
    assert f"original errors = {data.best(start):g} ({data.best(start) / 60:g}/word)\n" in out
    normed = re.findall(r"normed = (.*)$", out, re.M)[-1].split()
    assert normed[0] == "1"


def test_error_counts_replace_references(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    found = tuned("-errors", "errors", "neural", capfd=capfd)
    assert found[2] == tuned("-refs", "refs", "neural", capfd=capfd)[2]
    for path in Path("errors").iterdir():  # the columns of older versions
        old = [
            f"0 0 {e} {e} 0 0 4\n" for e in (x.split()[5] for x in path.read_text().splitlines())
        ]
        path.write_text("".join(old))
    assert found[2] == tuned("-errors", "errors", "neural", capfd=capfd)[2]


def test_fixed_weights_and_boxes(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    initial = ("-refs", "refs", "-init-lambdas", "=1 =8 0 0", "neural")
    weights, errors, _ = tuned(*initial, capfd=capfd)
    assert weights[:2].tolist() == [0.125, 1.0]
    grid = itertools.product(np.linspace(-10, 30, 41), repeat=2)
    assert errors <= min(data.best(np.array([0.125, 1.0, a, b])) for a, b in grid)
    weights, _, _ = tuned(*initial, "-init-amoeba-simplex", "0 1 1", capfd=capfd)
    assert weights[:3].tolist() == [0.125, 1.0, 0.0]
    weights, _, _ = tuned(*initial, "-init-powell-range", "0,0 0,5", capfd=capfd)
    assert weights[:3].tolist() == [0.125, 1.0, 0.0]
    weights, _, _ = tuned("-refs", "refs", "-non-negative", "neural", capfd=capfd)
    assert weights.min() >= 0.0


def test_outputs(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("-refs", "refs", "-print-hyps", "hyps", "-write-rover-control", "control")
    weights, errors, out = tuned(*words, "-xval-files", "files", "neural", capfd=capfd)
    assert f"\nxval errors = {errors:g} (" in out
    chosen = (data.scores @ weights).argmax(axis=1)
    lines = [line.split() for line in Path("hyps").read_text().splitlines()]
    assert [line[0] for line in lines] == [f"u{i}" for i in range(15)]
    wrong = [line.count("x") for line in lines]
    assert sum(wrong) == errors
    assert sum(w == data.errors[i, chosen[i]] for i, w in enumerate(wrong)) >= 14
    normed = re.findall(r"normed = (.*)$", out, re.M)[-1].split()
    control = Path("control").read_text()
    assert control == f"neural\t{normed[3]} +\nlists\t{normed[1]} {normed[2]} 1.0 0 0.1\n"
    _, before, _ = call(
        *["-nbest-files", "files", "-refs", "refs", "-skipopt", "-print-hyps", "first"], capfd=capfd
    )
    assert "best errors" in before
    assert len(Path("first").read_text().splitlines()) == 15


def test_words_that_do_not_count(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    plain = tuned("-refs", "refs", "neural", capfd=capfd)
    for path in Path("lists").iterdir():
        text = path.read_text().replace(" a b ", " A_b um ").replace(" -pau-", " er -pau-")
        path.write_text(text)
    Path("noise").write_text("er\n")
    words = ("-tolower", "-multiwords", "-noise", "um", "-noise-vocab", "noise")
    assert tuned("-refs", "refs", *words, "neural", capfd=capfd)[1:] == plain[1:]


def test_launcher(data: Data, tmp_path: Path) -> None:
    write_launchers(tmp_path / "bin", peer="srilm")
    words = "-nbest-files files -refs refs -1best -max-nbest 3 -debug 1 -maxiters 5 neural"
    done = subprocess.run(
        [tmp_path / "bin" / "nbest-optimize", *words.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == "60 reference words\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("-refs refs", 2, "without -1best, word posteriors"),
        ("-1best -refs refs -nbest-files", 2, "-nbest-files needs a value"),
        ("-1best", 2, "give references or error counts"),
        ("-1best -refs refs -bleu-counts d", 2, "-bleu-counts: use mosesplug optimize"),
        ("-1best -refs refs -1best-first", 2, "-1best-first: only -1best"),
        ("-1best -refs refs -init-lambdas x", 2, "-init-lambdas takes a number, not 'x'"),
        ("-1best -refs refs -init-powell-range 1,2", 2, "-init-powell-range has 1 ranges: give 3"),
        ("-1best -refs refs -multi-char ab", 2, "-multi-char 'ab'"),
        ("-1best -refs refs -max-nbest -1", 2, "-max-nbest must be at least 0"),
        ("-1best -refs files", 1, "lists/u0.score: no reference of the utterance u0"),
        ("-1best -refs refs lists", 1, "lists/u0: "),
        ("-1best -errors neural", 1, "neural/u0.gz:1: .* is not a line of error counts"),
        ("-1best -refs twice", 1, "twice:2: the utterance 'u0' appears twice"),
        ("-1best -refs refs short", 1, "short/u0: 1 lines for 6 hypotheses"),
    ],
)
def test_errors(
    words: str, code: int, message: str, data: Data, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("twice").write_text("u0 a\nu0 b\n")
    Path("short").mkdir()
    Path("short/u0").write_text("1\n")
    found, out, err = call("-nbest-files", "files", *words.split(), capfd=capfd)
    assert (found, out) == (code, "")
    assert re.match(f"nbest-optimize: {message}", err), err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-1 -2 x a\n", "lists/u0.score:1: malformed hypothesis"),
        ("-1 nan 1 a\n", "lists/u0.score:1: malformed hypothesis"),
        ("NBestList1.0\n-1 a\n", "lists/u0.score:2: malformed hypothesis"),
        ("NBestList2.0\n(-1) a ( st: 0 )\n", "lists/u0.score:2: malformed hypothesis"),
        ("", "lists/u0.score: the n-best list is empty"),
    ],
)
def test_malformed_lists(
    text: str, message: str, data: Data, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("lists/u0.score").write_text(text)
    code, _, err = call("-1best", "-nbest-files", "files", "-refs", "refs", capfd=capfd)
    assert code == 1
    assert err.startswith(f"nbest-optimize: {message}")
