"""Read the n-best lists and the statistics of ``batch-tune``.

A line of a list is ``id ||| words ||| score ||| name=value name=value``. Several lists are merged:
the hypotheses of a sentence from all of them compete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import fspath
from pathlib import Path

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import ListOptions, SentenceIds, read_first_lines
from formats.nbest.registry import open_blocks
from formats.references import read_reference
from formats.text import StrPath, open_text
from mosesplug.arrays import Floats
from mosesplug.extras.travatar.measure import Measure, Texts
from mosesplug.features import FeatureSpace
from mosesplug.metrics.words import count_tokens
from mosesplug.tuning_set import SparseRows, TuningSet

DENSE_LIMIT = 1000
"""Up to this number of features, all are dense."""


def list_path(name: str) -> Path:
    """Return the path of a list: ``NAME.gz`` if only that file exists, else ``NAME``."""
    packed = Path(f"{name}.gz")
    return packed if not Path(name).exists() and packed.exists() else Path(name)


def open_list(path: StrPath) -> Iterator[NBestList]:
    """Yield one list in blocks of whole sentences; all features are sparse.

    Raises:
        FormatError: a line does not have exactly four columns, a sentence id is no integer, or a
            feature is malformed.
    """
    ids = SentenceIds()
    for block in open_blocks(path, "travatar", ListOptions(dense=()), ids):
        more = block.extra_ends > block.extra_starts
        if ids.names or more.any():
            what = f"the sentence id is {ids.spell(0)}" if ids.names else "more than 4 columns"
            raise FormatError(
                what,
                path=block.path,
                line=int(block.lines[0 if ids.names else np.argmax(more)]),
                remedy=(
                    "Travatar reads: id ||| words ||| score ||| name=value name=value, where id "
                    "is the line of the reference, from 0"
                ),
            )
        yield block


def read_list(path: StrPath) -> NBestList | None:
    """Read one list; all features are sparse.

    Returns:
        The list, or None if the file is empty: an iteration may find no new hypothesis.

    Raises:
        FormatError: as for ``open_list``.
    """
    if Path(path).is_file() and not read_first_lines(path):
        return None
    return concatenate(list(open_list(path)))


def _read_statistics(path: StrPath, measure: Measure) -> Floats:
    """Read the statistics of each hypothesis, float64 ``[n, n_statistics]``."""
    name = fspath(path)
    with open_text(path) as file:
        rows = [measure.parse(line, name, number) for number, line in enumerate(file, start=1)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), measure.n_statistics)


def score_list(
    block: NBestList, measure: Measure, references: Sequence[bytes], threads: int = 1
) -> Floats:
    """Return the statistics of a list, float64 ``[n_hyps, n_statistics]``."""
    hypotheses = [block.text(row) for row in range(len(block))]
    return measure.count(Texts(block.sentence_ids, hypotheses, references), threads)


def read_tuning_set(
    lists: Sequence[StrPath],
    statistics: Sequence[StrPath],
    references: StrPath,
    measure: Measure,
    threads: int = 1,
) -> TuningSet:
    """Read lists with their statistics, merged by sentence.

    Args:
        statistics: a file for each list; none: compute the statistics from the references.
        references: one sentence a line; only opened if there are statistics.

    Raises:
        FormatError: a file is malformed, or statistics and list have different numbers of lines.
    """
    with open_text(references):  # a wrong name is an error even if the file is not used
        pass
    lines = [] if statistics else read_reference(references)
    blocks, stats = [], []
    files: Sequence[StrPath | None] = statistics or [None] * len(lists)
    for path, given in zip(lists, files, strict=True):
        block = read_list(path)
        if given is not None:
            stats.append(_check_length(path, block, given, _read_statistics(given, measure)))
        if block is not None:
            blocks.append(block)
            if given is None:
                stats.append(score_list(block, measure, lines, threads))
    if not blocks:
        raise FormatError("the list is empty", path=lists[0], remedy="Check the decoder's output")
    return _arrange(concatenate(blocks), np.concatenate(stats))


def _check_length(path: StrPath, block: NBestList | None, given: StrPath, stats: Floats) -> Floats:
    """Check that there is one line of statistics for each hypothesis."""
    n = 0 if block is None else len(block)
    if len(stats) == n:
        return stats
    if block is not None and len(stats) < n:
        place, line = fspath(path), int(block.lines[len(stats)])
        problem = f"no statistics for this hypothesis: {fspath(given)} has {len(stats)} lines"
    else:
        place, line = fspath(given), n + 1
        problem = f"statistics without hypothesis: {fspath(path)} has {n} hypotheses"
    raise FormatError(
        problem,
        path=place,
        line=line,
        remedy="Give the statistics of this list, one line for each hypothesis (-stat_out)",
    )


def _arrange(block: NBestList, stats: Floats) -> TuningSet:
    """Return the hypotheses in the order of their sentences."""
    order = np.argsort(block.sentence_ids, kind="stable")
    sentences, first = np.unique(block.sentence_ids[order], return_index=True)
    rows = SparseRows(*block.sparse_rows).take(order)
    names = block.sparse_names
    lengths = count_tokens(block.buffer, block.text_starts, block.text_ends)
    if is_dense := len(names) <= DENSE_LIMIT:
        dense = np.zeros((len(order), len(names)), dtype=np.float32)
        owners = np.repeat(np.arange(len(order)), np.diff(rows.indptr))
        dense[owners, rows.indices] = rows.data
    else:
        dense = np.zeros((len(order), 0), dtype=np.float32)
    return TuningSet(
        space=FeatureSpace.of_names(names) if is_dense else FeatureSpace((), names),
        sentence_ids=sentences,
        offsets=np.append(first, len(order)).astype(np.int64),
        dense=dense,
        sparse=None if is_dense else rows,
        stats=stats[order],
        lengths=lengths[order].astype(np.int32),
    )


def format_statistics(stats: Floats, measure: Measure) -> Iterator[bytes]:
    """Yield one line for each hypothesis, from float64 ``[n_hyps, n_statistics]``."""
    for row in stats.tolist():
        yield f"{measure.format(row)}\n".encode()
