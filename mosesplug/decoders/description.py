"""The kinds of decoders that the settings of a run can name.

The settings name one of these; ``mosesplug.tuning`` makes a ``Decoder`` of it, which decodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mosesplug.decoders.command import DecoderCommand, WeightsFormat
from mosesplug.decoders.moses import MosesDecoder

__all__ = [
    "ASK",
    "PLUGIN",
    "WEIGHT_FILE_DECODERS",
    "DecodedGraphs",
    "DecoderDescription",
    "NamedDecoder",
    "OutsideDecoder",
    "ServerNetwork",
]


class _WithoutProgram:
    """Base of the descriptions of decoders that are not started as a program."""

    @property
    def flags(self) -> tuple[str, ...]:
        """None: there is no program, or nobody knows it."""
        return ()

    @property
    def input_type(self) -> int | None:
        """None: the input is text."""
        return None


@dataclass(frozen=True)
class DecodedGraphs(_WithoutProgram):
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


@dataclass(frozen=True)
class OutsideDecoder(_WithoutProgram):
    """A decoder that somebody else runs: whoever asks for requests and tells lists.

    Attributes:
        weights_format: the format of the files of weights.
    """

    weights_format: WeightsFormat = "dense"

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (ASK,)


@dataclass(frozen=True)
class NamedDecoder(_WithoutProgram):
    """A decoder that another package registers, called in this process.

    Attributes:
        name: the name that it is registered under.
        argument: what it is opened with.
    """

    name: str
    argument: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (f"{PLUGIN}{self.name}{':' if self.argument else ''}{self.argument}",)

    @property
    def weights_format(self) -> WeightsFormat:
        """The format of the files of weights of a run."""
        return "dense"

    @classmethod
    def parse(cls, text: str) -> NamedDecoder:
        """Return the decoder of ``plugin:NAME`` or ``plugin:NAME:ARGUMENT``."""
        name, _, argument = text.removeprefix(PLUGIN).partition(":")
        return cls(name, argument)


ServerNetwork = Literal["auto", "own", "host"]
"""Network of servers: a namespace of their own, the host's, or their own where that is possible."""

ASK = "ask:"
"""What the setting ``decoder`` calls an ``OutsideDecoder``."""

PLUGIN = "plugin:"
"""What the setting ``decoder`` of a ``NamedDecoder`` begins with."""

DecoderDescription = MosesDecoder | DecodedGraphs | DecoderCommand | OutsideDecoder | NamedDecoder
"""Each has ``words`` (how the files of a run name it), ``flags`` and an ``input_type``."""

WEIGHT_FILE_DECODERS = (DecoderCommand, OutsideDecoder, NamedDecoder)
"""Descriptions of decoders that do not read weights from their command line."""
