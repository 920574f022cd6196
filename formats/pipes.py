"""Open an input file several times: keep its first lines, and copy a pipe.

Formats of lists and ids of sentences are found by a first look at a file, and some files are read
twice. A pipe, such as ``<(zcat list.gz)``, can be read once only.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import TypeVar

_MEMORY = 1 << 26
"""Bytes of a pipe that are held in memory; more go to a temporary file."""

T = TypeVar("T")


class InputFile(PathLike[str]):
    """A file, or a pipe, that several threads can open several times.

    ``formats.text.open_text`` opens it as it opens a path.

    Attributes:
        first_lines: the result of ``read_first_lines``; None before its first call.
    """

    first_lines: list[bytes] | None = None

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = fspath(path)
        self.is_pipe = Path(path).is_fifo()
        self._lock = Lock()
        self._copy: tempfile.SpooledTemporaryFile[bytes] | None = None

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path

    def open(self) -> io.BufferedReader:
        """Open the file at its beginning; the first call reads a pipe to its end.

        Raises:
            OSError: it cannot be read, or there is no room for the copy of a pipe.
        """
        if not self.is_pipe:
            return Path(self._path).open("rb")
        with self._lock:
            if self._copy is None:
                self._copy = self._read()
        return io.BufferedReader(_CopyReader(self._copy, self._lock))

    def _read(self) -> tempfile.SpooledTemporaryFile[bytes]:
        # Closed with the last reference, since readers share it.
        copy: tempfile.SpooledTemporaryFile[bytes] = tempfile.SpooledTemporaryFile(_MEMORY)  # noqa: SIM115
        weakref.finalize(self, copy.close)
        with Path(self._path).open("rb") as pipe:
            shutil.copyfileobj(pipe, copy)
        return copy


class _CopyReader(io.RawIOBase):
    """A reader of a shared copy, with a position of its own."""

    def __init__(self, copy: tempfile.SpooledTemporaryFile[bytes], lock: Lock) -> None:
        self._copy = copy
        self._lock = lock
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            with self._lock:
                offset += self._copy.seek(0, os.SEEK_END)
        self._position = offset
        return offset

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        with self._lock:
            self._copy.seek(self._position)
            data = self._copy.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def is_read_once(path: str | PathLike[str]) -> bool:
    """Return whether a path can be read once only, being no file or directory."""
    if isinstance(path, InputFile) and path.is_pipe:
        return False
    path = Path(path)
    return path.exists() and not path.is_file() and not path.is_dir()


def wrap_files(files: Iterable[T]) -> tuple[T | InputFile, ...]:
    """Return paths as ``InputFile``; other objects stay as they are."""
    return tuple(
        InputFile(file)
        if isinstance(file, str | PathLike) and not isinstance(file, InputFile)
        else file
        for file in files
    )
