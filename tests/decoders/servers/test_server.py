"""Servers that are kept running: what comes back, and what happens when they do not behave."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.servers import process as server_process
from mosesplug.decoders.servers.exactness import (
    count_differing_lists,
)
from mosesplug.decoders.wrappers import PostEditing
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Clock
from tests.decoders.batches import (
    BATCH,
    OTHERS,
    WEIGHTS,
    list_contents,
    make_process,
    make_server,
)
from tests.waiting import LIMIT, alive, gone, hurry, wait_until

StandIn = Callable[..., MosesDecoder]
Pids = Callable[[], list[int]]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until a dying server has ended, however busy the machine is."""
    monkeypatch.setattr(server_process, "_DYING_SECONDS", LIMIT)


def lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the end of a server that has hung up and lives on."""
    monkeypatch.setattr(server_process, "_DYING_SECONDS", 0.01)


@pytest.mark.parametrize("workers", [1, 3])
def test_lists_are_those_of_a_process(
    workers: int, stand_in: StandIn, tmp_path: Path, pids: Pids
) -> None:
    decoder = stand_in()
    with make_server(decoder, tmp_path, workers=workers) as online:
        for weights in (WEIGHTS, OTHERS, WEIGHTS):
            lists = online.decode(BATCH, weights)
            expected = make_process(decoder, tmp_path).decode(BATCH, weights)
            assert list_contents(lists) == list_contents(expected)
            assert count_differing_lists(lists, expected) == 0
        assert [int(part.sentence_ids[0]) for part in lists] == [41, 7, 12, 3, 5]
        assert online.decode([], OTHERS) == []
        assert len(pids()) == workers + 3
    assert all(gone(pid) for pid in pids())


def test_closing_servers_during_a_batch_is_an_error(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_server(stand_in(), tmp_path) as online:
        close = lambda process: bool(online.close())  # noqa: E731
        monkeypatch.setattr(server_process.ServerProcess, "listens_everywhere", close)
        with pytest.raises(DecoderError, match="were closed"):
            online.decode(BATCH, WEIGHTS)


def test_new_sparse_weights_restart_the_server(
    stand_in: StandIn, tmp_path: Path, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note has the time of a restart, not that of the first start."""
    seconds = iter((0.5, 9.0, 9.0))
    monkeypatch.setattr(Clock, "seconds", lambda _: next(seconds))
    notes: list[str] = []
    sparse = replace(OTHERS, sparse={"W_c": 100.0})
    with make_server(stand_in(), tmp_path, note=notes.append) as online:
        first = online.decode(BATCH[:1], OTHERS)
        second = online.decode(BATCH[:1], sparse)
        third = online.decode(BATCH[:1], replace(sparse, groups=WEIGHTS.groups))
        assert len(pids()) == 2
        online.decode(BATCH[:1], OTHERS)
    assert [lists[0].text(0) for lists in (first, second, third)] == [b"a c", b"c a", b"c a"]
    assert len(pids()) == 3
    assert notes == [
        "the decoder's server takes no sparse weights in a request: it is started again whenever"
        " they change, in 9.0 s"
    ]


def test_one_that_can_be_reached_from_elsewhere(stand_in: StandIn, tmp_path: Path) -> None:
    for behavior, count in (("everywhere", 1), ("", 0)):
        notes: list[str] = []
        with make_server(stand_in(behavior), tmp_path, note=notes.append) as online:
            online.decode(BATCH, WEIGHTS)
            online.decode(BATCH, WEIGHTS)
        assert len(notes) == count
        assert all("listens on all network interfaces" in note for note in notes)


@pytest.mark.parametrize(("how", "workers"), [("dies-once", 1), ("drops-once", 2)])
def test_a_crash_costs_one_more_try(
    how: str,
    workers: int,
    stand_in: StandIn,
    tmp_path: Path,
    pids: Pids,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if how == "drops-once":
        lives_on(monkeypatch)
    notes: list[str] = []
    decoder = stand_in(how, tmp_path / "happened")
    with make_server(decoder, tmp_path, workers=workers, note=notes.append) as online:
        online.decode(BATCH[:2], WEIGHTS)
        lists = online.decode(BATCH, OTHERS)
        assert len(pids()) == workers + 1
        assert not all(alive(pid) for pid in pids())
        assert sum(alive(pid) for pid in pids()) == workers
    assert list_contents(lists) == list_contents(
        make_process(stand_in(), tmp_path).decode(BATCH, OTHERS)
    )
    assert len(notes) == 1
    assert "sentence 3" in notes[0]
    assert ("exit code 3" in notes[0] and "last words" in notes[0]) == (how == "dies-once")


def test_one_that_dies_between_two_batches(stand_in: StandIn, tmp_path: Path, pids: Pids) -> None:
    notes: list[str] = []
    with make_server(stand_in(), tmp_path, note=notes.append) as online:
        online.decode(BATCH, WEIGHTS)
        os.kill(pids()[0], signal.SIGKILL)
        assert gone(pids()[0])
        lists = online.decode(BATCH, OTHERS)
    assert len(lists) == len(BATCH)
    assert len(notes) == 1
    assert "SIGKILL" in notes[0]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies", r"^sentence 41: .* ended with exit code 3(?s:.*)decoder(?s:.*)last words"),
        ("drops", "^sentence 41: the connection .* broke"),
        ("cut", "^sentence 41: the connection .* broke: IncompleteRead"),
        ("sleeps", "^sentence 41: .* did not answer within 0.3 s"),
        ("garbage", "^sentence 41: .* not XML-RPC .*Not here"),
        ("no-http", "^sentence 41: .* did not answer in HTTP"),
        ("status", "^sentence 41: .* answered 500"),
        ("number", "^sentence 41: .* another structure"),
        ("refuses", "^sentence 41: .* refused: no such word"),
        ("no-list", "^sentence 41: .* gives no n-best lists"),
        ("no-features", r"^sentence 41: .* without .* \(fvals\)"),
        ("bars", r"^sentence 41: .* cannot be a line of a list: 'a \|\|\| b'"),
        ("other-features", r"replies of .*/decoder: .* LM0\*2, but the weights are for LM0 TM0"),
        ("no-start", r"exit code 1 before it was ready(?s:.*)cannot load the model"),
        ("never-ready", "not ready within 2 s and was killed"),
    ],
)
def test_one_clear_error(
    how: str,
    message: str,
    stand_in: StandIn,
    tmp_path: Path,
    pids: Pids,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if how in ("drops", "cut"):
        lives_on(monkeypatch)
    wait = {"start_timeout": 2.0} if how == "never-ready" else {}
    if how == "never-ready":
        hurry(monkeypatch, server_process, pids)
    timeout = 0.3 if how == "sleeps" else LIMIT
    with (
        make_server(stand_in(how), tmp_path, timeout=timeout, **wait) as online,
        pytest.raises(DecoderError, match=message),
    ):
        online.decode(BATCH, WEIGHTS)
    assert len(pids()) == (2 if how in ("dies", "drops", "cut") else 1)
    assert all(gone(pid) for pid in pids())


def test_a_sentence_without_hypotheses_has_no_list(stand_in: StandIn, tmp_path: Path) -> None:
    with make_server(stand_in("empty-list"), tmp_path) as online:
        assert online.decode(BATCH, WEIGHTS) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a \xff", r"sentence 9 is not UTF-8 .* at byte 2"),
        (b"a\tb \x1b[0m", r"sentence 9 has the character U\+001B"),
        ("\ufffe".encode(), r"sentence 9 has the character U\+FFFE"),
    ],
)
def test_text_that_no_request_can_hold(
    text: bytes, message: str, stand_in: StandIn, tmp_path: Path, pids: Pids
) -> None:
    with (
        make_server(stand_in(), tmp_path) as online,
        pytest.raises(DecoderError, match=f"{message}.*decode by a process for each batch"),
    ):
        online.decode([(2, b"b"), (9, text)], WEIGHTS)
    assert pids() == []


def test_decoders_that_cannot_serve(stand_in: StandIn, tmp_path: Path) -> None:
    editing = PostEditing(Path("pe"), Path("ref"), Path("al"), Path("tmp"))
    with pytest.raises(UsageError, match="cannot be called through"):
        make_server(replace(stand_in(), post_editing=editing), tmp_path)
    with pytest.raises(UsageError, match="text only, not input of type 2"):
        make_server(replace(stand_in(), input_type=2), tmp_path)
    lost = replace(stand_in(), program=tmp_path / "nowhere")
    with pytest.raises(DecoderError, match=r"nowhere(?s:.*)No such file"):
        make_server(lost, tmp_path).decode(BATCH, WEIGHTS)
    (tmp_path / "moses.ini").write_text("[feature]\nLM\n[weight]\nLM0= 1\n")
    with (
        make_server(stand_in(), tmp_path) as online,
        pytest.raises(DecoderError, match="TM0 has components that are not tuned"),
    ):
        online.decode(BATCH, WEIGHTS)


def test_a_command_that_no_process_can_have(tmp_path: Path) -> None:
    with pytest.raises(DecoderError, match="null byte"):
        server_process.ServerProcess(
            lambda port: ["decoder", "a\0b"], directory=tmp_path, stderr=tmp_path / "err"
        )


def test_the_command_of_a_server() -> None:
    decoder = MosesDecoder(
        Path("/moses"), ("-th", "all", "-stack", "5", "--threads", "3", "-v", "0"), 0
    )
    command = decoder.server(Path("m.ini"), 8080, weights="LM0= 1", sparse_weights="s")
    assert " ".join(command) == (
        "/moses -stack 5 -v 0 -config m.ini -inputtype 0 -threads 1 -weight-overwrite LM0= 1"
        " -weight-file s --server --serial --server-port 8080"
    )


def test_a_port_in_use_is_replaced(
    stand_in: StandIn, tmp_path: Path, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved = server_process.reserve_port
    taken = socket.create_server(("127.0.0.1", 0))
    offered: list[socket.socket] = []

    def reserve() -> socket.socket:
        offered.append(reserved() if offered else taken.dup())
        return offered[-1]

    monkeypatch.setattr(server_process, "reserve_port", reserve)
    monkeypatch.setattr(server_process, "_PROBE_SECONDS", 1.0)
    with taken, make_server(stand_in(), tmp_path) as online:
        lists = online.decode(BATCH, WEIGHTS)
    assert len(lists) == len(BATCH)
    assert len(offered) == len(pids()) == 2


def test_reserved_ports_are_not_reused() -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(server_process.reserve_port()) for _ in range(50)]
        assert len({one.getsockname() for one in held}) == 50
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(held[0].getsockname())
        listener.listen()
        second = stack.enter_context(socket.socket())
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            second.bind(held[0].getsockname())


def test_an_interrupt_ends_the_servers(stand_in: StandIn, tmp_path: Path, pids: Pids) -> None:
    asked = tmp_path / "asked"
    online = make_server(stand_in("sleeps", asked), tmp_path, workers=2)

    def interrupt() -> None:
        wait_until(asked.exists)
        os.kill(os.getpid(), signal.SIGINT)

    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            online.decode(BATCH, WEIGHTS)
        interrupter.join()
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert pids()
    assert all(gone(pid) for pid in pids())
    online.close()


def test_an_interrupt_before_all_threads_work_ends_the_servers(
    stand_in: StandIn, tmp_path: Path, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with make_server(stand_in(), tmp_path) as online:
        monkeypatch.setattr(online._pool, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            online.decode(BATCH, WEIGHTS)
        assert all(gone(pid) for pid in pids())
    assert pids()


def test_servers_outlive_the_thread_that_started_them(
    stand_in: StandIn, tmp_path: Path, pids: Pids
) -> None:
    with make_server(stand_in(), tmp_path) as online:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(online.decode, BATCH, WEIGHTS).result()
        time.sleep(0.2)
        online.decode(BATCH, OTHERS)
        assert len(pids()) == 1


PARENT = """
import os, sys, time
from pathlib import Path
from tests.decoders.batches import WEIGHTS
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.servers.server import ServerDecoder
directory, end = Path(sys.argv[1]), sys.argv[2]
decoder = MosesDecoder(directory / "decoder", ("-pids", str(directory / "pids")))
online = ServerDecoder(decoder, directory / "moses.ini", directory, 2)
online.decode([(0, b"a")], WEIGHTS)
print("ready", flush=True)
if end == "wait":
    time.sleep(600)
if end == "raise":
    raise ValueError
"""


@pytest.mark.parametrize("end", ["return", "raise", "SIGTERM", "SIGKILL"])
def test_no_server_outlives_the_program(
    end: str, stand_in: StandIn, tmp_path: Path, pids: Pids
) -> None:
    stand_in()
    signaled = end.startswith("SIG")
    command = [sys.executable, "-c", PARENT, str(tmp_path), "wait" if signaled else end]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ}
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        if signaled:
            parent.send_signal(signal.Signals[end])
        parent.wait(LIMIT)
    assert len(pids()) == 1
    assert gone(pids()[0])


def test_no_thread_is_left(stand_in: StandIn, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with make_server(stand_in(), tmp_path, workers=2) as online:
        online.decode(BATCH, WEIGHTS)
    wait_until(lambda: before.issuperset(threading.enumerate()))
