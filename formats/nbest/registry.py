"""All formats of n-best lists, by name and by the first lines of a file.

A format is a row of ``LIST_FORMATS`` in a module of ``formats.nbest.readers``, or a plug-in, as the
bundled ones in ``formats.extras``.
"""

from __future__ import annotations

import contextlib
import importlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import fspath
from pathlib import Path

import numpy as np

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import (
    ID_NAMES,
    ListFormat,
    ListOptions,
    SentenceIds,
    read_first_lines,
    sentence_order_error,
)
from formats.nbest.other_layouts import find_other_layout
from formats.plugins import find_plugin, list_plugins
from formats.text import StrPath, open_text

PLUGINS = "mosesplug.formats"
"""The group of entry points by which packages add formats; ``auto`` asks them last."""

AUTO = "auto"
"""The name that stands for the format of the first lines."""


_MODULES = ("documents", "jsonl", "bars", "tables")
"""The modules of ``formats.nbest.readers``, in the order in which ``auto`` asks them."""

_REGISTERED: dict[str, ListFormat] = {}
_DEFAULTS = ListOptions()


def register_format(added: ListFormat) -> None:
    """Add a format; ``auto`` asks it after the others."""
    if list_formats().get(added.name, added) is not added:
        raise ValueError(f"there is a list format {added.name} already: choose another name")
    _REGISTERED[added.name] = added


def _core_formats() -> Mapping[str, ListFormat]:
    """Return the formats of this package and the registered ones, by name."""
    if not _REGISTERED:
        for module in _MODULES:
            rows = importlib.import_module(f"formats.nbest.readers.{module}").LIST_FORMATS
            _REGISTERED.update({row.name: row for row in rows})
    return _REGISTERED


def list_formats() -> Mapping[str, ListFormat]:
    """Return all formats by name, in the order of ``auto``; the extras come last."""
    extras = [entry for entry in list_plugins(PLUGINS) if entry.is_bundled]
    return {**_core_formats(), **{entry.name: entry.load(ListFormat) for entry in extras}}


def split_format_name(text: str) -> tuple[str, int | None]:
    """Return the name and the number of ``flat:8``; other names have no number.

    Raises:
        ValueError: there is no such format, or its size is missing or not a positive integer; or
            the plug-in of this name cannot be used.
    """
    name, colon, size = text.partition(":")
    reader = None if name == AUTO else _find_name(name)
    is_sized = reader is not None and reader.is_sized
    if not is_sized and not colon:
        return name, None
    if reader is None or not (is_sized or reader.may_be_sized):
        raise ValueError(f"list format {text!r}: {name} takes no number, omit it")
    if not (size.isascii() and size.isdigit() and int(size)):
        raise ValueError(f"list format {text!r}: give the size of the groups, as {name}:8")
    return name, int(size)


def find_format(
    path: StrPath, format: str = AUTO, columns: Sequence[str] | None = None
) -> ListFormat:
    """Return the format with this name; ``auto`` detects it by the first lines.

    Args:
        columns: the meaning of each column, if a caller says so; see ``detect_format``.

    Raises:
        ValueError: there is no such format, or the plug-in of this name cannot be used.
    """
    name, _ = split_format_name(format)
    return detect_format(path, columns) if name == AUTO else _find_name(name)


def _find_name(name: str) -> ListFormat:
    """Return the format with this name, of this package or a plug-in."""
    own = _core_formats()
    if name in own:
        return own[name]
    if (plugin := find_plugin(PLUGINS, name, ListFormat)) is not None:
        return plugin
    others = [entry.name for entry in list_plugins(PLUGINS) if entry.name not in own]
    raise ValueError(f"unknown list format {name!r}; known: {', '.join([AUTO, *own, *others])}")


def detect_format(path: StrPath, columns: Sequence[str] | None = None) -> ListFormat:
    """Return the format of a file by its first lines.

    An empty file or a pipe counts as Moses', and a directory that no other format recognizes as one
    of Kaldi's archives. A file with as many columns as the caller names, one of them the id, is a
    table. So is a file that no format recognizes with tabs, or with as many commas as columns, if
    the caller names the id: its reader tells what is wrong.
    """
    if Path(path).is_dir():
        for plugin in _plugins():
            if plugin.recognizes_directory is not None and plugin.recognizes_directory(Path(path)):
                return plugin
        raise FormatError(
            "no format of n-best lists is a directory", path=path, remedy="Name a file of lists"
        )
    formats = _core_formats()
    lines = read_first_lines(path)
    if not lines:
        return formats["moses"]
    n_columns = len(columns) if columns is not None and {*ID_NAMES} & {*columns} else 0
    is_table = n_columns > 0 and b"\t" in lines[0]
    if is_table and lines[0].count(b"\t") == n_columns - 1:
        return formats["tsv"]
    for own in formats.values():
        if own.recognizes(lines):
            return own
    for plugin in _plugins():
        # A plug-in that does not work must not hide that the list may be another one's.
        with contextlib.suppress(Exception):
            if plugin.recognizes(lines):
                return plugin
    if is_table:
        return formats["tsv"]  # which says what is wrong with the number of columns
    if n_columns > 1 and n_columns - 1 in (lines[0].count(b","), lines[0].count(b";")):
        return formats["csv"]
    raise _unknown_layout(path, lines)


def _plugins() -> Iterator[ListFormat]:
    """Yield the formats of plug-ins that can be imported, the bundled ones first."""
    for entry in sorted(list_plugins(PLUGINS), key=lambda entry: not entry.is_bundled):
        with contextlib.suppress(Exception):
            if entry.name not in _core_formats():
                yield entry.load(ListFormat)


def _unknown_layout(path: StrPath, lines: Sequence[bytes]) -> FormatError:
    """Return the error for a file that no format recognizes."""
    with open_text(path) as file:
        number = next(number for number, line in enumerate(file, start=1) if line.strip())
    other = find_other_layout(lines)
    if other is not None:
        return FormatError(
            f"this is {other.name}, which is not read as an n-best list",
            path=path,
            line=number,
            remedy=other.remedy.replace("FILE", shlex.quote(fspath(path))),
        )
    return FormatError(
        f"no format of n-best lists begins like this: {quote(lines[0].rstrip())}",
        path=path,
        line=number,
        remedy=f"Name the format: {', '.join(list_formats())} ({{--format}}); for a text with N "
        "hypotheses a sentence it is flat:N",
    )


def open_blocks(
    path: StrPath,
    format: str = AUTO,
    options: ListOptions = _DEFAULTS,
    ids: SentenceIds | None = None,
) -> Iterator[NBestList]:
    """Yield a list of any format in blocks of whole sentences, in bounded memory.

    Args:
        format: a name, as ``jsonl`` or ``flat:8``; ``auto``: decide by the first lines.
        options: see ``ListOptions``.
        ids: numbers ids that are texts; None: a numbering of this file's own.

    Raises:
        FormatError: the file does not have this format; the error names file and line.
    """
    reader, options = _choose(path, format, options)
    ids = SentenceIds() if ids is None else ids
    last = -1
    for block in reader.read_blocks(path, options, ids):
        if not len(block):
            continue
        _check_order(last, block, ids)
        last = int(block.sentence_ids[-1])
        yield block
    if last < 0:
        raise FormatError(
            "the list is empty",
            path=fspath(path),
            remedy="Check the decoder's error output and its disk",
        )


def read_whole(
    path: StrPath,
    format: str = AUTO,
    options: ListOptions = _DEFAULTS,
    ids: SentenceIds | None = None,
    *,
    threads: int = 2,
) -> NBestList:
    """Read a list of any format as one block.

    Args:
        path, format, options, ids: as for ``open_blocks``.
        threads: number of threads that parse, for formats that use several.

    Raises:
        ValueError, FormatError: as for ``open_blocks``.
    """
    reader, options = _choose(path, format, options)
    ids = SentenceIds() if ids is None else ids
    if reader.read_whole is not None:
        return reader.read_whole(path, options, ids, threads)
    return concatenate(list(open_blocks(path, format, options, ids)))


def _choose(path: StrPath, format: str, options: ListOptions) -> tuple[ListFormat, ListOptions]:
    """Return the format with this name, and the options with the size in the name."""
    _, size = split_format_name(format)
    reader = find_format(path, format, options.columns)
    return reader, options if size is None else replace(options, group_size=size)


def _check_order(last: int, block: NBestList, ids: SentenceIds) -> None:
    """Reject sentences that are not in ascending order of their numbers."""
    steps = np.diff(block.sentence_ids, prepend=last)
    if (steps >= 0).all():
        return
    row = int(np.argmax(steps < 0))
    before = last if row == 0 else int(block.sentence_ids[row - 1])
    number, line = int(block.sentence_ids[row]), int(block.lines[row])
    raise sentence_order_error(ids, number, before, block.path, line)
