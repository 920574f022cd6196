"""Test the parts of results that are removed before they are compared."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import lmdb
import msgpack
import pytest

from tests.golden.compare import differences
from tests.golden.results import collect, plain_text
from tests.golden.rows import Command, Row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"weights 1 s\nLM0= 0.5\n", b"weights T s\nLM0= 0.5\n"),
        (b"# finished Sun Nov 22 09:14:32 UTC 2026\n0.1", b"# finished DATE\n0.1"),
        (b"1   0.4102   12.3 s", b"1 0.4102 T s"),
        (b"1   0.4102", b"1   0.4102"),
        (b"stored 2026-11-22T09:15:08+00:00", b"stored DATE"),
        (b"process 17 on host\n", b"process PID on HOST\n"),
        (b"2026 0.3 subject", b"2026 0.3 subject"),
    ],
)
def test_text(text: bytes, expected: bytes) -> None:
    assert plain_text(text) == expected


def make(directory: Path, *, date: str, seconds: float, weight: float, checksum: int) -> Path:
    """A directory with a store, a summary and a list."""
    (directory / "store").mkdir(parents=True)
    record = msgpack.packb({"date": date, "seconds_decoding": seconds, "dense": [weight]})
    sums = b"CRC!" + (0).to_bytes(4, "little") + checksum.to_bytes(4, "little")
    with lmdb.open(str(directory / "store"), max_dbs=4) as environment:
        table = environment.open_db(b"iterations")
        with environment.begin(db=table, write=True) as transaction:
            transaction.put(bytes([0, 0, 0, 1, 0]), record)
            transaction.put(bytes([0, 0, 0, 1, 8, 0]), msgpack.packb(sums))
            transaction.put(bytes([0, 0, 0, 1, 8, 1]), msgpack.packb(b"other sums"))
    summary = {"finished": date, "seconds": {"decoding": seconds}, "reason": date, "score": weight}
    (directory / "summary.json").write_text(json.dumps(summary))
    (directory / "oracles.json").write_text(json.dumps({f"digest of {date}": weight}))
    data = gzip.compress(f"0 ||| a ||| {weight}\n".encode(), mtime=seconds)
    (directory / "list.gz").write_bytes(data)
    (directory / "input").write_text(date)
    (directory / "decoder.err").write_text(date)
    return directory


def test_files(tmp_path: Path) -> None:
    inputs = frozenset({"input"})
    first = make(tmp_path / "1", date="2026-01-01", seconds=1.5, weight=0.5, checksum=7)
    later = make(tmp_path / "2", date="2027-02-02", seconds=2.5, weight=0.5, checksum=8)
    other = make(tmp_path / "3", date="2026-01-01", seconds=1.5, weight=0.25, checksum=7)
    left = collect(first, inputs)
    assert set(left) == {
        *("decoder.err", "list.gz", "oracles.json", "store/data.mdb", "summary.json")
    }
    assert collect(later, inputs) == left
    changed = collect(other, inputs)
    assert {name for name in left if left[name] != changed[name]} == set(left) - {"decoder.err"}


def test_differences() -> None:
    row = Row("name", (Command(("a",)), Command(("b",), exact=False)))
    left = {"stdout.1": b"score 1", "stdout.2": b"score 2", "same": b"x", "run1.dense": b"LM0= 1"}
    assert differences(row, left, dict(left), []) == ([], False)
    assert differences(row, left, left | {"stdout.2": b"worth 2"}, []) == ([], True)
    assert differences(row, left, left | {"stdout.2": b"score 3"}, []) == (["stdout.2"], False)
    assert differences(row, left, left | {"stdout.1": b"worth 1"}, []) == (["stdout.1"], False)
    more = left | {"work/settings.toml": b""}
    assert differences(row, left, more, []) == (["work/settings.toml"], False)
    assert differences(row, left, more, ["settings.toml"]) == ([], False)
    assert differences(row, more, left, ["settings.toml"]) == (["work/settings.toml"], False)
