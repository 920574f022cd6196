"""Run a command whose process group ends when its parent process dies.

It is called by path with the parent's process id and the command, as the leader of a process group:
``leash.py 1234 moses -config ...``. A run that is killed (``kill -9``, out of memory) cannot stop
its decoder, which would go on for hours and write into the files of the resumed run. On systems
other than Linux this only runs the command.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PARENT_DIED = signal.SIGUSR1
_AS_IN_A_SHELL = (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that are ignored here, the last two by Python itself."""


def main() -> None:
    """Request a signal at the parent's death, run the command, and end as it ends."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(_PARENT_DIED, _end_group)
    # The whole group gets SIGTERM; the command may take its time.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _PARENT_DIED)
        if os.getppid() != parent:
            sys.exit("the process that asked for this command is gone")
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigdef=_AS_IN_A_SHELL)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        _die_by(-code)
    sys.exit(code)


def _end_group(number: int, frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def _die_by(number: int) -> None:
    """End by the signal that ended the command, but do not overwrite its core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
