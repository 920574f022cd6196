"""The files that a run leaves, byte for byte, without dates and process ids.

Left out, and nothing else:

- in ``moses.ini`` and ``runN.moses.ini``, the line that begins with ``# finished``;
- in ``summary.json``, ``finished`` and what is named ``seconds...``;
- in stores, which are compared record by record, the values named ``seconds...`` and ``date``, and
  the checksums of the records that have them: pages lie where the history of transactions put them;
- the lock files, which name processes: ``tuning.lock``, ``writer.lock``, ``lock.mdb``;
- the scratch files of decoders that were given batches, or held-out text: what the last one was
  given and said (``batch.in``, ``server1.err``, ...), which a run that is resumed after its last
  batch has no occasion to write;
- in all files, the name of the working directory is replaced by a fixed one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from mosesplug.store.encoding import decode_value
from mosesplug.store.state import CHECKSUMS

_LOCKS = frozenset({"tuning.lock", "writer.lock", "lock.mdb"})
_SCRATCH = re.compile(
    r"(batch|heldout|compared|((shard|worker)\d+)(\.server\d+)?|server\d+)"
    r"\.(in|nbest|out|err|sparse-weights)"
)
_OWN_CHECKSUMS = bytes([CHECKSUMS, 0])
_FINISHED = re.compile(rb"^# finished .*$", re.MULTILINE)


def left_in(directory: Path) -> dict[str, Any]:
    """Everything in a working directory, by relative path; of a store, by database and key."""
    found: dict[str, Any] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.name == "data.mdb":
            found |= {f"{name}: {key}": value for key, value in _records(path.parent)}
        elif path.is_dir():
            found[name] = "a directory"
        elif path.name not in _LOCKS and not _SCRATCH.fullmatch(name):
            found[name] = _contents(path)
    return _renamed(found, str(directory))


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Names of what is missing, additional, or other."""
    names = sorted({*expected, *found})
    return [
        f"{'missing' if name not in found else 'additional' if name not in expected else 'other'}:"
        f" {name}"
        for name in names
        if name not in expected or name not in found or expected[name] != found[name]
    ]


def _contents(path: Path) -> Any:
    data = path.read_bytes()
    if path.name.endswith("moses.ini"):
        return _FINISHED.sub(b"", data)
    if path.name == "summary.json":
        summary = _without_seconds(json.loads(data))
        del summary["finished"]
        return summary
    return data


def _records(store: Path) -> Iterator[tuple[str, Any]]:
    """Every record of every database, straight from LMDB."""
    with lmdb.open(str(store), max_dbs=16, readonly=True, lock=False) as environment:
        with environment.begin() as transaction:
            names = [bytes(key) for key, _ in transaction.cursor()]
        for name in names:
            database = environment.open_db(name, create=False)
            with environment.begin(db=database) as transaction:
                for key, value in transaction.cursor():
                    if name == b"iterations" and bytes(key)[4:6] == _OWN_CHECKSUMS:
                        continue
                    plain = _timeless(name, bytes(value))
                    yield f"{name.decode()} {bytes(key).hex(' ')}", plain


def _timeless(database: bytes, value: bytes) -> Any:
    """A record without times; other databases than that of the iterations have none."""
    if database != b"iterations":
        return value
    return _without_seconds(decode_value(memoryview(value)))


def _without_seconds(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_seconds(entry)
            for name, entry in value.items()
            if not str(name).startswith("seconds") and name != "date"
        }
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return [_without_seconds(entry) for entry in value]
    # To the last bit; and what is not a number is the same as itself.
    return value.hex() if isinstance(value, float) else value


def _renamed(value: Any, directory: str) -> Any:
    """The same with the working directory's name replaced."""
    if isinstance(value, bytes):
        return value.replace(directory.encode(), b"WORK")
    if isinstance(value, str):
        return value.replace(directory, "WORK")
    if isinstance(value, Mapping):
        return {name: _renamed(entry, directory) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(entry, directory) for entry in value]
    return value
