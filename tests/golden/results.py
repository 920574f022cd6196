"""The results of a row without dates, durations, processes and hosts.

- Text: dates in ``# finished ...`` lines and ISO format, durations (``0.3 s``), and the host and
  process in ``writer.lock``. Where durations stand in a table, runs of blanks count as one.
- ``summary.json``: ``finished``, ``seconds``; ``reason`` and ``warnings`` are messages.
- ``oracles.json``: the keys, which are digests of the dates of iterations.
- A store (LMDB): every key and value of every table. In records that are dictionaries, ``date``
  and the durations; of the checksums over these records, which ones there are. The reader table
  ``lock.mdb`` is left out.
- Compressed files: the date in the header.
- Pages (``*.html``): the figures, of which one shows durations.
- What decoders print to stderr (``*.err``): only that the file is there.
- The last mini-batch of each worker (``worker1.in``, ...): which worker decodes it is chance.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import pprint
import re
from pathlib import Path
from typing import Any

import lmdb
import msgpack

__all__ = ["collect", "numbers", "plain_output", "plain_text"]

_FINISHED = re.compile(rb"^# finished .*$", re.MULTILINE)
_DATE = re.compile(rb"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?")
_SHORT = re.compile(rb"(?<![\w.])\d+(\.\d+)?(e-?\d+)? (s|ms|min|h)\b")
_HOLDER = re.compile(rb"^process \d+ on .*$", re.MULTILINE)
_FIGURE = re.compile(rb"<svg.*?</svg>", re.DOTALL)
_IGNORED = re.compile(r"lock\.mdb$|worker\d+\.")
_SECONDS = re.compile(r"seconds|finished|^date$|^cpu")
_MESSAGES = ("reason", "warnings")
_NUMBER = re.compile(rb"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)(?!\.\d)")
_CHECKSUMS, _OWN = 8, 0


def collect(directory: Path, inputs: frozenset[str]) -> dict[str, bytes]:
    """Read the new files of a directory, by relative path."""
    left = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_symlink():
            left[name] = b"link to " + bytes(path.readlink())
        elif path.is_file() and name not in inputs and not _IGNORED.match(path.name):
            left[name] = _content(path)
        elif path.is_dir() and not any(path.iterdir()):
            left[f"{name}/"] = b""
    return left


def numbers(text: bytes) -> list[bytes]:
    """All numbers in a text, as they are written; not those in names and versions."""
    return _NUMBER.findall(text)


def plain_text(data: bytes) -> bytes:
    """A text without dates and durations."""
    data = _FINISHED.sub(b"# finished DATE", data)
    data = _HOLDER.sub(b"process PID on HOST", _DATE.sub(b"DATE", data))
    short = _SHORT.sub(b"T s", data)
    return data if short == data else re.sub(rb"[ \t]+", b" ", short)


def plain_output(data: bytes) -> bytes:
    """Return the output of a program, JSON or text, without dates and durations."""
    return _json(data) if data[:1] in (b"{", b"[") else plain_text(data)


def _content(path: Path) -> bytes:
    if path.name == "data.mdb":
        return _store(path.parent)
    data = path.read_bytes()
    if path.suffix == ".err":
        return b""
    if data[:2] == b"\x1f\x8b":
        digest = hashlib.sha256(data[:4] + bytes(4) + data[8:]).hexdigest()
        return b"gzip %s\n" % digest.encode() + gzip.decompress(data)
    if path.name == "oracles.json":
        return json.dumps(list(json.loads(data).values())).encode()
    if path.suffix == ".json":
        return _json(data)
    if path.suffix == ".html":
        return plain_text(_FIGURE.sub(b"", data))
    if b"\0" in data:
        return data
    return plain_text(data)


def _json(data: bytes) -> bytes:
    """Return the same text if nothing is removed, else formatted again."""
    try:
        value = json.loads(data)
    except ValueError:
        return plain_text(data)
    stripped = _without_times(value)
    return data if stripped == value else json.dumps(stripped, indent=1).encode()


def _without_times(value: Any, name: str = "") -> Any:
    """The value with durations and dates as ``"T"``; messages by their number."""
    if isinstance(value, dict):
        if _SECONDS.search(name):
            return dict.fromkeys(value, "T")
        return {key: _without_times(each, str(key)) for key, each in value.items()}
    if name in _MESSAGES:
        return len(value) if isinstance(value, list) else "message"
    if _SECONDS.search(name) and isinstance(value, (int, float, str)):
        return "T"
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    return value


def _store(directory: Path) -> bytes:
    """Every record of an LMDB environment, one a line, dictionaries in full."""
    lines = []
    with (
        lmdb.open(str(directory), readonly=True, lock=False, max_dbs=16) as environment,
        environment.begin() as transaction,
    ):
        for table in [bytes(key) for key, _ in transaction.cursor()]:
            database = environment.open_db(table, txn=transaction, create=False)
            for key, value in transaction.cursor(database):
                lines.append(f"{table.decode()} {key.hex()}: {_record(table, key, value)}")
    return "\n".join([*lines, ""]).encode()


def _record(table: bytes, key: bytes, value: bytes) -> str:
    try:
        data = msgpack.unpackb(value, strict_map_key=False)
    except (ValueError, msgpack.UnpackException):
        data = None
    if table == b"iterations" and key[4:6] == bytes([_CHECKSUMS, _OWN]) and isinstance(data, bytes):
        pairs = [int.from_bytes(data[i : i + 4], "little") for i in range(4, len(data), 8)]
        return f"checksums of records {pairs}"
    digest = hashlib.sha256(value).hexdigest()[:20]
    if isinstance(data, dict):
        stripped = _without_times(data)
        digest = digest if stripped == data else ""
        return f"{digest} {pprint.pformat(stripped, width=200, sort_dicts=False)}"
    return f"{len(value)} bytes {digest}"
