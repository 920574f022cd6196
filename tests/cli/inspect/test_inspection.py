"""Every command that looks at a store, on a small run and on one that mert-moses.pl made.

Each ends with code 0, says something that only this run has, changes no byte of the store, and
gives plain text to a pipe and one JSON document to a machine.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli import table
from mosesplug.cli.main import main
from tests.results.runs import REFERENCE, make_run

SENTENCES = 12

# What each says of the run that it is given: DIR is where its files lie.
COMMANDS: dict[str, tuple[str, ...]] = {
    "nbest ls STORE": ("iteration", "BLEU", "change"),
    "nbest ls STORE --no-oracle": ("iteration",),
    "nbest show STORE 0 --features --refs DIR/reference": ("1-best", "LM0", "reference  "),
    "nbest show STORE 1 --iteration 2 --sort metric": ("rank", "oracle"),
    "nbest diff STORE 0": ("A's lead", "model score"),
    "nbest diff STORE --iterations 1 2 --refs DIR/reference": ("iteration 1 to 2: BLEU 0.", "all"),
    "nbest diff STORE --weights STORE:1 --weights STORE --top 1": ("of the 1-bests: 0.", "all"),
    "weights why STORE 1 1 2 --refs DIR/reference": ("tie at", "model score"),
    "nbest grep STORE the": ("\thypothesis\t", "the"),
    "nbest grep STORE LM --in feature": ("-\tfeature\t", "LM0_0"),
    "nbest stats STORE": ("LM0_0", "distinct hypotheses", "best BLEU"),
    "nbest verify STORE": ("no fault found",),
    "nbest export STORE -o DIR/all.gz --iteration 1": (),
    "nbest export STORE -o DIR/all --format extractor": (),
    "nbest export STORE -o DIR/all.npz --format npz": (),
    "nbest copy STORE DIR/copy": ("bytes in",),
    "line STORE --direction LM0": ("as the weight of LM0_0 changes", "<- start"),
    "report STORE -o DIR/page.html": ("page.html",),
    "weights show STORE": ("LM0",),
    "weights diff STORE:1 STORE:2": ("LM0",),
    "weights average STORE:1 STORE:2": ("LM0",),
    "weights interpolate STORE:1 STORE:2 --at 0.5": ("LM0",),
    "weights normalize STORE:2": ("LM0",),
    "weights convert STORE:2 --to init.opt": ("\n",),
    "score DIR/list DIR/reference --nbest --metric BLEU": ("BLEU", "nrefs:1"),
    "compare DIR/one DIR/two --refs DIR/reference --samples 20 --trials 20": ("BLEU", "two"),
    "rerank --nbest DIR/list --weights DIR/weights": ("the",),
}
JSON = (
    *("nbest ls STORE", "nbest show STORE 0", "nbest diff STORE 0", "nbest stats STORE"),
    *("nbest diff STORE --iterations 1 2", "nbest grep STORE the", "nbest verify STORE"),
    *("line STORE --direction LM0", "weights show STORE", "weights diff STORE:1 STORE:2"),
    "score DIR/list DIR/reference --nbest --metric BLEU",
)
WRITING = {"nbest import", "nbest compact", "nbest drop"}

Call = Callable[[str], tuple[int, str]]


@pytest.fixture(scope="module", params=["made", "recorded"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's ``work`` or ``work.lmdb``, with the files that are given beside it."""
    path = tmp_path_factory.mktemp("run")
    if request.param == "made":
        make_run(path / "work")
        (path / "reference").write_bytes(b"\n".join(REFERENCE) + b"\n")
        (path / "weights").write_text("LM0= 0.5\nTM0= 0.5\n")
    else:
        cut(request.getfixturevalue("multi30k"), path)
        call(path, f"nbest import {path}/mert-work STORE --refs DIR/reference --quiet")
        shutil.copy(path / "mert-work" / "run2.dense", path / "weights")
    call(path, "nbest export STORE -o DIR/list --iteration 1")
    for name in ("one", "two"):
        lines = (path / "reference").read_bytes().splitlines()
        (path / name).write_bytes(b"\n".join([b"the", *lines[1:]]) + b"\n")
    return path


def cut(recorded: Path, target: Path) -> None:
    """The first sentences of two iterations of a working directory of mert-moses.pl."""
    (target / "mert-work").mkdir()
    for number in (1, 2):
        name = f"run{number}.best100.out.gz"
        with gzip.open(recorded / "mert-work" / name, "rb") as file:
            lines = []
            for line in file:
                if int(line.split(b" ", 1)[0]) >= SENTENCES:
                    break
                lines.append(line)
        with gzip.open(target / "mert-work" / name, "wb") as file:
            file.writelines(lines)
        for name in (f"run{number}.dense", f"run{number}.weights.txt"):
            shutil.copy(recorded / "mert-work" / name, target / "mert-work" / name)
    lines = (recorded / "text" / "dev.en").read_bytes().splitlines(keepends=True)
    (target / "reference").write_bytes(b"".join(lines[:SENTENCES]))


def store_of(directory: Path) -> Path:
    work = directory / "work"
    return work if work.exists() else directory / "work.lmdb"


def call(directory: Path, command: str) -> int:
    """The exit code of a command."""
    spelled = command.replace("STORE", str(store_of(directory))).replace("DIR", str(directory))
    with pytest.raises(SystemExit) as end:
        main(spelled.split())
    return int(end.value.code or 0)


def store_bytes(directory: Path) -> dict[str, bytes]:
    """All files of the store but LMDB's table of readers and the scores of oracles."""
    return {
        str(path): path.read_bytes()
        for path in sorted(store_of(directory).rglob("*"))
        if path.is_file() and path.name not in ("lock.mdb", "oracles.json")
    }


def commands() -> set[str]:
    """All commands of the program, as they are called."""
    names = set()
    for name, entry in table.COMMANDS.items():
        names |= (
            {f"{name} {one}" for one in entry.commands}
            if isinstance(entry, table.CommandGroup)
            else {name}
        )
    return names


def test_every_command_is_tested() -> None:
    """Test new commands of these groups in this file."""
    driven = {" ".join(command.split()[:2]) for command in COMMANDS}
    driven |= {command.split()[0] for command in COMMANDS}
    known = commands()
    looking = {name for name in known if name.split()[0] in ("nbest", "weights")}
    looking |= {"line", "report", "score", "compare", "rerank"}
    assert looking <= known
    assert looking - WRITING <= driven
    assert known >= WRITING


@pytest.mark.usefixtures("figures_without_svg")
@pytest.mark.parametrize("command", COMMANDS)
def test_looking(command: str, directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if command.startswith("report"):
        pytest.importorskip("matplotlib")
        if (directory / "work").exists():
            pytest.skip("the page of a small run is made in test_report")
    before = store_bytes(directory)
    assert call(directory, command) == 0
    said = capfd.readouterr()
    for words in COMMANDS[command]:
        assert words in said.out
    assert bool(said.out) == bool(COMMANDS[command])
    assert "\x1b" not in said.out + said.err
    assert store_bytes(directory) == before


@pytest.mark.parametrize("command", JSON)
def test_documents(command: str, directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert call(directory, f"{command} --json") == 0
    said = capfd.readouterr().out
    found = json.loads(said)
    assert "\x1b" not in said
    # Nothing is wrong, so verify has nothing to tell.
    assert bool(found) == ("verify" not in command)


def test_writing(directory: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On a copy: what is left is a sound store of one iteration."""
    store = tmp_path / "work.lmdb"
    assert call(directory, f"nbest copy STORE {store}") == 0
    assert call(tmp_path, "nbest drop STORE 2") == 0
    assert call(tmp_path, "nbest compact STORE") == 0
    capfd.readouterr()
    assert call(tmp_path, "nbest verify STORE") == 0
    assert capfd.readouterr().out.startswith("1 iteration, ")
