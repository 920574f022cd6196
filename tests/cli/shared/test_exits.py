"""Every command ends with a message and a code."""

from __future__ import annotations

import _thread
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from formats.errors import FormatError
from mosesplug.cli.shared.exits import TerminationSignal, exit_code
from mosesplug.errors import DecoderError, UsageError


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("say x"), 2, "prog: say x"),
        (DecoderError("it died"), 1, "prog: it died"),
        (FormatError("odd", path="f", line=3), 1, "prog: f:3: odd"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/d/f"), 1, "/d/f: No space left"),
        (MemoryError(), 1, "out of memory"),
        (
            RuntimeError("can't start new thread"),
            1,
            "starts no more threads. Allow more processes and threads (ulimit -u), or end some. Go",
        ),
        (KeyboardInterrupt(), 130, "prog: interrupted. Go on."),
    ],
)
def test_errors(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("prog", raising(error), after_interrupt="Go on.") == code
    assert words in capsys.readouterr().err


def test_modules_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = raising(ModuleNotFoundError("No module named 'x'"))
    with pytest.raises(ModuleNotFoundError):
        exit_code("prog", missing)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (16, 16))
    assert exit_code("prog", missing) == 1
    assert "at most 16 files may be open. Allow more open files" in capsys.readouterr().err


def test_success() -> None:
    assert exit_code("prog", lambda: None) == 0


def test_faults_of_the_program_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code("prog", raising(ZeroDivisionError()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    code = exit_code("prog", lambda: os.kill(os.getpid(), number))
    assert code == 128 + number
    assert f"ended by {number.name}" in capsys.readouterr().err
    assert signal.getsignal(number) == before


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert exit_code("prog", lambda: os.kill(os.getpid(), signal.SIGHUP)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("comes_early", [False, True])
def test_a_signal_is_not_lost_where_objects_are_finalized(
    number: signal.Signals,
    comes_early: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor when the signal that is sent again comes while its thread is being started."""
    start, started = _thread.start_new_thread, []

    def start_thread(function: Callable[..., None], arguments: tuple[int]) -> None:
        started.append(function)
        if comes_early and len(started) == 1:
            function(*arguments)
        else:
            start(function, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", start_thread)

    def work() -> None:
        def generator() -> Iterator[None]:
            try:
                yield
            finally:
                os.kill(os.getpid(), number)

        begun = generator()
        next(begun)
        del begun  # what its end raises, Python drops
        time.sleep(60)

    assert exit_code("prog", work) == 128 + number
    assert capsys.readouterr().err.count("\n") == 1
    assert len(started) == 1 + comes_early


@pytest.mark.parametrize(
    ("end", "code"), [(KeyboardInterrupt(), 130), (TerminationSignal(signal.SIGTERM), 143)]
)
def test_a_signal_on_the_way_into_a_kernel_is_one(
    end: KeyboardInterrupt, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Python has it of functions in C that return something and leave an exception."""

    def work() -> None:
        try:
            raise SystemError("a function returned a result with an exception set") from end
        except SystemError as error:
            raise SystemError("a kernel returned a result with an exception set") from error

    assert exit_code("prog", work) == code
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemError, match="bad"):
        exit_code("prog", lambda: (_ for _ in ()).throw(SystemError("bad")))


def test_an_interrupt_at_exit_is_too_late_to_matter() -> None:
    program = (
        "import atexit, os, signal, sys\n"
        "from mosesplug.cli.shared.exits import TerminationSignal, exit_code\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "sys.exit(exit_code('prog', lambda: None))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
