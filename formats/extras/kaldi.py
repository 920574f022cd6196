"""n-best archives of Kaldi: one archive of texts, and one for each cost.

``nbest-to-linear`` and scripts such as ``steps/rnnlmrescore.sh`` leave them in a directory:

    archives.1/words_text    utt-1 the house      (the first hypothesis of the utterance ``utt``)
    archives.1/acwt          utt-1 2345.6
    archives.1/lmwt.nolm     utt-1 31.5
    archives.1/lmwt.rnn      utt-1 40.2

Every file of the directory with one number for each hypothesis is a feature with the name of the
file. Costs are negative log probabilities: their signs are changed, so that weights are positive
scales. A directory with ``archives.1``, ``archives.2``, ... is read as one list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os import fspath
from pathlib import Path

import numpy as np

from formats.errors import FormatError, quote
from formats.extras.archives import (
    find_file,
    has_number,
    iter_entries,
    name_of_feature,
    read_first_line,
    search_directory,
)
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, Place, parse_value
from formats.nbest.list_format import ID_NAMES, TEXT_NAMES, ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import make_block, pack_texts, whole_sentences
from formats.nbest.tables import check_columns
from formats.text import StrPath, open_text, require_regular_file

_TEXTS = ("words_text", "text")
_SYMBOLS = "words"
_KEY = re.compile(rb"(.+)-([0-9]+)", re.DOTALL)
_PART = re.compile(r"archives\.([0-9]+)")
BLOCK_ROWS = 20_000


def _recognizes(lines: Sequence[bytes]) -> bool:
    keys = [line.split(None, 1)[0] for line in lines[:-1] or lines]
    matches = [_KEY.fullmatch(key) for key in keys]
    return (
        all(matches)
        and matches[0] is not None
        and matches[0][2] == b"1"
        and not any(b"|||" in line or b"\t" in line for line in lines)
    )


@dataclass(frozen=True)
class _Archives:
    """The files of some utterances: their texts, and their costs by name."""

    texts: Path
    costs: dict[str, Path]


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    path = Path(path)
    names: tuple[str, ...] | None = None
    for texts in search_directory(_text_archives, path):
        archives = search_directory(partial(_archives, names=names, options=options), texts)
        names = tuple(archives.costs)
        yield from _parse_archives(archives, ids)


def _text_archives(path: Path) -> list[Path]:
    """Return the archives of texts that a path stands for."""
    if not path.is_dir():
        return [path]
    parts = sorted(
        (int(match[1]), part)
        for part in path.iterdir()
        if (match := _PART.fullmatch(part.name)) and part.is_dir()
    )
    archives = []
    for directory in [part for _, part in parts] or [path]:
        texts = find_file(directory, _TEXTS)
        if texts is None:
            remedy = f"Name the archive of the texts instead of the directory {directory.name}"
            if (directory / _SYMBOLS).exists():
                remedy = (
                    f"Convert numbers to words: utils/int2sym.pl -f 2- words.txt {_SYMBOLS} > "
                    f"{_TEXTS[0]}"
                )
            raise FormatError(
                f"the directory has no archive of texts ({' or '.join(_TEXTS)})",
                path=directory,
                remedy=remedy,
            )
        archives.append(texts)
    return archives


def _archives(texts: Path, names: tuple[str, ...] | None, options: ListOptions) -> _Archives:
    """Return the archives beside one of texts: the named ones, or all of numbers."""
    require_regular_file(texts)
    if names is None and options.columns is not None:
        names = tuple(n for n in options.columns if n not in (*ID_NAMES, *TEXT_NAMES))
    if names is None:
        files = sorted(path for path in texts.parent.iterdir() if path != texts and path.is_file())
        first = read_first_line(texts)
        key = first.split(None, 1)[0] if first.strip(BLANKS) else b""
        costs = {
            name_of_feature(path): path for path in files if has_number(read_first_line(path), key)
        }
    else:
        costs = {}
        for name in names:
            costs[name] = find_file(texts.parent, [name]) or texts.with_name(name)
    check_columns([*costs], Place(fspath(texts), 1))
    return _Archives(texts, costs)


def _parse_archives(archives: _Archives, ids: SentenceIds) -> Iterator[NBestList]:
    path = fspath(archives.texts)
    with ExitStack() as stack:
        texts = iter_entries(stack.enter_context(open_text(archives.texts)))
        costs = {
            name: iter_entries(stack.enter_context(open_text(require_regular_file(path))))
            for name, path in archives.costs.items()
        }
        while rows := list(islice(texts, BLOCK_ROWS)):
            keys = [key for _, key, _ in rows]
            dense = np.empty((len(rows), len(costs)))
            for column, (name, entries) in enumerate(costs.items()):
                dense[:, column] = _values(entries, rows, archives.costs[name], archives.texts)
            sentences = [
                ids.number(_utterance(key, Place(path, line)))
                for key, (line, _, _) in zip(keys, rows, strict=True)
            ]
            yield make_block(
                path,
                np.array(sentences, dtype=np.int64),
                pack_texts([text for _, _, text in rows]),
                tuple(costs),
                dense,
                np.array([line for line, _, _ in rows], dtype=np.int64),
            )
        for name, entries in costs.items():
            for line, key, _ in entries:
                raise Place(fspath(archives.costs[name]), line).error(
                    f"the hypothesis {quote(key)} is not in {archives.texts.name}",
                    "Make all archives from the same lists",
                )


def _values(
    entries: Iterator[tuple[int, bytes, bytes]],
    rows: Sequence[tuple[int, bytes, bytes]],
    path: Path,
    texts: Path,
) -> list[float]:
    """Return the values of some hypotheses: costs with the other sign."""
    values: list[float] = []
    last = 0
    for number, key, _ in rows:
        entry = next(entries, None)
        if entry is None:
            raise Place(fspath(path), last + 1).error(
                f"the archive ends before the hypothesis {quote(key)} of {texts.name}",
                "Make all archives from the same lists",
            )
        last, other, field = entry
        if other != key:
            raise Place(fspath(path), last).error(
                f"the hypothesis is {quote(other)}, but line {number} of {texts.name} has "
                f"{quote(key)}",
                "Make all archives from the same lists, in the same order",
            )
        remedy = "Give every hypothesis one finite cost, or name the archives to read ({--columns})"
        values.append(0.0 - parse_value(field, "the cost", Place(fspath(path), last), remedy))
    return values


def _utterance(key: bytes, place: Place) -> str:
    match = _KEY.fullmatch(key)
    if match is None:
        raise place.error(
            f"the key {quote(key)} does not end in - and the number of the hypothesis",
            "Keys of n-best archives are utt-1, utt-2, ...; lattice-to-nbest writes them",
        )
    return match[1].decode("utf-8", "surrogateescape")


KALDI = ListFormat(
    name="kaldi",
    summary="a directory of archives: words_text, acwt, lmwt, ...",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
    # Every directory: what it lacks is an error of the reader.
    recognizes_directory=lambda path: True,
)
