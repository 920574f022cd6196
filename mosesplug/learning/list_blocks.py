"""Read n-best lists of any format into blocks, and change the blocks in one list of steps.

Everything that reads lists goes through ``read_list_blocks``: parse, then each step of
``make_steps`` in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from formats.nbest.block import NBestList
from formats.nbest.list_format import ListOptions, SentenceIds, open_blocks
from formats.text import StrPath
from mosesplug.learning.outside import ScoreStep
from mosesplug.settings.lists import ListSettings, parse_column_names, split_names
from mosesplug.settings.scores import parse_score_sources

__all__ = [
    "BlockStep",
    "apply_steps",
    "make_list_options",
    "make_steps",
    "read_list_blocks",
]


class BlockStep(Protocol):
    """A change of blocks, which come in the order of the files, first file first."""

    def apply(self, block: NBestList) -> NBestList:
        """Return the changed block."""

    def finish(self) -> None:
        """Check, after the last block of the last file, that nothing is left over.

        Raises:
            FormatError, DataError, UsageError: what the step reads does not fit the lists.
        """


def make_steps(settings: ListSettings, ids: SentenceIds) -> list[BlockStep]:
    """Return the steps that settings ask for, in the order in which blocks pass them.

    ``ids`` are those of the reader.
    """
    steps: list[BlockStep] = []
    if sources := parse_score_sources(settings.scores):
        steps.append(ScoreStep(sources, ids))
    return steps


def make_list_options(settings: ListSettings, dense: Sequence[str] | None = None) -> ListOptions:
    """Return the options of the reader.

    Args:
        settings: the settings.
        dense: names of the dense features of lists that name every value.

    Raises:
        UsageError: names that cannot be used.
    """
    names = parse_column_names(settings.names)
    return ListOptions(
        names=None if names is None else tuple(names),
        dense=None if dense is None else tuple(dense),
        columns=split_names(settings.columns, "columns"),
        word_scores=settings.word_scores,
    )


def read_list_blocks(
    files: Sequence[StrPath | NBestList],
    settings: ListSettings,
    *,
    dense: Sequence[str] | None = None,
    ids: SentenceIds | None = None,
    steps: Sequence[BlockStep] | None = None,
) -> Iterator[Iterator[NBestList]]:
    """Yield the blocks of each file; read those of one file before you ask for the next.

    Args:
        files: n-best lists: files, or lists that have been read, which are one block each.
        settings: how they are read.
        dense: names of the dense features of lists that name every value.
        ids: numbers sentence ids that are texts, in all files alike.
        steps: what blocks pass; None: the steps of the settings.

    Raises:
        FormatError: a file does not have its format.
        DataError, UsageError: what a step reads does not fit the lists.
    """
    options = make_list_options(settings, dense)
    ids = SentenceIds() if ids is None else ids
    steps = make_steps(settings, ids) if steps is None else steps
    for file in files:
        blocks: Iterator[NBestList] = (
            iter([file])
            if isinstance(file, NBestList)
            else open_blocks(file, settings.format, options, ids)
        )
        yield apply_steps(blocks, steps)
    for step in steps:
        step.finish()


def apply_steps(blocks: Iterator[NBestList], steps: Sequence[BlockStep]) -> Iterator[NBestList]:
    """Yield blocks after all steps."""
    for block in blocks:
        for step in steps:
            block = step.apply(block)
        yield block
