"""Days of work in minutes: what grows with the iterations, and what must not.

usage: python -m tests.long_running.soak [--iterations 50] [--sentences 2000] [--best 200]
           [--kinds window,online,all]

Tunes with a decoder that makes lists at once (``list_decoder``), half of each list new, and looks
at the process from outside: the memory of its own (``RssAnon``: without the store's map, which the
system takes back at need), its highest value in each iteration.

- ``window``: kbmira on the newest three iterations (``--iterations-window 2``);
- ``online``: AdaGrad, each mini-batch a quarter of the text. Here and above, memory must be flat:
  of the iterations after the fifth, no one's may be 5 per cent above the fifth's;
- ``all``: kbmira on the lists of all iterations, as ``mert-moses.pl`` has it. The merged lists grow
  by nature. What is beside them must be flat: memory is to be a straight line over the merged
  hypotheses, with no point more than 5 per cent of the last above it.

Bytes of the store for each new hypothesis must be the same in the first and the second half of the
iterations (within 5 per cent); ``--continue`` must begin the next iteration within 3 seconds of
CPU time; and ``nbest verify`` must find no fault. Prints a table; exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.long_running.system import ROOT

PROGRAM = "from mosesplug.cli.main import main; main()"
LIST_DECODER = Path(__file__).with_name("list_decoder.py")
KINDS = {
    "window": ["--algorithm=kbmira", "--iterations-window=2", "--max-iterations=ITERATIONS"],
    "online": [
        *("--online", "--online-decoder=process", "--algorithm=adagrad"),
        *("--option=batch=QUARTER", "--epochs=ITERATIONS"),
    ],
    "all": ["--algorithm=kbmira", "--max-iterations=ITERATIONS"],
}
_SETTLED = 5
"""Iterations after which memory is to stay as it is."""
_TOLERANCE = 0.05
_RESUME_SECONDS = 3.0
_PAUSE = 0.01


@dataclass(frozen=True)
class Soaked:
    """The measurements of a run.

    Attributes:
        kind: of ``KINDS``.
        peaks: bytes ``[iterations]``, the most memory of its own in each.
        hypotheses: new ones, by iteration.
        stored: bytes of the store's lists, by iteration.
        store_bytes: of the file.
        resume_seconds: CPU time until a continued run begins the next iteration.
        seconds: of the run.
        verified: what ``nbest verify`` said, empty if nothing was wrong.
    """

    kind: str
    peaks: np.ndarray
    hypotheses: np.ndarray
    stored: np.ndarray
    store_bytes: int
    resume_seconds: float
    seconds: float
    verified: str

    @property
    def merged(self) -> np.ndarray:
        """Hypotheses of all iterations so far."""
        return np.cumsum(self.hypotheses)

    @property
    def growth(self) -> float:
        """Of memory after the fifth iteration, as a share of it; beside merged lists if all are."""
        settled = self.peaks[_SETTLED - 1 :]
        if self.kind != "all":
            return float(settled.max() / settled[0] - 1)
        line = np.polyfit(self.merged[_SETTLED - 1 :], settled, 1)
        above = settled - np.polyval(line, self.merged[_SETTLED - 1 :])
        return float(above.max() / settled[-1])

    @property
    def bytes_each(self) -> tuple[float, float]:
        """Bytes of the store for a new hypothesis, in the first and the second half."""
        half = len(self.stored) // 2
        parts = (slice(1, half), slice(half, None))  # of the first, nothing is old
        return tuple(self.stored[part].sum() / self.hypotheses[part].sum() for part in parts)

    def problems(self) -> list[str]:
        """Return the problems of a run."""
        first, second = self.bytes_each
        found = [self.verified] if self.verified else []
        if self.growth > _TOLERANCE:
            found.append(f"memory grew by {self.growth:.1%} after iteration {_SETTLED}")
        if abs(second / first - 1) > _TOLERANCE:
            found.append(f"bytes for each new hypothesis: {first:.0f}, then {second:.0f}")
        if self.resume_seconds > _RESUME_SECONDS:
            found.append(f"to continue took {self.resume_seconds:.1f} CPU s")
        return [f"{self.kind}: {problem}" for problem in found]

    def row(self) -> str:
        """Of the table."""
        first, second = self.bytes_each
        megabytes = self.peaks / 1e6
        return (
            f"| {self.kind} | {self.hypotheses.sum():,} | {self.store_bytes / 1e6:.0f} MB"
            f" | {first:.0f}, {second:.0f} | {megabytes[_SETTLED - 1]:.0f} MB"
            f" | {megabytes[-1]:.0f} MB | {self.growth:+.1%} | {self.resume_seconds:.1f} s"
            f" | {self.seconds:.0f} s |"
        )


_COLUMNS = (
    *("lists learned from", "hypotheses", "store", "bytes each, 1st and 2nd half"),
    *("memory, iteration 5", "last", "growth", "`--continue`", "whole run"),
)
HEADING = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"


def soak(directory: Path, kind: str, *, iterations: int, sentences: int, best: int) -> Soaked:
    """Tune for so long, and look.

    Args:
        directory: of the system and of working directories.
        kind: of ``KINDS``.
        iterations, sentences, best: of the run; at least seven iterations.
    """
    system, work = directory / "system", directory / f"work-{kind}"
    if not system.exists():
        subprocess.run([sys.executable, LIST_DECODER, "--make", system, str(sentences)], check=True)
        command = f"{shlex.quote(sys.executable)} {shlex.quote(str(LIST_DECODER))}"
        (system / "decoder").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (system / "decoder").chmod(0o755)
    arguments = [
        "tune",
        *(str(system / name) for name in ("input", "reference", "decoder", "moses.ini")),
        *(f"--working-dir={work}", f"--nbest={best}", "--seed=1", "--min-change=0", "--quiet"),
    ]
    started = time.monotonic()
    peaks = _peaks(work, [*arguments, *_words(kind, iterations, sentences)])
    seconds = time.monotonic() - started
    rows = json.loads(_said("nbest", "ls", "--json", "--no-oracle", str(work)))["iterations"]
    more = _words(kind, iterations + 1, sentences)
    return Soaked(
        kind,
        np.array([peaks[number] for number in range(1, iterations + 1)], dtype=np.float64),
        np.array([row["new_hypotheses"] for row in rows]),
        np.array([row["stored_bytes"] for row in rows]),
        (work / "nbests.lmdb" / "data.mdb").stat().st_size,
        _resume_seconds(work, [*arguments, *more, "--continue"], iterations + 1),
        seconds,
        _faults(work),
    )


def _words(kind: str, iterations: int, sentences: int) -> list[str]:
    """Of the command line, what a kind of run has of its own."""
    numbers = {"QUARTER": str(-(-sentences // 4)), "ITERATIONS": str(iterations)}
    found = (word.rpartition("=") for word in KINDS[kind])
    return [f"{name}{equals}{numbers.get(value, value)}" for name, equals, value in found]


def _start(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT)


def _peaks(work: Path, arguments: list[str]) -> dict[int, int]:
    """Run, and find the most memory of its own that the process had in each iteration."""
    found: dict[int, int] = {}
    child = _start(arguments)
    while child.poll() is None:
        iteration = _finished(work) + 1
        found[iteration] = max(found.get(iteration, 0), _own_memory(child.pid))
        time.sleep(_PAUSE)
    if child.returncode:
        raise RuntimeError(f"the run ended with {child.returncode}")
    return found


def _finished(work: Path) -> int:
    try:
        return int((work / "finished_step.txt").read_text())
    except (OSError, ValueError):
        return 0


def _own_memory(process: int) -> int:
    """Bytes in memory that no file backs."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def _resume_seconds(work: Path, arguments: list[str], iteration: int) -> float:
    """CPU seconds from a run's start until it begins an iteration; it is ended then.

    A run that was killed may have begun that iteration, too: what counts is that its file, which is
    put in its place as a whole, is another one.

    Raises:
        RuntimeError: the run ended without having begun it.
    """
    begun = work / f"run{iteration}.dense"
    known = _identity(begun)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = _start(arguments)
    while _identity(begun) == known:
        if child.poll() is not None:
            raise RuntimeError(f"continued, it began no iteration {iteration}: {child.returncode}")
        time.sleep(_PAUSE)
    child.kill()
    child.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, or None if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _said(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def _faults(work: Path) -> str:
    try:
        _said("nbest", "verify", "--quiet", str(work))
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    """Soak, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--best", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    print(
        f"{given.iterations} iterations, {given.sentences} sentences, {given.best}-best lists,"
        f" 14 features, {os.cpu_count()} cores\n\n{HEADING}",
        flush=True,
    )
    problems = []
    with tempfile.TemporaryDirectory(prefix="mosesplug-soak-") as directory:
        for kind in given.kinds.split(","):
            soaked = soak(
                Path(directory),
                kind,
                iterations=given.iterations,
                sentences=given.sentences,
                best=given.best,
            )
            print(soaked.row(), flush=True)
            problems += soaked.problems()
    print("\n".join(["", *problems]) if problems else "\nno problem found")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
