"""Check the n-best lists that answer a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.decoders.layout import arrange_groups
from mosesplug.errors import DataError
from mosesplug.features import spelled_groups

__all__ = ["check_answer"]

_NAMED = 5
"""Missing sentences that a message names."""


def check_answer(
    blocks: Iterable[NBestList], groups: tuple[tuple[str, int], ...], n_sentences: int, what: str
) -> Iterator[NBestList]:
    """Yield blocks with the features in order; raise an error unless all sentences have lists.

    Args:
        blocks: the lists, sentences in ascending order.
        groups: the dense features of the run; the lists may have them in another order.
        n_sentences: sentences of the references.
        what: the lists, for messages.

    Raises:
        DataError: they have other features, a sentence that there is not, or lack sentences.
    """
    seen = np.zeros(n_sentences, dtype=np.bool_)
    for block in (arrange_groups(block, groups) for block in blocks):
        if block.groups != groups:
            raise DataError(
                f"{what}: the dense features are {spelled_groups(block.groups)}, but the run tunes"
                f" {spelled_groups(groups)}. Nothing is stored"
            )
        ids = block.sentence_ids
        if len(ids) and (ids[0] < 0 or ids[-1] >= n_sentences):
            wrong = ids[0] if ids[0] < 0 else ids[-1]
            raise DataError(
                f"{what}: there is no sentence {wrong}: the references have {n_sentences},"
                " counted from 0. Nothing is stored"
            )
        seen[ids] = True
        yield block
    missing = np.flatnonzero(~seen)
    if len(missing):
        named = ", ".join(map(str, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
        raise DataError(
            f"{what}: {len(missing)} of {n_sentences} sentences have no hypotheses: {named}"
            " (counted from 0). Tell the lists of all sentences. Nothing is stored"
        )
