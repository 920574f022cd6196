"""Control-C and SIGTERM while a program is loading: one line, and no traceback.

This module is imported first, so it imports as little as possible.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # the module typing is slow to import
if TYPE_CHECKING:
    from types import FrameType, TracebackType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_STDERR = 2


class EndOnInterrupt:
    """A block in which these signals end the process at once.

    There is nothing to clean up. Python would print a traceback of the module that is being
    imported. ``exits.exit_code`` handles the signals while a command runs. Signals that the caller
    ignores (nohup) stay ignored.
    """

    def __init__(self, program: str) -> None:
        """Store the name that the message begins with."""
        self._program = program

    def __enter__(self) -> None:
        numbers = [number for number in _NUMBERS if signal.getsignal(number) != signal.SIG_IGN]
        try:
            self._earlier = {number: signal.signal(number, self._end) for number in numbers}
        except ValueError:  # only the main thread can handle signals
            self._earlier = {}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        message = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
        os.write(_STDERR, f"{self._program}: {message}.\n".encode())
        os._exit(128 + number)
