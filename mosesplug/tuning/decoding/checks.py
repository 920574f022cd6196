"""What a decoder wrote, looked at while it is read: nothing wrong gets into the store unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from formats.nbest.files import NBestList
from formats.text import read_lines
from mosesplug.features import spelled_groups
from mosesplug.tuning.decoding.decode import Lists
from mosesplug.tuning.events import Note, Watcher

__all__ = ["checked_blocks"]

_NAMED = 5


def checked_blocks(
    blocks: Iterable[NBestList],
    lists: Lists,
    *,
    groups: tuple[tuple[str, int], ...],
    n_sentences: int,
    watch: Watcher,
) -> Iterator[NBestList]:
    """The same blocks, once the decoder is known to have done what was asked.

    A sentence may lack a list only where the decoder translated it by nothing, as a chart decoder
    does that finds no parse.

    Args:
        blocks: the list as it is read.
        lists: where it came from, for messages.
        groups: dense groups that the decoder announced, in order.
        n_sentences: sentences of the input.
        watch: told of sentences without a list.

    Raises:
        DecoderError: other features or another order, too few sentences, no hypotheses.
    """
    seen = np.zeros(n_sentences, dtype=np.bool_)
    for block in blocks:
        if block.groups != groups:
            raise lists.failure(
                "the decoder wrote other features into its n-best list than it announced, or in"
                f" another order: {spelled_groups(block.groups)} instead of"
                f" {spelled_groups(groups)}"
            )
        if len(block) and block.sentence_ids[-1] >= n_sentences:
            raise lists.failure(
                f"the n-best list has sentence {block.sentence_ids[-1]}, but the input has only"
                f" {n_sentences}, counted from 0"
            )
        seen[block.sentence_ids] = True
        yield block
    missing = np.flatnonzero(~seen)
    if len(missing) == n_sentences:
        raise lists.failure("the n-best list holds no hypotheses")
    if len(missing):
        _account_for(missing, lists, n_sentences, watch)


def _account_for(
    missing: NDArray[np.int64], lists: Lists, n_sentences: int, watch: Watcher
) -> None:
    """Let sentences without a list pass if their translations are empty, else refuse."""
    named = ", ".join(map(str, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
    translations = read_lines(lists.stdout) if lists.stdout.is_file() else []
    complete = len(translations) == n_sentences
    if lists.command and not (complete and not any(translations[i].strip() for i in missing)):
        raise lists.failure(
            f"the decoder wrote n-best lists of {n_sentences - len(missing)} of {n_sentences}"
            f" sentences and {len(translations)} translations; it left out sentence {named}"
        )
    watch(
        Note(
            f"{len(missing)} of {n_sentences} sentences have no n-best list and do not count:"
            f" {named} (counted from 0)",
            warning=True,
        )
    )
