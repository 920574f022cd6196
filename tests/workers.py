"""A pytest plugin: collect once, then run the files of tests in forks of this process.

``sh tests/run`` loads it: ``python -m pytest -p tests.workers --workers 3``. Collecting takes some
seconds, which workers that start anew would take each. A worker runs whole files, since tests of
one file share what they load. It sends the reports of each test when the test is over; so, where a
worker dies, the first test of its file without reports is the one that it died of. The run fails
then, when the other workers have finished their files.
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest

Files = Sequence[Sequence[pytest.Item]]
"""The tests of each file."""

_WRITERS = ("terminalreporter", "terminalprogress")
"""Plugins of pytest that write to the terminal."""


@dataclass
class _Worker:
    """A worker, for the parent.

    Attributes:
        process: its process id.
        connection: receives ``None`` when the worker asks for a file, the reports of a test, or
            True at its end.
        tests: what it still has to run.
    """

    process: int
    connection: Connection
    tests: list[pytest.Item]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--workers``."""
    help_text = "run files of tests in so many processes; 0 is this process"
    parser.addoption("--workers", type=int, default=0, metavar="N", help=help_text)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if any are asked for."""
    count = session.config.getoption("--workers")
    if not count or session.testsfailed or session.config.option.collectonly:
        return None
    by_file = itertools.groupby(session.items, key=lambda item: item.path)
    # Files of many tests first, so that all workers end at about the same time.
    files = sorted((list(items) for _, items in by_file), key=len, reverse=True)
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # for all workers
    gc.freeze()  # or each worker copies all memory, to look for garbage in it
    workers = [_start(session, files, number) for number in range(min(count, len(files)))]
    try:
        _hand_out(session, files, workers)
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker.process, signal.SIGINT)
            os.waitpid(worker.process, 0)
        gc.unfreeze()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def _hand_out(session: pytest.Session, files: Files, workers: list[_Worker]) -> None:
    """Give each worker that asks the next file; log the reports of all; remove dead workers."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.showfspath = False  # files alternate
    numbers = iter(range(len(files)))
    while workers:
        for connection in wait([worker.connection for worker in workers]):
            worker = next(worker for worker in workers if worker.connection is connection)
            try:
                reports = worker.connection.recv()
            except EOFError:  # does not come where a test has left a fork behind
                reports = True
            if reports is True:
                workers.remove(worker)
                _log_end(session, worker)
                continue
            if reports is None:
                number = None if session.shouldfail else next(numbers, None)
                worker.tests += [] if number is None else files[number]
                worker.connection.send(number)
                continue
            worker.tests.pop(0)
            for report in reports:
                _log(session, report)


def _log(session: pytest.Session, report: dict[str, Any]) -> None:
    """Log a report of a worker."""
    hook = session.config.hook
    hook.pytest_runtest_logreport(
        report=hook.pytest_report_from_serializable(config=session.config, data=report)
    )


def _log_end(session: pytest.Session, worker: _Worker) -> None:
    """Fail the test in which a worker has died, and the run."""
    code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
    if not code:
        return
    test = worker.tests[0]
    message = f"a worker crashed while running {test.nodeid!r} (exit code {code})"
    report = pytest.TestReport(test.nodeid, test.location, {}, "failed", message, "call")
    session.config.hook.pytest_runtest_logreport(report=report)
    session.shouldfail = message


def _start(session: pytest.Session, files: Files, number: int) -> _Worker:
    """Fork a worker."""
    mine, other = Pipe()
    with warnings.catch_warnings():
        # Python warns of threads, which NumPy has; they take care of forks themselves.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        other.close()
        return _Worker(process, mine, [])
    code = 1
    try:
        mine.close()
        _prepare(session, other, number)
        for item, following in _pairs(session, files, other):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:  # of --maxfail
                break
        other.send(True)
        code = 0
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _prepare(session: pytest.Session, connection: Connection, number: int) -> None:
    """Let a worker send its reports, with files of captured output and a directory of its own."""
    plugins = session.config.pluginmanager
    for name in filter(plugins.has_plugin, _WRITERS):
        plugins.unregister(name=name)
    plugins.register(_Sender(session.config, connection))
    capture = plugins.get_plugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.mktemp(f"worker{number}", numbered=False)


def _pairs(
    session: pytest.Session, files: Files, connection: Connection
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Yield each test with the next one, which says what fixtures remain."""

    def ask() -> Sequence[pytest.Item]:
        connection.send(None)
        number = connection.recv()
        return () if number is None else files[number]

    tests = ask()
    while tests:
        yield from itertools.pairwise(tests)
        following = ask()  # as late as possible: another worker may be idle
        yield tests[-1], following[0] if following else None
        tests = following


@dataclass(eq=False)  # pytest hashes plugins
class _Sender:
    """Sends the reports of each test from a worker."""

    config: pytest.Config
    connection: Connection

    def __post_init__(self) -> None:
        self._reports: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send what a test has been; passing setups and teardowns say nothing."""
        if report.when == "call" or not report.passed:
            data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
            self._reports.append(data)
        if report.when == "teardown":
            self.connection.send(self._reports)
            self._reports = []
