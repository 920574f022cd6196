"""Parse the lines of an HTK lattice: header, nodes and links.

Fields are ``name=value`` between blanks (HTK Book, section 16.2). A value can be quoted, and
a backslash escapes the next character, or a byte as three octal digits. Moses writes words without
quotes and escapes, so its lattices are read without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from formats.errors import FormatError, quote
from formats.text import read_lines

Fields = dict[bytes, bytes]

_FIELD = re.compile(
    rb"""([^\s="']+)=("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S*)(?=\s|$)""", re.DOTALL
)
_ESCAPED = re.compile(rb"\\(?:([0-3][0-7]{2})|(.))", re.DOTALL)
_COUNT = re.compile(rb"[0-9]{1,18}")
_OF_MOSES = re.compile(rb"Sentence_[0-9]+")
_COMMENT_OF_MOSES = re.compile(rb"# (\S+) \1 ([0-9]{1,9}) of ([0-9]{1,9})\s*")
_SCALE = re.compile(rb"(x[0-9]+)scale=\S+\s*")
_LONG = {
    b"VERSION": b"V", b"UTTERANCE": b"U", b"SUBLAT": b"S", b"NODES": b"N", b"LINKS": b"L",
}  # fmt: skip
_LONG_NODE = {b"time": b"t", b"WORD": b"W", b"var": b"v", b"div": b"d", b"acoustic": b"a"}
_LONG_LINK = {
    **_LONG_NODE, b"START": b"S", b"END": b"E", b"ngram": b"n", b"language": b"l",
}  # fmt: skip


@dataclass(frozen=True)
class SlfRecord:
    """A node or a link: its line, and its fields by short name."""

    line: int
    fields: Fields


@dataclass(frozen=True)
class Lattice:
    """A lattice file.

    Attributes:
        header: fields before the first node or link, by short name.
        header_lines: the line of each header field.
        nodes: nodes in file order; empty if the file omits them.
        names: Moses' names of ``x1``, ``x2`` and so on. Moses writes phrase tables twice; the
            second occurrence has no name here. Empty if Moses did not write the file.
    """

    path: str
    header: Fields
    header_lines: Mapping[bytes, int]
    nodes: Sequence[SlfRecord]
    links: Sequence[SlfRecord]
    names: Mapping[bytes, str] = field(default_factory=dict)

    def error(self, line: int | None, message: str, remedy: str) -> FormatError:
        """Return an error in this file."""
        return FormatError(message, path=self.path, line=line, remedy=remedy)

    def count(self, name: bytes) -> int:
        """Return ``N`` or ``L`` of the header."""
        text = self.header.get(name)
        line = self.header_lines.get(name)
        if text is None or not _COUNT.fullmatch(text):
            message = f"the header does not announce {name.decode()}= (numbers of nodes and links)"
            raise self.error(line, message, "Expected N=3 L=2; check that this is a lattice")
        return int(text)


def read_lattice(path: str) -> Lattice:
    """Read the records of a file, plain or compressed.

    Raises:
        FormatError: a line is malformed, a field is repeated in a line or in the header, the
            announced numbers of nodes or links do not match, there is a sub-lattice, or Moses
            counted features wrongly because some are sparse.
    """
    lines = read_lines(path)
    names = _names_of_moses(lines)
    header: Fields = {}
    header_lines: dict[bytes, int] = {}
    nodes: list[SlfRecord] = []
    links: list[SlfRecord] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith(b"#") or not line.strip():
            continue
        fields = _fields(line, bool(names))
        if fields is None:
            raise FormatError(
                f"cannot parse fields {quote(line)}",
                path=path,
                line=number,
                remedy="Expected name=value name=value, without duplicate names",
            )
        first = next(iter(fields))
        if first in (b"I", b"J"):
            if first == b"I" and b"L" in fields:
                raise _sublattice(path, number)
            long, records = (_LONG_NODE, nodes) if first == b"I" else (_LONG_LINK, links)
            records.append(SlfRecord(number, _short(fields, long, path, number)))
        elif nodes or links:
            raise FormatError(
                f"{quote(line)} is neither a node nor a link",
                path=path,
                line=number,
                remedy="Begin nodes with I= and links with J=",
            )
        else:
            _add_header(header, header_lines, _short(fields, _LONG, path, number), path, number)
    lattice = Lattice(path, header, header_lines, nodes, links, names)
    _check_counts(lattice)
    if b"x0" in names:
        raise lattice.error(
            header_lines.get(b"x0scale"),
            "unsupported features: Moses miscounts features in lattices if some are sparse",
            "Write the graph with -output-search-graph-hypergraph",
        )
    return lattice


def _add_header(
    header: Fields, lines: dict[bytes, int], fields: Fields, path: str, line: int
) -> None:
    """Add a line of the header."""
    for name, value in fields.items():
        if name in header:
            raise FormatError(
                f"duplicate header field {name.decode('utf-8', 'replace')}=",
                path=path,
                line=line,
                remedy="Write one lattice per file",
            )
        if name == b"S":
            raise _sublattice(path, line)
        header[name] = value
        lines[name] = line


def _sublattice(path: str, line: int) -> FormatError:
    return FormatError(
        "sub-lattices are not supported", path=path, line=line, remedy="Expand the lattice"
    )


def _check_counts(lattice: Lattice) -> None:
    """Check the announced numbers of nodes and links."""
    for name, records, what in (
        (b"N", lattice.nodes, "nodes"),
        (b"L", lattice.links, "links"),
    ):
        announced = lattice.count(name)
        if len(records) != announced and (records or what == "links"):
            raise lattice.error(
                lattice.header_lines[name],
                f"{len(records)} {what}, but the header announces {announced}",
                "Check that the file is complete",
            )
    if lattice.count(b"N") == 0:
        raise lattice.error(
            lattice.header_lines[b"N"], "the lattice has no nodes", "Check that it is complete"
        )


def _short(fields: Fields, long: Mapping[bytes, bytes], path: str, line: int) -> Fields:
    """Rename fields to their short names."""
    if not fields.keys() & long.keys():
        return fields
    short = {long.get(name, name): value for name, value in fields.items()}
    if len(short) < len(fields):
        raise FormatError(
            "duplicate field", path=path, line=line, remedy="Remove one of its values"
        )
    return short


def _fields(line: bytes, plain: bool) -> Fields | None:
    """Parse the fields of a non-empty line; return None if it is malformed."""
    if plain or not (b"\\" in line or b'"' in line or b"'" in line):
        pairs = [token.partition(b"=") for token in line.split()]
        if not all([name and equals for name, equals, _ in pairs]):  # noqa: C419 (twice as fast)
            return None
        fields = {name: value for name, _, value in pairs}
        return fields if len(fields) == len(pairs) else None
    fields = {}
    for name, value in _quoted_fields(line):
        if name is None or name in fields:
            return None
        fields[name] = value
    return fields


def _quoted_fields(line: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield fields of a line with quotes or backslashes; on an error, name is None."""
    at = 0
    for match in _FIELD.finditer(line):
        if line[at : match.start()].strip():
            break
        at = match.end()
        value = match[2]
        if len(value) > 1 and value[:1] in (b'"', b"'") and value[-1:] == value[:1]:
            value = value[1:-1]
        yield match[1], _ESCAPED.sub(_unescape, value)
    if line[at:].strip():
        yield None, line


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)]) if match[1] else match[2]


def _names_of_moses(lines: Sequence[bytes]) -> dict[bytes, str]:
    """Return the names of ``x1``, ... in Moses' comments; empty for other files."""
    names: dict[bytes, str] = {}
    of_moses = False
    comment: re.Match[bytes] | None = None
    for line in lines:
        if line.startswith(b"J="):
            break
        if line.startswith(b"UTTERANCE="):
            of_moses = bool(_OF_MOSES.fullmatch(line[10:].strip()))
        scale = _SCALE.fullmatch(line)
        if scale and comment:
            name = comment[1].decode("utf-8", "surrogateescape")
            name = name if int(comment[3]) == 1 else f"{name}_{int(comment[2])}"
            if name not in names.values():
                names[scale[1]] = name
        comment = _COMMENT_OF_MOSES.fullmatch(line)
    return names if of_moses else {}
