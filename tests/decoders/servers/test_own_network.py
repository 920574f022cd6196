"""Servers in a network of their own: reached by this process, and by nothing else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchTask
from mosesplug.decoders.servers import own_network
from mosesplug.decoders.servers import process as server_process
from mosesplug.decoders.servers import server as server_module
from mosesplug.decoders.servers.exactness import count_differing_lists
from mosesplug.decoders.servers.process import ServerProcess
from mosesplug.decoders.servers.server import ServerDecoder
from mosesplug.errors import DecoderError, UsageError
from tests.decoders.batches import OTHERS, WEIGHTS
from tests.waiting import LIMIT, gone

StandIn = Callable[..., MosesDecoder]
Pids = Callable[[], list[int]]
BATCH = [(41, b"c a"), (7, b"x y z"), (5, b"")]


@pytest.fixture
def own() -> None:
    if (reason := own_network.explain_unavailable()) is not None:
        pytest.skip(f"no network namespaces here: {reason}")


def test_it_answers_here_only(
    own: None, stand_in: StandIn, tmp_path: Path, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports: list[int] = []
    starting = ServerProcess.wait_until_ready

    def watch(process: ServerProcess, timeout: float) -> None:
        starting(process, timeout)
        ports.append(process.port)

    monkeypatch.setattr(server_process.ServerProcess, "wait_until_ready", watch)
    notes: list[str] = []
    config = tmp_path / "moses.ini"
    with ServerDecoder(
        stand_in("everywhere"), config, tmp_path, 9, workers=2, network="own", note=notes.append
    ) as online:
        online.decode(BATCH, WEIGHTS)
        lists = online.decode(BATCH, OTHERS)
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), LIMIT)
        # One server may answer all: a lost one would then not be missed.
        for pid in pids():
            os.kill(pid, signal.SIGKILL)
            assert gone(pid)
        online.decode(BATCH, OTHERS)
    fresh = ProcessDecoder(stand_in(), BatchTask(config, tmp_path, 9))
    assert count_differing_lists(lists, fresh.decode(BATCH, OTHERS)) == 0
    assert len(ports) > 2
    assert {"SIGKILL" in note for note in notes} == {True}  # and none about interfaces
    assert all(gone(pid) for pid in pids())


def test_errors_are_those_of_the_server(own: None, stand_in: StandIn, tmp_path: Path) -> None:
    for how, message in (
        ("no-start", r"exit code 1 before it was ready(?s:.*)cannot load the model"),
        ("dies", r"^sentence 41: .* ended with exit code 3(?s:.*)last words"),
    ):
        with (
            ServerDecoder(
                stand_in(how), tmp_path / "moses.ini", tmp_path, 9, network="own"
            ) as online,
            pytest.raises(DecoderError, match=message),
        ):
            online.decode(BATCH, WEIGHTS)
    missing = replace(stand_in(), program=tmp_path / "missing")
    with (
        ServerDecoder(missing, tmp_path / "moses.ini", tmp_path, 9, network="own") as online,
        pytest.raises(DecoderError, match="missing: No such file"),
    ):
        online.decode(BATCH, WEIGHTS)


def test_systems_that_do_not_allow_it(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "explain_unavailable", lambda: "Operation not permitted")
    with pytest.raises(UsageError, match=r"no network namespace \(Operation not permitted\)"):
        ServerDecoder(stand_in(), tmp_path / "moses.ini", tmp_path, 9, network="own")
    notes: list[str] = []
    decoder = stand_in("everywhere")
    with ServerDecoder(
        decoder, tmp_path / "moses.ini", tmp_path, 9, network="auto", note=notes.append
    ) as online:
        online.decode(BATCH, WEIGHTS)
    assert len(notes) == 1
    assert "less (no network of its own: Operation not permitted)" in notes[0]


def test_late_answers_reach_no_other_request() -> None:
    """A server that is loading may accept no connection, and is asked again and again."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    helper = threading.Thread(target=own_network._connect_for, args=(theirs,))
    with ours, theirs, socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            unused = closed.getsockname()[1]
        with pytest.raises(TimeoutError):
            own_network.connect_there(ours, unused, 0.01)  # nobody answers yet
        helper.start()
        port = listening.getsockname()[1]
        with own_network.connect_there(ours, port, LIMIT) as connection:
            assert connection.getpeername()[1] == port
        with pytest.raises(ConnectionRefusedError):
            own_network.connect_there(ours, unused, LIMIT)
        with socket.create_server(("127.0.0.1", 0), backlog=0) as busy:
            taken = busy.getsockname()
            with socket.create_connection(taken), pytest.raises(TimeoutError):
                own_network.connect_there(ours, taken[1], 0.05)
            with own_network.connect_there(ours, port, LIMIT):
                pass
        ours.close()
        helper.join(LIMIT)
        assert not helper.is_alive()
