"""A bar on stderr that shows how far a command is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bar"]


@contextmanager
def bar(quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """To be told of work done, ``(done, total, what)``; shows it where stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("")
        yield lambda done, total, what: shown.update(
            task, completed=done, total=total, description=what
        )
