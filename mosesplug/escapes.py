"""Text from data as people see it, without control characters."""

from __future__ import annotations

import re

__all__ = ["escape_controls", "escape_json", "mark_invalid_utf8"]

_CONTROLS = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: cursor, colors, title, clipboard
    "\u2028\u2029"  # other line breaks
    "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides and isolates of the writing direction
    "\ud800-\udfff"  # bytes that are not valid UTF-8
)
_CONTROL = re.compile(f"[{_CONTROLS}]")
_CONTROL_IN_LINES = re.compile(f"[{_CONTROLS}]".replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def escape_controls(text: str, *, keeps_lines: bool = False) -> str:
    r"""Return text with control characters as Python writes them: ``\x1b``.

    These are C0, DEL, C1, line and paragraph separators, and the characters that change the writing
    direction of what follows. A byte that is not valid UTF-8 (a surrogate escape) becomes ``\x9b``.

    Args:
        text: the text.
        keeps_lines: whether line feeds and tabs remain.
    """
    return (_CONTROL_IN_LINES if keeps_lines else _CONTROL).sub(_spell, text)


def escape_json(text: str) -> str:
    """Return a JSON document with the control characters of strings as escapes.

    Its values remain the same.
    """
    return _CONTROL_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def mark_invalid_utf8(text: str) -> str:
    """Return a name of a feature or file with surrogate escapes replaced by U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _spell(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
