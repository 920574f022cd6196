"""How every command ends: one message and an exit code, never a traceback.

==== ==========================================
0    done
1    the data, the decoder or the disk are at fault
2    the call is
130  interrupted by Control-C
143  ended by SIGTERM (129 by SIGHUP)
==== ==========================================
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from mosesplug.errors import MosesplugError, UsageError

__all__ = ["TUNING_GOES_ON", "TerminationSignal", "exit_code", "raise_on_signals"]


TUNING_GOES_ON = (
    "Finished iterations, and with --online finished mini-batches, are kept: the same command with"
    " --continue goes on."
)
"""What a person who interrupts a tuning run should know."""


_AGAIN_SECONDS = 0.02
_REMEDIES = {
    errno.ENOSPC: "Free some room on that disk.",
    errno.EDQUOT: "Free some of your share of that disk.",
    errno.EFBIG: "Allow larger files (ulimit -f), or use a file system that has them.",
    errno.EIO: "The disk fails: see the system's log.",
    errno.EROFS: "Make it writable, or name another place.",
    errno.EACCES: "Give permission, or name another place.",
    errno.EMFILE: "Allow more open files (ulimit -n).",
    errno.ENFILE: "Other programs have opened too many: end some.",
    errno.EAGAIN: "Allow more processes and threads (ulimit -u), or end some.",
    errno.ENOMEM: "Use a machine with more memory.",
}
"""Faults of the machine, by their number."""


class TerminationSignal(KeyboardInterrupt):
    """The process was told to end by a signal other than Control-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def raise_on_signals() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise ``TerminationSignal``, so that children are ended.

    Control-C raises ``KeyboardInterrupt``, as it does where nobody has said otherwise.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TerminationSignal(number)

    handlers = {signal.SIGTERM: stop, signal.SIGHUP: stop, signal.SIGINT: _interrupt}
    with _handled(handlers), _none_lost():
        yield


@contextlib.contextmanager
def _none_lost() -> Iterator[None]:
    """Send a signal again whose exception Python has dropped.

    A signal may come while an object is finalised; an exception there goes nowhere but to the hook
    for such exceptions.
    """
    earlier = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            number = getattr(dropped.exc_value, "number", signal.SIGINT)
            # A little later: here it would be dropped again.
            while not _sent_later(number):
                pass
        else:
            earlier(dropped)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = earlier


def _sent_later(number: int) -> bool:
    """Start a thread that sends this process a signal; False if the signal has come already."""
    again = threading.Timer(_AGAIN_SECONDS, os.kill, (os.getpid(), number))
    again.daemon = True
    try:
        again.start()
    except KeyboardInterrupt:
        return False
    return True


_Handler = Callable[[int, FrameType | None], Any]


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, _Handler]) -> Iterator[None]:
    """Handle signals in the block, except those that the caller has ignored (nohup)."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what becomes of signals
        return
    numbers = [number for number in handlers if signal.getsignal(number) != signal.SIG_IGN]
    earlier = {number: signal.signal(number, handlers[number]) for number in numbers}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _name(number: int) -> str:
    return signal.Signals(number).name


def exit_code(program: str, action: Callable[[], None], *, after_interrupt: str = "") -> int:
    """Run a command's work and say on stderr what went wrong, if anything did.

    Args:
        program: name in front of messages.
        action: the work.
        after_interrupt: what a person should know who interrupts it, or whose machine fails it.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # What the terminal's encoding lacks is spelled out.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with raise_on_signals():
            action()
    except KeyboardInterrupt as end:
        return _interrupted(program, end, after_interrupt)
    except BrokenPipeError:
        # Whoever read the output went away; a second complaint at exit would help nobody.
        sys.stderr.close()
        return 1
    except Exception as error:
        lost = _lost_in_kernel(error)
        if lost is not None:
            return _interrupted(program, lost, after_interrupt)
        known = _known(error)
        if known is None:
            raise
        message, code = known
        if remedy := _remedy(error):
            message = f"{message}. {remedy} {after_interrupt}".strip()
        return _said(program, message, code)
    finally:
        # What is registered last is called first.
        atexit.unregister(_leave_in_peace)
        atexit.register(_leave_in_peace)
    return 0


def _lost_in_kernel(error: BaseException | None) -> KeyboardInterrupt | None:
    """The signal behind an error of Python's about a function in C, if there is one.

    Where a signal comes while Numba hands arguments to a kernel, or its result back, Numba does not
    look for the exception, and Python finds a result together with one.
    """
    while isinstance(error, SystemError):
        error = error.__cause__ or error.__context__
    return error if isinstance(error, KeyboardInterrupt) else None


def _interrupted(program: str, end: KeyboardInterrupt, after_interrupt: str) -> int:
    """Say which signal it was; the exit code."""
    if isinstance(end, TerminationSignal):
        said, code = f"ended by {_name(end.number)}.", 128 + end.number
    else:
        said, code = "interrupted.", 130
    return _said(program, f"{said} {after_interrupt}".strip(), code)


def _leave_in_peace() -> None:
    """At exit nothing is left to interrupt, and a traceback would be all that Control-C brings."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _known(error: Exception) -> tuple[str, int] | None:
    """Message and code of an error that is the user's affair; None for a fault of the program."""
    # Here and not above: the formats bring NumPy, which --help does not need.
    from formats.errors import FormatError

    match error:
        case UsageError():
            return str(error), 2
        case MosesplugError() | FormatError():
            return str(error), 1
        case OSError(filename=name, strerror=reason):
            return f"{name}: {reason or error}" if name else str(reason or error), 1
        case MemoryError():
            return "out of memory", 1
        case _:
            return None


def _remedy(error: Exception) -> str:
    """What to do where the machine is at fault, and whoever did the work has not said so."""
    if isinstance(error, MemoryError):
        return "Use a machine with more, or shorter lists (--nbest)."
    if not isinstance(error, OSError) or error.errno is None:
        return ""
    return _REMEDIES.get(error.errno, "")


def _said(program: str, message: str, code: int) -> int:
    print(f"{program}: {message}", file=sys.stderr)
    return code
