"""End every command with one message and an exit code, never with a traceback.

==== ==========================================
0    success
1    data, decoder or disk error
2    usage error
130  interrupted by Control-C
143  ended by SIGTERM (129 by SIGHUP)
==== ==========================================
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import errno
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from formats.errors import MACHINE_REMEDIES
from mosesplug.cli.shared.streams import STDOUT, discard_stdout, standard_streams
from mosesplug.errors import MosesplugError, Spelling, UsageError, spell_option

TUNING_CONTINUES = (
    "Finished iterations, and with --online finished mini-batches, are kept. Run the same command"
    " with --continue to continue."
)
"""Shown when a tuning run is interrupted."""


_AGAIN_SECONDS = 0.02
_NO_THREAD = "can't start new thread"
"""The message of Python's RuntimeError."""
_FEW_FILES = 64
_REMEDIES = {
    **{number: f"{remedy}." for number, remedy in MACHINE_REMEDIES.items()},
    errno.ENOSPC: "Free some room on that disk.",
    errno.EDQUOT: "Free some of your share of that disk.",
    errno.EFBIG: "Allow larger files (ulimit -f), or use a file system that has them.",
    errno.EROFS: "Make it writable, or name another place.",
    errno.EACCES: "Give permission, or name another place.",
    errno.EBADF: "A standard stream is closed: redirect it, for example to /dev/null.",
}
"""Remedies for system errors, by error number."""


class TerminationSignal(KeyboardInterrupt):
    """A signal other than Control-C ends the process."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def raise_on_signals() -> Iterator[None]:
    """Raise ``TerminationSignal`` on SIGTERM and SIGHUP within the block.

    Control-C raises ``KeyboardInterrupt``, as it does by default.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TerminationSignal(number)

    handlers = {signal.SIGTERM: stop, signal.SIGHUP: stop, signal.SIGINT: _interrupt}
    with _handle_signals(handlers), _none_lost():
        yield


@contextlib.contextmanager
def _none_lost() -> Iterator[None]:
    """Send a signal again if Python has dropped its exception.

    An exception that is raised while an object is finalized reaches only the hook for such
    exceptions.
    """
    earlier = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            number = getattr(dropped.exc_value, "number", signal.SIGINT)
            # An exception raised at once would be dropped again.
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
    """Send this process a signal in a thread; return False if it has come already."""
    try:
        # Not threading.Thread: its start waits for the thread, and breaks if a signal comes then.
        _thread.start_new_thread(_send_later, (number,))
    except KeyboardInterrupt:
        return False
    return True


def _send_later(number: int) -> None:
    time.sleep(_AGAIN_SECONDS)
    os.kill(os.getpid(), number)


_Handler = Callable[[int, FrameType | None], Any]


@contextlib.contextmanager
def _handle_signals(handlers: Mapping[signal.Signals, _Handler]) -> Iterator[None]:
    """Handle signals in the block, except those that the caller has ignored (nohup)."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
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


def exit_code(
    program: str,
    action: Callable[[], None],
    *,
    after_interrupt: str = "",
    spelling: Spelling = spell_option,
) -> int:
    """Run a command, report its error on stderr, and return its exit code.

    Args:
        after_interrupt: added to the message if it is interrupted or the machine fails.
        spelling: how messages name options.
    """
    with standard_streams():
        try:
            return _run(program, action, after_interrupt, spelling)
        finally:
            # The function that is registered last is called first.
            atexit.unregister(_leave_in_peace)
            atexit.register(_leave_in_peace)


def _run(program: str, action: Callable[[], None], after_interrupt: str, spelling: Spelling) -> int:
    code = 0
    try:
        with raise_on_signals():
            try:
                action()
            except SystemExit as end:  # of a library that parses a command line
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            sys.stdout.flush()
    except KeyboardInterrupt as end:
        return _report_interrupt(program, end, after_interrupt)
    except BrokenPipeError:
        discard_stdout()  # its reader has ended
        return 1
    except Exception as error:
        lost = _lost_in_kernel(error)
        if lost is not None:
            return _report_interrupt(program, lost, after_interrupt)
        known = _explain(error, spelling)
        if known is None:
            raise
        if isinstance(error, OSError):
            discard_stdout()
        message, code = known
        if remedy := _remedy(error):
            if isinstance(error, OSError) and error.filename == STDOUT:
                after_interrupt = ""  # the work is done
            message = f"{message}. {remedy} {after_interrupt}".strip()
        return _report(program, message, code)
    return code


def _lost_in_kernel(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the signal behind a ``SystemError`` of a C function, if there is one.

    If a signal arrives while Numba passes arguments to a kernel or returns its result, Numba does
    not check for the exception, and Python finds a result together with an exception.
    """
    while isinstance(error, SystemError):
        error = error.__cause__ or error.__context__
    return error if isinstance(error, KeyboardInterrupt) else None


def _report_interrupt(program: str, end: KeyboardInterrupt, after_interrupt: str) -> int:
    if isinstance(end, TerminationSignal):
        message, code = f"ended by {_name(end.number)}.", 128 + end.number
    else:
        message, code = "interrupted.", 130
    return _report(program, f"{message} {after_interrupt}".strip(), code)


def _leave_in_peace() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _explain(error: Exception, spelling: Spelling) -> tuple[str, int] | None:
    """Return message and exit code of an expected error; None for a bug."""
    # Imported here since the formats load NumPy, which --help does not need.
    from formats.errors import FormatError

    match error:
        case MosesplugError() | FormatError():
            error.spell(spelling)
            return str(error), 2 if isinstance(error, UsageError) else 1
        case OSError(filename=name, strerror=reason):
            return f"{name}: {reason or error}" if name else str(reason or error), 1
        case MemoryError():
            return "out of memory", 1
        case RuntimeError() if str(error) == _NO_THREAD:
            return "the system starts no more threads", 1
        case ImportError() if _files_are_scarce():
            return f"{error}, and at most {_file_limit()} files may be open", 1
        case _:
            return None


def _files_are_scarce() -> bool:
    return 0 <= _file_limit() < _FEW_FILES


def _file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _remedy(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "Use a machine with more, or shorter lists (--nbest)."
    if isinstance(error, RuntimeError):
        return _REMEDIES[errno.EAGAIN]
    if isinstance(error, ImportError):
        return _REMEDIES[errno.EMFILE]
    if not isinstance(error, OSError) or error.errno is None:
        return ""
    return _REMEDIES.get(error.errno, "")


def _report(program: str, message: str, code: int) -> int:
    print(f"{program}: {message}", file=sys.stderr)
    return code
