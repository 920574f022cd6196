"""A process that forks tuning runs: each begins with all modules and kernels loaded.

Run as a program: every line of its input is a task in JSON, every line of its output says how that
run ended. A task: ``arguments`` of ``mosesplug``, ``output`` (the file that takes what it prints),
``environment`` (variables to set), ``plan`` (a ``Plan``'s fields, or none) and ``report`` (a file
for the events that were counted, or none). With ``here`` the run is done in the process itself: all
runs after it have the kernels that it has loaded. The words after the program's name are modules to
load beforehand.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.long_running.injection import SENT, Events, Plan
from tests.long_running.system import ROOT
from tests.waiting import LIMIT

TUNING = (
    *(
        "cli.application",
        "cli.run.running",
        "cli.run.tune",
        "decoders.servers.server",
        "optimizers.registry",
    ),
    *("tuning.loop", "store.ingest", "cli.inspect.nbest_store", "results.views.maintenance"),
    *("cli.run.mert_moses", "cli.run.mert_settings", "cli.run.ask", "api.tuner"),
    *("results.views.importing", "tuning.repeats", "tuning.domains"),
)
READING = (
    *("cli.application", "cli.inspect.nbest_summary", "cli.inspect.nbest_show"),
    *("cli.inspect.nbest_store", "cli.inspect.report"),
    *("results.views.run", "results.views.maintenance"),
)
"""Modules that runs of a kind load."""


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        code: its exit code; of a signal that killed it, minus its number.
        said: what it printed.
        seconds: from its beginning.
        went_on: CPU seconds, also of its own children, from the signal that was sent at an event
            to the end; 0 without one.
    """

    code: int
    said: str
    seconds: float
    went_on: float = 0.0


class Tuners:
    """Runs ``mosesplug`` again and again, with what it needs loaded once; use it in one thread."""

    def __init__(self, modules: Sequence[str] = TUNING) -> None:
        """Say which modules to load beforehand, without the package's name."""
        self._modules = modules

    def __enter__(self) -> Self:
        self._host = subprocess.Popen(
            [sys.executable, "-m", "tests.long_running.tuners", *self._modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        self._host.stdin.close()
        self._host.wait(LIMIT)
        self._host.stdout.close()

    def run(
        self,
        arguments: list[str],
        output: Path,
        *,
        token: str = "",
        plan: Plan | None = None,
        report: Path | None = None,
        here: bool = False,
    ) -> Ended:
        """Run until success or failure.

        Args:
            arguments: of ``mosesplug``.
            output: file for what it prints.
            token: that the environment of all processes has which it starts; see ``processes``.
            plan: when to end it, or None.
            report: file for the events that were counted, or None.
            here: in the process that is forked for other runs, which then have its kernels; what it
                prints is not kept.
        """
        output.touch()
        task = {
            "here": here,
            "arguments": arguments,
            "output": str(output),
            "environment": {"MOSESPLUG_FAULTS": token},
            "plan": None if plan is None else vars(plan),
            "report": None if report is None else str(report),
        }
        started = time.monotonic()
        code, cpu_seconds = self._answer(task)
        now = time.monotonic()
        said = output.read_text(errors="replace")
        sent = re.search(rf"^{SENT}(.*)\n", said, re.MULTILINE)
        if sent is None:
            return Ended(code, said, now - started)
        went_on = max(cpu_seconds - float(sent[1]), 0.01)
        return Ended(code, said.replace(sent[0], ""), now - started, went_on)

    def _answer(self, task: Mapping[str, Any]) -> tuple[int, float]:
        """Exit code and CPU seconds of a run."""
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        print(json.dumps(task), file=self._host.stdin, flush=True)
        answer = self._host.stdout.readline()
        if not answer:
            raise RuntimeError("the process that starts runs has died")
        code, cpu_seconds = answer.split()
        return int(code), float(cpu_seconds)


def _child(task: dict[str, Any]) -> None:
    """In the child: become the run."""
    os.setsid()
    # Where all this runs in the background, the signal is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(task["environment"])
    target = os.open(task["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (target, 1), (target, 2)):
        os.dup2(descriptor, place)
    _counted(task)


def _counted(task: dict[str, Any]) -> None:
    """Do the run, and count events if anybody wants to know or it is to be killed."""
    from tests.long_running.steps import run

    events = Events(None if task["plan"] is None else Plan(**task["plan"]))
    if task["plan"] is not None or task["report"] is not None:
        events.install()
    try:
        run(task["arguments"])
    finally:
        events.uninstall()
        if task["report"] is not None:
            found = {"counts": events.counts, "operations": events.operations}
            Path(task["report"]).write_text(json.dumps(found))


def _here(task: dict[str, Any]) -> int:
    """Do a run in this process; its exit code."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            _counted(task)
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def _forked(task: dict[str, Any]) -> tuple[int, float] | None:
    """Do a run in a child; its exit code and CPU seconds. None in the child itself, at its end."""
    gc.freeze()  # or each child copies all memory, to look for garbage in it
    child = os.fork()
    if not child:
        _child(task)
        return None
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def main() -> None:
    """Do the tasks of the input."""
    for name in sys.argv[1:]:
        importlib.import_module(f"mosesplug.{name}")
    for line in sys.stdin:
        task = json.loads(line)
        ended = (_here(task), 0.0) if task["here"] else _forked(task)
        if ended is None:
            return
        print(*ended, flush=True)


if __name__ == "__main__":
    main()
