"""Make a server decode with new weights like a process that starts with them.

Moses' server does not do so by itself: its phrase tables keep scores of earlier weights, each kind
in its own way (see ``sentence_tables``). A rewritten configuration mends that for most of them; for
the others, the server is restarted for each mini-batch. The source of the decoder tells the causes;
a few sentences, decoded both ways, tell whether a decoder is affected.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.servers.folded_tables import CannotFoldError, FoldedTables
from mosesplug.decoders.servers.sentence_tables import SentenceTables, describe_tables
from mosesplug.decoders.servers.server import ServerDecoder
from mosesplug.errors import DecoderError

_FACTORS = (0.5, 1.5)
_INSTEAD_OF_ZERO = 0.1


class InexactServerError(DecoderError):
    """A server does not follow new weights, and may not be restarted."""


@dataclass(frozen=True)
class Exactness:
    """How a server was made to decode like a new process.

    Attributes:
        note: a message for the user, or None if it was exact.
        is_warning: whether it costs time.
    """

    note: str | None = None
    is_warning: bool = False


def require_exact(
    server: ServerDecoder,
    fresh: BatchDecoder,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
    *,
    config: Path,
    flags: Sequence[str] = (),
    text: Iterable[bytes] = (),
    strict: bool = False,
) -> Exactness:
    """Decode both ways with changed weights, and make an inexact server exact.

    Rewrite the configuration or let the server restart.

    Args:
        server: is started with ``weights`` if needed, and keeps running.
        fresh: a decoder that is started for each mini-batch.
        sentences: about ten, with ambiguous words.
        weights: the starting weights.
        config: the ``moses.ini`` that the server decodes with.
        flags: the flags of the decoder.
        text: all sentences that will be decoded.
        strict: raise instead of restarting.

    Returns:
        What was set: ``server.tables``, ``server.restart_each_batch`` or nothing.

    Raises:
        InexactServerError: it is not exact and ``strict`` is set.
        DecoderError: a decoder failed.
    """
    cause, tables = describe_tables(config), SentenceTables.of(config, flags)
    by_sentence = f"{cause}: the servers get the phrases of one sentence at a time"
    rewritten = Exactness(f"{by_sentence} (server1.moses.ini), which is exact")
    # Moses itself keeps scores whether or not ten sentences show it; other programs may not.
    is_moses = cause is not None and is_binary(server.program)
    if is_moses and (folded := _fold(server, fresh, tables, sentences, weights, flags, text)):
        names = ", ".join(folded.folding.names)
        return Exactness(
            f"{by_sentence}, with the sums of the weights of {names} (server1.moses.ini), which is"
            " exact"
        )
    expected = list(fresh.decode(sentences, change_weights(weights)))
    if is_moses and tables and _is_exact_with(server, tables, sentences, weights, expected):
        return rewritten
    differing = _count_differing(server, sentences, weights, expected)
    if not differing and not is_moses:
        return Exactness()
    if not is_moses and tables and _is_exact_with(server, tables, sentences, weights, expected):
        return rewritten
    difference = (
        f"{differing} of {len(sentences)} n-best lists of the decoder's server, when sent new"
        " weights, differ from those of a decoder started with these weights"
        f"{'' if cause is None else f': {cause}'}"
    )
    advice = "" if cause is None else " (PhraseDictionaryMemory with a text table would be exact)"
    if strict:
        raise InexactServerError(
            f"{difference}. Allow the server to be restarted for each batch{advice}"
        )
    server.restart_each_batch = True
    return Exactness(f"{difference}. It is restarted for each batch{advice}", is_warning=True)


def _fold(
    server: ServerDecoder,
    fresh: BatchDecoder,
    tables: SentenceTables | None,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
    flags: Sequence[str],
    text: Iterable[bytes],
) -> FoldedTables | None:
    """Give the server tables with sums of sparse weights, if that is exact.

    If not, ``server.no_folding`` says why.
    """
    try:
        if tables is None:
            raise CannotFoldError("the model has another phrase table than one text table")
        sample_text = [sentence for _, sentence in sentences]
        folded = FoldedTables.fold(tables, flags, server.directory, [*sample_text, *text])
        if why := folded.explain_unfolded(folded.convert_weights(weights)):
            raise CannotFoldError(why)
        sample = folded.sample_weights(sample_text, server.directory)
        changed = replace(change_weights(weights), sparse={**weights.sparse, **sample})
        expected = list(fresh.decode(sentences, changed))
        if _is_exact_with(server, folded, sentences, weights, expected, changed):
            return folded
        raise CannotFoldError("its lists differ from those of a decoder started with them")
    except CannotFoldError as error:
        server.no_folding = str(error)
        return None


def _is_exact_with(
    server: ServerDecoder,
    tables: SentenceTables,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
    expected: Sequence[NBestList],
    changed: ModelWeights | None = None,
) -> bool:
    """Give the server its tables by sentence; return whether that makes it exact.

    If not, the server gets its tables as before.
    """
    server.tables = tables
    try:
        if not _count_differing(server, sentences, weights, expected, changed):
            return True
    except (DecoderError, FormatError):
        pass  # not Moses, or another version
    server.tables = None
    return False


def _count_differing(
    server: ServerDecoder,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
    expected: Sequence[NBestList],
    changed: ModelWeights | None = None,
) -> int:
    """Decode twice, so that tables keep scores, and compare the second lists."""
    server.expect(text for _, text in sentences)
    server.decode(sentences, weights)
    changed = changed or change_weights(weights)
    return count_differing_lists(server.decode(sentences, changed), expected)


def is_binary(program: Path) -> bool:
    """Return whether a program is an executable of its own, like Moses, not a script."""
    with contextlib.suppress(OSError), program.open("rb") as file:
        return file.read(4) == b"\x7fELF"
    return False


def change_weights(weights: ModelWeights) -> ModelWeights:
    """Return other weights of similar size: alternately times 0.5 and times 1.5."""
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
    """Count sentences whose lists differ in texts, features or order, or are missing."""
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
    values = zip(names, block.sparse_data[entries].tolist(), strict=True)
    # Moses writes 0 for features of the hypothesis that a path of the list branched off from.
    return {name: value for name, value in values if value}
