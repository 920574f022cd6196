"""Many readers beside a tuner: no error, and nothing half written is ever seen.

usage: python -m tests.long_running.readers [--seconds 60] [--readers 10]

Tunes the toy system, half of the time in batches and half of it online, and meanwhile runs
``nbest ls``, ``show``, ``stats``, ``export``, ``verify`` and ``report`` on its working directory,
again and again. Every command must end with code 0. ``verify`` holds each record against its
checksum; what ``ls`` and ``export`` tell of an iteration must never change once it has been seen,
and iterations must not get fewer. Meanwhile a second tuner must be turned away, by name of the
first. Prints a table; exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.long_running.system import ROOT, System, make_toy
from tests.long_running.tuners import READING, Ended, Tuners
from tests.waiting import wait_until

PROGRAM = "from mosesplug.cli.main import main; main()"
COMMANDS = {
    "nbest ls": ["nbest", "ls", "--json", "WORK"],
    "nbest show": ["nbest", "show", "--json", "WORK", "3"],
    "nbest stats": ["nbest", "stats", "--json", "WORK"],
    "nbest export": ["nbest", "export", "WORK", "--iteration=1", "--output=OUTPUT.gz", "--quiet"],
    "nbest verify": ["nbest", "verify", "WORK"],
    "report": ["report", "WORK", "--output=OUTPUT.html", "--quiet"],
}
KINDS = {
    "batch": ["--algorithm=kbmira", "--max-iterations=0"],
    "online": [
        *("--online", "--online-decoder=process", "--algorithm=adagrad"),
        *("--option=batch=3", "--epochs=100000"),
    ],
}
_FIXED = ("number", "sentences", "hypotheses", "new_hypotheses", "score", "oracle", "date")
"""The facts about an iteration that are visible at once."""


@dataclass
class Findings:
    """What readers saw; shared by their threads.

    Attributes:
        commands: how often each was run.
        seconds: that they took.
        problems: all that is wrong.
        iterations: the most that were seen.
    """

    commands: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    iterations: int = 0
    _seen: dict[Any, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, command: str, ended: Ended) -> None:
        """A command has ended."""
        with self._lock:
            self.commands[command] += 1
            self.seconds[command] += ended.seconds
            if ended.code or "Traceback" in ended.said:
                self.problems.append(f"{command}: exit code {ended.code}: {ended.said[-2000:]}")

    def same(self, what: Any, value: Any) -> None:
        """Something that cannot change was seen."""
        with self._lock:
            if self._seen.setdefault(what, value) != value:
                self.problems.append(f"{what} was {self._seen[what]}, and now is {value}")


def read_beside(
    system: System,
    directory: Path,
    kind: str,
    *,
    readers: int,
    seconds: float,
    commands: Sequence[str] = tuple(COMMANDS),
    second_tuner: bool = True,
) -> Findings:
    """Tune, and read beside it.

    Args:
        system: to tune.
        directory: for the working directory and the readers' files.
        kind: of ``KINDS``.
        readers: how many at once.
        seconds: for how long.
        commands: which ones they run; each runs all of them at least once.
        second_tuner: whether to start one, which must be refused.
    """
    findings, work = Findings(), directory / f"work-{kind}"
    with _tuner(system, work, kind):
        deadline = time.monotonic() + seconds
        threads = [
            threading.Thread(
                target=_read, args=(work, directory, number, deadline, commands, findings)
            )
            for number in range(readers)
        ]
        for thread in threads:
            thread.start()
        if second_tuner:
            _be_refused(system, work, kind, directory, findings)
        for thread in threads:
            thread.join()
    return findings


def _arguments(system: System, work: Path, kind: str) -> list[str]:
    given = (system.directory / name for name in ("input", "reference", "decoder", "moses.ini"))
    return [
        "tune",
        *map(str, given),
        f"--working-dir={work}",
        f"--decoder-flags={system.flags} -delay 0.005",
        *("--nbest=10", "--seed=1", "--threads=1", "--min-change=0", "--quiet"),
        *KINDS[kind],
    ]


@contextmanager
def _tuner(system: System, work: Path, kind: str) -> Iterator[None]:
    """A tuner that does not end by itself, and has an iteration in its store."""
    command = [sys.executable, "-c", PROGRAM, *_arguments(system, work, kind)]
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    try:
        finished = work / "finished_step.txt"
        wait_until(lambda: finished.exists() or child.poll() is not None)
        yield
        if child.poll() is not None:
            raise RuntimeError(f"the tuner ended with {child.returncode}: {child.stderr.read()}")
    finally:
        child.send_signal(signal.SIGINT)
        said = child.communicate()[1]
    if child.returncode != 130 or "--continue" not in said:
        raise RuntimeError(f"the tuner ended with {child.returncode}: {said}")


def _read(
    work: Path,
    directory: Path,
    number: int,
    deadline: float,
    commands: Sequence[str],
    findings: Findings,
) -> None:
    """One reader."""
    chance, output = random.Random(number), directory / f"reader{number}"
    latest, done = 0, 0
    with Tuners(READING) as programs:
        # For the kernels, where there is time.
        for command in commands if time.monotonic() < deadline else ():
            ended = programs.run(_words(command, work, output), output, here=True)
            findings.add(command, ended)
        while time.monotonic() < deadline or done < len(commands):
            if done % len(commands) == 0:
                order = chance.sample(commands, len(commands))
            command = order[done % len(commands)]
            done += 1
            ended = programs.run(_words(command, work, output), output)
            findings.add(command, ended)
            if ended.code:
                return
            if command == "nbest ls":
                latest = _compare_rows(ended.said, latest, findings)
            elif command == "nbest export":
                findings.same("list 1", output.with_name(f"{output.name}.gz").read_bytes())


def _words(command: str, work: Path, output: Path) -> list[str]:
    """The command line; of all readers together there is one working directory."""
    words = (word.replace("OUTPUT", str(output)) for word in COMMANDS[command])
    return [str(work) if word == "WORK" else word for word in words]


def _compare_rows(said: str, latest: int, findings: Findings) -> int:
    """How many iterations there are; none of them may have changed."""
    rows = json.loads(said)["iterations"]
    for row in rows:
        findings.same(("iteration", row["number"]), {name: row[name] for name in _FIXED})
    if len(rows) < latest:
        findings.problems.append(f"{latest} iterations were there, and now {len(rows)}")
    findings.iterations = max(findings.iterations, len(rows))
    return len(rows)


def _be_refused(system: System, work: Path, kind: str, directory: Path, findings: Findings) -> None:
    """Start a second run where the first is, as another run and to continue it."""
    name = f"in use by another tuning run, process {_holder(work)} on {os.uname().nodename}"
    with Tuners() as programs:
        for other, more in ((kind, ["--continue"]), ("batch", ["--overwrite"])):
            ended = programs.run(
                [*_arguments(system, work, other), *more], directory / "second.output"
            )
            if ended.code != 1 or name not in ended.said:
                findings.problems.append(f"a second run: exit code {ended.code}: {ended.said}")


def _holder(work: Path) -> int:
    """The process that the lock file names."""
    return int((work / "tuning.lock").read_text().split()[1])


def main() -> None:
    """Read for a while, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--readers", type=int, default=10)
    given = parser.parse_args()
    # In the background it would be ignored, and by the tuner, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"{given.readers} readers beside a tuner, {given.seconds:g} s\n")
    print("| tuner | iterations | command | runs | seconds each |\n|---|---|---|---|---|")
    problems = []
    with tempfile.TemporaryDirectory(prefix="mosesplug-readers-") as directory:
        system = make_toy(Path(directory) / "system")
        for kind in KINDS:
            found = read_beside(
                system,
                Path(directory),
                kind,
                readers=given.readers,
                seconds=given.seconds / len(KINDS),
            )
            for command, runs in sorted(found.commands.items()):
                each = found.seconds[command] / runs
                print(f"| {kind} | {found.iterations} | {command} | {runs} | {each:.2f} |")
            problems += found.problems
    print(f"\n{len(problems)} problems")
    print("\n".join(problems[:20]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
