"""Disks that are full or cannot be written, files that may not be opened, locks that others hold.

A run that has finished one iteration is continued on a machine that fails it. It must end with exit
code 1 and one message, keep what was finished, and go on where it was when the machine is mended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb
import pytest

from mosesplug.decoders.processes.run import make_error
from mosesplug.store import NBestStore
from mosesplug.store.encoding import encode_value
from mosesplug.tuning.workdir.lock import lock_directory
from tests.long_running.decoder_faults import (
    System,
    begin,
    kept,
    make_system,
    result_of,
    run,
    whole,
)

_TOO_LARGE = ("File too large. Allow larger files (ulimit -f)", "SIGXFSZ", "exit code", "no room")
"""What this program, a decoder in C, one in Python, and the store say."""


@dataclass(frozen=True)
class Begun:
    """A system, a run of one iteration on it, and what a whole run would end with."""

    system: System
    directory: Path
    result: bytes

    def copied(self, work: Path) -> Path:
        """That run in another place."""
        shutil.copytree(self.directory, work, dirs_exist_ok=True)
        return work

    def fails(self, work: Path, *words: str) -> str:
        """Return the message of the run, which must fail cleanly and keep finished iterations."""
        code, said = run(self.system.arguments(work, "--continue"))
        assert code == 1, said
        assert "Traceback" not in said
        for word in (*words, "inished iterations"):
            assert word in said
        assert kept(work)[0] == 1
        return said

    def goes_on(self, work: Path) -> None:
        """See that the run ends as if nothing had happened."""
        code, said = run(self.system.arguments(work, "--continue"))
        assert code == 0, said
        assert result_of(work) == self.result


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The run to continue."""
    directory = tmp_path_factory.mktemp("machine")
    system = make_system(directory)
    begin(system, directory / "begun")
    return Begun(system, directory / "begun", whole(system, directory / "whole"))


@contextlib.contextmanager
def soft_limit(what: int, value: int) -> Iterator[None]:
    """Limit this process, and those that it starts."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (value, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of a few megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let one mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=False)


def leave(disk: Path, room: int) -> Path:
    """Fill a disk up to some bytes."""
    filler = disk / "filler"
    found = os.statvfs(disk)
    with filler.open("wb") as file:
        file.write(bytes(max(0, found.f_bavail * found.f_frsize - room)))
    return filler


@pytest.mark.parametrize("room", [0, 28 << 10, 36 << 10])
def test_a_full_disk(room: int, begun: Begun, small_disk: Path) -> None:
    """It is full before the decoder writes, while it does, and when lists or results are stored."""
    work = begun.copied(small_disk / "work")
    filler = leave(small_disk, room)
    said = begun.fails(work, str(work))
    assert "No space left" in said or "is full" in said
    filler.unlink()
    begun.goes_on(work)


@pytest.mark.parametrize("limit", [16, 12_000])
def test_files_that_may_not_grow(limit: int, begun: Begun, tmp_path: Path) -> None:
    """The like of a full disk wherever tests run: 12,000 bytes hold the lists, not the store."""
    work = begun.copied(tmp_path / "work")
    with soft_limit(resource.RLIMIT_FSIZE, limit):
        said = begun.fails(work, str(work))
    assert any(word in said for word in _TOO_LARGE), said
    begun.goes_on(work)


def test_a_read_only_disk(begun: Begun, small_disk: Path) -> None:
    work = begun.copied(small_disk / "work")
    remount = ["mount", "-o", "remount,ro", str(small_disk)]
    if subprocess.run(remount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let one mount a disk to read only")
    code, said = run(begun.system.arguments(work, "--continue"))
    assert code == 1
    assert f"{work}/tuning.lock: Read-only file system. Make it writable" in said
    assert kept(work) == (1, 0)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    begun.goes_on(work)


def test_too_few_files_may_be_open(begun: Begun, tmp_path: Path) -> None:
    """However few: it ends with one message and keeps what is finished, or it does its work."""
    work = begun.copied(tmp_path / "work")
    for spare in (0, 1, 2, 5, 7):
        free = os.dup(0)
        os.close(free)
        with soft_limit(resource.RLIMIT_NOFILE, free + spare):
            code, said = run(begun.system.arguments(work, "--continue"))
        if code == 0:
            break
        assert code == 1
        assert "Too many open files" in said
        assert "ulimit -n" in said
        assert "Traceback" not in said
        assert kept(work)[0] == 1
    begun.goes_on(work)


def test_another_tuner_is_at_work(begun: Begun, tmp_path: Path) -> None:
    work = begun.copied(tmp_path / "work")
    with lock_directory(work / "tuning.lock"):
        code, said = run(begun.system.arguments(work, "--continue"))
    assert code == 1
    assert f"another tuning run, process {os.getpid()} on {socket.gethostname()}" in said
    assert "wait for its end, or use another working directory" in said
    begun.goes_on(work)


def test_a_copy_of_a_run_that_was_killed_elsewhere(begun: Begun, tmp_path: Path) -> None:
    """Locks name a process of another machine, and the table of readers is of no use here."""
    work = begun.copied(tmp_path / "work")
    (work / "tuning.lock").write_text("process 1 on elsewhere\n")
    (work / "nbests.lmdb" / "writer.lock").write_text("process 1 on elsewhere\n")
    table = work / "nbests.lmdb" / "lock.mdb"
    table.write_bytes(bytes(range(256)) * (table.stat().st_size // 256))
    assert kept(work) == (1, 0)
    begun.goes_on(work)


def _newer(file: Path) -> None:
    with (
        lmdb.open(str(file.parent), max_dbs=8) as raw,
        raw.begin(write=True) as transaction,
    ):
        transaction.put(b"schema", encode_value(99), db=raw.open_db(b"meta", transaction))


def _cut_off(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _changed_head(place: int, bytes_: bytes) -> Callable[[Path], None]:
    """Other bytes at the same place of both of LMDB's first pages."""

    def change(file: Path) -> None:
        data = bytearray(file.read_bytes())
        for page in (0, 4096):
            data[page + place : page + place + len(bytes_)] = bytes_
        file.write_bytes(data)

    return change


UNREADABLE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "of a newer version": (_newer, "written by a newer mosesplug", "use that version"),
    "cut off": (_cut_off, "is truncated: data.mdb has", "Copy it again"),
    "of the other byte order": (
        _changed_head(16, b"\xbe\xef\xc0\xde"),
        "not an LMDB file",
        "start in an empty directory",
    ),
    "of other pages": (
        _changed_head(40, (1 << 14).to_bytes(4, "little")),
        "nbests.lmdb",
        "start in an empty directory",
    ),
}
"""Damage of a store, with the expected fault and remedy in the message."""


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_store_that_cannot_be_read(what: str, begun: Begun, tmp_path: Path) -> None:
    """Opening the store reports it and changes nothing."""
    work = begun.copied(tmp_path / "work")
    change, fault, remedy = UNREADABLE[what]
    change(work / "nbests.lmdb" / "data.mdb")
    before = _contents(work)
    for words in (
        begun.system.arguments(work, "--continue"),
        ["nbest", "ls", str(work)],
        ["nbest", "show", str(work), "0"],
        ["nbest", "verify", str(work)],
        ["nbest", "drop", str(work), "1"],
        ["report", str(work), "-o", str(tmp_path / "report.html")],
    ):
        code, said = run(words)
        assert code == 1, words
        for part in (str(work / "nbests.lmdb"), fault, remedy):
            assert part in said
        assert "Traceback" not in said
        assert _contents(work) == before, words
    assert not (tmp_path / "report.html").exists()


def _contents(work: Path) -> dict[Path, bytes]:
    """All files but those that say who is at work."""
    locks = ("tuning.lock", "writer.lock", "lock.mdb")
    return {
        path: path.read_bytes()
        for path in work.rglob("*")
        if path.is_file() and path.name not in locks
    }


def test_the_store_grows_during_a_read(
    begun: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader sees the old state until it closes, then the new one."""
    work = begun.copied(tmp_path / "work")
    store = work / "nbests.lmdb"
    # As large as the file is: with the first page that is added, the map must grow.
    opening = NBestStore.open.__func__  # type: ignore[attr-defined]
    monkeypatch.setitem(opening.__kwdefaults__, "map_size", 1 << 12)
    to_child, from_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = _read_beside(store, to_child[0], from_child[1])
        os._exit(code)
    size = (store / "data.mdb").stat().st_size
    assert os.read(from_child[0], 1) == b"."
    begun.goes_on(work)
    assert (store / "data.mdb").stat().st_size > size
    os.write(to_child[1], b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for descriptor in (*to_child, *from_child):
        os.close(descriptor)


def _read_beside(path: Path, wait: int, tell: int) -> int:
    """Exit code of a process that reads while another writes: 0 if all is as it must be."""
    with NBestStore.open(path) as store:
        with store.snapshot() as snapshot:
            before = snapshot.record(1, 0)
            assert before is not None
            text = before.text.tobytes()
            os.write(tell, b".")
            os.read(wait, 1)
            assert snapshot.record(2, 0) is None
            assert before.text.tobytes() == text
        del before
        assert len(store.iterations()) == 2
        assert store.tuning_set().n_hyps > len(store.hypotheses(0))
    return 0


def test_a_decoder_that_fails_on_a_full_disk_is_explained(small_disk: Path) -> None:
    stderr = small_disk / "err"
    stderr.touch()
    assert "is full" not in str(make_error("it died", ["decoder"], stderr))
    leave(small_disk, 0)
    assert f"the disk of {small_disk} is full: free some room" in str(
        make_error("it died", ["decoder"], stderr)
    )
