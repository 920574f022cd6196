"""Configurations that force Moses to derive the references (forced decoding).

Moses' feature function ``ConstrainedDecoding`` rejects every hypothesis that is no part of a
reference. A sentence whose references cannot be derived gets no translation (survey of Neubig &
Watanabe 2016, section 2.4).
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.errors import FormatError
from formats.moses.ini import MosesIni

__all__ = ["constrain_config", "format_constraints"]

_FEATURE = "ConstrainedDecoding"
_UNREACHABLE = b"</s>"
"""Stands for a reference that Moses cannot read: it never translates anything to this word."""


def constrain_config(ini: MosesIni, references: Sequence[str]) -> bytes:
    """Return a configuration that derives nothing but references.

    Args:
        ini: the configuration of the decoder.
        references: names of files in the format of ``format_constraints``, without commas and
            blanks.

    Raises:
        FormatError: the configuration has no feature functions, or is constrained already.
    """
    if "feature" not in ini.sections:
        raise FormatError(
            "there is no section [feature]", path=ini.path, remedy="Give a moses.ini of Moses"
        )
    if found := [each for each in ini.features if each.kind == _FEATURE]:
        raise FormatError(
            f"{_FEATURE} is there already",
            path=ini.path,
            line=found[0].line,
            remedy="Remove it, or tune without forced decoding",
        )
    lines = list(ini.lines)
    head = ini.sections["feature"]
    line = f"{_FEATURE} name=ForcedDecoding0 path={','.join(references)}\n"
    lines.insert(head, line.encode())
    if not lines[head - 1].endswith(b"\n"):
        lines[head - 1] += b"\n"
    return b"".join(lines)


def format_constraints(references: Sequence[bytes]) -> bytes:
    """Return one reference of each sentence as Moses reads it: an id and a text.

    References without words, or with a ``|``, which separates factors, are made unreachable.
    """
    rows = []
    for number, text in enumerate(references):
        words = text.split()
        readable = words and not any(b"|" in word for word in words)
        rows.append(b"%d\t%s\n" % (number, b" ".join(words) if readable else _UNREACHABLE))
    return b"".join(rows)
