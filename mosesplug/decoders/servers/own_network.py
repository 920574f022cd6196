"""Run a server in a network namespace that only the starting process reaches.

Moses' server listens on all network interfaces. In a new namespace there is only the loopback
interface, and nobody else is there. This file is run by path, with the standard library only:

    own_network.py FD moses --server ...   run a server there
    own_network.py probe                   say why the system does not allow it, if so

Sockets belong to the namespace in which they are created, so they are created here: each request on
the socket FD brings a port, a timeout, and a socket on which the connection comes back. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_AS_IN_A_SHELL = (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
_PROBE = "probe"
_PROBE_SECONDS = 20.0
_REQUEST = struct.Struct("!Hd")
"""A port, and the seconds that a connection may take."""


@cache
def explain_unavailable() -> str | None:
    """Return why this system allows no network namespace; None if it does."""
    if sys.platform != "linux":
        return f"{sys.platform} has none"
    command = (sys.executable, "-I", "-S", __file__, _PROBE)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or "unknown reason"


def wrap_command(command: tuple[str, ...], control: socket.socket) -> tuple[str, ...]:
    """Return a command that runs ``command`` in its own network, with a socket's end."""
    return (sys.executable, "-I", "-S", __file__, str(control.fileno()), *command)


def connect_there(control: socket.socket, port: int, timeout: float) -> socket.socket:
    """Return a connection to a port in the network of a server.

    Args:
        control: our end of the socket.
        port: that the server listens on.
        timeout: seconds until the answer must be there, and of each wait for the connection.

    Raises:
        OSError: nobody listens there, or the server is gone.
        TimeoutError: no answer in time.
    """
    # Each request has its own socket, so that a late answer never reaches the next request.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            control.settimeout(timeout)
            socket.send_fds(control, [_REQUEST.pack(port, timeout)], [theirs.fileno()])
        ours.settimeout(timeout)
        answer, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    if not descriptors:
        number = int(answer or errno.EPIPE)
        raise OSError(number, os.strerror(number))
    connection = socket.socket(fileno=descriptors[0])
    connection.settimeout(timeout)
    return connection


def main() -> None:
    """Enter a new network, run the command, and end as it ends."""
    try:
        _enter_new_network()
    except OSError as error:
        sys.exit(f"{error.strerror}")
    if sys.argv[1] == _PROBE:
        return
    control, command = socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]
    control.set_inheritable(False)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server may take its time
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigdef=_AS_IN_A_SHELL)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")
    threading.Thread(target=_connect_for, args=(control,), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def _enter_new_network() -> None:
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK):  # not root
        if libc.unshare(_NEW_USER | _NEW_NETWORK):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("16xh", fcntl.ioctl(any_socket, _GET_FLAGS, request))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


def _connect_for(control: socket.socket) -> None:
    """Answer requests for connections until the other end is closed."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, _REQUEST.size, 1)
        if not request:
            return
        # The socket of a request that nobody waits for any more is closed at its other end.
        with contextlib.suppress(OSError), socket.socket(fileno=descriptors[0]) as requester:
            _answer(requester, *_REQUEST.unpack(request))


def _answer(requester: socket.socket, port: int, seconds: float) -> None:
    """Send a connection to a port, or the number of an error."""
    try:
        connection = socket.create_connection(("127.0.0.1", port), seconds)
    except OSError as error:
        requester.send(b"%d" % (error.errno or errno.ETIMEDOUT))
        return
    with connection:
        socket.send_fds(requester, [b"0"], [connection.fileno()])


if __name__ == "__main__":
    main()
