"""Read Moses' text phrase tables and reordering tables.

For a given input, only the lines whose source phrase occurs in the input are kept, so memory does
not grow with the size of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath

from formats.errors import FormatError
from formats.text import open_text

LOWEST_LOG = -100.0
"""The logarithm used for a probability of 0, as in Moses."""
SEPARATOR = b"|||"

ReorderingTable = dict[tuple[bytes, bytes], tuple[float, ...]]
"""Log scores by source and target phrase."""


@dataclass(frozen=True)
class TableEntry:
    """A line of the phrase table; scores are natural logarithms, at least -100.

    Attributes:
        alignment: (source position, target position) of aligned words, if they were asked for.
    """

    source: bytes
    target: bytes
    scores: tuple[float, ...]
    alignment: tuple[tuple[int, int], ...] = ()


def source_phrases(sentences: Iterable[Sequence[bytes]], longest: int) -> set[bytes]:
    """Return all phrases of up to ``longest`` words, with single blanks between words."""
    return {
        b" ".join(words[start:end])
        for words in sentences
        for start in range(len(words))
        for end in range(start + 1, min(start + longest, len(words)) + 1)
    }


def read_phrase_table(
    path: str | PathLike[str],
    n_scores: int,
    wanted: set[bytes] | None,
    *,
    with_alignment: bool = False,
) -> list[TableEntry]:
    """Read ``source ||| target ||| score score ... [||| alignment ||| counts ...]``.

    Args:
        wanted: source phrases to keep, None for all.
        with_alignment: whether the alignment is read; a line without it has none.

    Returns:
        The pairs in file order.

    Raises:
        FormatError: a line has too few fields; or a kept line has another number of scores, a
            negative or non-numeric score, an empty target, or an alignment outside its phrases.
    """
    path = fspath(path)
    pairs = []
    for number, source, rest in _lines(path, 2):
        if wanted is not None and source not in wanted:
            continue
        target, scores, *more = rest.split(SEPARATOR, 3)
        words = target.split()
        if not words:
            raise FormatError(
                "the target phrase is empty",
                path=path,
                line=number,
                remedy="Remove the line: the bundled decoder does not delete words",
            )
        alignment: tuple[tuple[int, int], ...] = ()
        if with_alignment and more:
            alignment = _points(path, number, more[0], source.count(b" ") + 1, len(words))
        logs = _logs(path, number, scores, n_scores)
        pairs.append(TableEntry(source, b" ".join(words), logs, alignment))
    return pairs


def _points(
    path: str, line: int, field: bytes, n_source: int, n_target: int
) -> tuple[tuple[int, int], ...]:
    """Return the aligned positions of one line, ascending."""
    points: set[tuple[int, int]] = set()
    for word in field.split():
        source, dash, target = word.partition(b"-")
        is_right = dash and source.isdigit() and target.isdigit()
        if not (is_right and int(source) < n_source and int(target) < n_target):
            raise FormatError(
                f"{word.decode(errors='replace')} is no alignment point of a phrase pair of "
                f"{n_source} and {n_target} words",
                path=path,
                line=line,
                remedy="Expected positions from 0, such as 0-0 1-2",
            )
        points.add((int(source), int(target)))
    return tuple(sorted(points))


def read_reordering(
    path: str | PathLike[str], n_scores: int, wanted: set[tuple[bytes, bytes]] | None
) -> ReorderingTable:
    """Read ``source ||| target ||| score ...`` for the wanted pairs (None: all)."""
    path = fspath(path)
    sources = None if wanted is None else {source for source, _ in wanted}
    table: ReorderingTable = {}
    for number, source, rest in _lines(path, 2):
        if sources is not None and source not in sources:
            continue
        target, _, scores = rest.partition(SEPARATOR)
        key = (source, b" ".join(target.split()))
        if wanted is None or key in wanted:
            table[key] = _logs(path, number, scores, n_scores)
    return table


def _lines(path: str, least_separators: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the line number, source phrase and rest of each line."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            source, _, rest = line.partition(SEPARATOR)
            if SEPARATOR not in rest:
                raise FormatError(
                    f"fewer than {least_separators + 1} fields between '|||'",
                    path=path,
                    line=number,
                    remedy="Expected 'source ||| target ||| scores'",
                )
            source = source.strip()
            if b"  " in source or b"\t" in source:
                source = b" ".join(source.split())
            yield number, source, rest


def _logs(path: str, line: int, field: bytes, n_scores: int) -> tuple[float, ...]:
    """Return the natural logarithms of the scores of one line."""
    words = field.split()
    if len(words) != n_scores:
        raise FormatError(
            f"{n_scores} scores expected, {len(words)} found",
            path=path,
            line=line,
            remedy="num-features in the configuration must match the table",
        )
    try:
        values = [float(word) for word in words]
        if not all(0.0 <= value < math.inf for value in values):
            raise ValueError
    except ValueError:
        raise FormatError(
            f"scores must be numbers of at least 0, not '{field.strip().decode(errors='replace')}'",
            path=path,
            line=line,
        ) from None
    return tuple(max(math.log(value), LOWEST_LOG) if value else LOWEST_LOG for value in values)
