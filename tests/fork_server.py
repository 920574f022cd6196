"""Run programs of the package in forks of one process that has imported them.

Run as a module with the path of a socket. The programs and launchers that a ``ForkServer`` writes
send it their arguments, directory, environment and standard streams, and end with the exit code
that it answers. This saves importing the package for each command. A decoder with ``--server``
takes the place of the client's process, so that its caller can end it.

The process ends at the end of its standard input, so that it does not outlive the tests.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.golden.boot import call
from tests.syncs import skip_syncs

__all__ = ["ForkServer", "serve_programs"]

ROOT = Path(__file__).parents[1]
PROGRAMS = {
    # First, since it limits the threads of NumPy.
    "mosesplug-decoder": ("mosesplug-decoder", "mosesplug.extras.phrase_decoder.program"),
    "mosesplug": ("mosesplug", "mosesplug.cli.main"),
    "mert-moses": ("mert-moses", "mosesplug.cli.run.mert_moses"),
}
"""Installed program and module, whose ``main`` is called, by name."""

_CLIENT = """\
import json, os, socket, sys
path, program, module, function, *words = sys.argv[1:]
if "--server" in words:
    os.execv(program, [program, *words])
request = {
    "call": [module, function, program, words],
    "directory": os.getcwd(),
    "environment": {**os.environ},
}
with socket.socket(socket.AF_UNIX) as server:
    server.connect(path)
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps(request).encode() + b"\\n")
    code = server.makefile().read()
sys.exit(int(code or 1))
"""


@dataclass(frozen=True)
class ForkServer:
    """The process, by the path of its socket."""

    path: Path

    def write_programs(self, directory: Path) -> None:
        """Write the installed programs into a directory."""
        for name, (program, module) in PROGRAMS.items():
            installed = Path(sysconfig.get_path("scripts"), program)
            (directory / name).write_bytes(self._client(str(installed), module, "main"))
            (directory / name).chmod(0o755)

    def launcher(self, module: str, function: str) -> bytes:
        """Return a launcher; in place of ``mosesplug.cli.moses.install.launcher``."""
        return self._client(module, module, function)

    def _client(self, *request: str) -> bytes:
        words = [sys.executable, "-IS", "-c", _CLIENT, str(self.path), *request]
        return os.fsencode(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')


@contextlib.contextmanager
def serve_programs() -> Iterator[ForkServer]:
    """Serve programs in the context."""
    with tempfile.TemporaryDirectory() as short:  # the path of a socket has 100 bytes at most
        path = Path(short, "socket")
        command = [sys.executable, "-m", "tests.fork_server", str(path)]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as server:
            try:
                assert server.stdout is not None
                assert server.stdout.readline() == b"ready\n"
                yield ForkServer(path)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(server.pid, signal.SIGKILL)


def serve(path: str) -> None:
    """Run each request in a fork until the tests end; then end the forks, too."""
    skip_syncs()
    for _, module in PROGRAMS.values():
        importlib.import_module(module)
    # What the commands import when they are called.
    for module in ("mosesplug.cli.run.ask", "mosesplug.cli.learn.optimize"):
        importlib.import_module(module)
    importlib.import_module("mosesplug.kernels").load_compiler()
    gc.freeze()  # or each child copies all memory, to look for garbage in it
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with contextlib.suppress(ChildProcessError):  # raised if no child is left
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            with connection:
                if not os.fork():
                    listener.close()
                    _answer(connection)
    os.killpg(0, signal.SIGKILL)


def _answer(connection: socket.socket) -> None:
    """Run a request and end the process."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with connection.makefile("rw") as lines:
        request = json.loads(lines.readline())
        os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        code = call(*request["call"])
        sys.stdout.flush()
        sys.stderr.flush()
        lines.write(str(code))
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
