"""Compaction beside readers that open at each of its steps, and killed at each of them."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore, maintenance
from mosesplug.store.files import environment, replacement
from mosesplug.store.maintenance import compact
from tests.store.toys import Hypothesis, ToyMetric, make_list
from tests.waiting import LIMIT

METRIC = ToyMetric()
COMMON: dict[str, Any] = {
    "metric": METRIC, "references": METRIC.prepare(((b"a",),)), "n_sentences": 1, "record": {}
}  # fmt: skip

# Where a step begins (0) or has ended (1). In those of the second group, the store cannot be opened
# by others: they wait.
OPEN_STEPS = [
    (tempfile, "mkdtemp", 0),
    (environment.Environment, "copy_to", 0),
    (environment.Environment, "copy_to", 1),
    (maintenance, "_compare", 0),
    (maintenance, "_compare", 1),
    (environment, "replace_data", 0),
]
CLOSED_STEPS = [
    (replacement, "_claim", 0),
    (Path, "replace", 0),
    (Path, "replace", 1),
    (Path, "unlink", 1),
    (replacement, "sync_directory", 1),
]
STEPS = OPEN_STEPS + CLOSED_STEPS


def name(step: tuple[Any, str, int]) -> str:
    owner, function, after = step
    return f"{'after' if after else 'before'} {getattr(owner, '__name__', owner)}.{function}"


@dataclass
class Child:
    """A forked process, and the pipes to it."""

    pid: int
    readable: int
    writable: int

    def hear(self) -> str:
        """What it says next; empty if it has ended."""
        return os.read(self.readable, 10_000).decode()

    def tell(self) -> None:
        os.write(self.writable, b"x")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.writable)
        os.close(self.readable)


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """The processes of a test, which are killed when it ends."""
    started: list[Child] = []
    yield started
    for child in started:
        child.kill()


def fork(children: list[Child], action: Callable[[Callable[[object], None]], object]) -> Child:
    """Run an action, which is given a function that says something and waits for an answer."""
    (from_child, to_parent), (from_parent, to_child) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.close(to_child)
        os.close(from_child)

        def pause(said: object) -> None:
            os.write(to_parent, str(said).encode())
            os.read(from_parent, 1)

        try:
            pause(action(pause))
        except BaseException as error:
            pause(f"{type(error).__name__}: {error}")
        os._exit(0)
    os.close(to_parent)
    os.close(from_parent)
    children.append(Child(pid, from_child, to_child))
    return children[-1]


def compact_with_pause(
    children: list[Child], path: Path, step: tuple[Any, str, int], patience: float = 0.2
) -> Child:
    """A process that compacts a store, and pauses at a step."""
    owner, function, after = step
    original = getattr(owner, function)

    def action(pause: Callable[[object], None]) -> object:
        def watched(*arguments: Any, **options: Any) -> Any:
            patch.undo()  # the first time only
            if not after:
                pause("there")
            result = original(*arguments, **options)
            if after:
                pause("there")
            return result

        with pytest.MonkeyPatch.context() as patch:
            replacement._PATIENCE = patience
            patch.setattr(owner, function, watched)
            before, now = compact(path)
            return now < before

    return fork(children, action)


def read(children: list[Child], path: Path) -> Child:
    """A process that reads a store, and again when told, and keeps it open."""

    def action(pause: Callable[[object], None]) -> object:
        with NBestStore.open(path) as store:
            while True:
                pause(list_texts(store))

    return fork(children, action)


def list_texts(store: NBestStore) -> list[bytes]:
    """The begin of the text of each iteration."""
    return [store.hypotheses(0, each.iteration)[0][:2] for each in store.iterations()]


def make(path: Path, n: int, parity: int) -> list[bytes]:
    """A store with free pages whose last transaction has an even or odd number; its texts."""
    with NBestStore.open(path, writable=True) as store:
        for number in range(1, n + 2):
            add(store, number)
        store.drop_last(n + 1)
        while store._environment._open_handle().environment.info()["last_txnid"] % 2 != parity:
            store.record_result(n, {"x": 1})
        return list_texts(store)


def add(store: NBestStore, number: int) -> None:
    store.add_iteration(number, [make_list([Hypothesis(0, b"%d" % number * 9000)])], **COMMON)


@pytest.mark.parametrize("parity", [0, 1], ids=["even", "odd"])
@pytest.mark.parametrize("step", STEPS, ids=name)
def test_a_reader_that_opens_and_stays(
    step: tuple[Any, str, int], parity: int, children: list[Child], tmp_path: Path
) -> None:
    path = tmp_path / "store"
    texts = make(path, 6, parity)
    compaction = compact_with_pause(children, path, step)
    assert compaction.hear() == "there"
    reader = read(children, path)
    if step in OPEN_STEPS:
        assert reader.hear() == str(texts)
        compaction.tell()
        said = compaction.hear()
        assert said.startswith("StoreInUse"), said
        assert re.search(rf"is open in (process {reader.pid}|another process): wait", said)
    else:
        compaction.tell()
        assert compaction.hear() == "True"
        assert reader.hear() == str(texts)
    # Beside the reader: a writer, whose iteration it sees, and another reader.
    with NBestStore.open(path, writable=True) as store:
        assert list_texts(store) == texts
        add(store, 7)
        texts.append(b"77")
        reader.tell()
        assert reader.hear() == str(texts)
    another = read(children, path)
    assert another.hear() == str(texts)
    assert {each.name for each in path.iterdir()} == {"data.mdb", "lock.mdb", "writer.lock"}


@pytest.mark.parametrize("step", STEPS, ids=name)
def test_killed_at_each_step(
    step: tuple[Any, str, int], children: list[Child], tmp_path: Path
) -> None:
    path = tmp_path / "store"
    texts = make(path, 3, 0)
    compaction = compact_with_pause(children, path, step)
    assert compaction.hear() == "there"
    children.remove(compaction)
    compaction.kill()
    # The next compaction removes what is left of this one.
    compact(path)
    with NBestStore.open(path) as store:
        assert list_texts(store) == texts
    assert {each.name for each in path.iterdir()} == {"data.mdb", "lock.mdb", "writer.lock"}


def test_readers_delay_compaction(children: list[Child], tmp_path: Path) -> None:
    """One that has the store open before it begins prevents it; one that only looks does not."""
    path = tmp_path / "store"
    make(path, 3, 1)
    reader = read(children, path)
    reader.hear()
    with pytest.raises(StoreError, match=f"is being read by process {reader.pid}: wait"):
        compact(path)
    children.remove(reader)
    reader.kill()
    compaction = compact_with_pause(children, path, (environment, "replace_data", 0), LIMIT)
    assert compaction.hear() == "there"
    reader = read(children, path)
    reader.hear()
    compaction.tell()
    time.sleep(0.05)
    children.remove(reader)
    reader.kill()
    assert compaction.hear() == "True"


def test_a_copy_that_differs_does_not_replace_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    texts = make(path, 3, 0)

    def copy_another(_: object, directory: Path) -> None:
        make(tmp_path / "other", 2, 0)
        (tmp_path / "other" / "data.mdb").rename(directory / "data.mdb")

    monkeypatch.setattr(environment.Environment, "copy_to", copy_another)
    before = (path / "data.mdb").read_bytes()
    with pytest.raises(StoreError, match="differs from it, so the store was not replaced"):
        compact(path)
    assert (path / "data.mdb").read_bytes() == before
    with NBestStore.open(path) as store:
        assert list_texts(store) == texts


@pytest.mark.parametrize("parity", [0, 1], ids=["even", "odd"])
def test_a_store_is_removed_beside_a_reader(
    parity: int, children: list[Child], tmp_path: Path
) -> None:
    """Another store takes its place: the reader keeps the old one, and nobody mixes them."""
    path = tmp_path / "store"
    texts = make(path, 3, parity)
    reader = read(children, path)
    assert reader.hear() == str(texts)
    replacement.remove_store(path)
    assert list(tmp_path.iterdir()) == []
    with NBestStore.open(path, writable=True) as store:
        add(store, 1)
        reader.tell()
        assert reader.hear() == str(texts)
    another = read(children, path)
    assert another.hear() == str(texts[:1])
    with NBestStore.open(path, writable=True) as store:
        add(store, 2)
        another.tell()
        assert another.hear() == str(texts[:2])


def test_removing_waits_for_processes_that_open_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    make(path, 1, 0)
    monkeypatch.setattr(replacement, "_PATIENCE", 0.05)
    with replacement.keep_files(path), pytest.raises(StoreError, match="is opening"):
        replacement.remove_store(path)
    replacement.remove_store(path)
    assert not path.exists()


def test_removing_a_link_leaves_its_target(tmp_path: Path) -> None:
    make(tmp_path / "store", 1, 0)
    for link in (tmp_path / "link", tmp_path / ".store.removed"):
        link.symlink_to(tmp_path / "store", target_is_directory=True)
    replacement.remove_store(tmp_path / "link")
    replacement.remove_discarded(tmp_path / "store")
    assert [each.name for each in tmp_path.iterdir()] == ["store"]
    assert (tmp_path / "store" / "data.mdb").is_file()


def test_a_copy_that_was_killed_can_be_repeated(children: list[Child], tmp_path: Path) -> None:
    path, target = tmp_path / "store", tmp_path / "backup" / "copy"
    texts = make(path, 3, 0)

    def action(pause: Callable[[object], None]) -> object:
        with replacement.make_store(target) as draft:
            maintenance.copy(path, draft)
            pause("there")
        return "complete"

    copying = fork(children, action)
    assert copying.hear() == "there"
    assert not target.exists()
    children.remove(copying)
    copying.kill()
    assert len(list(target.parent.iterdir())) == 1
    maintenance.copy(path, target)
    assert list(target.parent.iterdir()) == [target]
    with NBestStore.open(target) as store:
        assert list_texts(store) == texts
    with pytest.raises(StoreError, match="exists already: name a new directory"):
        maintenance.copy(path, target)
