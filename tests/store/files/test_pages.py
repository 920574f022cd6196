"""Check pages: LMDB's own files, sound, cut, and with pages that were lost or misplaced."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from mosesplug.store.files.pages import DamagedPages, Meta, MissingPages, check_pages, read_meta
from mosesplug.store.maintenance import copy
from tests.store.toys import Hypothesis, ToyMetric, make_list

PAGE = 4096
SIZES = (5, 100, 1500, 3000, 9000, 20000)
NAMES = ("kbest", "statistics")


def check(file: Path, *, names: tuple[str, ...] = NAMES) -> Meta:
    meta = read_meta(file)
    assert meta is not None
    check_pages(file, meta, names, large=True)
    return meta


def count_missing(file: Path) -> int:
    try:
        check(file)
    except MissingPages as error:
        return error.missing
    return 0


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A file of many transactions, which was sound after each of them; some were short."""
    chance = random.Random(1)
    path = tmp_path / "many"
    lacking = 0
    with lmdb.open(str(path), max_dbs=2, map_size=1 << 26, sync=False) as environment:
        assert check(path / "data.mdb").transaction == 0
        databases = [environment.open_db(name.encode()) for name in NAMES]
        for _ in range(60):
            with environment.begin(write=True) as transaction:
                for _ in range(chance.randint(1, 40)):
                    key, value = b"%d" % chance.randint(0, 300), bytes(chance.choice(SIZES))
                    transaction.put(key, value, db=chance.choice(databases))
                for _ in range(chance.randint(0, 60)):
                    key = b"%d" % chance.randint(0, 300)
                    transaction.delete(key, db=chance.choice(databases))
            meta = check(path / "data.mdb")
            assert meta.transaction == environment.info()["last_txnid"]
            lacking += (path / "data.mdb").stat().st_size < (meta.last + 1) * PAGE
        assert lacking
        (tmp_path / "copy").mkdir()
        environment.copy(str(tmp_path / "copy"), compact=True)
        check(tmp_path / "copy" / "data.mdb")
    return path / "data.mdb"


def test_truncated_files(many: Path) -> None:
    data, last = many.read_bytes(), check(many).last
    missing = []
    for pages in (*range(last, 2, -37), 2):
        many.write_bytes(data[: pages * PAGE])
        missing.append(count_missing(many))
    assert missing == sorted(missing)
    # Where the tree of free pages is cut off itself, nothing is known to be free.
    assert missing[-1] == last - 1


def test_a_partial_page_counts_as_missing(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), max_dbs=2, sync=False) as environment:
        database, _ = [environment.open_db(name.encode()) for name in NAMES]
        with environment.begin(write=True) as transaction:
            transaction.put(b"key", bytes(5 * PAGE), db=database)
        pages = environment.info()["last_pgno"] + 1
    file = tmp_path / "data.mdb"
    data = file.read_bytes()
    assert (count_missing(file), len(data)) == (0, pages * PAGE)
    for length, missing in ((pages * PAGE - 1, 1), ((pages - 2) * PAGE, 2)):
        file.write_bytes(data[:length])
        assert count_missing(file) == missing


def test_meta_pages(many: Path) -> None:
    data = many.read_bytes()
    for change, error in (
        (data[PAGE : 2 * PAGE] + data[:PAGE], "its meta page 0 is damaged"),
        (bytes(PAGE) + data[PAGE : 2 * PAGE], "its meta page 0 is damaged"),
        (data[:PAGE] + bytes(PAGE), "its meta page 1 is damaged"),
        (data[:100], "its meta page 0 is missing"),
        (data[:PAGE], "its meta page 1 is missing"),
    ):
        many.write_bytes(change + data[2 * PAGE :] * (len(change) == 2 * PAGE))
        with pytest.raises(DamagedPages, match=error):
            read_meta(many)
    # Whatever bit of the number of a transaction is another one: else LMDB would take the earlier.
    place = 16 + 128
    for number in (0, 1):
        for bit in range(64):
            changed = bytearray(data)
            changed[number * PAGE + place + bit // 8] ^= 1 << bit % 8
            many.write_bytes(changed)
            with pytest.raises(DamagedPages, match="transaction"):
                check(many)
    many.write_bytes(b"")
    assert read_meta(many) is None


def test_a_page_in_two_places(tmp_path: Path) -> None:
    """The root of a database is that of another one, and nothing else is wrong."""
    with lmdb.open(str(tmp_path), max_dbs=2, sync=False) as environment:
        databases = [environment.open_db(name.encode()) for name in NAMES]
        with environment.begin(write=True) as transaction:
            for database in databases:
                transaction.put(b"key", b"value", db=database)
    file = tmp_path / "data.mdb"
    assert read_meta(file) == check(file)
    main = read_meta(file)
    assert main is not None
    page = bytearray(file.read_bytes())
    begin = main.main.root * PAGE
    trees = [page.index(name.encode(), begin) + len(name) for name in NAMES]
    page[trees[0] + 40 : trees[0] + 48] = page[trees[1] + 40 : trees[1] + 48]
    file.write_bytes(page)
    with pytest.raises(DamagedPages, match="which is in use elsewhere, or free"):
        check(file)


METRIC = ToyMetric()
SENTENCES = 30
COMMON: dict[str, Any] = {
    "metric": METRIC, "references": METRIC.prepare(((b"a",) * SENTENCES,)),
    "n_sentences": SENTENCES, "record": {},
}  # fmt: skip


def make(path: Path) -> bytes:
    """A store with branches in several trees, free and large pages; its file one step before."""
    with NBestStore.open(path, writable=True) as store:
        for number in range(1, 5):
            lists = [
                Hypothesis(i, b"%d %d" % (i, number) + b" a" * (i * 71 % 1700))
                for i in range(SENTENCES)
            ]
            store.add_iteration(number, [make_list(lists)], **COMMON)
            if number == 3:
                store.drop_last(3)
                store.add_iteration(number, [make_list(lists)], **COMMON)
                before = (path / "data.mdb").read_bytes()
    return before


def read_all(path: Path) -> list[Any]:
    """Everything that a store has, for each of its iterations."""
    with NBestStore.open(path) as store:
        found: list[Any] = []
        for record in store.iterations():
            lists = store.iteration_set(record.iteration)
            texts = [store.hypotheses(i, record.iteration) for i in range(SENTENCES)]
            found.append((record, texts, lists.tuning_set.stats.tolist(), lists.scores.tolist()))
        return found


def lost(data: bytes, before: bytes) -> Iterator[bytes]:
    """The file with each of its pages empty."""
    for at in range(0, len(data), PAGE):
        yield data[:at] + bytes(PAGE) + data[at + PAGE :]


def misplaced(data: bytes, before: bytes) -> Iterator[bytes]:
    """The file with each of its pages where another one belongs."""
    chance = random.Random(2)
    n_pages = len(data) // PAGE
    for number in range(n_pages):
        other = chance.randrange(n_pages) * PAGE
        yield data[: number * PAGE] + data[other : other + PAGE] + data[(number + 1) * PAGE :]


def stale(data: bytes, before: bytes) -> Iterator[bytes]:
    """The file with each of its pages as it was before the last iteration."""
    for at in range(0, len(before), PAGE):
        if data[at : at + PAGE] != before[at : at + PAGE]:
            yield data[:at] + before[at : at + PAGE] + data[at + PAGE :]


@pytest.mark.parametrize("damage", [lost, misplaced, stale])
def test_no_page_is_believed(
    damage: Callable[[bytes, bytes], Iterator[bytes]], tmp_path: Path
) -> None:
    """Each damaged page is an error, or changes nothing: it is neither a signal nor other lists."""
    path = tmp_path / "store"
    before = make(path)
    truth = read_all(path)
    assert len(truth) == 4
    file = path / "data.mdb"
    data = file.read_bytes()
    errors = []
    for damaged in damage(data, before):
        file.write_bytes(damaged)
        found, error = attempt(lambda: read_all(path))
        # Without the last meta page, the last transaction is as if its process had been killed.
        assert error or found == truth or (damage is stale and found == truth[:3])
        errors.append(error)
    assert sum(map(bool, errors)) > 20
    assert all("damaged" in error for error in errors if error)
    assert not all(errors), "some pages are free"


def attempt(action: Callable[[], Any]) -> tuple[Any, str]:
    """The result of an action, and its error if there is one."""
    try:
        return action(), ""
    except StoreError as error:
        return None, str(error)


def test_writers_and_copies_check_large_values(tmp_path: Path) -> None:
    """They believe the number of pages that the first one tells; readers do not look at it."""
    path = tmp_path / "store"
    make(path)
    truth = read_all(path)
    file = path / "data.mdb"
    data = bytearray(file.read_bytes())
    large = [
        at for at in range(2 * PAGE, len(data), PAGE)
        if data[at : at + 8] == (at // PAGE).to_bytes(8, "little") and data[at + 10] == 4
    ]  # fmt: skip
    refused = 0
    for at in large:
        data[at + 12] ^= 64
        file.write_bytes(data)
        data[at + 12] ^= 64
        assert read_all(path) == truth
        _, error = attempt(lambda: NBestStore.open(path, writable=True).close())
        assert bool(error) == bool(attempt(lambda: copy(path, tmp_path / "copy"))[1])
        if error:
            assert "which is in use elsewhere, or free" in error or "does not exist" in error
            refused += 1
        else:
            shutil.rmtree(tmp_path / "copy")
    assert refused > 20
