"""Run programs of the package in forks of one process that has imported them.

Run as a module with the path of a socket. The programs that ``write_programs`` writes send it their
arguments, directory, environment and standard streams, and end with the exit code that it answers.
This saves importing the package for each command. Decoders that are servers run as themselves.
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
from pathlib import Path

from tests.golden.boot import call

__all__ = ["serve_programs"]

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    # First, since it limits the threads of NumPy.
    "mosesplug-decoder": ("mosesplug-decoder", "mosesplug.extras.phrase_decoder.program"),
    "mosesplug": ("mosesplug", "mosesplug.cli.main"),
    "mert-moses": ("mert-moses", "mosesplug.cli.run.mert_moses"),
}
"""Installed program and module, whose ``main`` is called, by name."""

_CLIENT = """\
import json, os, socket, sys
path, name, program, *words = sys.argv[1:]
if "--server" in words:
    os.execv(program, [program, *words])
request = {"name": name, "words": words, "directory": os.getcwd(), "environment": {**os.environ}}
with socket.socket(socket.AF_UNIX) as server:
    server.connect(path)
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps(request).encode() + b"\\n")
    code = server.makefile().read()
sys.exit(int(code or 1))
"""


@contextlib.contextmanager
def serve_programs(directory: Path) -> Iterator[None]:
    """Write programs into a directory, and serve them in the context."""
    with tempfile.TemporaryDirectory() as short:  # the path of a socket has 100 bytes at most
        path = Path(short, "socket")
        command = [sys.executable, "-m", "tests.docs.fork_server", str(path)]
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
                write_programs(directory, path)
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(server.pid, signal.SIGKILL)


def write_programs(directory: Path, path: Path) -> None:
    """Write the programs; each calls the server at a path."""
    for name, (program, _) in PROGRAMS.items():
        installed = Path(sysconfig.get_path("scripts"), program)
        client = shlex.join([sys.executable, "-IS", "-c", _CLIENT, str(path), name, str(installed)])
        (directory / name).write_text(f'#!/bin/sh\nexec {client} "$@"\n')
        (directory / name).chmod(0o755)


def serve(path: str) -> None:
    """Run each request in a fork until the tests end; then end the forks, too."""
    for _, module in PROGRAMS.values():
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
        code = call(PROGRAMS[request["name"]][1], "main", request["name"], request["words"])
        sys.stdout.flush()
        sys.stderr.flush()
        lines.write(str(code))
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
