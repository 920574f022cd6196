"""Runs rows: lays out the inputs, runs the command lines, and collects what they leave."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from mosesplug.cli.moses.install import LAUNCHERS
from tests.golden import boot
from tests.golden.results import collect, plain_output
from tests.golden.rows import Row
from tests.golden.sources import REPOSITORY, Source

__all__ = ["INPUTS", "LocalRunner", "Runner", "lay_out", "run_row"]

_BOOT = Path(__file__).with_name("boot.py")
_TOY = REPOSITORY / "tests" / "data" / "toy" / "decoder.py"
_DEMO = REPOSITORY / "moses-config" / "demo"
_MODEL = ("moses.ini", "lm.arpa.gz", "phrase-table.gz", "reordering-table.gz")
_TIME = 10**9
_SENTENCES, _HELD_OUT = 8, 4
_DEMO_SENTENCES = 5
INPUTS = (_TOY, *(_DEMO / name for name in (*_MODEL, "tune.tarvian", "tune.english")))
"""Files that inputs are made from."""
_PROGRAMS = ("mosesplug", "mert-moses", "mosesplug-decoder")


class Runner:
    """A process that runs command lines of a checkout, one after the other."""

    def __init__(self, source: Source) -> None:
        asked, self._requests = os.pipe()
        self._answers, answered = os.pipe()
        self.environment = _environment(source)
        own = {"GOLDEN_REQUESTS": str(asked), "GOLDEN_ANSWERS": str(answered)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_BOOT)],
            env=self.environment | own,
            pass_fds=(asked, answered),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(answered)
        self._reader = os.fdopen(self._answers)

    def run(self, program: str, words: list[str], directory: Path, stdout: Path) -> int:
        """Run a program of the package, or another by its path; return the exit code."""
        stderr = _stderr_path(stdout)
        if program not in _PROGRAMS:
            return _run_process(program, words, directory, self.environment, stdout)
        request: dict[str, Any] = {"program": program, "words": words}
        request |= {"directory": str(directory), "stdout": str(stdout), "stderr": str(stderr)}
        os.write(self._requests, json.dumps(request).encode() + b"\n")
        answer = self._reader.readline()
        if not answer:
            raise RuntimeError("the process that runs command lines has ended")
        return int(answer)

    def close(self) -> None:
        """End the process."""
        os.close(self._requests)
        self._reader.close()
        self._process.wait()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalRunner:
    """Runs command lines of the working tree in this process, which keeps compiled kernels."""

    def __init__(self) -> None:
        self.environment = _environment(Source(REPOSITORY))

    def run(self, program: str, words: list[str], directory: Path, stdout: Path) -> int:
        """Run a program of the package, a launcher, or another by its path; return the exit code.

        Of launchers, only the function is run that they name.
        """
        folder, _, name = program.rpartition("/")
        if program not in _PROGRAMS and (folder != "tools" or name not in LAUNCHERS):
            return _run_process(program, words, directory, self.environment, stdout)
        with (
            stdout.open("w", encoding="utf-8") as out,
            _stderr_path(stdout).open("w", encoding="utf-8") as err,
            contextlib.chdir(directory),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.object(sys, "argv"),
        ):
            if program in _PROGRAMS:
                return boot.run(program, words)
            return boot.call(*LAUNCHERS[name], name, words)


def _stderr_path(stdout: Path) -> Path:
    return stdout.with_name(stdout.name.replace("stdout", "stderr"))


def _run_process(
    program: str, words: list[str], directory: Path, environment: dict[str, str], stdout: Path
) -> int:
    """Run a program by its path; return the exit code."""
    with stdout.open("wb") as out, _stderr_path(stdout).open("wb") as err:
        done = subprocess.run(
            [program, *words],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            check=False,
        )
    return done.returncode


def _environment(source: Source) -> dict[str, str]:
    """The variables of all processes."""
    names = ("HOME", "TMPDIR", "NUMBA_CACHE_DIR", "NUMBA_OPT", "MOSESPLUG_CACHE_DIR")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    kernels = {}
    paths = [str(source.directory)]
    if source.kernels is not None:
        kernels["NUMBA_CACHE_DIR"] = str(source.kernels)
        kernels["NUMBA_CACHE_LOCATOR_CLASSES"] = "kernels_by_code.Locator"
        paths.append(str(_BOOT.with_name("numba_locator")))
    return {
        **kept,
        **kernels,
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "100",
        "PYTHONPATH": os.pathsep.join(paths),
        "GOLDEN_SOURCE": str(source.directory),
        "GOLDEN_BOOT": str(_BOOT),
        "GOLDEN_PYTHON": sys.executable,
    }


def lay_out(directory: Path) -> frozenset[str]:
    """Write the inputs of rows into a new directory; return their names.

    ``input``, ``reference0``, ``reference1``, ``moses.ini`` and ``decoder`` are a toy system;
    ``heldout``, ``heldref0`` and ``heldref1`` other text of it; ``demo/`` the bundled demo with
    its first sentences as ``input`` and ``reference``; ``bin/`` has the installed programs.
    """
    make = [sys.executable, "-IS", str(_TOY), "--make", str(directory)]
    subprocess.run([*make, str(_SENTENCES + _HELD_OUT)], check=True)
    for name, other in (
        ("input", "heldout"),
        ("reference0", "heldref0"),
        ("reference1", "heldref1"),
    ):
        lines = (directory / name).read_text().splitlines(keepends=True)
        (directory / name).write_text("".join(lines[:_SENTENCES]))
        (directory / other).write_text("".join(lines[_SENTENCES:]))
    shutil.copyfile(_TOY, directory / "toy.py")
    _script(directory / "decoder", f'"$GOLDEN_PYTHON" -IS {directory}/toy.py')
    demo = directory / "demo"
    demo.mkdir()
    for name in _MODEL:
        shutil.copyfile(_DEMO / name, demo / name)
    for name, other in (("tune.tarvian", "input"), ("tune.english", "reference")):
        lines = (_DEMO / name).read_text().splitlines(keepends=True)
        (demo / other).write_text("".join(lines[:_DEMO_SENTENCES]))
    (directory / "bin").mkdir()
    for name in _PROGRAMS:
        _script(directory / "bin" / name, f'"$GOLDEN_PYTHON" -P "$GOLDEN_BOOT" {name}')
    files = [path for path in directory.rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (_TIME, _TIME))
    return frozenset(path.relative_to(directory).as_posix() for path in files)


def _script(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def run_row(row: Row, runner: Runner | LocalRunner, directory: Path) -> dict[str, bytes]:
    """Run a row in a new directory; return what it leaves by name.

    ``stdout.N`` and ``code.N`` are of command N, counted from 1.
    """
    directory.mkdir(parents=True)
    inputs = lay_out(directory)
    for name, text in row.files.items():
        (directory / name).write_text(text)
        os.utime(directory / name, (_TIME, _TIME))
    inputs |= row.files.keys()
    outputs = directory / "outputs"
    outputs.mkdir()
    left = {}
    for number, command in enumerate(row.commands, 1):
        program, *words = (word.replace("{here}", str(directory)) for word in command.words)
        line = shlex.join(command.words)
        stdout = outputs / f"stdout.{number}"
        code = runner.run(program, words, directory, stdout)
        left[f"code.{number}"] = f"{code} {line}\n".encode()
        left[f"stdout.{number}"] = plain_output(stdout.read_bytes())
        if code != command.code:
            stderr = (outputs / f"stderr.{number}").read_text(errors="replace")
            left[f"failed.{number}"] = f"{line}\nexit code {code}\n{stderr}".encode()
    shutil.rmtree(outputs)
    shutil.rmtree(directory / "tools", ignore_errors=True)
    return left | collect(directory, inputs)
