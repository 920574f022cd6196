"""``mosesplug optimize`` as a user runs it."""

from __future__ import annotations

import errno
import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from formats.weights.any_format import read_weights
from formats.weights.files import read_dense, read_sparse
from mosesplug.cli.main import main
from mosesplug.metrics import metric_names
from mosesplug.metrics.error_rates import is_error_rate
from mosesplug.optimizers import algorithms

SHARDED = [name for name, each in algorithms().items() if each.maps_shards]
MORE = {"linear-bleu": ("--option", "word_precision=0.5")}
"""Settings with which an algorithm can learn from lists as short as these."""


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A tiny tuning problem: feature B knows the right translation, feature A the wrong one."""
    references, lines = [], []
    for sentence in range(8):
        words = [f"w{sentence}{k}" for k in range(6)]
        references.append(" ".join(words))
        for wrong in range(4):
            hypothesis = words[: 6 - wrong] + ["x"] * wrong
            lines.append(
                f"{sentence} ||| {' '.join(hypothesis)} ||| A= {wrong} {wrong / 2} B= {-wrong} "
                f"S_w{wrong}= 1 ||| {wrong}"
            )
    (tmp_path / "refs").write_text("\n".join(references) + "\n")
    (tmp_path / "lists").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "again.gz", "wt") as again:
        again.write("\n".join(lines) + "\n")
    (tmp_path / "init.dense").write_text("A= 1 1\nB= 0.5\n")
    return tmp_path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["optimize", *map(str, words)])
    return int(ended.value.code or 0)


def test_prints_scores_and_writes_weights(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = lists / "tuned"
    code = run(
        *("--nbest", lists / "lists", lists / "again.gz", "--refs", lists / "refs"),
        *("--init", lists / "init.dense", "--restarts", "3", "-o", output),
    )
    said = capsys.readouterr().err
    assert code == 0
    assert "32 distinct hypotheses of 64, 7 features" in said
    assert "score at the start  0." in said
    assert "score at the end    1.000000" in said
    assert "BLEU|nrefs:1|case:mixed|" in said
    groups = dict(read_dense(output))
    assert np.abs(np.concatenate(list(groups.values()))).sum() == pytest.approx(1.0)
    assert not Path(f"{output}.sparse").exists()


def test_active_sparse_features_go_to_their_own_file(lists: Path) -> None:
    output = lists / "tuned"
    code = run(
        *("--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / "init.dense"),
        *("--active", "S_w0,S_w3", "-o", output, "--quiet"),
    )
    assert code == 0
    assert dict(read_dense(output)) == {"A": (1.0, 1.0), "B": (0.5,)}
    assert read_sparse(Path(f"{output}.sparse"))["S_w0"] > 0.0


@pytest.mark.parametrize(
    ("name", "words", "begins"),
    [
        ("w.json", (), '{\n "dense": {\n  "A": ['),
        ("w.yaml", (), "A: ["),
        ("w.tsv", (), "feature\tweight\nA_1\t"),
        ("w.json", ("--weights-format", "json-flat"), '{\n "A": ['),
        ("w", ("--weights-format", "equals"), "A_1="),
        ("w", ("--weights-format", "lines"), "A_1 "),
        ("w.ini", (), "A= "),
    ],
)
def test_the_result_is_written_in_any_format(
    name: str, words: tuple[str, ...], begins: str, lists: Path
) -> None:
    """The same numbers as in the default format, and the sparse ones in the same file."""
    same = ("--nbest", lists / "lists", "--refs", lists / "refs", "--algorithm", "kbmira")
    path = lists / name
    assert run(*same, *words, "-o", path, "--quiet") == 0
    assert path.read_text().startswith(begins)
    assert run(*same, "-o", lists / "plain", "--quiet") == 0
    plain = read_weights(lists / "plain").with_sparse(lists / "plain.sparse")
    found = read_weights(path)
    if name == "w.ini":
        found = found.with_sparse(lists / "w.ini.sparse")
    else:
        assert not Path(f"{path}.sparse").exists()
    assert found.groups == plain.groups
    assert found.all_sparse == plain.all_sparse
    assert run(*same[:4], "--init", path, "-o", lists / "again", "--quiet") == 0


def test_a_configuration_is_written_if_the_start_is_one(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ini = lists / "moses.ini"
    ini.write_text("[feature]\nX name=A num-features=2\nY name=B\n[weight]\nA= 1 1\nB= 0.5\n[x]\n")
    same = ("--nbest", lists / "lists", "--refs", lists / "refs", "--quiet")
    assert run(*same, "--init", ini, "-o", lists / "tuned.ini") == 0
    text = (lists / "tuned.ini").read_text()
    assert text.startswith("[feature]\nX name=A num-features=2\nY name=B\n[weight]\nA= ")
    assert run(*same, "--weights-format", "moses.ini", "-o", lists / "w") == 2
    assert "--weights-format moses.ini requires --init, a moses.ini" in capsys.readouterr().err
    assert run(*same, "--weights-format", "moses.ini", "--init", ini) == 2
    assert "--weights-format moses.ini requires --output" in capsys.readouterr().err
    assert run(*same, "--weights-format", "xml") == 2
    assert "unknown format 'xml' of weights; known: " in capsys.readouterr().err


def test_same_seed_same_weights(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for threads in (1, 2):
        run("--nbest", lists / "lists", "--refs", lists / "refs", "--threads", threads, "--quiet")
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out
    assert printed[0].out.startswith("A= ")
    assert not printed[0].err


def test_starts_from_init_opt_and_from_moses_ini(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lists / "init.opt").write_text("1 1 0.5\n0 0 0\n1 1 1\n")
    (lists / "moses.ini").write_text("[feature]\nX name=A\n[weight]\nA= 1 1\nB= 0.5\n")
    for init in ("init.opt", "moses.ini"):
        words = ("--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / init)
        assert run(*words) == 0
        said = capsys.readouterr()
        assert "score at the end    1.000000" in said.err


def test_unlabeled_lists_with_given_names(lists: Path) -> None:
    lines = (lists / "lists").read_text().splitlines()
    bare = [" ".join(word for word in line.split() if "=" not in word) for line in lines]
    bare = [line.replace(" 1 ||| ", " ||| ") for line in bare]  # the values of sparse features
    (lists / "bare").write_text("\n".join(bare) + "\n")
    output = lists / "tuned"
    words = ("--nbest", lists / "bare", "--refs", lists / "refs", "--names", "lm, tm,tm")
    assert run(*words, "-o", output, "--quiet") == 0
    assert [(name, len(values)) for name, values in read_dense(output)] == [("lm", 1), ("tm", 2)]


def test_the_number_of_sentences_with_a_list_is_reported(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (lists / "refs").open("a") as references:
        references.write("one more\n")
    assert run("--nbest", lists / "lists", "--refs", lists / "refs") == 0
    said = capsys.readouterr().err
    assert "8 of 9 sentences, 32 distinct" in said
    assert "warning: 1 of 9 sentences have no hypotheses; they do not count. " in said


def test_sparse_weights_of_an_earlier_run_do_not_stay(lists: Path) -> None:
    words = ("--nbest", lists / "lists", "--refs", lists / "refs", "--quiet")
    output = lists / "tuned"
    assert run(*words, "--active", "S_w0,S_w3", "-o", output) == 0
    assert Path(f"{output}.sparse").exists()
    assert run(*words, "-o", output) == 0
    assert not Path(f"{output}.sparse").exists()


def test_prints_the_weights_that_it_cannot_write(
    lists: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    words = (
        "--nbest",
        lists / "lists",
        "--refs",
        lists / "refs",
        "--quiet",
        "--active",
        "S_w0,S_w3",
    )
    assert run(*words) == 0
    wanted = capsys.readouterr().out
    monkeypatch.setattr("mosesplug.learning.weights.write_atomic", full)
    assert run(*words, "-o", lists / "tuned") == 1
    said = capsys.readouterr()
    assert said.out == wanted
    assert "No space left" in said.err


@pytest.mark.parametrize("name", [*metric_names(), "BLEU,TER"])
def test_optimizes_every_metric(lists: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    words = ["--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / "init.dense"]
    assert run(*words, "--metric", name, "--restarts", "2", "-o", lists / "tuned") == 0
    said = capsys.readouterr().err
    assert "score at the start  1.000000" not in said
    assert "score at the end    1.000000" in said
    rate = f"{f'{name} at the end':18}  0.000000\n"
    assert (rate in said) == is_error_rate(name)
    assert f"{name}|" in said


def test_help_names_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    # Lines may be broken after a hyphen.
    said = "".join(capsys.readouterr().out.split())
    assert f"{','.join(metric_names())},orasum" in said


def test_a_true_setting_can_be_set_to_false(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kbmira shuffles unless told not to; only then the seed decides."""
    rng = np.random.default_rng(0)
    lines = (lists / "lists").read_text().splitlines()
    noisy = [line.replace("A=", f"A= {rng.normal():.3f}", 1) for line in lines]
    (lists / "lists").write_text("\n".join(noisy) + "\n")
    (lists / "init.dense").write_text("A= 1 1 1\nB= 0.5\n")
    given = ("--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / "init.dense")
    outputs = []
    for shuffle, seed in (("--no-shuffle", 1), ("--no-shuffle", 2), ("--shuffle", 2)):
        words = ("--algorithm", "kbmira", "--epochs", "1", shuffle, "--seed", seed)
        assert run(*given, *words) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


def test_fails_before_the_lists_are_read(
    lists: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lists(*arguments: object, **keywords: object) -> None:
        raise AssertionError("the lists must not be read")

    monkeypatch.setattr("mosesplug.learning.data.load_lists", no_lists)
    monkeypatch.chdir(lists)
    words = ["--nbest", "lists", "--refs", "refs"]
    for more, code, message in (
        (["-o", "none/tuned"], 2, f"there is no directory {lists / 'none'}"),
        (["-o", "."], 2, "it is a directory"),
        (["--init", "nowhere"], 2, "nowhere: No such file"),
        (["again.gz", "nowhere"], 2, "nowhere: No such file"),
        (["--sparse-init", "refs"], 2, "--sparse-init requires --init"),
        (["--names", "A,B,A"], 2, "the columns of A are not adjacent"),
        (["--names", "A,,B"], 2, "a name is empty"),
    ):
        assert run(*words, *more) == code
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


def test_starting_weights_may_be_written_out(
    lists: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lists)
    words = ("--nbest", "lists", "--refs", "refs", "--restarts", 0, "--seed", 1)
    Path("start").write_text("A= 0.3 0.2\nB= 0.5\n")
    results = []
    for start in ("start", "A= 0.3 0.2 B= 0.5", "A_1=0.3 A_2=0.2 B=0.5"):
        assert run(*words, "--init", start, "-o", "tuned") == 0, capsys.readouterr().err
        results.append(Path("tuned").read_bytes())
    assert results[0] == results[1] == results[2]
    capsys.readouterr()
    assert run(*words, "--init", "A= 0.3 0.2 C= 0.5") == 1
    assert "Add it, as in 'B= 0'" in capsys.readouterr().err


def test_an_unwritable_directory_fails_at_once(
    lists: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    (lists / "short").write_text("too few sentences\n")
    words = ("--nbest", lists / "lists", "--refs", lists / "short", "-o", lists / "tuned")
    assert run(*words) == 2
    assert f"no file can be created in {lists}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--refs", "refs"], 2, "use --nbest"),
        (["--nbest", "lists"], 2, "use --refs"),
        (["--nbest", "lists", "--refs", "refs", "--algorithm", "nothing"], 2, "known: "),
        (["--nbest", "lists", "--refs", "refs", "--active", "C"], 2, "there is no feature C;"),
        (["--nbest", "lists", "--refs", "refs", "--active", "S_w9"], 2, "Did you mean S_w"),
        (
            ["--nbest", "lists", "--scores", "COMET=refs", "--metric", "COMMET"],
            2,
            "known metrics: COMET, BLEU",
        ),
        (["--nbest", "lists", "--refs", "refs", "--restarts", "-1"], 2, "at least 0"),
        (["--nbest", "lists", "--refs", "refs", "--method", "magic"], 2, "powell"),
        (["--nbest", "lists", "--refs", "refs", "--option", "method=x"], 2, "powell"),
        (
            ["--nbest", "lists", "--refs", "refs", "--option", "restart=2"],
            2,
            "Did you mean restarts?",
        ),
        (["--nbest", "lists", "--refs", "refs", "--range", "A:1..0"], 2, "lowest value first"),
        (["--nbest", "lists", "--refs", "refs", "--init", "short"], 1, "no weight of B"),
        (["--nbest", "nowhere", "--refs", "refs"], 2, "nowhere"),
        (["--nbest", "refs", "--refs", "refs"], 1, "refs:1: "),
        (["--nbest", "lists", "--refs", "nowhere"], 2, "nowhere"),
    ],
)
def test_errors_are_one_line(
    lists: Path,
    words: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (lists / "short").write_text("A= 1 1\n")
    monkeypatch.chdir(lists)
    assert run(*words, "-o", "tuned") == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not Path("tuned").exists()


def online(lists: Path, *words: object) -> tuple[object, ...]:
    return (
        *("--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / "init.dense"),
        *("--algorithm", "adagrad", "--epochs", "3", "--batch", "2", "--quiet", *words),
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--shards", "2"),
        ("--shards", "3", "--mixing", "average"),
        ("--shards", "3", "--mixing", "weighted"),
        ("--shards", "2", "--mixing", "select", "--keep", "2"),
        ("--shards", "2", "--async", "--async-order", "fixed"),
    ],
    ids=" ".join,
)
def test_shards_and_stale_weights(
    lists: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    printed = []
    for threads in (1, 2):
        assert run(*online(lists, *words, "--threads", threads)) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "A= " in printed[0]


@pytest.mark.parametrize("name", SHARDED)
def test_batch_optimizers_in_shards(
    lists: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    printed = []
    for shards in ((), ("--shards", "1"), ("--shards", "2"), ("--shards", "2", "--threads", "1")):
        words = ("--algorithm", name, *MORE.get(name, ()), "--quiet", *shards)
        assert run(*online(lists)[:6], *words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[2] == printed[3]
    assert name != "mert" or printed[0] == printed[2]


def test_workers_in_other_processes(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for kind in (("threads",), ("processes", "--shard-directory", str(lists))):
        assert run(*online(lists, "--shards", "2", "--threads", "1", "--workers", *kind)) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert not list(lists.glob("mosesplug-*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--algorithm", "pro", "--shards", "2"), "pro cannot learn in shards or on workers; "),
        (("--algorithm", "kbmira", "--async"), "--async is for online learners, not for kbmira"),
        (
            ("--algorithm", "mert", "--shards", "2", "--mixing", "average"),
            "--mixing is for online learners, not for mert: leave it out",
        ),
        (("--algorithm", "mert", "--shards", "9"), "9 shards for 8 sentences. Lower --shards"),
        (
            ("--shards", "2", "--async", "--mixing", "average"),
            "--mixing and --async exclude",
        ),
        (("--async-order", "fixed"), "--async-order requires --async"),
        (("--shards", "2", "--mixing", "vote"), "--mixing must be one of average"),
        (("--shards", "2", "--mixing", "select"), "--mixing select requires --keep"),
        (("--shards", "9"), "9 shards for 8 sentences"),
        (("--mixing", "select", "--keep", "0"), "--keep must be at least 1, not 0"),
        (("--shards", "0"), "--shards must be at least 1, not 0"),
        (("--workers", "elves"), "--workers must be one of threads, processes, not elves"),
        (
            ("--scheduler", "tcp://a:1", "--workers", "threads"),
            "--workers and --scheduler",
        ),
        (
            ("--shards", "2", "--shard-directory", "."),
            "requires --workers processes or --sched",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_sharding_that_cannot_be(
    lists: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert run(*online(lists)[:6], "--algorithm", "adagrad", *words) == 2
    assert message in capsys.readouterr().err


def test_a_cluster_without_its_package_is_rejected_before_any_work(
    lists: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    (lists / "lists").write_text("not read")
    assert run(*online(lists, "--scheduler", "tcp://localhost:8786")) == 2
    assert "mosesplug[dask]" in capsys.readouterr().err
