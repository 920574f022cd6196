"""Compress and parse an n-best list while the decoder writes it."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.feeding import NBestFeed
from formats.nbest.files import BLOCK_BYTES
from formats.text import atomic_write
from mosesplug.decoders.layout import choose_layout

_STEP_BYTES = 1 << 20
_MOST_PARSED = 1 << 26
"""Bytes of a list that is kept in memory as it is parsed. Larger lists are read again."""
ARCHIVES = (b"\x1f\x8b", b"BZ", b"\xfd7")
"""First bytes of gzip, bzip2 and xz files."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def follow_list(
    path: Path,
    packed: Path,
    groups: Sequence[tuple[str, int]],
    parsed: Callable[[Sequence[NBestList]], None] | None = None,
) -> Iterator[ListFollower]:
    """Follow a list that will be written to ``path``, until the block ends.

    Args:
        packed: its archive, which is written if ``ListFollower.finish`` is called.
        groups: name and width of each dense feature.
        parsed: called with the lists that are parsed while the list grows, as soon as the next
            sentence begins; None: they are parsed in larger pieces.
    """
    with ExitStack() as stack:
        follower = ListFollower(path, packed, groups, stack, parsed)
        yield follower


class ListFollower:
    """Reader of a list that grows.

    Call ``advance`` while it grows, and ``finish`` at its end.
    """

    def __init__(
        self,
        path: Path,
        packed: Path,
        groups: Sequence[tuple[str, int]],
        stack: ExitStack,
        parsed: Callable[[Sequence[NBestList]], None] | None = None,
    ) -> None:
        self._path, self._packed, self._groups = path, packed, groups
        self._stack = stack
        self._parsed = parsed
        self._is_invalid = False
        self._source: BinaryIO | None = None
        self._target: BinaryIO | None = None
        self._given_up = False
        self._position = 0
        self._checksum = 0
        self._begin = b""
        self._feed: NBestFeed | None = None
        self._unfed = b""
        self._blocks: list[NBestList] | None = []

    def advance(self) -> None:
        """Read what was written since the last call."""
        if self._given_up:
            return
        try:
            while not self._given_up and (data := self._read()):
                self._take(data)
        except OSError:
            self._give_up()

    def finish(self) -> bool:
        """Read the rest, and finish the archive.

        Returns:
            Whether the archive holds the list. It does not, and is removed, if the list is
            compressed already, was written again from its start, or if there is no room.
        """
        self.advance()
        if self._given_up or self._target is None or not self._is_same():
            self._give_up()
            return False
        try:
            self._stack.close()
        except OSError:
            return False
        return True

    def take_lists(self) -> Iterator[NBestList] | None:
        """Return the parsed lists of a finished archive; None if it must be read.

        They are freed one by one.
        """
        if self._blocks is None or self._feed is None:
            return None
        try:
            blocks = deque([*self._blocks, *self._feed.finish()])
        except FormatError:
            return None
        self._blocks = self._feed = None
        return (blocks.popleft() for _ in range(len(blocks))) if blocks else None

    def _read(self) -> bytes:
        if self._source is None:
            try:
                self._source = self._stack.enter_context(self._path.open("rb"))
            except FileNotFoundError:
                return b""
        return self._source.read(_STEP_BYTES)

    def _take(self, data: bytes) -> None:
        if self._target is None:
            self._begin += data
            if len(self._begin) < len(_BYTE_ORDER_MARK):
                self._position += len(data)
                return
            if self._begin.startswith((*ARCHIVES, _BYTE_ORDER_MARK)):
                self._give_up()
                return
            self._position -= len(self._begin) - len(data)
            data = self._begin
            self._target = self._stack.enter_context(atomic_write(self._packed, compress="gz"))
        self._position += len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        self._target.write(data)
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        if self._position > _MOST_PARSED:
            self._blocks = None
        if self._is_invalid or (self._blocks is None and self._parsed is None):
            self._feed = None
            return
        try:
            if self._feed is None:
                self._unfed += data
                # A decoder may write the first line in parts.
                if (line := _find_first_line(self._unfed)) is None:
                    return
                names, dense = choose_layout(line, self._groups)
                size = BLOCK_BYTES if self._parsed is None else 1
                self._feed = NBestFeed(self._packed, names=names, dense=dense, block_bytes=size)
                data, self._unfed = self._unfed, b""
            lists = self._feed.feed(data)
        except FormatError:  # reading the archive reports it
            self._blocks = self._feed = None
            self._is_invalid = True
            return
        if self._blocks is not None:
            self._blocks += lists
        if self._parsed is not None and lists:
            self._parsed(lists)

    def _is_same(self) -> bool:
        """Return whether the list holds exactly what was read of it."""
        checksum = size = 0
        with self._path.open("rb") as file:
            while data := file.read(_STEP_BYTES):
                checksum, size = zlib.crc32(data, checksum), size + len(data)
        return (checksum, size) == (self._checksum, self._position)

    def _give_up(self) -> None:
        """Remove what was written of the archive."""
        self._given_up = True
        with suppress(OSError):
            self._stack.__exit__(_GivenUpError, _GivenUpError(), None)


def _find_first_line(text: bytes) -> bytes | None:
    """Return the first complete line that is not blank, or None before it is written."""
    lines = text.split(b"\n", text.count(b"\n", 0, len(text) - len(text.lstrip())) + 1)[:-1]
    return lines[-1] if lines and lines[-1].strip() else None


class _GivenUpError(Exception):
    """Ends the writing of an archive that is not wanted."""
