"""``mosesplug optimize`` on stored lists, with sentences held out, and several times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.weights.files import read_dense
from mosesplug.cli.main import main
from mosesplug.metrics import metric
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationStart

pytestmark = pytest.mark.usefixtures("few_restarts")


def write_lists(path: Path, first: int, sentences: int, spoilt: bool = False) -> None:
    """Lists in which B knows the right translation, and A the wrong one."""
    rng = np.random.default_rng(first)
    lines = []
    for sentence in range(sentences):
        words = [f"w{sentence}{k}" for k in range(6)]
        for wrong in range(4):
            text = " ".join(words[: 6 - wrong] + ["x"] * wrong)
            noise = rng.normal() if spoilt else 0.0
            lines.append(
                f"{sentence} ||| {text} ||| A= {wrong} {wrong / 2 + first} B= {noise - wrong:.3f} "
                f"S_{first}w{wrong}= 1 ||| {wrong}"
            )
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    references = [" ".join(f"w{sentence}{k}" for k in range(6)) for sentence in range(10)]
    (tmp_path / "refs").write_text("\n".join(references) + "\n")
    write_lists(tmp_path / "one", 1, 10, spoilt=True)
    write_lists(tmp_path / "two", 2, 10, spoilt=True)
    (tmp_path / "few-refs").write_text("\n".join(references[:3]) + "\n")
    write_lists(tmp_path / "few", 3, 3)
    (tmp_path / "init").write_text("A= 1 1\nB= 0.5\n")
    return tmp_path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["optimize", *map(str, words)])
    return int(ended.value.code or 0)


def store(files: Path) -> Path:
    """A store of both lists, the first decoded with the weights of ``init``."""
    from formats.nbest.files import read_nbest_blocks
    from formats.references import read_references

    bleu = metric("BLEU", "")
    references = bleu.prepare(read_references(files / "refs"))
    with NBestStore.open(files / "store", writable=True) as made:
        for number, name in enumerate(("one", "two"), start=1):
            weights = Weights((1.0, 1.0, 0.5) if number == 1 else (0.0, 0.0, 1.0))
            made.add_iteration(
                number,
                read_nbest_blocks(files / name),
                metric=bleu,
                references=references,
                n_sentences=10,
                record=IterationStart(weights, 1, {}, (), 0.0).as_record(),
            )
    return files / "store"


def test_lists_of_a_store_as_of_files(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, learn = store(files), ("--restarts", 1, "--threads", 1)
    before = (place / "data.mdb").read_bytes()
    lists = ("--nbest", files / "one", files / "two", "--refs", files / "refs")
    assert run(*lists, "--init", files / "init", *learn) == 0
    of_files = capsys.readouterr()
    assert run("--from", place, *learn) == 0
    of_store = capsys.readouterr()
    assert of_store.out == of_files.out
    assert of_store.err.splitlines()[:4] == of_files.err.splitlines()[:4]
    assert "distinct hypotheses of 80" in of_store.err
    # One iteration, another metric, other weights
    ter = ("--metric", "WER", "--init", files / "init", *learn)
    assert run("--nbest", files / "two", "--refs", files / "refs", *ter) == 0
    of_files = capsys.readouterr()
    assert run("--from", place, "--iterations", "-1", *ter) == 2
    assert "use --refs FILE to compute its statistics" in capsys.readouterr().err
    assert run("--from", place, "--iterations", "-1", *ter, "--refs", files / "refs") == 0
    of_store = capsys.readouterr()
    # A store also knows the sparse features of the other iterations, which mert does not tune.
    assert of_store.err.splitlines()[2:4] == of_files.err.splitlines()[2:4]
    # Sparse features of the first iteration are columns still, of weight 0.
    assert of_store.out == of_files.out
    assert (place / "data.mdb").read_bytes() == before
    assert run("--from", place, "--refs", files / "few-refs") == 1
    assert "has 3 lines, the store" in capsys.readouterr().err


def test_folds_leave_the_weights_alone(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--nbest", files / "one", "--refs", files / "refs", "--restarts", 1, "--threads", 1)
    assert run(*words) == 0
    plain = capsys.readouterr()
    assert run(*words, "--folds", 3) == 0
    validated = capsys.readouterr()
    assert validated.out == plain.out
    assert [line for line in validated.err.splitlines() if line.startswith("score at")] == [
        line for line in plain.err.splitlines() if line.startswith("score at")
    ]
    estimate = "for an estimate on others, add --folds 5 or --held-out 0.2"
    assert estimate in plain.err
    assert estimate not in validated.err
    assert "gain on 10 sentences, each with weights of the other folds:" in validated.err
    assert "fold  sentences  learned from  left out" in validated.err
    assert "all sentences, each with weights of the other folds" in validated.err
    assert "gap: " in validated.err


def test_folds_and_runs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--nbest", files / "one", "--refs", files / "refs", "--restarts", 1, "--threads", 1)
    for select in ("median", "average"):
        chosen = ("--runs", 2, "--select", select)
        assert run(*words, *chosen) == 0
        plain = capsys.readouterr()
        assert run(*words, *chosen, "--folds", 3) == 0
        validated = capsys.readouterr()
        # Folds change nothing in the result.
        assert validated.out == plain.out
        assert "all sentences, each with weights of the other folds" in validated.err
        assert "run  seed   score" in validated.err
        keywords = {"runs": 2, "select": select, "threads": 1, "options": {"restarts": 1}}
        found = mosesplug.cross_validate(
            str(files / "one"), references=str(files / "refs"), folds=3, **keywords
        )
        spelled = f"all sentences, each with weights of the other folds   {found.held_out:.4f}"
        assert spelled in " ".join(validated.err.split(" "))


def test_held_out_sentences_do_not_affect_learning(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--nbest", files / "one", "--refs", files / "refs", "--restarts", 1, "--threads", 1)
    assert run(*words, "--held-out", 0.3) == 0
    assert "learned from (7 sentences)  held out (3 sentences)" in capsys.readouterr().err
    other = ("--heldout-nbest", files / "few", "--heldout-refs", files / "few-refs")
    sparse = ("--active", "A,B,S_1w0", "-o", files / "tuned")
    assert run(*words, *other, *sparse) == 0
    said = capsys.readouterr().err
    assert "learned from (10 sentences)  held out (3 sentences)" in said
    # The held-out lists have sparse features of their own: their dense ones decide.
    tuned = dict(read_dense(files / "tuned"))
    weights = np.array([*tuned["A"], *tuned["B"]])
    features = np.array([[[w, w / 2 + 3, -w] for w in range(4)] for _ in range(3)])
    right = (np.argmax(features @ weights, axis=1) == 0).all()
    assert (" 1.000000\nBLEU" in said) == right


def test_runs_and_their_mean(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--nbest", files / "one", "--refs", files / "refs", "--restarts", 1, "--threads", 1)
    points = []
    for seed in (4, 5):
        assert run(*words, "--seed", seed, "-o", files / "w", "--quiet") == 0
        points.append([value for _, values in read_dense(files / "w") for value in values])
    assert run(*words, "--seed", 4, "--runs", 2, "--select", "average", "-o", files / "w") == 0
    mean = [value for _, values in read_dense(files / "w") for value in values]
    np.testing.assert_allclose(mean, np.mean(points, axis=0), rtol=1e-9)
    assert "weights: the average of 2 runs" in capsys.readouterr().err
    assert run(*words, "--seed", 4, "--runs", 2, "-o", files / "w") == 0
    median = [value for _, values in read_dense(files / "w") for value in values]
    assert median in points
    said = capsys.readouterr().err
    assert "s_opt" in said
    assert ", the median by score" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--folds", "3", "--held-out", "0.2"), "--held-out and --folds exclude each other"),
        (("--held-out", "2"), "--held-out must be at most 1, not 2"),
        (("--heldout-nbest", "."), "--heldout-nbest requires --heldout-refs"),
        (("--select", "median"), "--select requires --runs"),
        (("--runs", "2", "--select", "last"), "--select must be one of median"),
        (("--runs", "2", "--select", "best-heldout"), "requires --held-out"),
        (("--iterations", "1"), "--iterations requires --from"),
        (("--from", "."), "--nbest and --from exclude each other"),
    ],
)
def test_conflicting_options_are_rejected(
    files: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--nbest", files / "one", "--refs", files / "refs", *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--nbest", "one", "--refs", "refs", "-o", "one"),
        ("--nbest", "one", "--refs", "refs", "-o", "refs"),
        ("--nbest", "one", "--refs", "refs", "--html", "refs"),
        ("--nbest", "one", "--scores", "COMET=refs", "-o", "./refs"),
        ("--nbest", "one", "--refs", "refs", "--add-feature", "LM=few", "-o", "few"),
    ],
)
def test_inputs_are_not_overwritten(
    files: Path,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(files)
    before = {path: path.read_bytes() for path in files.iterdir()}
    assert run(*words) == 2
    assert "is both an input and an output. Choose another --" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in files.iterdir()} == before


def test_metrics_that_are_neither_scores_nor_known(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--nbest", files / "one", "--scores", "A=.", "--metric", "A:0.5+B:0.5") == 2
    assert "unknown metric 'B'; known metrics: A, BLEU" in capsys.readouterr().err


def test_too_few_held_out_scores_name_their_option(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{number}\n" for number in range(len((files / "one").read_text().splitlines()))]
    (files / "scores").write_text("".join(lines))
    (files / "short").write_text("".join(lines[:-1]))
    words = ("--nbest", files / "one", "--scores", f"C={files}/scores", "--restarts", 1)
    held_out = ("--heldout-nbest", files / "one", "--heldout-scores", f"C={files}/short")
    assert run(*words, *held_out) == 1
    assert "Give --heldout-scores C one line for each hypothesis" in capsys.readouterr().err
