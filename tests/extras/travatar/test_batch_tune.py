"""``batch-tune``: as scripts call it, against brute force, and its messages."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.cli.moses.install import write_launchers
from mosesplug.errors import UsageError
from mosesplug.extras.travatar.batch_tune import PROGRAM
from mosesplug.extras.travatar.batch_tune import main as batch_tune
from mosesplug.extras.travatar.weights import parse_ranges
from mosesplug.metrics import metric

pytestmark = pytest.mark.usefixtures("few_restarts")

Floats = NDArray[np.float64]

NAMES = ("comet_qe", "mbart_qe", "score")


class Data:
    """Lists with features and a score of each hypothesis, as a reranker of translations has."""

    def __init__(self, seed: int, n: int = 12, k: int = 6, shift: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.k = n, k
        self.scores = rng.normal(size=(n, k)) + shift
        noise = rng.normal(size=(n, k, 3))
        self.features = noise + self.scores[:, :, None] * np.array([0.8, -0.4, 0.1])

    def best(self, weights: Sequence[float] | Floats) -> float:
        """Mean score of the hypotheses with the largest model scores."""
        chosen = (self.features @ np.asarray(weights)).argmax(axis=1)
        return float(self.scores[np.arange(self.n), chosen].mean())

    def write(self, directory: Path) -> None:
        lines, statistics = [], []
        for i, j in itertools.product(range(self.n), range(self.k)):
            values = dict(zip(NAMES, self.features[i, j].tolist(), strict=True))
            pairs = " ".join(f"{name}={value}" for name, value in values.items())
            lines.append(f"{i} ||| output {j} of {i} ||| {values['score']} ||| {pairs}\n")
            statistics.append(f"{self.scores[i, j]} 1\n")
        (directory / "nbest").write_text("".join(lines))
        (directory / "stats").write_text("".join(statistics))
        (directory / "refs").write_text("".join(f"output 0 of {i}\n" for i in range(self.n)))
        (directory / "weights").write_text(" ".join(f"{name}=1" for name in NAMES) + "\n")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    made = Data(1)
    made.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return made


def parse(line: str) -> dict[str, float]:
    words = (word.rpartition("=") for word in line.rstrip("\n").split(" "))
    return {name: float(value) for name, _, value in words}


def run_words(words: Sequence[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        batch_tune(words)
    printed = capfd.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def call(words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    return run_words(words.split(), capfd)


def tuned(words: str, capfd: pytest.CaptureFixture[str]) -> tuple[dict[str, float], float]:
    code, out, err = call(words, capfd)
    assert code == 0, err
    found = re.search(r"^Best: (.*) => (\S+)$", err, re.M)
    assert found is not None
    assert out == found[1] + "\n"
    return parse(out), float(found[2])


STATISTICS = "-nbest nbest -eval zeroone -stat_in stats -weight_in weights -rand_seed 9"


def call_in_tree(directory: Path, words: Sequence[str]) -> Mapping[str, float]:
    """Call the program in Travatar's tree as rerankers do: stdout to a file, first line parsed."""
    program = os.environ["TRAVATAR_DIR"] + "/src/bin/batch-tune"
    with (directory / "out").open("w+") as out:
        subprocess.call([program, *words], stdout=out, cwd=directory)
        out.seek(0)
        pairs = out.readlines()[0].split(" ")
        return {pair.split("=")[0]: float(pair.split("=")[1]) for pair in pairs}


def test_the_calls_of_a_reranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments of qaware-decode, which asks for 1000 restarts; the weights go to JSON."""
    tree = tmp_path / "travatar"
    write_launchers(tree, peer="travatar")
    monkeypatch.setenv("TRAVATAR_DIR", str(tree))
    data = Data(3, n=25)
    data.write(tmp_path)
    words = ["-nbest", "nbest", "-algorithm", "mert", "-weight_in", "weights", "-eval", "zeroone"]
    words += ["-stat_in", "stats", "-restarts", "50", "-threads", "1", "-rand_seed", "9", "refs"]
    weights = call_in_tree(tmp_path, words)
    assert set(json.loads(json.dumps(weights))) == set(NAMES)
    found = data.best([weights[name] for name in NAMES])
    grid = itertools.product(np.linspace(-1, 1, 21), repeat=3)
    assert found >= max(map(data.best, grid)) - 1e-12
    assert sum(map(abs, weights.values())) == pytest.approx(1.0)


@pytest.mark.parametrize("shift", [0.0, -5.0])
def test_never_below_plain_climbs(
    shift: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Coordinate searches as Travatar describes them, from its starts, end no higher.

    Travatar's own search stops at once if scores are negative.
    """
    monkeypatch.chdir(tmp_path)
    for seed in range(6):
        data = Data(seed, n=8, k=5, shift=shift)
        data.write(tmp_path)
        weights, score = tuned(f"{STATISTICS} -restarts 10 refs", capfd)
        found = data.best([weights[name] for name in NAMES])
        assert score == pytest.approx(found, rel=1e-5)
        rng = random.Random(seed)
        starts = [np.ones(3), np.zeros(3)]
        starts += [np.array([rng.random() for _ in NAMES]) for _ in range(10)]
        assert found >= max(climb(data, start) for start in starts) - 1e-9


def climb(data: Data, weights: Floats) -> float:
    """Move along the best axis, to the best middle of an interval, until nothing gains."""
    best = -np.inf
    while True:
        points = [
            weights + step * axis for axis in np.eye(3) for step in steps(data, weights, axis)
        ]
        scores = [data.best(point) for point in points]
        if max(scores) <= best + 1e-6:
            return best
        best, weights = max(scores), points[int(np.argmax(scores))]


def steps(data: Data, weights: Floats, axis: Floats) -> list[float]:
    """Steps into every interval between crossings of two hypotheses of a sentence."""
    values, slopes = data.features @ weights, data.features @ axis
    gaps = values[:, :, None] - values[:, None, :]
    turns = slopes[:, None, :] - slopes[:, :, None]
    crossings = np.unique(gaps[turns != 0.0] / turns[turns != 0.0])
    middles = (crossings[1:] + crossings[:-1]) / 2.0
    return [crossings[0] - 1.0, *middles.tolist(), crossings[-1] + 1.0]


def test_statistics_go_out_and_in(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    """As the tuning script of Travatar: statistics of each list first, then all lists."""
    lines = Path("nbest").read_text().splitlines(keepends=True)
    parts: list[list[str]] = [lines[::2], lines[1::2], []]
    for number, part in enumerate(parts):
        Path(f"run{number}").write_text("".join(part))
        words = f"-nbest run{number} -stat_out run{number}.stats -eval bleu:smooth=1 refs"
        assert call(words, capfd) == (0, "", "")
        statistics = Path(f"run{number}.stats").read_text()
        assert len(statistics.splitlines()) == len(part)
    lists = ",".join(f"run{n}" for n in range(3))
    common = "-eval bleu:smooth=1 -weight_in weights -rand_seed 2 -restarts 5 refs"
    files = ",".join(f"run{n}.stats" for n in range(3))
    read = tuned(f"-nbest {lists} -stat_in {files} {common}", capfd)
    assert read == tuned(f"-nbest {lists} {common}", capfd)
    assert read[1] == pytest.approx(tuned(f"-nbest nbest {common}", capfd)[1])


def test_the_score_is_that_of_the_metric(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    weights, score = tuned("-nbest nbest -eval wer:reverse=true -rand_seed 2 refs", capfd)
    rows = (data.features @ np.array([weights[name] for name in NAMES])).argmax(axis=1)
    outputs = [f"output {j} of {i}".encode() for i, j in enumerate(rows.tolist())]
    found = metric("WER")
    prepared = found.prepare([Path("refs").read_bytes().splitlines()])
    ends = np.cumsum([0, *map(len, outputs)])
    buffer = np.frombuffer(b"".join(outputs), dtype=np.uint8)
    stats = found.statistics(prepared, np.arange(data.n), buffer, ends[:-1], ends[1:])
    assert score == pytest.approx(float(found.score(stats.sum(axis=0))), rel=1e-5)


@pytest.mark.parametrize(
    "words",
    [
        "greedy-mert",
        "mert -mert_directions rand=5",
        "mert -threads 2",
        "lbfgs",
        "lbfgs -l2 0.1",
        "online",
        "online -update avgperceptron",
        "online -update adagrad -rate 0.1",
    ],
)
def test_algorithms_gain(words: str, data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    weights, score = tuned(f"{STATISTICS} -algorithm {words} refs", capfd)
    assert data.best([weights[name] for name in NAMES]) == pytest.approx(score, rel=1e-5)
    assert score > data.best([1.0, 1.0, 1.0])
    if "threads" in words:
        assert tuned(f"{STATISTICS} -algorithm mert refs", capfd) == (weights, score)


def test_expected_bleu(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    """References are the first hypotheses; a feature that knows them gives BLEU 1."""

    def add(match: re.Match[str]) -> str:
        return f"{match[1]} knows={match[2] == '0':d}"

    text = Path("nbest").read_text()
    Path("nbest").write_text(re.sub(r"(\|\|\| output (\d).*)$", add, text, flags=re.M))
    weights, score = tuned("-nbest nbest -eval bleu -algorithm lbfgs refs", capfd)
    assert max(weights, key=lambda name: weights[name]) == "knows"
    assert score == pytest.approx(1.0)


@pytest.mark.parametrize("algorithm", ["mert", "greedy-mert"])
def test_ranges_bind_the_result(
    algorithm: str, data: Data, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*STATISTICS.split(), "-algorithm", algorithm, "-weight_ranges", "0| 2|3|score"]
    code, out, _ = run_words([*words, "refs"], capfd)
    assert code == 0
    weights = parse(out)
    assert 2.0 <= weights["score"] <= 3.0
    assert min(weights["comet_qe"], weights["mbart_qe"]) >= 0.0
    grid = itertools.product(np.linspace(0, 30, 61), repeat=2)
    inside = max(data.best([a, b, 2.0]) for a, b in grid)
    assert data.best([weights[name] for name in NAMES]) >= inside - 1e-12


def test_weights_of_zero_are_printed(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    """A reranker looks up the weight of every feature."""
    _, out, _ = call(f"{STATISTICS} -weight_ranges 0|0|mbart_qe refs", capfd)
    assert parse(out)["mbart_qe"] == 0.0


def test_many_sparse_features(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    lines = Path("nbest").read_text().splitlines()
    lines = [f"{line} only{n}=1 also{n}=1" for n, line in enumerate(lines * 8)]
    lines.sort(key=lambda line: int(line.split()[0]))
    Path("nbest").write_text("\n".join(lines) + "\n")
    code, _, err = call("-nbest nbest -eval ribes -algorithm mert refs", capfd)
    assert code == 1
    assert "1155 features are too many for -algorithm mert (at most 1000)" in err
    weights, _ = tuned("-nbest nbest -eval ribes -algorithm online refs", capfd)
    assert 0.0 not in weights.values()


def test_other_inputs(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    """Compressed lists under their plain name; progress; seeds from the clock."""
    subprocess.run(["gzip", "nbest"], check=True)
    code, out, err = call(f"{STATISTICS} -debug 2 -trg_factors 2 refs", capfd)
    assert code == 0
    assert err.startswith("72 hypotheses of 12 sentences, 3 features\n")
    assert "climb=start" in err
    Path("weights").write_text("score=1\ncomet_qe=1 mbart_qe=1\nold=3\n")
    _, again, err = call(f"{STATISTICS} refs", capfd)
    assert "warning: weights of features that no list has: old" in err
    assert parse(again) == pytest.approx(parse(out))
    assert call("-nbest nbest -eval zeroone refs", capfd)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-best nbest refs", r"unknown option -best .*Did you mean -nbest\?"),
        ("-nbest nbest", "give one file of references after the options, not none"),
        ("-nbest nbest a b", "not 2: a b"),
        ("refs", "give the n-best lists: -nbest FILES"),
        ("-nbest -eval zeroone refs", "-nbest needs a value"),
        ("-forest f refs", "forests are not read"),
        ("-nbest nbest -restarts many refs", "-restarts takes a whole number, not 'many'"),
        ("-nbest nbest -restarts -1 refs", "-restarts must be at least 0"),
        ("-nbest nbest -algorithm mira refs", "mira: unknown; the algorithms are mert, greedy"),
        ("-nbest nbest -algorithm onlinepro refs", "use -algorithm mert, lbfgs or online"),
        ("-nbest nbest -eval ter refs", "write ter:inverse=true"),
        ("-nbest nbest -eval nist refs", "NIST needs"),
        ("-nbest nbest -mert_directions xeval=0.1:9:3 refs", "have no counterpart"),
        ("-nbest nbest -mert_directions rand=x refs", "must be coord or rand=NUM"),
        ("-nbest nbest -mert_directions rand=0 refs", "names no direction"),
        ("-nbest nbest -algorithm lbfgs -l1 1 refs", "-l1: neither"),
        ("-nbest nbest -algorithm lbfgs -ent 1 refs", "-ent has no counterpart"),
        ("-nbest nbest -algorithm mert -l2 1 refs", "-l2 is only used by -algorithm lbfgs"),
        ("-nbest nbest -algorithm lbfgs -eval bleu:smooth=1 refs", "use -eval bleu"),
        ("-nbest nbest -algorithm lbfgs -eval interp:1|bleu|1|ribes refs", "expectation of interp"),
        ("-nbest nbest -algorithm online -update mira refs", "must be one of perceptron"),
        ("-nbest nbest -algorithm online -margin_scale 1 refs", "-margin_scale has no counterpart"),
        ("-nbest nbest -algorithm online -weight_ranges 0|1 refs", "cannot keep them"),
        ("-nbest nbest -weight_ranges 0|0.5|lm refs", "Travatar reads integers only"),
        ("-nbest nbest -weight_ranges 1|0|lm refs", "the minimum is above"),
        ("-nbest nbest -weight_ranges 1 refs", r"not of the form MIN\|MAX"),
        ("-nbest nbest -weight_ranges 0|1|a|b refs", r"not of the form MIN\|MAX"),
        ("-nbest nbest,nbest -stat_in stats refs", "1 files and -nbest has 2"),
        ("-nbest nbest,nbest -stat_out out refs", "-stat_out requires a single n-best list"),
    ],
)
def test_usage_errors(
    words: str, message: str, data: Data, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(words, capfd)
    assert (code, out) == (2, "")
    assert re.search(message, err), err
    assert err.startswith("batch-tune: ")
    assert err.count("\n") == 1


def test_two_ranges_of_a_feature() -> None:
    with pytest.raises(UsageError, match="two ranges of the feature lm"):
        parse_ranges("0|1|lm 0|2|lm")
    with pytest.raises(UsageError, match="two ranges of the other features"):
        parse_ranges("0|1 |2")


@pytest.mark.parametrize(
    ("name", "text", "words", "message"),
    [
        ("nbest", "0 ||| a ||| 0\n", "", "nbest:1: "),
        ("nbest", "0 ||| a ||| 0 ||| x=1\n0 ||| a ||| 0 ||| x=1 ||| tree\n", "", "nbest:2: more"),
        ("nbest", "s1 ||| a ||| 0 ||| x=1\n", "", "nbest:1: the sentence id is 's1'"),
        ("nbest", "0 ||| a ||| 0 ||| x=nan\n", "", "nbest:1: .*not finite"),
        ("nbest", "0 ||| a ||| 0 ||| x=1 x=2\n", "", "nbest:1: .*twice"),
        ("nbest", "", "", "nbest: the list is empty"),
        ("nbest", "99 ||| a ||| 0 ||| x=1\n", "-eval wer:reverse=true", "sentence 99 has no refer"),
        ("stats", "1 1\n", "-eval zeroone -stat_in stats", "nbest:2: no statistics.*1 lines"),
        ("stats", "1 1\n" * 73, "-eval zeroone -stat_in stats", "stats:73: .*72 hypotheses"),
        ("stats", "1 1\nnan 1\n", "-eval zeroone -stat_in stats", "stats:2: 'nan 1'"),
        ("stats", "0.5\n", "-eval zeroone -stat_in stats", "stats:1: '0.5' is not 2 finite"),
        ("weights", "score 1\n", "-weight_in weights", "weights:1: 'score' is not a weight"),
        ("weights", "score=x\n", "-weight_in weights", "weights:1: "),
        ("none", "", "-weight_in nowhere", "nowhere: "),
        ("none", "", "-weight_ranges 0|1|lm", ".*there is no feature lm; known: comet_qe"),
    ],
)
def test_data_errors(
    name: str, text: str, words: str, message: str, data: Data, capfd: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(text)
    code, out, err = call(f"-nbest nbest {words} refs", capfd)
    assert (code, out) == (1, "")
    assert re.match(f"batch-tune: {message}", err), err
    assert err.count("\n") == 1


def test_missing_references(data: Data, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(f"{STATISTICS} nowhere", capfd)
    assert code == 1
    assert err.startswith("batch-tune: nowhere: ")


@pytest.mark.parametrize("word", ["-h", "-help", "--help"])
def test_help(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(word, capfd)
    assert code == 0
    assert out.startswith("usage: batch-tune [options] REFERENCE\n")
    assert all(f"  -{option.name}" in out for option in PROGRAM.options)
