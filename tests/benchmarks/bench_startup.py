"""How long a user waits for the first word: CPU seconds of whole processes.

``python tests/benchmarks/bench_startup.py [COMMAND...]`` prints a table of commands with an empty
cache of compiled code (cold) and with a full one (warm), and the machine, date and versions. They
run a copy of the source, beside which no compiled code lies. Sentences are few, so that little else
is measured. It takes minutes. Commands that read what others write come after these.
"""

from __future__ import annotations

import compileall
import gzip
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from mosesplug.cli.moses.install import write_launchers
from tests.benchmarks.synthetic import GROUPS, make

ROOT = Path(__file__).parents[2]
PROGRAM = "from mosesplug.cli.main import main; main()"
SENTENCES = 40
OPTIMIZE = "mosesplug optimize --nbest list --refs refs --threads 1 --seed 1"
COMMANDS = {
    "--help": "mosesplug --help",
    "score": "mosesplug score output refs",
    "compare": "mosesplug compare output other --refs refs",
    "optimize, mert": f"{OPTIMIZE} --algorithm mert",
    "optimize, kbmira": f"{OPTIMIZE} --algorithm kbmira",
    "optimize, pro": f"{OPTIMIZE} --algorithm pro",
    "extractor": "tools/extractor -r refs -n list --scfile scores --ffile features",
    "mert": "tools/mert -d 14 --scfile scores --ffile features --ifile init -n 2 -r 1",
    "kbmira": "tools/kbmira --dense-init dense --scfile scores --ffile features -o weights",
    "nbest import": "mosesplug nbest import list store --refs refs",
    "nbest ls": "mosesplug nbest ls store",
    "nbest show": "mosesplug nbest show store 3",
    "refusal of a list": "mosesplug optimize --nbest damaged --refs refs",
    "refusal of references": "mosesplug optimize --nbest list --refs short",
    "refusal of weights": "mosesplug optimize --nbest list --refs refs --init damaged",
}


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["mert-moses", "--help"]], ids=" ".join
)
def test_start(benchmark: Any, words: list[str]) -> None:
    """A whole process that only prints."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = benchmark.pedantic(
        subprocess.run, (command,), {"capture_output": True}, rounds=10, warmup_rounds=1
    )
    assert done.returncode == 0


def copy_source(checkout: Path, directory: Path) -> Path:
    """Copy the packages of a checkout to a new directory, and return it.

    What Python and Numba left beside the modules is not copied. Whatever its cache is, mosesplug
    also reads compiled code from there, so a command would start warm in a checkout that was used.
    """
    for package in ("mosesplug", "formats"):
        shutil.copytree(
            checkout / package, directory / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return directory


def lay_out(directory: Path) -> None:
    """Write the files that commands read."""
    (path,), references = make(directory / "made", 1, n_sentences=SENTENCES)
    few = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    texts = references.read_text().splitlines(keepends=True)
    files = {
        "list": few,
        "refs": texts,
        "short": texts[:-1],
        "damaged": [*few[:-1], few[-1].replace("LM0= ", "LM0= x")],
        "output": [line.split(" ", 2)[2] for line in texts],
        "other": [line.split(" ", 1)[1] for line in texts],
        "init": [" ".join(["0.1"] * 14) + "\n", " ".join(["0"] * 14) + "\n", "1 " * 14 + "\n"],
        "dense": [f"{name}= 0.1\n" for name, width in GROUPS for _ in range(width)],
    }
    for name, content in files.items():
        (directory / name).write_text("".join(content))
    (directory / "tools").mkdir()
    write_launchers(directory / "tools")


def measure(name: str, command: str, directory: Path, source: Path, cache: Path) -> float:
    """Run a command with the packages in ``source``; return its CPU seconds."""
    program, *words = shlex.split(command)
    start = [sys.executable, "-c", PROGRAM] if program == "mosesplug" else [program]
    if name == "nbest import":
        shutil.rmtree(directory / "store", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*start, *words],
        cwd=directory,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(source)},
        capture_output=True,
        check=False,
    )
    if done.returncode != int("refusal" in name):
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def describe_machine() -> str:
    """Return the processor, the number of jobs per core, the date and the versions that matter."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    cores = os.cpu_count() or 1
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "llvmlite"))
    return (
        f"{model}, {cores} cores, {os.getloadavg()[0] / cores:.1f} jobs per core; "
        f"{date.today()}; Python {platform.python_version()}, {versions}"
    )


def main(names: list[str]) -> None:
    """Print the table of some commands, or of all."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        lay_out(directory)
        source = copy_source(ROOT, directory / "source")
        compileall.compile_dir(source, quiet=1)  # Only Numba's code is cold.
        print(
            describe_machine(), "\n\n| command | cold | warm |\n|---|---|---|", sep="", flush=True
        )
        for number, (name, command) in enumerate(COMMANDS.items()):
            if names and name not in names:
                continue
            place = (directory, source, directory / f"kernels{number}")
            cold = measure(name, command, *place)
            warm = min(measure(name, command, *place) for _ in "12")
            print(f"| {name} | {cold:.2f} | {warm:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
