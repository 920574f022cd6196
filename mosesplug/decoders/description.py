"""The kinds of decoders that the settings of a run can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.command import DecoderCommand
from mosesplug.decoders.kinds import WeightsFormat
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.plugin import NamedDecoder
from mosesplug.decoders.protocol import (
    Capability,
    DecodedInput,
    Decoder,
    DecodingTask,
    Description,
)
from mosesplug.errors import UsageError

ASK = "ask:"
"""What the setting ``decoder`` calls an ``OutsideDecoder``."""


@dataclass(frozen=True)
class DecodedGraphs(Description):
    """Search graphs that take the decoder's place.

    The room above opens them: decoders know no forests.

    Attributes:
        place: the working directory of a run that stored them, its store, or a directory of
            Moses' files.
    """

    place: Path
    flags: tuple[str, ...] = ()
    input_type: int | None = None
    weights_format: WeightsFormat = "moses"

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (f"forest:{self.place}",)

    @property
    def reads_weight_file(self) -> bool:
        """No: the features of the graphs are those of the ``moses.ini``."""
        return False

    @property
    def stored_graphs(self) -> Path:
        """Where they are."""
        return self.place


@dataclass(frozen=True)
class OutsideDecoder(Description):
    """A decoder that somebody else runs: whoever asks for requests and tells lists.

    Attributes:
        weights_format: the format of the files of weights.
    """

    weights_format: WeightsFormat = "dense"
    flags: tuple[str, ...] = ()
    input_type: int | None = None

    capabilities: frozenset[Capability] = frozenset()

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (ASK,)

    def open(self, task: DecodingTask) -> AbsentDecoder:
        """Return a decoder that has the features of the file of weights, and cannot decode."""
        from mosesplug.decoders.prepare import read_features

        return AbsentDecoder(read_features(task, self.weights_format))

    def open_batches(
        self,
        config: Path,
        directory: Path,
        nbest: int,
        prefix: str = "batch",
        *,
        executing: Callable[[tuple[str, ...]], None] = lambda command: None,
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """Raise ``UsageError``."""
        raise UsageError(
            "a run by ask and tell has no decoder for a held-out set: leave out --heldout"
        )


DecoderDescription = MosesDecoder | DecodedGraphs | DecoderCommand | OutsideDecoder | NamedDecoder
"""Every description that the settings can name."""

_NO_DECODER = (
    "this run has no decoder of its own: continue it by `mosesplug ask` and `mosesplug tell`,"
    " or by mosesplug.Tuner"
)


class AbsentDecoder(Decoder):
    """A ``Decoder`` that cannot decode: the caller of ask and tell does."""

    no_graphs = no_batches = _NO_DECODER

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Raise ``UsageError``."""
        raise UsageError(_NO_DECODER)
