"""What a learner that decodes as it goes asks of a decoder: n-best lists of some sentences.

A ``BatchDecoder`` is given sentences with their numbers, and the weights to decode them with; it
gives back one list a sentence, in the order asked for. ``ProcessDecoder`` runs a decoder for each
batch, ``ServerDecoder`` keeps servers running; neither keeps anything of a batch but what makes
the next one faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from formats.errors import FormatError
from formats.nbest import NBestList
from formats.nbest_block import parse_block
from formats.nbest_entry import Layout, Place
from formats.weights import WeightGroup, format_weight
from mosesplug.errors import DecoderError

__all__ = ["BatchDecoder", "ModelWeights", "parse_list"]


@dataclass(frozen=True)
class ModelWeights:
    """The weights to decode a batch with.

    Attributes:
        groups: the dense features in the decoder's order, as ``ShowWeights.groups`` has them; a
            component that is None keeps what the configuration says.
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
        """The value of Moses' ``-weight-overwrite``, numbers in as many digits as they have."""
        return " ".join(
            f"{group.name}= {' '.join('x' if v is None else format_weight(v) for v in values)}"
            for group in self.groups
            if group.is_tuneable
            for values in [group.values]
        )


class BatchDecoder(Protocol):
    """Decodes sentences with weights that change from call to call; one thread at a time."""

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """The n-best lists of some sentences, best hypothesis first.

        Args:
            sentences: number in the tuning set and text of each, in any order, none twice.
            weights: to decode with.

        Returns:
            A list a sentence, in the order asked for, with those numbers in ``sentence_ids``. A
            sentence for which the decoder finds nothing has none.

        Raises:
            DecoderError: the decoder failed, or gave what cannot be used.
        """

    def close(self) -> None:
        """End what still runs; a second call does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def parse_list(
    text: bytes, columns: tuple[tuple[str, int], ...], source: str, first_line: int = 1
) -> NBestList:
    """The lines of one sentence's n-best list.

    Args:
        text: whole lines, at least one.
        columns: the dense groups that they must have.
        source, first_line: where they come from, for messages.

    Raises:
        DecoderError: they are no list, or one with other dense features.
    """
    try:
        layout = Layout.of_line(text.partition(b"\n")[0], None, Place(source, first_line))
        block = parse_block(text, layout, source, first_line)
    except FormatError as error:
        raise DecoderError(f"the decoder gave a list that cannot be used: {error}") from error
    if block.groups != columns:
        raise DecoderError(
            f"{source}: the list has the features {_spell(block.groups)}, but the weights are for "
            f"{_spell(columns)}: they must come of one decoder and configuration"
        )
    return block


def _spell(groups: Iterable[tuple[str, int]]) -> str:
    """Dense groups for a message: ``LM0 TranslationModel0*4``."""
    return " ".join(name if width == 1 else f"{name}*{width}" for name, width in groups) or "none"
