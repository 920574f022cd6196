"""How many pages of a file are missing: LMDB's own files, whole, cut, and short but sound."""

from __future__ import annotations

import random
from pathlib import Path

import lmdb

from mosesplug.store.truncation import count_missing_pages

PAGE = 4096
SIZES = (5, 100, 1500, 3000, 9000, 20000)


def test_files_of_many_transactions(tmp_path: Path) -> None:
    """Pages in use and free pages are all that there are; some files are shorter, and sound."""
    chance = random.Random(1)
    file = tmp_path / "data.mdb"
    lacking = 0
    with lmdb.open(str(tmp_path), max_dbs=2, map_size=1 << 26, sync=False) as environment:
        databases = [environment.open_db(name) for name in (b"one", b"two")]
        for _ in range(60):
            with environment.begin(write=True) as transaction:
                for _ in range(chance.randint(1, 40)):
                    key, value = b"%d" % chance.randint(0, 300), bytes(chance.choice(SIZES))
                    transaction.put(key, value, db=chance.choice(databases))
                for _ in range(chance.randint(0, 60)):
                    key = b"%d" % chance.randint(0, 300)
                    transaction.delete(key, db=chance.choice(databases))
            assert count_missing_pages(file, PAGE) == 0
            last = environment.info()["last_pgno"]
            lacking += file.stat().st_size < (last + 1) * PAGE
    assert lacking
    data = file.read_bytes()
    missing = []
    for pages in (*range(last, 2, -37), 2):
        file.write_bytes(data[: pages * PAGE])
        missing.append(count_missing_pages(file, PAGE))
    assert missing == sorted(missing)
    # Where the tree of free pages is cut off itself, nothing is known to be free.
    assert missing[-1] == last - 1


def test_a_partial_page_counts_as_missing(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), sync=False) as environment:
        with environment.begin(write=True) as transaction:
            transaction.put(b"key", bytes(5 * PAGE))
        pages = environment.info()["last_pgno"] + 1
    file = tmp_path / "data.mdb"
    data = file.read_bytes()
    assert (count_missing_pages(file, PAGE), len(data)) == (0, pages * PAGE)
    for length, missing in ((pages * PAGE - 1, 1), ((pages - 2) * PAGE, 2)):
        file.write_bytes(data[:length])
        assert count_missing_pages(file, PAGE) == missing
