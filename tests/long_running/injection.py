"""Ends the process that it is installed in at a chosen event of a chosen phase.

An event is the beginning or the end of a function of this software, and of the built-in functions
that change files, start processes or send signals. Events are counted by phase: that of the
innermost function under way, in the thread where it happens, that has a name below. Nothing in the
software knows of it: Python's profiler sees all calls.

What LMDB does while it commits, and what happens while a decoder runs, is no event. Such moments
are met by a timer of the system, which is set at an event.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import formats
import mosesplug

BETWEEN = "between"
PHASES = {
    ("workspace.py", "lock"): "preparing",
    ("workspace.py", "clear"): "preparing",
    ("prepare.py", "_filter_tables"): "filtering",
    ("prepare.py", "announce_features"): "show-weights",
    ("program.py", "_is_usable"): "comparing",
    ("program.py", "nbest_lists"): "decoding",
    ("program.py", "search_graphs"): "decoding",
    ("server.py", "decode"): "decoding",
    ("batch_process.py", "decode"): "decoding",
    ("heldout.py", "evaluate"): "held-out text",
    ("iteration.py", "store_lists"): "ingest",
    ("source.py", "add"): "ingest",
    ("environment.py", "write"): "commit",
    ("optimization.py", "optimize_weights"): "optimizing",
    ("epochs.py", "run_epoch"): "optimizing",
    ("stale.py", "run_stale_epoch"): "optimizing",
    ("mixing.py", "mix_weights"): "mixing",
    ("text.py", "atomic_write"): "writing a file",
    ("iteration_files.py", "write_config"): "writing a file",
    ("conclude.py", "conclude"): "concluding",
}
"""The phase of a function, by the name of its file and its own."""

_OPERATIONS = frozenset(
    {
        *("open", "replace", "unlink", "mkdir", "rmdir", "link", "fsync", "ftruncate", "write"),
        *("flush", "close", "fork_exec", "kill", "killpg", "waitpid", "flock", "lockf", "connect"),
    }
)
SENT = "the signal is sent at "
"""Printed, with the CPU seconds used so far, before a signal that is sent at an event itself."""
_PACKAGES = tuple(str(Path(package.__path__[0])) + os.sep for package in (formats, mosesplug))


@dataclass(frozen=True)
class Plan:
    """When to end, and how.

    Attributes:
        phase: in which.
        number: of the event in that phase, from 1.
        signal: that ends the process.
        delay: seconds after the event; the system's timer may come in the middle of anything.
    """

    phase: str
    number: int
    signal: int
    delay: float = 0.0


@dataclass
class Events:
    """Counts events, and ends the process at one of them.

    Attributes:
        plan: when, or None to count only.
        counts: events by phase.
        operations: by phase, the numbers of those events that are calls of built-in functions.
    """

    plan: Plan | None = None
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    operations: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _known: dict[CodeType, str | None] = field(default_factory=dict)
    _done: bool = False

    def install(self) -> None:
        """Count from now on, in this thread and in those that begin later."""

        def begin(frame: FrameType, event: str, argument: Any) -> None:
            watch = self._watcher()
            sys.setprofile(watch)
            watch(frame, event, argument)

        if self.plan is not None and self.plan.delay:
            _prepare_timer(self.plan.signal)
        threading.setprofile(begin)
        sys.setprofile(self._watcher())

    def uninstall(self) -> None:
        """Count no more in this thread, nor in those that begin later."""
        threading.setprofile(None)
        sys.setprofile(None)

    def _watcher(self) -> Callable[[FrameType, str, Any], None]:
        """What one thread's profiler calls."""
        phases = [BETWEEN]
        known = self._known

        def watch(frame: FrameType, event: str, argument: Any) -> None:
            if self._done:
                # A signal whose exception came in here, on the way out of a kernel, would end as
                # a fault of Numba's.
                sys.setprofile(None)
                return
            if event in ("call", "return"):
                code = frame.f_code
                if code not in known:
                    known[code] = _phase_of(code)
                phase = known[code]
                if phase is None:
                    return
                if event == "call" and phase:
                    phases.append(phase)
                self._happened(phases[-1], is_operation=False)
                if event == "return" and phase and len(phases) > 1:
                    phases.pop()
            elif argument.__name__ in _OPERATIONS and not _loads(frame.f_code):
                self._happened(phases[-1], is_operation=True)

        return watch

    def _happened(self, phase: str, *, is_operation: bool) -> None:
        self.counts[phase] = number = self.counts[phase] + 1
        if is_operation:
            self.operations[phase].append(number)
        plan = self.plan
        if plan is not None and number == plan.number and phase == plan.phase:
            self._done = True
            end_by(plan.signal, plan.delay)


def end_by(number: int, delay: float) -> None:
    """Send this process a signal, now or in some seconds, wherever it is then."""
    if not delay:
        os.write(2, f"{SENT}{sum(os.times()[:4]):.3f}\n".encode())
        os.kill(os.getpid(), number)
        return
    signal.setitimer(signal.ITIMER_REAL, delay)


def _prepare_timer(number: int) -> None:
    """Install the handler of the timer's signal, which only the main thread can do."""
    if number == signal.SIGKILL:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends a process just as suddenly
    else:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))


def _loads(code: CodeType) -> bool:
    """Whether that is a function which loads modules or kernels: that is done once, if at all."""
    return "numba" in code.co_filename or "importlib" in code.co_filename


def _phase_of(code: CodeType) -> str | None:
    """The phase of a function, empty where it has none of its own; None if it is not ours.

    Neither are modules and classes, whose bodies are run when they are loaded.
    """
    if not code.co_filename.startswith(_PACKAGES) or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    return PHASES.get((Path(code.co_filename).name, code.co_name), "")
