"""The interface of all formats of n-best lists.

A format turns a file into blocks of arrays. A format is a row of ``LIST_FORMATS`` in a module of
``formats.nbest.readers``, or a plug-in, as the bundled ones in ``formats.extras``. ``open_blocks``
finds the format by name, or by the first lines of the file.
"""

from __future__ import annotations

import contextlib
import importlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import fspath
from pathlib import Path
from typing import Literal

import numpy as np

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList, concatenate
from formats.pipes import is_read_once
from formats.plugins import find_plugin, list_plugins
from formats.text import StrPath, open_text

INTEGER_ID_NAMES = ("id", "sentence_id")
"""Names of the column or the key whose sentence ids may be integers."""

ID_NAMES = (
    *("id", "utt_id", "utt", "uttid", "utterance", "utterance_id", "key"),
    "sentence_id",
)
"""Names of the column or the key with the sentence id."""

TEXT_NAMES = (
    *("hyp", "hypothesis", "pred_text"),
    *("generated_text", "translation_text", "summary_text", "text"),
)
"""Names of the column or the key with the hypothesis, also those of NeMo and Hugging Face.

``text`` comes last: beside another one it is the source or the reference.
"""

PLUGINS = "mosesplug.formats"
"""The group of entry points by which packages add formats; ``auto`` asks them last."""

AUTO = "auto"
"""The name that stands for the format of the first lines."""


@dataclass(frozen=True)
class ListOptions:
    """How to read lists. A format ignores the options that it does not need.

    Attributes:
        names: names of the values of lists without labels; equal neighbors form one group.
        dense: names of the dense features of lists that name every value; None: none is dense.
        columns: the meaning of each column, as ``id``, ``hyp`` or the name of a feature.
        group_size: number of hypotheses of each sentence, for lists without ids.
        word_scores: what becomes of scores of single words, whose number varies.
    """

    names: tuple[str, ...] | None = None
    dense: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    group_size: int | None = None
    word_scores: Literal["drop", "sum"] = "drop"


class SentenceIds:
    """Numbers sentence ids that are texts by their order of first appearance, from 0.

    All files of a command share one object, so that an id has the same number in all of them.
    Formats whose ids are integers use those, and leave it empty.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}

    def number(self, name: str) -> int:
        """Return the number of an id; a new one is added."""
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def names(self) -> tuple[str, ...]:
        """The ids in the order of their numbers."""
        return tuple(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def spell(self, number: int) -> str:
        """Return the id with this number as messages show it."""
        names = self.names
        return quote(names[number]) if number < len(names) else str(number)


@dataclass(frozen=True)
class ListFormat:
    """A format of n-best lists.

    Attributes:
        name: its name on the command line, as ``jsonl``.
        summary: the form of a line, or what writes it; at most 60 characters.
        recognizes: returns whether the first lines of a file have this format: at least one, with
            their line ends, without empty ones. The last may be cut.
        read_blocks: yields a file as blocks of whole sentences in bounded memory. Sentence ids
            never decrease. Sparse features of each block are numbered independently.
        names_values: whether hypotheses may have different features, so that ``dense`` of the
            options must name the dense ones; all others are sparse.
        is_sized: whether its name is followed by the size of the groups, as ``flat:8``.
        may_be_sized: whether its name may be followed by such a size.
        read_whole: reads a file at once, with a number of threads; None: block by block.
        recognizes_directory: returns whether a directory has this format; None: no directory has.
        explain: returns how the first lines are understood, in words, or an empty text; None: there
            is nothing to choose.
    """

    name: str
    summary: str
    recognizes: Callable[[Sequence[bytes]], bool]
    read_blocks: Callable[[StrPath, ListOptions, SentenceIds], Iterator[NBestList]]
    names_values: bool = False
    is_sized: bool = False
    may_be_sized: bool = False
    read_whole: Callable[[StrPath, ListOptions, SentenceIds, int], NBestList] | None = None
    recognizes_directory: Callable[[Path], bool] | None = None
    explain: Callable[[Sequence[bytes], ListOptions], str] | None = None


_MODULES = ("documents", "jsonl", "bars", "tables")
"""The modules of ``formats.nbest.readers``, in the order in which ``auto`` asks them."""

_REGISTERED: dict[str, ListFormat] = {}


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


_FIRST_BYTES = 1 << 16
_FIRST_LINES = 20


def read_first_lines(path: StrPath) -> list[bytes]:
    """Return the first lines of a file with their line ends, without empty ones.

    The last may be cut. What can be read once only has none: give a pipe as ``PipeCopy``.

    Raises:
        FormatError: the file cannot be read.
    """
    if is_read_once(path) or Path(path).is_dir():
        return []
    with open_text(path) as file:
        lines = file.read(_FIRST_BYTES).splitlines(keepends=True)
    return [line for line in lines[:_FIRST_LINES] if line.strip()]


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
    from formats.nbest.other_layouts import find_other_layout

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
        remedy=f"Name the format: {', '.join(list_formats())} (--format); for a text with N "
        "hypotheses a sentence it is flat:N",
    )


def open_blocks(
    path: StrPath,
    format: str = AUTO,
    options: ListOptions = ListOptions(),
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
    options: ListOptions = ListOptions(),
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


def sentence_order_error(
    ids: SentenceIds, number: int, before: int, path: StrPath, line: int
) -> FormatError:
    """Return the error for a sentence with a smaller number than the one before."""
    return FormatError(
        f"sentence {ids.spell(number)} comes after {ids.spell(before)}, but precedes it elsewhere",
        path=path,
        line=line,
        remedy="Put the hypotheses of a sentence together, and all files in one order of sentences",
    )
