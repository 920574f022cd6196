"""Directories of ESPnet: ``1best_recog`` to ``Nbest_recog``.

Each has one hypothesis per sentence.

Inference with ``--output_dir output.1`` and ``nbest: 3`` leaves:

    output.1/1best_recog/text     utt-a the house is small
    output.1/1best_recog/score    utt-a -5.5
    output.1/1best_recog/token    utt-a ▁the ▁house ▁is ▁small
    output.1/2best_recog/text     utt-a the mouse is small
    ...

The hypothesis is that of ``text``, or of ``token`` without such a file. Every other file with one
number for each hypothesis is a feature with the name of the file, such as one that another program
adds to all directories. Older versions write ``tensor(-5.5)``. An utterance may have fewer
hypotheses than others. The jobs ``output.1``, ``output.2``, ... of a directory, or of
``logdir`` in it, are read as one list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
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

_RANK = re.compile(r"([1-9][0-9]{0,6})best_recog")
_JOB = re.compile(r"output\.([0-9]+)")
_LOGS = "logdir"
_TEXTS = ("text", "token")
_NO_FEATURES = ("text", "text_nospecial", "token", "token_int")
_TENSOR = re.compile(rb"tensor\(([^,()]+)(?:,[^()]*)?\)")
BLOCK_ROWS = 20_000

_Entry = tuple[int, bytes, bytes]


def _recognizes_directory(path: Path) -> bool:
    try:
        return any(_ranks(job) for job in _jobs(path))
    except OSError:
        return False


def _jobs(path: Path) -> list[Path]:
    """Return the directories of jobs of a directory, or the directory."""
    for place in (path, path / _LOGS):
        numbered = _numbered(place, _JOB)
        if numbered:
            return [job for _, job in numbered]
    return [path]


def _ranks(job: Path) -> list[tuple[int, Path]]:
    return _numbered(job, _RANK)


def _numbered(path: Path, name: re.Pattern[str]) -> list[tuple[int, Path]]:
    """Return the directories with such a name in the order of their numbers."""
    if not path.is_dir():
        return []
    matches = (
        (name.fullmatch(folder.name), folder) for folder in path.iterdir() if folder.is_dir()
    )
    return sorted((int(match[1]), folder) for match, folder in matches if match)


@dataclass(frozen=True)
class _Rank:
    """The files of one directory: texts, and feature values in order of names."""

    texts: Path
    values: tuple[Path, ...]


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    path = Path(path)
    names: tuple[str, ...] | None = None
    for job in search_directory(_jobs, path):
        ranks = search_directory(_ranks, job)
        if not ranks or ranks[0][0] != 1:
            raise FormatError(
                "the directory has no 1best_recog",
                path=job,
                remedy="Name the output directory of ESPnet's inference",
            )
        if names is None:
            names = search_directory(partial(_feature_names, options=options), ranks[0][1])
        yield from _parse_job([_files(rank, names) for _, rank in ranks], names, ids)


def _feature_names(first: Path, options: ListOptions) -> tuple[str, ...]:
    """Return the features that the caller names, or else all files of numbers."""
    if options.columns is not None:
        names = [n for n in options.columns if n not in (*ID_NAMES, *TEXT_NAMES)]
    else:
        texts = find_file(first, _TEXTS)
        line = b"" if texts is None else read_first_line(require_regular_file(texts))
        key = line.split(None, 1)[0] if line.strip(BLANKS) else b""
        files = sorted(path for path in first.iterdir() if path.is_file())
        names = [
            name_of_feature(path)
            for path in files
            if name_of_feature(path) not in _NO_FEATURES
            and has_number(_TENSOR.sub(rb"\1", read_first_line(path)), key)
        ]
    check_columns(names, Place(fspath(first), 1))
    return tuple(names)


def _files(directory: Path, names: Sequence[str]) -> _Rank:
    texts = find_file(directory, _TEXTS)
    if texts is None:
        raise FormatError(
            f"the directory has no {' or '.join(_TEXTS)}",
            path=directory,
            remedy="Check that the inference was not interrupted",
        )
    values = tuple(find_file(directory, [name]) or directory / name for name in names)
    return _Rank(texts, values)


class _Hypotheses:
    """The hypotheses of one rank, one after the other."""

    def __init__(self, files: _Rank, stack: ExitStack) -> None:
        self.path = files.texts
        self._paths = files.values
        self._texts, *self._values = (
            iter_entries(stack.enter_context(open_text(require_regular_file(path))))
            for path in (files.texts, *files.values)
        )
        self.next: _Entry | None = next(self._texts, None)

    def take(self) -> tuple[bytes, list[float]]:
        """Return the text and the values of the next hypothesis, which exists."""
        assert self.next is not None
        line, key, text = self.next
        values = [
            self._value(next(entries, None), path, key, line)
            for entries, path in zip(self._values, self._paths, strict=True)
        ]
        self.next = next(self._texts, None)
        return text, values

    def _value(self, entry: _Entry | None, path: Path, key: bytes, line: int) -> float:
        number, other, field = entry or (1, b"", b"")
        if other != key:
            state = f"the utterance is {quote(other)}" if entry else "the file ends"
            raise Place(fspath(path), number).error(
                f"{state}, but line {line} of {self.path.name} has {quote(key)}",
                "Give all files of a directory the same utterances, in the same order",
            )
        remedy = "Give every hypothesis one finite number, or name the files to read ({--columns})"
        place = Place(fspath(path), number)
        return parse_value(_TENSOR.sub(rb"\1", field), f"a value of {path.name}", place, remedy)

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            FormatError: an utterance is missing in ``1best_recog``, or in the file of texts.
        """
        if self.next is not None:
            raise Place(fspath(self.path), self.next[0]).error(
                f"the utterance {quote(self.next[1])} is not in 1best_recog, or earlier there",
                "Give all directories the same order of utterances",
            )
        for entries, path in zip(self._values, self._paths, strict=True):
            for number, key, _ in entries:
                raise Place(fspath(path), number).error(
                    f"the utterance {quote(key)} is not in {self.path.name}",
                    "Give all files of a directory the same utterances, in the same order",
                )


def _parse_job(
    ranks: Sequence[_Rank], names: tuple[str, ...], ids: SentenceIds
) -> Iterator[NBestList]:
    """Yield the lists of a job: those of each utterance of the first directory."""
    path = fspath(ranks[0].texts)
    with ExitStack() as stack:
        first, *others = (_Hypotheses(files, stack) for files in ranks)
        while first.next is not None:
            texts: list[bytes] = []
            dense: list[list[float]] = []
            sentences: list[int] = []
            lines: list[int] = []
            while first.next is not None and len(texts) < BLOCK_ROWS:
                line, key, _ = first.next
                number = ids.number(key.decode("utf-8", "surrogateescape"))
                for rank in (first, *others):
                    if rank.next is None or rank.next[1] != key:
                        continue  # fewer hypotheses
                    text, values = rank.take()
                    texts.append(text)
                    dense.append(values)
                    sentences.append(number)
                    lines.append(line)
            yield make_block(
                path,
                np.array(sentences, dtype=np.int64),
                pack_texts(texts),
                names,
                np.array(dense, dtype=np.float64).reshape(len(texts), len(names)),
                np.array(lines, dtype=np.int64),
            )
        for rank in (first, *others):
            rank.finish()


ESPNET = ListFormat(
    name="espnet",
    summary="a directory of ESPnet: 1best_recog, 2best_recog, ...",
    recognizes=lambda lines: False,
    read_blocks=_read_blocks,
    recognizes_directory=_recognizes_directory,
)
