"""How a call reports its progress: not at all, by a bar, or to a function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from mosesplug.errors import UsageError

__all__ = ["Progress", "open_progress"]

ProgressFunction = Callable[[int, int, str], object]

Progress = bool | ProgressFunction | None
"""None: report nothing; True: a bar on stderr; a function: called with (done, total, what)."""

_WIDTH = 30


@contextmanager
def open_progress(progress: Progress) -> Iterator[Callable[[int, int, str], None]]:
    """Yield the function that a computation calls with the work done.

    Args:
        progress: see ``Progress``. A function may be called from any thread, and an exception that
            it raises ends the computation.

    Raises:
        UsageError: it is something else.
    """
    if progress is None or progress is False:
        yield lambda done, total, what: None
    elif progress is True:
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.clear()
    elif callable(progress):
        function = progress

        def report(done: int, total: int, what: str) -> None:
            function(done, total, what)

        yield report
    else:
        raise UsageError(f"progress is {progress!r}: give None, True, or a function")


class _Bar:
    """One line on stderr, overwritten as the work proceeds."""

    def __init__(self) -> None:
        self._shown = ""
        self._lock = Lock()

    def __call__(self, done: int, total: int, what: str) -> None:
        full = _WIDTH * done // total if total > 0 else 0
        line = f"{'#' * full:.<{_WIDTH}} {done}/{total} {what}"
        with self._lock:
            if line != self._shown:
                sys.stderr.write(f"\r{line:<{len(self._shown)}}")
                sys.stderr.flush()
                self._shown = line

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write(f"\r{'':{len(self._shown)}}\r")
            sys.stderr.flush()
