"""The kinds of decoders that the settings of a run can name.

The settings name one of these; ``mosesplug.tuning`` makes a ``Decoder`` of it, which decodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mosesplug.decoders.command import DecoderCommand, WeightsFormat
from mosesplug.decoders.moses import MosesDecoder

__all__ = [
    "ASK",
    "WEIGHT_FILE_DECODERS",
    "DecodedGraphs",
    "DecoderDescription",
    "OutsideDecoder",
]


@dataclass(frozen=True)
class DecodedGraphs:
    """Search graphs that take the decoder's place.

    Attributes:
        place: the working directory of a run that stored them, its store, or a directory of
            Moses' files.
    """

    place: Path

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (f"forest:{self.place}",)

    @property
    def flags(self) -> tuple[str, ...]:
        """None: there is no program."""
        return ()

    @property
    def input_type(self) -> int | None:
        """None: the input is text."""
        return None


@dataclass(frozen=True)
class OutsideDecoder:
    """A decoder that somebody else runs: whoever asks for requests and tells lists.

    Attributes:
        weights_format: of the files of weights.
    """

    weights_format: WeightsFormat = "dense"

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (ASK,)

    @property
    def flags(self) -> tuple[str, ...]:
        """None: nobody knows the program."""
        return ()

    @property
    def input_type(self) -> int | None:
        """None: the input is text."""
        return None


ASK = "ask:"
"""What the setting ``decoder`` calls an ``OutsideDecoder``."""

DecoderDescription = MosesDecoder | DecodedGraphs | DecoderCommand | OutsideDecoder
"""Each has ``words`` (how the files of a run name it), ``flags`` and an ``input_type``."""

WEIGHT_FILE_DECODERS = (DecoderCommand, OutsideDecoder)
"""Descriptions of decoders that read weights from a file instead of their command line."""
