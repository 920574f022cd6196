"""A process that forks tuning runs: each begins with all modules and kernels loaded.

Run as a program: every line of its input is a task in JSON, every line of its output says how that
run ended. A task: ``arguments`` of ``mosesplug``, ``output`` (the file that takes what it prints),
``environment`` (variables to set), ``plan`` (a ``Plan``'s fields, or none) and ``report`` (a file
for the events that were counted, or none).
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.faults.injection import Events, Plan
from tests.faults.system import ROOT


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes:
        code: its exit code; of a signal that killed it, minus its number.
        said: what it printed.
        seconds: from its beginning.
    """

    code: int
    said: str
    seconds: float


class Tuners:
    """Runs ``mosesplug`` again and again, with what it needs loaded once; use it in one thread."""

    def __enter__(self) -> Self:
        self._host = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.tuners"],
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
        self._host.wait(30)
        self._host.stdout.close()

    def run(
        self,
        arguments: list[str],
        output: Path,
        *,
        token: str = "",
        plan: Plan | None = None,
        report: Path | None = None,
    ) -> Ended:
        """Run to the end, whatever end that is.

        Args:
            arguments: of ``mosesplug``.
            output: file for what it prints.
            token: that the environment of all processes has which it starts; see ``processes``.
            plan: when to end it, or None.
            report: file for the events that were counted, or None.
        """
        task = {
            "arguments": arguments,
            "output": str(output),
            "environment": {"MOSESPLUG_FAULTS": token},
            "plan": None if plan is None else vars(plan),
            "report": None if report is None else str(report),
        }
        assert self._host.stdin is not None
        assert self._host.stdout is not None
        started = time.monotonic()
        print(json.dumps(task), file=self._host.stdin, flush=True)
        answer = self._host.stdout.readline()
        if not answer:
            raise RuntimeError("the process that starts runs has died")
        said = output.read_text(errors="replace")
        return Ended(int(answer), said, time.monotonic() - started)


def _child(task: dict[str, Any]) -> None:
    """In the child: become the run."""
    os.setsid()
    os.environ.update(task["environment"])
    target = os.open(task["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (target, 1), (target, 2)):
        os.dup2(descriptor, place)
    from mosesplug.cli.main import main

    events = Events(None if task["plan"] is None else Plan(**task["plan"]))
    if task["plan"] is not None or task["report"] is not None:
        events.install()
    try:
        main(task["arguments"])
    finally:
        if task["report"] is not None:
            found = {"counts": events.counts, "operations": events.operations}
            Path(task["report"]).write_text(json.dumps(found))


_LOADED = (
    *("cli.application", "cli.running", "cli.tune", "decoders.server", "optimizers.registry"),
    *("tuning.loop", "tuning.forest_run", "forest", "inspection.run", "store.ingest"),
    *("cli.nbest_ls", "cli.nbest_show", "cli.nbest_look", "cli.nbest_move", "cli.nbest_keep"),
    *("cli.report", "inspection.soundness"),
)


def _load() -> None:
    """Load what the runs use; kernels come with the first run that needs them."""
    for name in _LOADED:
        importlib.import_module(f"mosesplug.{name}")
    from mosesplug.optimizers import algorithms

    algorithms()


def main() -> None:
    """Do the tasks of the input."""
    _load()
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if not child:
            _child(task)
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
