"""Kernels compiled in advance are those that commands use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.graphs.hypergraph import Edge, write_hypergraph
from mosesplug.cli.main import main
from mosesplug.cli.moses.extractor import main as extractor
from mosesplug.cli.moses.hgdecode import main as hgdecode
from mosesplug.cli.moses.kbmira import main as kbmira
from mosesplug.cli.moses.mert import main as mert
from mosesplug.cli.moses.pro import main as pro
from mosesplug.extras import warm_up as warming
from mosesplug.metrics.plain import kernels_only
from tests.kernel_sets import forget_kernels, loaded_kernels

COMMAND = "from mosesplug.cli.main import main; main()"


def test_a_second_process_compiles_nothing() -> None:
    mosesplug.warm_up(["score"])
    command = [sys.executable, "-c", COMMAND, "warm-up", "--for", "score", "--json"]
    (done,) = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert (done["task"], done["kernels"]) == ("score", 0)


def test_optimizers_run_as_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    tasks = {name: lambda _, names: asked.append(tuple(names)) for name in warming.TASKS}
    monkeypatch.setattr(warming, "TASKS", tasks)
    with pytest.raises(SystemExit) as ended:
        main(["warm-up", "--algorithm", "pro"])
    assert not ended.value.code
    assert asked == [("pro",)] * len(tasks)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(tasks)


def test_commands_stand_for_their_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "TASKS", dict.fromkeys(warming.TASKS, lambda *_: None))

    def list_tasks(*names: str) -> list[str]:
        return [done.task for done in mosesplug.warm_up(names)]

    assert list_tasks("tune") == ["tune", "tune --forest", "tune --online"]
    assert list_tasks("tune --online") == ["tune --online"]
    assert list_tasks("mert-moses", "compare", "tune") == [*list_tasks("tune"), "score"]
    assert list_tasks("mert") == ["mert"]


class Data:
    """Random lists, their references and files that programs make of them."""

    def __init__(self) -> None:
        values = np.random.default_rng(7)
        lines, references = [], []
        for sentence in range(5):
            words = values.choice(list("abcdefghij"), 7)
            references.append(" ".join(words))
            for _ in range(6):
                words = np.where(values.random(7) < 0.3, "x", words)
                scores = "A= {:.3f} B= {:.3f} {:.3f}".format(*values.normal(size=3))
                lines.append(f"{sentence} ||| {' '.join(words)} ||| {scores} ||| -1")
        self._write("list", lines)
        self._write("refs", references)
        self._write("dense", ["A= 0.3", "B= 0.2", "B= 0.5"])
        self._write("init", ["0.1 0.1 0.1", "0 0 0", "1 1 1"])
        self._write("graphs/weights", ["A 0.3", "B_1 0.2", "B_2 0.5", "UnknownWordPenalty0 1"])
        for sentence, line in enumerate(references):
            nodes = [[Edge((b"<s>",), 0)]]
            for tail, word in enumerate(line.split()):
                pair = (word.encode(), b"x")
                each = [(tail, text, tuple(values.normal(size=4))) for text in pair]
                nodes.append([Edge((tail, text), tail + 1, dense) for tail, text, dense in each])
            nodes.append([Edge((len(nodes) - 1, b"</s>"), len(nodes))])
            write_hypergraph(
                Path("graphs", f"{sentence}.gz"), ("A", "B_1", "B_2", "UnknownWordPenalty0"), nodes
            )

    @staticmethod
    def _write(name: str, lines: list[str]) -> None:
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))


def call(main: Callable[[Sequence[str]], object], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert not ended.value.code


def run_optimize() -> None:
    for words in ("--nbest list", "--graphs graphs"):
        for algorithm in warming.ALGORITHMS:
            given = f"{words} --refs refs --algorithm {algorithm} --option "
            option = "restarts=1" if algorithm == "mert" else "epochs=2"
            call(main, f"optimize {given}{option} --threads 1 -o w")


def run_forest() -> None:
    call(main, "forest nbest graphs -o best")
    call(main, "forest nbest graphs --diverse 0.1 -o best")
    call(main, "forest oracle graphs --refs refs -o best")
    call(hgdecode, "-d dense -g graphs/0.gz")


def run_mbr() -> None:
    call(main, "mbr graphs -o best")
    call(main, "mbr --nbest list -o best")
    call(main, "rerank --nbest list --weights dense --mbr -o best")


def run_mert() -> None:
    call(extractor, "-r refs -n list -S scores -F features")
    call(mert, "-d 3 -S scores -F features --ifile init -n 1 -r 1")


def run_kbmira() -> None:
    call(extractor, "-r refs -n list -S scores -F features")
    call(kbmira, "-S scores -F features -d dense -r 1 -J 2 -o w")
    call(kbmira, "--type hypergraph -H graphs -R refs -d dense -r 1 -J 2 -o w")


def run_pro() -> None:
    call(extractor, "-r refs -n list -S scores -F features")
    call(pro, "-S scores -F features -r 1 -o pairs")


@pytest.mark.parametrize(
    ("task", "run"),
    [
        ("optimize", run_optimize),
        ("forest", run_forest),
        ("mbr", run_mbr),
        ("mert", run_mert),
        ("kbmira", run_kbmira),
        ("pro", run_pro),
    ],
)
def test_nothing_is_left_to_compile(
    task: str, run: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    forget_kernels(monkeypatch)
    mosesplug.warm_up([task])
    ahead = loaded_kernels()
    Data()
    with kernels_only():
        run()
    assert loaded_kernels() - ahead == set()


@pytest.mark.parametrize(("tasks", "algorithms"), [(["dance"], ["mert"]), (["score"], ["dance"])])
def test_unknown_names(tasks: list[str], algorithms: list[str]) -> None:
    with pytest.raises(mosesplug.UsageError, match="dance"):
        mosesplug.warm_up(tasks, algorithms)
