"""Detect a truncated data file.

Reading its map beyond the end would kill the process.

LMDB does not check the length of its file. A file that was copied in part can be opened, and
reading the first record beyond its end is a bus error. A valid file may be shorter than the map, if
the pages at its end were freed before they were written. A short file is therefore valid if all
missing pages are free. This module reads the tree of free pages from the file, not through the map.
Its layout (``lmdb.h``, ``mdb.c`` of LMDB 0.9)::

    page      number u64, padding u16, flags u16, end of the offsets u16, u16; offsets u16
    meta      magic u32, version u32, address u64, map size u64, two trees, last page u64, txn u64
    tree      padding u32, flags u16, depth u16, three u64, entries u64, root page u64
    node      low u16, high u16, flags u16, key size u16, key, data

In a branch, low, high and flags are the number of the child page. In a leaf, low and high are the
size of its data: a count and a list of page numbers, which with the flag are on a separate page.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["count_missing_pages"]

_HEADER = 16
_META = struct.Struct("<IIQQ4xHH4QQ48xQQ")
_NODE = struct.Struct("<HHHH")
_NUMBERS = struct.Struct("<Q")
_BRANCH = 1
_ELSEWHERE = 1
_NOWHERE = 2**64 - 1


def count_missing_pages(path: Path, page_size: int) -> int:
    """Return how many used pages are beyond a data file's end; 0 if it is complete.

    Args:
        path: the file.
        page_size: size of a page in bytes.

    Raises:
        OSError: the file cannot be read.
    """
    while True:
        with path.open("rb") as file:
            root, last, transaction = _newest(file, page_size)
            # A writer extends the file before it updates the meta page.
            n_pages = file.seek(0, 2) // page_size
            beyond = set(range(n_pages, last + 1))
            if not beyond:
                return 0
            with contextlib.suppress(struct.error, EOFError):
                beyond.difference_update(_free(file, root, page_size, n_pages))
            if _newest(file, page_size)[2] == transaction:
                return len(beyond)


def _newest(file: BinaryIO, page_size: int) -> tuple[int, int, int]:
    """Return the newer meta page: root of free pages, last page, and number."""
    found = []
    for number in (0, 1):
        file.seek(number * page_size + _HEADER)
        *_, root, last, transaction = _META.unpack(file.read(_META.size))
        found.append((transaction, last, root))
    transaction, last, root = max(found)
    return root, last, transaction


def _free(file: BinaryIO, root: int, page_size: int, n_pages: int) -> Iterator[int]:
    """Yield numbers of the free pages."""
    waiting = [] if root == _NOWHERE else [root]
    while waiting:
        page = _page(file, waiting.pop(), page_size, n_pages)
        flags, end = struct.unpack_from("<HH", page, 10)
        for (offset,) in struct.iter_unpack("<H", page[_HEADER:end]):
            low, high, node_flags, key_size = _NODE.unpack_from(page, offset)
            if flags & _BRANCH:
                waiting.append(low | high << 16 | node_flags << 32)
                continue
            data = page[offset + _NODE.size + key_size :][: low | high << 16]
            if node_flags & _ELSEWHERE:
                (first,) = _NUMBERS.unpack_from(data)
                size = low | high << 16
                data = _page(file, first, page_size, n_pages, _HEADER + size)[_HEADER:]
            (count,) = _NUMBERS.unpack_from(data)
            yield from (number for (number,) in _NUMBERS.iter_unpack(data[8 : 8 + 8 * count]))


def _page(file: BinaryIO, number: int, page_size: int, n_pages: int, size: int = 0) -> bytes:
    """Return one page, or several that belong together."""
    size = size or page_size
    if number * page_size + size > n_pages * page_size:
        raise EOFError
    file.seek(number * page_size)
    return file.read(size)
