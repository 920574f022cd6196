"""Decoders of mini-batches: from some sentences and weights to n-best lists.

``ProcessDecoder`` runs a program for each mini-batch, ``ServerDecoder`` keeps servers running. The
lists depend on nothing but the sentences and the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList, parse_block
from formats.nbest.entry import Layout, Place
from formats.weights.files import WeightGroup, format_weight
from mosesplug.decoders.layout import arrange_groups, choose_layout
from mosesplug.errors import DecoderError


@dataclass(frozen=True)
class ModelWeights:
    """Weights in the form that a decoder takes, with names and untuned components.

    Attributes:
        groups: dense features in the decoder's order, as in ``ShowWeights.groups``; a component
            that is None keeps its weight in the configuration.
        sparse: weights of sparse features by name.
    """

    groups: tuple[WeightGroup, ...]
    sparse: Mapping[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[tuple[str, int], ...]:
        """Name and width of each dense group of an n-best list of that decoder."""
        widths = ((g.name, sum(value is not None for value in g.values)) for g in self.groups)
        return tuple((name, width) for name, width in widths if width)

    def overwrite(self) -> str:
        """Return the value of Moses' ``-weight-overwrite``, with all digits."""
        return " ".join(
            f"{group.name}= {' '.join('x' if v is None else format_weight(v) for v in values)}"
            for group in self.groups
            if group.is_tuneable
            for values in [group.values]
        )


class BatchDecoder(Protocol):
    """A decoder whose weights change from call to call; one thread at a time."""

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Return the n-best lists of some sentences, best hypothesis first.

        Args:
            sentences: distinct sentence ids and their texts, in any order.

        Returns:
            One list per sentence, in the same order, with its ids in ``sentence_ids``. A sentence
            for which the decoder finds no translation has none.

        Raises:
            DecoderError: the decoder failed, or its lists cannot be used.
        """

    def close(self) -> None:
        """End running programs; a second call does nothing."""

    def own_recipe(self) -> DecoderRecipe | None:
        """Return how to make more like this one, if its description cannot say it."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DecoderRecipe(Protocol):
    """A factory of decoders for shards and workers.

    It can be sent to other processes.
    """

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """Return a new decoder. The caller closes it.

        Args:
            prefix: distinguishes its files from those of other decoders.
            note: receives messages for the user, also before a lost server is restarted. An
                exception that it raises ends the mini-batch.
            beat: called a few times a second while a program runs. An exception that it raises
                ends the program, and the mini-batch.
        """


def parse_lists(
    text: bytes,
    numbers: Sequence[int],
    columns: tuple[tuple[str, int], ...],
    source: str,
    *,
    any_layout: bool = False,
) -> list[NBestList]:
    """Parse the n-best lists of a mini-batch.

    Args:
        text: whole lines, whose sentence ids are places in the mini-batch.
        numbers: sentence ids in the tuning set, which replace those in ``text``.
        columns: the dense groups that the lists must have.
        source: the source of the lines, for messages.
        any_layout: whether the lines may have another layout than that of Moses.

    Raises:
        DecoderError: the lines cannot be parsed, or have other sentences or dense features.
    """
    if not text.strip():
        return []
    try:
        line = text.lstrip().partition(b"\n")[0]
        names, dense = choose_layout(line, columns) if any_layout else (None, None)
        layout = Layout.of_line(line, names, Place(source, 1), dense)
        block = parse_block(text, layout, source, 1)
    except FormatError as error:
        raise DecoderError(
            f"the decoder gave a list that cannot be used: {error.template}"
        ) from error
    if any_layout:
        block = arrange_groups(block, columns)
    if block.groups != columns:
        raise DecoderError(
            f"{source}: the lists have the features {_spell(block.groups)}, but the weights are"
            f" for {_spell(columns)}: they must come of one decoder and configuration"
        )
    places = block.sentence_ids
    if places[-1] >= len(numbers):
        raise DecoderError(
            f"{source}: a list of sentence {places[-1]}, but the batch has {len(numbers)}"
        )
    ids = np.array(numbers, dtype=np.int64)[places]
    return split_lists(replace(block, sentence_ids=ids))


def split_lists(block: NBestList) -> list[NBestList]:
    """Return the list of each sentence of a block; they share the text."""
    return [_part(block, begin, end) for begin, end in pairwise(block.list_offsets.tolist())]


def _part(block: NBestList, begin: int, end: int) -> NBestList:
    """Return some rows over their own sparse features; the text is shared."""
    part = block.take(slice(begin, end))
    used, indices = np.unique(part.sparse_indices, return_inverse=True)
    names = tuple(block.sparse_names[index] for index in used.tolist())
    return replace(part, sparse_names=names, sparse_indices=indices.astype(np.int32))


def _spell(groups: Iterable[tuple[str, int]]) -> str:
    return " ".join(name if width == 1 else f"{name}*{width}" for name, width in groups) or "none"
