"""Moses' file formats: read with a line number in every error, written all or nothing."""

from __future__ import annotations

from formats.errors import FormatError
from formats.nbest import (
    NBestEntry,
    NBestList,
    format_entry,
    iter_nbest,
    read_nbest,
    read_nbest_blocks,
    write_nbest,
)
from formats.text import atomic_write, open_text, read_bytes, read_lines, write_atomic

__all__ = [
    "FormatError",
    "NBestEntry",
    "NBestList",
    "atomic_write",
    "format_entry",
    "iter_nbest",
    "open_text",
    "read_bytes",
    "read_lines",
    "read_nbest",
    "read_nbest_blocks",
    "write_atomic",
    "write_nbest",
]
