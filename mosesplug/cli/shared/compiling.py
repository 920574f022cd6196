"""Say that inner loops are being compiled, which happens once and takes seconds."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator

from mosesplug.kernel_cache import COMPILING

COMPILING_ONCE = "compiling (once)"

SECONDS_BEFORE_NOTICE = 1.0
"""Compiling that takes longer is reported in a line."""


@contextlib.contextmanager
def note_compiling(quiet: bool = False) -> Iterator[None]:
    """Print a line on stderr when kernels have compiled for some time."""
    if quiet:
        yield
        return
    with watch_compiling(_Note()):
        yield


class _Note:
    """Prints the line once."""

    def __init__(self) -> None:
        self._began = self._seconds = 0.0
        self._is_printed = False

    def __call__(self, is_compiling: bool) -> None:
        now = time.monotonic()
        if is_compiling:
            self._began = now
        else:
            self._seconds += now - self._began
        if self._seconds > SECONDS_BEFORE_NOTICE and not self._is_printed:
            self._is_printed = True
            print(f"{COMPILING_ONCE}: later commands start at once", file=sys.stderr, flush=True)


@contextlib.contextmanager
def watch_compiling(show: Callable[[bool], None]) -> Iterator[None]:
    """Report compiling within the block.

    Args:
        show: called with True when kernels begin to compile, and with False when none does any
            more.
    """
    logger = logging.getLogger(COMPILING)
    handler = _Handler(show)
    earlier = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        if not logger.handlers:
            logger.level, logger.propagate = earlier


class _Handler(logging.Handler):
    """Counts kernels that compile, except in the thread that compiles ahead."""

    def __init__(self, show: Callable[[bool], None]) -> None:
        super().__init__(logging.DEBUG)
        self._show = show
        self._threads: set[int] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Take the begin or the end of a kernel's compilation."""
        if record.threadName == "mosesplug-compiler":
            return  # nobody waits for it
        was_compiling, thread = bool(self._threads), threading.get_ident()
        if record.getMessage().startswith("compiling"):
            self._threads.add(thread)
        else:
            self._threads.discard(thread)
        if bool(self._threads) != was_compiling:
            self._show(bool(self._threads))
