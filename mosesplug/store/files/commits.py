"""Undo commits that fail while LMDB writes their meta page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lmdb


@contextmanager
def undo_failed_commit(data: Path, page_size: int) -> Iterator[None]:
    """Write the two meta pages back if the commit in the block fails.

    If the write of a meta page fails, LMDB writes the former transaction number back, but not the
    former trees: such a page cannot be told from a damaged one. Only the writer may call this.

    Args:
        data: the file of data.
        page_size: size of its pages in bytes.

    Raises:
        Whatever the block raises.
    """
    descriptor = os.open(data, os.O_RDWR | os.O_CLOEXEC)
    try:
        saved = os.pread(descriptor, 2 * page_size, 0)
        try:
            yield
        except lmdb.Error:
            with suppress(OSError):  # the disk may be failing
                if os.pread(descriptor, 2 * page_size, 0) != saved:
                    os.pwrite(descriptor, saved, 0)
                    os.fsync(descriptor)
            raise
    finally:
        os.close(descriptor)
