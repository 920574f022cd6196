"""Parse an n-best list that arrives in pieces, as a decoder writes it."""

from __future__ import annotations

from collections.abc import Sequence
from os import fspath

from formats.nbest.block import NBestList, parse_block
from formats.nbest.entry import Layout
from formats.nbest.files import BLOCK_BYTES, check_order, find_layout, start_of_last_sentence
from formats.text import StrPath


class NBestFeed:
    """Turns pieces of a list into the blocks of ``read_nbest_blocks``."""

    def __init__(
        self,
        path: StrPath,
        *,
        names: Sequence[str] | None = None,
        dense: Sequence[str] | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """Start before the first byte of a list.

        Args:
            names, dense: as for ``read_nbest``.
        """
        self._path = fspath(path)
        self._names, self._dense = names, dense
        self._block_bytes = block_bytes
        self._waiting: list[bytes] = []
        self._held = 0
        self._first_line = 1
        self._last = -1
        self._layout: Layout | None = None

    def feed(self, data: bytes) -> list[NBestList]:
        """Add a piece of the list, and return the blocks that are complete."""
        self._waiting.append(data)
        self._held += len(data)
        if self._held < self._block_bytes:
            return []
        text = b"".join(self._waiting)
        # The last sentence may go on in the next piece.
        cut = start_of_last_sentence(text)
        self._waiting, self._held = [text[cut:]], len(text) - cut
        return self._parse(text[:cut])

    def finish(self) -> list[NBestList]:
        """Return the rest of the list, which has ended."""
        text = b"".join(self._waiting)
        self._waiting, self._held = [], 0
        return self._parse(text if text.endswith(b"\n") else text + b"\n")

    def _parse(self, text: bytes) -> list[NBestList]:
        if not text.strip():
            self._first_line += text.count(b"\n")
            return []
        if self._layout is None:
            self._layout = find_layout(text, self._names, self._dense, self._path, self._first_line)
        if self._layout is None:
            return []
        block = parse_block(text, self._layout, self._path, self._first_line)
        self._first_line += text.count(b"\n")
        if not len(block):
            return []
        self._last = check_order(self._last, block)
        return [block]
