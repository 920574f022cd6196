"""The kinds of decoders that the settings of a run can name.

Help and settings import this module: what looks plug-ins up or runs programs is imported where a
decoder is opened.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.command import CommandTemplate
from mosesplug.decoders.kinds import WeightsFormat
from mosesplug.decoders.moses import MosesCommands
from mosesplug.decoders.protocol import (
    BatchTask,
    DecodedInput,
    Decoder,
    DecodingTask,
    Description,
)
from mosesplug.decoders.wrappers import Queue
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.decoders.plugin import PluginDecoder

ASK = "ask:"
"""Value of the setting ``decoder`` that selects an ``OutsideDecoder``."""

PLUGIN = "plugin:"
"""Prefix of the setting ``decoder`` that selects a ``NamedDecoder``."""


@dataclass(frozen=True)
class MosesDecoder(MosesCommands, Description):
    """Moses, or a program that is called as Moses is."""

    weights_format: ClassVar[WeightsFormat] = "moses"
    capabilities = frozenset({"decoding", "forced decoding", "domains"})
    # Its command line has the weights, and it announces its features.
    reads_weight_file = False

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its flags."""
        return (str(self.program), *self.flags)

    @property
    def wrappers(self) -> tuple[str, ...]:
        """Options whose wrappers split the input, and do not join search graphs."""
        wrappers = {"jobs": self.queue, "multi-moses": self.several}
        return tuple(option for option, wrapper in wrappers.items() if wrapper is not None)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Flags, wrappers and helper scripts; None if not given."""
        queue, editing = self.queue, self.post_editing
        script = self.several or (None if editing is None else editing.command)
        values = {
            "decoder-flags": shlex.join(self.flags) or None,
            "decoder-timeout": self.timeout,
            "input-type": self.input_type,
            "multi-moses": self.several is not None,
            "spe-symal": None if editing is None else str(editing.alignment),
            # The directory above generic/, which holds both scripts.
            "moses-scripts": None if script is None else str(script.parents[1]),
        }
        return values if queue is None else {**values, **queue.settings}

    @property
    def work_queue(self) -> Queue | None:
        """The queue that runs helper programs, or None for this machine."""
        return self.queue

    def open(self, task: DecodingTask) -> Decoder:
        """Ask the program for its features, and return the decoder of a run."""
        from mosesplug.decoders.program import open_program

        return open_program(self, task)

    def open_batches(self, task: BatchTask) -> BatchDecoder:
        """Return a decoder that runs the program for each mini-batch."""
        from mosesplug.decoders.batch_process import ProcessDecoder

        return ProcessDecoder(self, task)


@dataclass(frozen=True)
class DecoderCommand(CommandTemplate, Description):
    """A decoder that is a command with files."""

    no_server = (
        "{--decode-command} is run for each mini-batch and cannot be a server: leave out"
        " {--online-decoder}"
    )

    @property
    def flags(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.words[1:]

    @property
    def input_type(self) -> int | None:
        """None: the input is text."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The command, which takes the place of ``decoder``."""
        return {
            "decoder": None,
            "decode-command": shlex.join(self.words),
            "weights-format": self.weights_format,
            "decoder-timeout": self.timeout,
        }

    def open(self, task: DecodingTask) -> Decoder:
        """Return the decoder of a run, with the features of the file of weights."""
        from mosesplug.decoders.prepare import read_features
        from mosesplug.decoders.program import CommandDecoder

        return CommandDecoder(read_features(task, self.weights_format), task, self)

    def open_batches(self, task: BatchTask) -> BatchDecoder:
        """Return a decoder that runs the command for each mini-batch."""
        from mosesplug.decoders.batch_process import CommandProcess

        return CommandProcess(self, task)


@dataclass(frozen=True)
class DecodedGraphs(Description):
    """Search graphs that take the decoder's place.

    The room above opens them: decoders know no forests.

    Attributes:
        place: the working directory of a run that stored them, its store, or a directory of
            Moses' files.
    """

    place: Path

    program: ClassVar[None] = None
    settings: ClassVar[Mapping[str, Any]] = {"multi-moses": False}
    flags: ClassVar[tuple[str, ...]] = ()
    input_type: ClassVar[int | None] = None
    weights_format: ClassVar[WeightsFormat] = "moses"
    # The features of the graphs are those of the moses.ini.
    reads_weight_file = False

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (f"forest:{self.place}",)

    @property
    def stored_graphs(self) -> Path:
        """Directory or file of the search graphs."""
        return self.place


@dataclass(frozen=True)
class OutsideDecoder(Description):
    """A decoder that somebody else runs: whoever asks for requests and tells lists.

    Attributes:
        weights_format: the format of the files of weights.
    """

    weights_format: WeightsFormat = "dense"

    flags: ClassVar[tuple[str, ...]] = ()
    input_type: ClassVar[int | None] = None
    capabilities = frozenset()

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (ASK,)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The format of the files of weights."""
        return {"weights-format": self.weights_format}

    def open(self, task: DecodingTask) -> AbsentDecoder:
        """Return a decoder that has the features of a file, and cannot decode."""
        from mosesplug.decoders.prepare import read_features

        return AbsentDecoder(read_features(task, self.weights_format))

    def open_batches(self, task: BatchTask) -> BatchDecoder:
        """Return a decoder of texts whose translations are told."""
        from mosesplug.decoders.asked import AskedTexts

        return AskedTexts(task.directory)


@dataclass(frozen=True)
class NamedDecoder(Description):
    """A decoder that another package registers, called in this process.

    Attributes:
        name: the name that it is registered under.
        argument: what it is opened with.
    """

    name: str
    argument: str = ""

    flags: ClassVar[tuple[str, ...]] = ()
    input_type: ClassVar[int | None] = None
    weights_format: ClassVar[WeightsFormat] = "dense"
    no_server = "a plug-in decodes in this process: leave out {--online-decoder}"

    @property
    def words(self) -> tuple[str, ...]:
        """How the settings and the files of a run name it."""
        return (self._label,)

    @property
    def _label(self) -> str:
        return f"{PLUGIN}{self.name}{':' if self.argument else ''}{self.argument}"

    @classmethod
    def parse(cls, text: str) -> NamedDecoder:
        """Return the decoder of ``plugin:NAME`` or ``plugin:NAME:ARGUMENT``."""
        name, _, argument = text.removeprefix(PLUGIN).partition(":")
        return cls(name, argument)

    def open(self, task: DecodingTask) -> Decoder:
        """Open the plug-in for a run.

        Raises:
            UsageError: there is no such plug-in, or it cannot use its argument.
            DecoderError: it failed.
        """
        from mosesplug.decoders.plugin import PluginRunDecoder
        from mosesplug.decoders.prepare import read_features

        features = read_features(task, self.weights_format)
        return PluginRunDecoder(features, task, self._label, self._open(), self.open_batches)

    def open_batches(self, task: BatchTask) -> BatchDecoder:
        """Open the plug-in for mini-batches."""
        from mosesplug.decoders.plugin import PluginBatches

        return PluginBatches(self._label, self._open(), task.nbest)

    def _open(self) -> PluginDecoder:
        from mosesplug.decoders.plugin import open_plugin

        return open_plugin(self.name, self.argument, self._label)


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
