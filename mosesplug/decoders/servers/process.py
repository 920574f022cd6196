"""Run a translation server as a child process: choose its port, start it, end it."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mosesplug.decoders.processes.child import Child
from mosesplug.decoders.processes.run import make_error
from mosesplug.decoders.servers.calls import HOST, PROBE, ServerLost, post_request
from mosesplug.decoders.servers.own_network import connect_there, wrap_command
from mosesplug.errors import DecoderError

_PORTS_TO_TRY = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_PROBE_SECONDS = 5.0
_DYING_SECONDS = 0.3
_ROLE = "decoder's server"
_LIMIT = " and was killed ({--decoder-timeout} sets the limit)"


class ServerProcess:
    """A server that was started; ``close`` ends it.

    Attributes:
        port: the server's port.
        command: its command line.
        stderr: file with its messages.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        *,
        directory: Path,
        stderr: Path,
        own_network: bool = False,
    ) -> None:
        """Start the server on a free port, without waiting until it is ready.

        Args:
            command: the command of the server, given its port.
            directory: its current directory.
            stderr: file that receives its messages; it is replaced. Its standard output is
                discarded: Moses' server prints every list there.
            own_network: run it where only this process reaches it (see ``own_network``).

        Raises:
            DecoderError: it did not start.
        """
        self._command_on = command
        self._directory = directory
        self._own_network = own_network
        self._control: socket.socket | None = None
        self.stderr = stderr
        self._launch()

    def _launch(self) -> None:
        self._reservation = reserve_port()
        self.port: int = self._reservation.getsockname()[1]
        if sys.platform != "linux":  # elsewhere, a reserved port stays taken
            self._reservation.close()
        self.command = tuple(self._command_on(self.port))
        self.stderr.unlink(missing_ok=True)
        try:
            self._start()
        except BaseException:
            self._reservation.close()
            raise

    def _start(self) -> None:
        if not self._own_network:
            self._child = Child(_ROLE, self.command, self._directory, self.stderr)
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                command = wrap_command(self.command, theirs)
                self._child = Child(
                    _ROLE, command, self._directory, self.stderr, (theirs.fileno(),)
                )
            except BaseException:
                ours.close()
                raise
        self._control = ours

    def _connect(self, timeout: float) -> socket.socket:
        if self._control is None:
            return socket.create_connection((HOST, self.port), timeout)
        return connect_there(self._control, self.port, timeout)

    def _listening(self) -> bool:
        """Return whether any process listens on the port."""
        with contextlib.suppress(OSError), self._connect(_PROBE_SECONDS):
            return True
        return False

    def _answers(self) -> bool:
        """Return whether the server gives any answer."""
        try:
            post_request(self._connect, PROBE, _PROBE_SECONDS)
        except (ServerLost, TimeoutError):
            return False
        except DecoderError:
            return True
        return True

    @property
    def is_dead(self) -> bool:
        """Whether the process has ended."""
        return self._child.ended.is_set()

    @property
    def problem(self) -> str | None:
        """How the process ended, if it was not closed."""
        return None if self._child.over else self._child.problem()

    def wait_until_ready(self, timeout: float) -> None:
        """Wait until the server answers; if its port was taken, start it on another one.

        Args:
            timeout: seconds to wait; loading a large model takes minutes.

        Raises:
            DecoderError: it died, or did not answer in time and was ended.
        """
        for _ in range(_PORTS_TO_TRY - 1):
            if self._is_ready(timeout):
                return
            # It died although the port is free, so that another one would not help.
            if not self._listening():
                break
            self.close()
            self._launch()
        if not self._is_ready(timeout):
            problem = f"{self._child.problem()} before it was ready"
            self.close()
            raise make_error(problem, self.command, self.stderr)

    def _is_ready(self, timeout: float) -> bool:
        """Wait until it answers (True) or is dead (False)."""
        deadline = time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while time.monotonic() < deadline:
            if self._child.ended.wait(pause):
                return False
            if self._answers():
                return True
            pause = min(1.5 * pause, _LONGEST_PAUSE)
        self.close()
        problem = f"the decoder's server was not ready within {timeout:g} s{_LIMIT}"
        raise make_error(problem, self.command, self.stderr)

    def call(self, body: bytes, timeout: float, largest: int) -> bytes:
        """Return the answer to a request, as ``post_request``.

        A server that gives no answer is ended.

        Raises:
            ServerLost: it died or hung up.
            DecoderError: it did not answer within ``timeout`` seconds, did not answer in HTTP, or
                answered with too much.
        """
        try:
            return post_request(self._connect, body, timeout, largest)
        except TimeoutError as error:
            self.close()
            problem = f"the decoder's server did not answer within {timeout:g} s{_LIMIT}"
            raise make_error(problem, self.command, self.stderr) from error
        except ServerLost as error:
            # A dying process closes its connection first: wait for its exit code.
            self._child.ended.wait(_DYING_SECONDS)
            problem = self._child.problem() or str(error)
            self.close()
            raise ServerLost(str(make_error(problem, self.command, self.stderr))) from error
        except DecoderError as error:
            raise make_error(str(error), self.command, self.stderr) from error

    def close(self) -> None:
        """End the process and its children."""
        self._child.end()
        self._reservation.close()
        if self._control is not None:
            self._control.close()
        # Moses' server leaves this file behind.
        with contextlib.suppress(OSError):
            Path(f"/tmp/moses-server.{self.port}.pid").unlink()

    def listens_everywhere(self) -> bool:
        """Return whether other machines could reach it; False if that is unknown."""
        with contextlib.suppress(OSError):
            sockets = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
            return any(line.split()[1] == f"00000000:{self.port:04X}" for line in sockets)
        return False


def reserve_port() -> socket.socket:
    """Return a socket that reserves a free port of the loopback interface.

    The socket never listens. While it is open, the system gives this port to no process that asks
    for any free port, so two servers that load their models at the same time do not collide. A
    server that asks for this very port gets it.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.bind((HOST, 0))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return held
