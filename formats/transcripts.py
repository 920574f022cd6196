"""Lines of sclite's transcripts: ``the house (utt-a)``, and comments after ``;;``."""

from __future__ import annotations

import re
from os import fspath

from formats.errors import FormatError, quote
from formats.text import StrPath

_BLANKS = bytes(range(33))
_NAME = re.compile(r"\.trn(?:\.(?:gz|bz2|xz))?$")


def split_transcript_line(line: bytes) -> tuple[bytes, bytes] | None:
    """Return text and id of a line; None without an id in parentheses at its end."""
    body = line.rstrip(_BLANKS)
    at = body.rfind(b"(")
    name = body[at + 1 : -1]
    if (
        at < 0
        or not body.endswith(b")")
        or not name
        or name.translate(None, _BLANKS + b")") != name
    ):
        return None
    return body[:at].strip(_BLANKS), name


def is_comment(line: bytes) -> bool:
    """Return whether a line of a transcript holds nothing."""
    return line.startswith(b";;") or not line.strip(_BLANKS)


def transcript_error(path: StrPath, number: int, line: bytes) -> FormatError:
    """Return the error for a line without an id."""
    return FormatError(
        f"the line does not end in an id in parentheses: {quote(line.rstrip())}",
        path=path,
        line=number,
        remedy="A transcript has the form: the house (utt-a)",
    )


def move_ids_to_front(lines: list[bytes], path: StrPath) -> list[bytes]:
    """Return lines of a transcript with ids first, and other lines as they are.

    A file is a transcript if its name ends in ``.trn``, or if all its lines, at least two, end in
    different ids.
    """
    is_named = _NAME.search(fspath(path)) is not None
    # Most files are decided by their first line.
    if not is_named and (len(lines) < 2 or split_transcript_line(lines[0]) is None):
        return lines
    pairs: list[tuple[bytes, bytes]] = []
    for number, line in enumerate(lines, start=1):
        if is_named and is_comment(line):
            continue
        pair = split_transcript_line(line)
        if pair is None:
            if is_named:
                raise transcript_error(path, number, line)
            return lines
        pairs.append(pair)
    if not is_named and len({name for _, name in pairs}) < len(pairs):
        return lines
    return [b"%b %b" % (name, text) for text, name in pairs]
