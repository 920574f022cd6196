"""Runs a command that the kernel kills when the process that started it dies.

Called by path with the parent's process id and the command: ``leash.py 1234 moses -config ...``.
A tuning run that is killed outright (``kill -9``, out of memory) cannot stop its decoder; without
this the decoder would go on for hours, and write into the files of the run that takes over. It
is a program of its own because the request must be made between fork and exec, where a process
with threads must not run Python. On systems other than Linux it only runs the command.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask for the signal, see that the parent is still there, become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the process that asked for this command is gone")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
