"""The files of the manual's examples: the demo system, under the names of the manual."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.batch.mert import mert
from mosesplug.optimizers.batch.searches import starting_points
from mosesplug.optimizers.problem import Problem
from tests.docs.fork_server import serve_programs
from tests.docs.running import ROOT, run_command
from tests.plugins.installing import forget_package, install_package, write_data
from tests.tuning.bundled import write_demo_tables

DEMO = ROOT / "moses-config" / "demo"
SENTENCES, TUNED_SENTENCES = 5, 20
SHORT = 3
TEXTS = {"tune.tarvian": "dev.src", "tune.english": "dev.ref", "test.tarvian": "test.src"}
TEXTS |= {f"test.english{i}": f"test.ref{i}" for i in (0, 1)}
RESTARTS = 4
TUNE = (
    "mosesplug tune dev.src dev.ref moses moses.ini --working-dir tuning --nbest 20 --seed 1"
    " --max-iterations 3 --quiet"
)

Floats = NDArray[np.float64]
Source = Callable[[Path], None]


@pytest.fixture(scope="module", autouse=True)
def few_restarts() -> Iterator[None]:
    """Run the examples with few restarts of MERT on small lists.

    MERT would add up to 20 times as many there, seconds for each run.
    """

    def draw_few(problem: Problem, initial: Floats, rng: np.random.Generator, n: int) -> object:
        is_small = problem.tuning_set.n_hyps <= mert.SMALL
        return starting_points(problem, initial, rng, min(n, RESTARTS) if is_small else n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mert, "MOST_RESTARTS", 0)
        patch.setattr(mert, "starting_points", draw_few)
        yield


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo system; its tables have what the texts need."""
    directory = tmp_path_factory.mktemp("demo") / "system"
    directory.mkdir()
    for name in ("moses.ini", "lm.arpa.gz"):
        shutil.copy(DEMO / name, directory)
    _write_texts(directory, TUNED_SENTENCES)
    sources = (directory / name for name in ("dev.src", "test.src"))
    write_demo_tables(
        directory, [line for path in sources for line in path.read_bytes().splitlines()]
    )
    _write_texts(directory, SENTENCES)
    return directory


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Environment of the examples; the bundled decoder is called ``moses``."""
    programs = Path(sysconfig.get_path("scripts"))
    directory = tmp_path_factory.mktemp("bin")
    with serve_programs(directory):
        yield {"PATH": f"{directory}:{programs}:{os.environ['PATH']}", "COLUMNS": "80"}


@pytest.fixture(scope="module")
def tuned(system: Path, environment: Mapping[str, str], few_restarts: None) -> Path:
    """The demo system after a run of three iterations, and translations before and after it.

    It has more sentences, since pages show what is in them.
    """
    directory = system.parent / "tuned"
    shutil.copytree(system, directory)
    _write_texts(directory, TUNED_SENTENCES)
    for words in (
        TUNE,
        "moses -config moses.ini -input-file test.src > before.out",
        "moses -config tuning/moses.ini -input-file test.src > after.out",
    ):
        code, printed = run_command(words, directory, os.environ | environment)
        assert not code, printed
    return directory


@pytest.fixture
def sources(request: pytest.FixtureRequest) -> Mapping[str, Source]:
    """What makes the files of each name in a ``needs`` mark."""

    def copy_texts(directory: Path) -> None:
        for name in TEXTS.values():
            shutil.copy(request.getfixturevalue("tuned") / name, directory)

    def tuning(directory: Path) -> None:
        copy_texts(directory)
        shutil.copytree(request.getfixturevalue("tuned") / "tuning", directory / "tuning")

    def lists(directory: Path) -> None:
        copy_texts(directory)
        run = request.getfixturevalue("tuned") / "tuning"
        for n in (1, 2):
            shutil.copy(run / f"run{n}.best20.out.gz", directory / f"run{n}.best100.out.gz")
        shutil.copy(run / "run1.dense", directory)

    def outputs(directory: Path) -> None:
        copy_texts(directory)
        for name in ("before.out", "after.out"):
            shutil.copy(request.getfixturevalue("tuned") / name, directory)

    def scored(directory: Path) -> None:
        made = request.getfixturevalue("tmp_path") / "made"
        script = ROOT / "docs" / "examples" / "make_scored_lists.py"
        subprocess.run([sys.executable, script, "neural", made], check=True)
        for name in ("dev.jsonl", "dev.comet"):
            shutil.copy(made / name, directory)

    def test(directory: Path) -> None:
        for name in ("test.src", "test.ref0", "test.ref1"):
            shutil.copy(request.getfixturevalue("system") / name, directory)

    def short(directory: Path) -> None:
        for name in ("dev.src", "dev.ref"):
            _write_beginning(directory / name, directory / name, SHORT)

    def plugins(directory: Path) -> None:
        request.getfixturevalue("monkeypatch").syspath_prepend(
            install_package(request.getfixturevalue("tmp_path") / "site")
        )
        request.addfinalizer(forget_package)
        write_data(directory)

    def list_formats(directory: Path) -> None:
        shutil.copytree(ROOT / "docs/examples/lists", directory, dirs_exist_ok=True)

    return {
        "empty": lambda directory: None,
        "list-formats": list_formats,
        **{each.__name__: each for each in (tuning, lists, outputs, scored, test, short, plugins)},
    }


def _write_texts(directory: Path, sentences: int) -> None:
    for source, name in TEXTS.items():
        _write_beginning(DEMO / source, directory / name, sentences)


def _write_beginning(source: Path, target: Path, lines: int) -> None:
    target.write_text("".join(source.read_text().splitlines(keepends=True)[:lines]))
