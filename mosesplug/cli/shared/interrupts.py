"""Control-C and SIGTERM while a program is still being loaded: one line, and no traceback.

It is called first of all, so it loads next to nothing itself.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # without the module typing, which takes its time
if TYPE_CHECKING:
    from types import FrameType, TracebackType

__all__ = ["EndOnInterrupt"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_STDERR = 2


class EndOnInterrupt:
    """A block in which these signals end the process there and then: nothing is to be cleaned up.

    Python would answer with a traceback of whatever is being imported. ``exits.exit_code`` handles
    them otherwise while a command is at work. What the caller has ignored (nohup) stays ignored.
    """

    def __init__(self, program: str) -> None:
        """Say the name that stands in front of the message."""
        self._program = program

    def __enter__(self) -> None:
        numbers = [number for number in _NUMBERS if signal.getsignal(number) != signal.SIG_IGN]
        try:
            self._earlier = {number: signal.signal(number, self._end) for number in numbers}
        except ValueError:  # only the main thread may say what becomes of signals
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
        said = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
        os.write(_STDERR, f"{self._program}: {said}.\n".encode())
        os._exit(128 + number)
