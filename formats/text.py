"""Read text files, plain or compressed, and write files atomically.

Compression is detected by content.

Text is bytes. Only ``\\n`` ends a line, and no encoding is assumed: Latin-1 or broken UTF-8 comes
back byte for byte. A leading UTF-8 byte order mark is removed, since it would become part of the
first word or name. The mark of UTF-16 is an error: half of such text would be zero bytes.

Reads are bounded: devices without end and archives that expand more than some hundred times are
rejected. A user may name a pipe, such as ``<(zcat list.gz)``; paths that come from other files or
from directories must be regular files (``require_regular_file``).
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import io
import lzma
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, cast

from formats.errors import MACHINE_REMEDIES, FormatError
from formats.pipes import InputFile

StrPath = str | PathLike[str]
"""A path."""


class _Unpacked(Protocol):
    """The text of an archive."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


CHUNK_BYTES = 1 << 20
_UNPACKED_BYTES = 1 << 26
"""Any archive may expand to this many bytes."""
_LARGEST_RATIO = 400
"""Largest ratio of text to archive beyond that. Lists and graphs reach a few dozen; a file that
repeats one byte reaches more than a thousand."""
_PACKED_BYTES = 1 << 16
"""Bytes of a gzip file that are unpacked at a time."""
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_ARCHIVES: dict[bytes, Callable[[BinaryIO], _Unpacked]] = {
    b"\x1f\x8b": lambda file: _GzipReader(file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_BYTE_ORDER_MARK = codecs.BOM_UTF8
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_BROKEN_ARCHIVE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def open_text(path: StrPath) -> BinaryIO:
    """Open a file for reading, uncompressed on the fly if its first bytes say so.

    Raises:
        FormatError: the path is missing, unreadable, a directory or a device, the text is UTF-16,
            or an archive is damaged at its start. Reading raises it if the rest is damaged,
            truncated, or expands too much.
    """
    try:
        file = path.open() if isinstance(path, InputFile) else Path(path).open("rb")  # noqa: SIM115
        is_device = _is_endless(file)
        magic = b"" if is_device else file.peek(8)
    except (OSError, ValueError) as error:  # a name with a zero byte is a wrong value
        raise _unreadable(path, error) from error
    if is_device:
        file.close()
        raise FormatError("this is a device", path=fspath(path), remedy="Give a file")
    for signature, archive in _ARCHIVES.items():
        if magic.startswith(signature):
            file = io.BufferedReader(_Archive(archive(file), file, path), CHUNK_BYTES)
            break
    try:
        start = file.peek(3)
        if start.startswith(_UTF_16_MARKS):
            raise FormatError(
                "this is UTF-16 text",
                path=fspath(path),
                remedy="Convert it: iconv -f UTF-16 -t UTF-8",
            )
        if start.startswith(_BYTE_ORDER_MARK):
            file.read(3)
    except FormatError:
        file.close()
        raise
    return file


def require_regular_file(path: StrPath) -> Path:
    """Return ``path`` unless something other than a regular file is there.

    Reading a pipe could block.

    Raises:
        FormatError: the path is neither a file nor a link to one, or cannot be examined.
    """
    path = Path(path)
    try:
        is_other = path.exists() and not path.is_file()
    except OSError as error:
        raise _unreadable(path, error) from error
    if is_other:
        raise FormatError("this is not a regular file", path=path, remedy="Put a file there")
    return path


def read_bytes(path: StrPath, *, most: int | None = None, what: str = "such a file") -> bytes:
    """Return the whole text of a file, uncompressed.

    Args:
        most: largest number of bytes; None: no limit.

    Raises:
        FormatError: as ``open_text``, or the file is longer than ``most``.
    """
    chunks, size = [], 0
    for chunk in iter_chunks(path):
        chunks.append(chunk)
        size += len(chunk)
        if most is not None and size > most:
            raise FormatError(
                f"the file has more than {most >> 20} MiB, too much for {what}",
                path=fspath(path),
                remedy="Check that this is the right file",
            )
    return b"".join(chunks)


def read_lines(path: StrPath) -> list[bytes]:
    """Return the lines of a file, without ``\\n``; the last one needs none."""
    lines = read_bytes(path).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines


def iter_chunks(path: StrPath, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the uncompressed text of a file in pieces of about ``chunk_bytes``.

    No piece is empty.
    """
    with open_text(path) as file:
        while chunk := file.read(chunk_bytes):
            yield chunk


@contextmanager
def atomic_write(path: StrPath, *, compress: Literal["gz"] | None = None) -> Iterator[BinaryIO]:
    """Open a binary file that replaces ``path`` when the block ends.

    The file is replaced completely or not at all.

    The bytes are written to a temporary file in the same directory, synced and renamed. If the
    block raises, ``path`` is unchanged and the temporary file is removed. Of a symbolic link, the
    target is replaced; a device or pipe (``/dev/stdout``) is written directly. A gzip file carries
    no time and no name, so equal input gives equal bytes.

    Raises:
        OSError: the directory is missing or not writable, or the disk is full; it names ``path``,
            not the temporary file.
    """
    if Path(path).exists() and not Path(path).is_file():
        with Path(path).open("wb") as file, _open_packed(file, compress) as text:
            yield text
        return
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            with _open_packed(file, compress) as text:
                yield text
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
        sync_directory(target.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            _name_target(error, temporary, target)
        raise


def _name_target(error: OSError, temporary: Path, target: Path) -> None:
    """Name the target in an error that names its temporary file or no file."""
    if error.filename is None:  # a write that finds no room does not say where
        is_unnamed = error.errno in _NO_ROOM
    else:
        is_unnamed = str(error.filename) == str(temporary)
    if is_unnamed:
        error.filename = str(target)
        del error.filename2  # that of a rename, also the target


def write_atomic(path: StrPath, data: bytes, *, compress: Literal["gz"] | None = None) -> None:
    """Write ``data`` as the whole of ``path``, or leave ``path`` as it was."""
    with atomic_write(path, compress=compress) as file:
        file.write(data)


@contextmanager
def _open_packed(file: BinaryIO, compress: Literal["gz"] | None) -> Iterator[BinaryIO]:
    if compress is None:
        yield file
    else:
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            yield cast(BinaryIO, packed)


class _GzipReader:
    """A gzip file, decompressed in larger pieces than by Python 3.11's ``gzip``.

    As with ``gzip``, a file may have several members, and zeros behind each.
    """

    def __init__(self, compressed: BinaryIO) -> None:
        self._compressed = compressed
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end of the file."""
        while True:
            if self._member.eof:
                packed = self._find_member()
                if not packed:
                    return b""
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            else:
                packed = self._member.unconsumed_tail or self._compressed.read(_PACKED_BYTES)
            if text := self._member.decompress(packed, size):
                return text
            if not (packed or self._member.eof):
                raise EOFError("it ends before the end of its data")

    def close(self) -> None:
        """Do nothing: the compressed file is closed by whoever opened it."""

    def _find_member(self) -> bytes:
        """Return the bytes from the next member on; empty if there is no other."""
        packed = self._member.unused_data.lstrip(b"\0")
        while not packed and (more := self._compressed.read(_PACKED_BYTES)):
            packed = more.lstrip(b"\0")
        return packed


class _Archive(io.RawIOBase):
    """An archive whose read errors are ``FormatError`` of one line."""

    def __init__(self, source: _Unpacked, compressed: BinaryIO, path: StrPath) -> None:
        self._source = source
        self._compressed = compressed
        self._path = path
        self._unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        try:
            data = self._source.read(len(buffer))
        except (*_BROKEN_ARCHIVE, OSError) as error:
            raise _damage_error(self._path, error) from error
        buffer[: len(data)] = data
        self._unpacked += len(data)
        if self._unpacked > _UNPACKED_BYTES:
            self._check_ratio()
        return len(data)

    def _check_ratio(self) -> None:
        if not self._compressed.seekable():
            return
        read = self._compressed.tell()
        if self._unpacked > _LARGEST_RATIO * read:
            raise FormatError(
                f"{read} bytes of the archive expand to {self._unpacked}: too much for text",
                path=fspath(self._path),
                remedy="Look at its content (zcat, head), or unpack it yourself",
            )

    def close(self) -> None:
        if not self.closed:
            self._source.close()
            self._compressed.close()
        super().close()


def _is_endless(file: io.BufferedReader) -> bool:
    """Return whether the file is a device other than a terminal and ``/dev/null``."""
    if not isinstance(file.raw, io.FileIO):
        return False  # the copy of a pipe
    status = os.fstat(file.fileno())
    if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
        return False
    return not file.isatty() and status.st_rdev != Path(os.devnull).stat().st_rdev


def sync_directory(directory: Path) -> None:
    """Sync the directory, so that a rename survives a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: StrPath, error: OSError | ValueError) -> FormatError:
    return FormatError(
        f"cannot be read: {getattr(error, 'strerror', None) or error}",
        path=fspath(path),
        remedy=MACHINE_REMEDIES.get(
            getattr(error, "errno", None) or 0, "Check the name and the permissions"
        ),
    )


def _damage_error(path: StrPath, error: Exception) -> FormatError:
    return FormatError(
        f"the archive is cut short or damaged ({error})",
        path=fspath(path),
        remedy="Copy or produce it again, or remove it",
    )
