"""The formats of files of weights: their names, and how a file is recognized.

=============== ============================================================
moses.ini       sections in brackets, ``[weight]`` among them
show-weights    ``Name= v v`` lines, and features without weights
dense           ``Name= v v`` lines; ``name value`` lines of sparse features may follow
overwrite       several ``Name= v v`` on one line: ``-weight-overwrite``
sparse          ``name value`` lines, all names with an underscore
graph           the same with the names of dense features in search graphs, ``LM0``, ``TM0_1``
kbmira          the same with dense weights by number, ``F0``, ``F1``, as kbmira writes
init.opt        three lines of numbers
weights.txt     one line of numbers
json            an object of dense and sparse weights
json-flat       an object with a weight for each name
equals          ``name=value`` words, on one line or several
yaml            ``name: value`` lines
tsv             ``name value`` lines below a header
=============== ============================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import PurePath
from typing import Literal, get_args

from formats.weights.files import UNTUNEABLE_COMPONENT
from formats.weights.flat import is_pairs, is_tsv
from formats.weights.json_file import is_json
from formats.weights.yaml_file import is_yaml

Format = Literal[
    "moses.ini",
    "dense",
    "show-weights",
    "overwrite",
    "sparse",
    "graph",
    "kbmira",
    "init.opt",
    "weights.txt",
    "json",
    "json-flat",
    "equals",
    "yaml",
    "tsv",
]

FORMATS: tuple[Format, ...] = get_args(Format)
"""All of them."""

_OTHER_NAMES: Mapping[str, Format] = {"lines": "graph"}
"""Further names of formats: what most scripts call ``name value`` lines."""

_SUFFIXES: Mapping[str, Format] = {
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".tsv": "tsv",
    ".ini": "moses.ini",
}


def find_weight_format(name: str | None, path: str | PathLike[str] = "") -> Format:
    """Return the format with this name.

    Args:
        name: a format, or ``lines`` for ``graph``; None: the format of the name of the file, which
            is ``dense`` unless it ends in ``.json``, ``.yaml``, ``.yml``, ``.tsv`` or ``.ini``.

    Raises:
        ValueError: there is no such format.
    """
    if name is None:
        return find_named_format(path) or "dense"
    format = _OTHER_NAMES.get(name, name)
    if format not in FORMATS:
        known = ", ".join([*FORMATS, *_OTHER_NAMES])
        raise ValueError(f"unknown format {name!r} of weights; known: {known}")
    return format


def find_named_format(path: str | PathLike[str]) -> Format | None:
    """Return the format that the name of a file says; None if it says none."""
    return _SUFFIXES.get(PurePath(path).suffix)


def recognize_format(text: bytes, lines: Sequence[bytes]) -> Format | None:
    """Return the format of a file by its content; None if it is unknown.

    Args:
        lines: its lines that are not empty, without comments; at least one.
    """
    if is_json(text):
        return "json"
    if _is_section(lines[0]) or any(
        line.startswith(b"[weight]") and _is_section(line) for line in lines
    ):
        return "moses.ini"
    if all(_is_number(word) for line in lines for word in line.split()):
        return "weights.txt" if len(lines) == 1 else "init.opt"
    if is_tsv(lines):
        return "tsv"
    if is_pairs(lines):
        return "equals"
    if is_yaml(lines):
        return "yaml"
    words = lines[0].split()
    groups = sum(word.endswith(b"=") for word in words)
    if len(lines) == 1 and (groups > 1 or (groups and b"x" in words)):
        return "overwrite"
    if any(map(_only_shown, lines)):
        return "show-weights"
    names = [line.split(maxsplit=1)[0] for line in lines]
    # A sparse feature of the word "=" has a name that ends with it.
    if any(name.endswith(b"=") and b"_" not in name for name in names) or all(
        name.endswith(b"=") for name in names
    ):
        return "dense"
    if len(words) != 2 or not _is_number(words[1]):
        return None
    dense = [name for name in names if b"_" not in name]
    if not dense:
        return "sparse"
    return "kbmira" if dense == [b"F%d" % place for place in range(len(dense))] else "graph"


def _is_section(line: bytes) -> bool:
    """Return whether the line is a section header, possibly with a comment."""
    head, bracket, rest = line.partition(b"]")
    is_header = head.startswith(b"[") and len(head) > 1 and bool(bracket)
    return is_header and rest.strip()[:1] in (b"", b"#")


def _only_shown(line: bytes) -> bool:
    """Return whether only the output of ``-show-weights`` has such a line."""
    if b"UNTUNEABLE" in line:
        words = line.split()
        return UNTUNEABLE_COMPONENT in words or (len(words) == 2 and words[1] == b"UNTUNEABLE")
    return line.endswith(b"=") and len(line.split()) == 1


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
