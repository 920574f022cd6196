"""Check that a server with new weights decodes like a process that starts with them.

Moses' server does so with a phrase table that is scored at look-up (``PhraseDictionaryOnDisk``),
but not with ``PhraseDictionaryMemory``, whose entries keep the scores and the pruning of the
weights that it was loaded with. The kind of table is not visible from outside, so a few sentences
are decoded both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from formats.nbest.files import NBestList
from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.server import ServerDecoder
from mosesplug.errors import DecoderError

__all__ = ["change_weights", "count_differing_lists", "require_exact"]

_FACTORS = (0.5, 1.5)
_INSTEAD_OF_ZERO = 0.1


def require_exact(
    server: ServerDecoder,
    fresh: BatchDecoder,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
    *,
    strict: bool = False,
) -> str | None:
    """Decode both ways with changed weights; let the server restart for each batch if they differ.

    Args:
        server: is started with ``weights`` if needed, and keeps running.
        fresh: a decoder that is started for each mini-batch.
        sentences: about ten, with ambiguous words.
        weights: the starting weights.
        strict: raise instead of restarting.

    Returns:
        A message for the user if the lists differ (then ``server.restart_each_batch`` is set), None
        if they are equal.

    Raises:
        DecoderError: they differ and ``strict`` is set, or a decoder failed.
    """
    server.decode(sentences[:1], weights)
    changed = change_weights(weights)
    pairs = (server.decode(sentences, changed), fresh.decode(sentences, changed))
    differing = count_differing_lists(*pairs)
    if not differing:
        return None
    found = (
        f"{differing} of {len(sentences)} n-best lists of the decoder's server, when sent new"
        " weights, differ from those of a decoder started with these weights: its phrase table"
        " keeps scores of the weights it was loaded with"
    )
    if strict:
        raise DecoderError(
            f"{found}. Use one that is scored at look-up (PhraseDictionaryOnDisk), or allow the"
            " server to be restarted for each batch"
        )
    server.restart_each_batch = True
    return f"{found}. It is restarted for each batch; PhraseDictionaryOnDisk would spare that"


def change_weights(weights: ModelWeights) -> ModelWeights:
    """Return other weights of about the same size: alternately times 0.5 and times 1.5."""
    place = 0
    groups = []
    for group in weights.groups:
        values = []
        for value in group.values:
            factor = _FACTORS[place % len(_FACTORS)]
            values.append(None if value is None else factor * value or factor * _INSTEAD_OF_ZERO)
            place += value is not None
        groups.append(WeightGroup(group.name, tuple(values)))
    return replace(weights, groups=tuple(groups))


def count_differing_lists(first: Sequence[NBestList], second: Sequence[NBestList]) -> int:
    """Count sentences whose lists differ in texts, features or order, or are missing in one."""
    one, other = ({int(part.sentence_ids[0]): part for part in lists} for lists in (first, second))
    return sum(
        number not in one or number not in other or not _equal(one[number], other[number])
        for number in {*one, *other}
    )


def _equal(first: NBestList, second: NBestList) -> bool:
    if len(first) != len(second) or first.groups != second.groups:
        return False
    rows = range(len(first))
    return (
        bool(np.array_equal(first.dense, second.dense))
        and all(first.text(row) == second.text(row) for row in rows)
        and all(_sparse(first, row) == _sparse(second, row) for row in rows)
    )


def _sparse(block: NBestList, row: int) -> dict[str, float]:
    entries = slice(block.sparse_indptr[row], block.sparse_indptr[row + 1])
    names = (block.sparse_names[index] for index in block.sparse_indices[entries].tolist())
    return dict(zip(names, block.sparse_data[entries].tolist(), strict=True))
