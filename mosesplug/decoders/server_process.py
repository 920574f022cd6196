"""One translation server as a child process: its port, its start, its death, its end."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mosesplug.decoders.process import death, end_group, failure, leashed
from mosesplug.decoders.server_calls import HOST, PROBE, ServerLost, post
from mosesplug.errors import DecoderError

__all__ = ["ServerProcess", "reserved_port"]

_PORTS_TO_TRY = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_PROBE_SECONDS = 5.0
_DYING_SECONDS = 0.3
_LIMIT = " and was killed (--decoder-timeout sets the limit)"


class ServerProcess:
    """A server, from its start on; end it with ``close``.

    Attributes:
        port: where it listens.
        command: its words.
        stderr: the file with its messages.
    """

    def __init__(
        self, command: Callable[[int], Sequence[str]], *, directory: Path, stderr: Path
    ) -> None:
        """Start the server on a free port, without waiting until it is ready.

        Args:
            command: of the server, given its port.
            directory: its current directory.
            stderr: file that receives its messages; replaced. What it prints is thrown away:
                Moses' server prints every list, too.

        Raises:
            DecoderError: it could not be started.
        """
        self._command_on = command
        self._directory = directory
        self.stderr = stderr
        self._launch()

    def _launch(self) -> None:
        self._reservation = reserved_port()
        self.port: int = self._reservation.getsockname()[1]
        if sys.platform != "linux":  # others would let no server have it
            self._reservation.close()
        self.command = tuple(self._command_on(self.port))
        self.stderr.unlink(missing_ok=True)
        try:
            self._child = _Child(self.command, self._directory, self.stderr)
        except BaseException:
            self._reservation.close()
            raise

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self._child.ended.is_set()

    @property
    def died(self) -> str | None:
        """How the process ended, if it did so by itself."""
        return None if self._child.over else self._child.problem()

    def wait_until_ready(self, timeout: float) -> None:
        """Wait until the server answers; where its port was taken from it, start on another one.

        Args:
            timeout: seconds to wait; loading a large model takes minutes.

        Raises:
            DecoderError: it died, or does not answer in time; it is ended then.
        """
        for _ in range(_PORTS_TO_TRY - 1):
            if self._is_ready(timeout):
                return
            if not _listening(self.port):
                break
            self.close()
            self._launch()
        if not self._is_ready(timeout):
            problem = f"{self._child.problem()} before it was ready"
            self.close()
            raise failure(problem, self.command, self.stderr)

    def _is_ready(self, timeout: float) -> bool:
        """Wait until it answers (True) or is dead (False)."""
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while time.monotonic() < deadline:
            if self._child.ended.wait(pause):
                return False
            if _answers(self.port):
                return True
            pause = min(1.5 * pause, _LONGEST_PAUSE)
        self.close()
        problem = f"the decoder's server was not ready within {timeout:g} s{_LIMIT}"
        raise failure(problem, self.command, self.stderr)

    def call(self, body: bytes, timeout: float) -> bytes:
        """The answer to a request, as ``post``; a server that gives none is ended.

        Raises:
            ServerLost: it died or hung up.
            DecoderError: it was silent for ``timeout`` seconds, or did not answer in HTTP.
        """
        try:
            return post(self.port, body, timeout)
        except TimeoutError as error:
            self.close()
            problem = f"the decoder's server did not answer within {timeout:g} s{_LIMIT}"
            raise failure(problem, self.command, self.stderr) from error
        except ServerLost as error:
            # A process that is dying hangs up first: leave it a moment to say how it ended.
            self._child.ended.wait(_DYING_SECONDS)
            problem = self._child.problem() or str(error)
            self.close()
            raise ServerLost(str(failure(problem, self.command, self.stderr))) from error
        except DecoderError as error:
            raise failure(str(error), self.command, self.stderr) from error

    def close(self) -> None:
        """End the process and whatever it started."""
        self._child.end()
        self._reservation.close()
        # Moses' server leaves this behind when it is stopped.
        with contextlib.suppress(OSError):
            Path(f"/tmp/moses-server.{self.port}.pid").unlink()

    def listens_everywhere(self) -> bool:
        """Whether other machines could reach it too; False where that cannot be found out."""
        with contextlib.suppress(OSError):
            sockets = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
            return any(line.split()[1] == f"00000000:{self.port:04X}" for line in sockets)
        return False


def reserved_port() -> socket.socket:
    """A free port of the loopback interface, held by a socket that never listens.

    While it is open the system gives that port to nobody who asks for a free one, so that of two
    servers which load their models at the same time none meets the other on its port; a server
    that asks for this very port gets it.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.bind((HOST, 0))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return held


class _Child:
    """The process, with a thread that starts it and waits for its end.

    The leash ties a process to the *thread* that started it, so that thread must live as long.
    """

    def __init__(self, command: Sequence[str], directory: Path, stderr: Path) -> None:
        self.ended = threading.Event()
        self.over = False
        self._process: subprocess.Popen[bytes] | None = None
        self._error: Exception | None = None
        started = threading.Event()
        arguments = (leashed(command), directory, stderr, started)
        threading.Thread(target=self._keep, args=arguments, daemon=True).start()
        started.wait()
        if self._error is not None:
            raise DecoderError(f"{command[0]}: {self._error}") from self._error

    def _keep(
        self, command: Sequence[str], directory: Path, stderr: Path, started: threading.Event
    ) -> None:
        try:
            with stderr.open("wb") as file:
                self._process = subprocess.Popen(
                    command,
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=file,
                    start_new_session=True,
                )
        except Exception as error:  # whatever it is, somebody waits for the process
            self._error = error
            return
        finally:
            started.set()
        self._process.wait()
        self.ended.set()

    def problem(self) -> str | None:
        """How the process ended; None while it lives."""
        if self._process is None or not self.ended.is_set():
            return None
        return f"the decoder's server {death(self._process.returncode)}"

    def end(self) -> None:
        if self._process is not None and not self.over:
            self.over = True  # a second time, the number may be another process's
            end_group(self._process)
            self.ended.wait()


def _listening(port: int) -> bool:
    """Whether anything at all listens on that port."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), _PROBE_SECONDS):
        return True
    return False


def _answers(port: int) -> bool:
    """Whether a server on that port answers, be it nonsense."""
    try:
        post(port, PROBE, _PROBE_SECONDS)
    except (ServerLost, TimeoutError):
        return False
    except DecoderError:
        return True
    return True
