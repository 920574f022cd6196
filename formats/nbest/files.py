"""Read and write n-best lists with fields between ``|||``.

A line is ``id ||| tokens ||| features ||| score [||| more]``.

``read_nbest`` returns a whole list as flat arrays, ``read_nbest_blocks`` yields blocks of whole
sentences, ``iter_nbest`` one object per line. All three accept and reject the same lists (of
several errors they may report different ones). ``formats.nbest.entry`` defines the grammar.

Lists that name every value do not say which features are dense: Joshua writes its dense features in
every line, cdec omits zeros. ``dense_features`` counts them instead: if there are few, as in a
system that MERT can tune, all are dense; otherwise those in at least half of the lines. Lists that
are used together are counted together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, pairwise
from os import fspath
from pathlib import Path
from typing import Literal

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList, concatenate, parse_block
from formats.nbest.entry import (
    BLANKS,
    Layout,
    NBestEntry,
    Place,
    format_entry,
    names_every_value,
    order_error,
    parse_entry,
)
from formats.pipes import is_read_once
from formats.text import StrPath, atomic_write, iter_chunks, open_text

BLOCK_BYTES = 1 << 21
"""Enough that a NumPy call costs little, and little enough to stay in the cache."""


def read_nbest(
    path: StrPath,
    *,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    threads: int = 2,
) -> NBestList:
    """Read a whole list into flat arrays.

    Args:
        names: one name per dense column (equal neighbors form one group), for a list without
            labels.
        dense: names of the dense features, for a list that names every value (Joshua, cdec); its
            other features are sparse.
        threads: number of blocks parsed in parallel while the next one is decompressed.

    Raises:
        FormatError: the list is invalid or empty; the error names file and line.
    """
    name = fspath(path)
    futures: list[Future[NBestList]] = []
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        layout: Layout | None = None
        for text, first_line in read_text_blocks(path):
            layout = layout or find_layout(text, names, dense, name, first_line)
            if layout is not None:
                futures.append(pool.submit(parse_block, text, layout, name, first_line))
        blocks = [future.result() for future in futures]
    last = -1
    for block in (blocks := [block for block in blocks if len(block)]):
        last = check_order(last, block)
    if not blocks:
        raise empty_error(name)
    return concatenate(blocks)


def read_nbest_blocks(
    path: StrPath,
    *,
    names: Sequence[str] | None = None,
    dense: Sequence[str] | None = None,
    score_first: bool = False,
    skipped: int | None = None,
    rewrite: Callable[[bytes, int], bytes] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[NBestList]:
    """Yield a list in blocks of whole sentences, each of about ``block_bytes``.

    Memory is bounded by the block or by the largest sentence. The sparse features of each block
    are numbered independently.

    Args:
        path: as for ``read_nbest``.
        names, dense: as for ``read_nbest``.
        score_first: whether the score precedes the features, as in lists of Travatar, which name
            every value.
        skipped: number of fields between text and features; None: find it in the first line.
        rewrite: returns other lines, as many, in the place of whole lines from a line number on.

    Raises:
        FormatError: as ``read_nbest``, when the invalid block is reached.
    """
    name = fspath(path)
    layout: Layout | None = None
    last = -1
    for text, first_line in read_text_blocks(path, block_bytes):
        if rewrite is not None:
            text = rewrite(text, first_line)
        layout = layout or find_layout(text, names, dense, name, first_line, score_first, skipped)
        if layout is not None and len(block := parse_block(text, layout, name, first_line)):
            last = check_order(last, block)
            yield block
    if layout is None:
        raise empty_error(name)


def iter_nbest(
    path: StrPath, *, names: Sequence[str] | None = None, dense: Sequence[str] | None = None
) -> Iterator[NBestEntry]:
    """Yield the hypotheses of a list, one object each; empty lines are ignored.

    Args:
        path: as for ``read_nbest``.
        names, dense: as for ``read_nbest``.
    """
    layout: Layout | None = None
    previous = -1
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip(BLANKS):
                continue
            place = Place(fspath(path), number)
            layout = layout or Layout.of_line(line, names, place, dense)
            entry = parse_entry(line, layout, place)
            if entry.sentence_id < previous:
                raise order_error(entry.sentence_id, previous, place)
            previous = entry.sentence_id
            yield entry
    if layout is None:
        raise empty_error(fspath(path))


def write_nbest(
    path: StrPath,
    entries: Iterable[NBestEntry],
    *,
    digits: int = 6,
    compress: Literal["gz"] | None = None,
) -> None:
    """Write a list as Moses does, atomically; ``digits`` as for ``format_entry``."""
    with atomic_write(path, compress=compress) as file:
        file.writelines(format_entry(entry, digits=digits) for entry in entries)


def format_list(
    nbest: NBestList, *, digits: int = 6, named: bool = False, ids: Sequence[str] = ()
) -> Iterator[bytes]:
    """Yield the lines of a list as Moses writes them.

    Args:
        digits, named: as for ``format_entry``.
        ids: sentence ids that are texts, by their numbers.
    """
    ends = [0, *accumulate(width for _, width in nbest.groups)]
    sparse = nbest.sparse_indptr.tolist()
    scores = nbest.scores.tolist()
    sentences = nbest.sentence_ids.tolist()
    for row, values in enumerate(nbest.dense.tolist()):
        spans = zip(nbest.groups, pairwise(ends), strict=True)
        entries = slice(sparse[row], sparse[row + 1])
        names = (nbest.sparse_names[index] for index in nbest.sparse_indices[entries])
        entry = NBestEntry(
            sentences[row],
            nbest.text(row),
            tuple((name, tuple(values[i:j])) for (name, _), (i, j) in spans),
            tuple(zip(names, nbest.sparse_data[entries].tolist(), strict=True)),
            scores[row],
            nbest.buffer[nbest.extra_starts[row] : nbest.extra_ends[row]].tobytes(),
        )
        line = format_entry(entry, digits=digits, named=named)
        yield replace_id(line, ids[entry.sentence_id]) if ids else line


def replace_id(line: bytes, name: str) -> bytes:
    """Return a line of a list with another sentence id, a text."""
    return name.encode("utf-8", "surrogateescape") + line[line.index(b" ||| ") :]


def read_text_blocks(path: StrPath, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of whole sentences, with ``\n``, and the number of the first line."""
    waiting: list[bytes] = []
    first_line = 1
    for chunk in iter_chunks(path, block_bytes):
        waiting.append(chunk)
        if b"\n" not in chunk:
            continue  # joining a line of many blocks once per block would take quadratic time
        text = b"".join(waiting)
        cut = start_of_last_sentence(text)
        if cut:
            yield text[:cut], first_line
            # Several times as fast as ``bytes.count``.
            first_line += int(np.count_nonzero(np.frombuffer(text, np.uint8, cut) == ord("\n")))
        waiting = [text[cut:]]
    if kept := b"".join(waiting):
        yield kept if kept.endswith(b"\n") else kept + b"\n", first_line


def start_of_last_sentence(text: bytes) -> int:
    """Find where the last sentence id begins; ignore an unfinished last line."""
    start = text.rfind(b"\n") + 1
    last = text.rfind(b"\n", 0, max(start - 1, 0)) + 1
    if _identifier(text, 0) == _identifier(text, last):
        return 0  # one sentence may be longer than many blocks
    sentence = None
    while start:
        line = text.rfind(b"\n", 0, start - 1) + 1
        identifier = _identifier(text, line)
        if identifier and sentence not in (None, identifier):
            return start
        sentence = identifier or sentence  # an empty line belongs to the next sentence
        start = line
    return 0


def _identifier(text: bytes, line: int) -> bytes:
    """Return the sentence id of the line that begins there; empty for an empty line."""
    end = text.find(b"\n", line)
    return text[line : end if end >= 0 else None].partition(b"|||")[0].strip(BLANKS)


def find_layout(
    text: bytes,
    names: Sequence[str] | None,
    dense: Sequence[str] | None,
    path: str,
    first_line: int,
    score_first: bool = False,
    skipped: int | None = None,
) -> Layout | None:
    """Return the layout of the first line; None if all lines are empty."""
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        if line.strip(BLANKS):
            place = Place(path, number)
            return Layout.of_line(
                line, names, place, dense, score_first=score_first, skipped=skipped
            )
    return None


def check_order(last: int, block: NBestList) -> int:
    """Reject a block that begins before sentence ``last``; return its last one."""
    first = int(block.sentence_ids[0])
    if first < last:
        raise order_error(first, last, Place(block.path, int(block.lines[0])))
    return int(block.sentence_ids[-1])


def empty_error(path: str) -> FormatError:
    """Return the error for a list without a line."""
    return FormatError(
        "the list is empty", path=path, remedy="Check the decoder's error output and its disk"
    )


FEW = 50
"""Up to this number of features, all are dense: systems without sparse features have fewer."""


def is_named(path: StrPath) -> bool:
    """Return whether the first line of a list has only ``name=value`` features.

    Not asked of what can be read once only, a pipe: that counts as Moses' format.
    """
    if is_read_once(path) or Path(path).is_dir():
        return False
    with open_text(path) as file:
        first = next((line for line in file if line.strip(BLANKS)), b"")
    return names_every_value(first)


def dense_features(paths: Sequence[StrPath]) -> tuple[str, ...] | None:
    """Return the names of the dense features of lists, by first appearance.

    Returns:
        The names, or None if the first list does not name every value.

    Raises:
        FormatError: a list cannot be parsed, or its form differs from that of the first.
    """
    if not is_named(paths[0]):
        return None
    counts: dict[str, int] = {}
    n_lines = 0
    for path in paths:
        for block in read_nbest_blocks(path, dense=()):
            n_lines += len(block)
            totals = np.bincount(block.sparse_indices, minlength=len(block.sparse_names))
            for name, count in zip(block.sparse_names, totals.tolist(), strict=True):
                counts[name] = counts.get(name, 0) + count
    return frequent_features(counts, n_lines)


def frequent_features(counts: Mapping[str, int], n_lines: int) -> tuple[str, ...]:
    """Return the names of the dense features."""
    if len(counts) <= FEW:
        return tuple(counts)
    return tuple(name for name, count in counts.items() if 2 * count >= n_lines)
