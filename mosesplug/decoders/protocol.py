"""The interface between a run and its decoder.

The settings of a run name a decoder by a ``Description``. ``open`` makes a ``Decoder`` of it, which
decodes the whole input, and ``open_batches`` a ``BatchDecoder``, which decodes some sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from formats.nbest.block import NBestList
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, DecoderRecipe, ModelWeights
from mosesplug.decoders.kinds import ServerNetwork, WeightsFormat
from mosesplug.decoders.processes.run import make_error
from mosesplug.decoders.run_files import RunFiles
from mosesplug.decoders.wrappers import Queue
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import CommandStarted, Watcher

WEIGHT_FILES: Mapping[WeightsFormat, str] = {
    "moses": "moses.ini",
    "dense": "weights.dense",
    "json": "weights.json",
    "one-line": "weights.line",
}
"""The name of the file of weights in each format; of an iteration, with ``runN.`` in front."""

Capability = Literal["decoding", "forced decoding", "domains"]
"""Abilities of a decoder: decode, decode constrained to references, decode by domain."""


@dataclass(frozen=True)
class DecodedInput:
    """The n-best lists or search graphs of the whole input.

    Attributes:
        path: n-best list to read, compressed; of search graphs, where it is to be written.
        command: the decoder's command line, empty if no program ran.
        stdout: file with the decoder's 1-best translations.
        stderr: file with its messages.
        seconds: wall time of decoding, in seconds.
        graphs: directory of the search graphs that the n-best lists are made of, or None.
        lists: the lists if they are parsed already, and need not be read.
    """

    path: Path
    command: tuple[str, ...]
    stdout: Path
    stderr: Path
    seconds: float
    graphs: Path | None = None
    lists: Iterable[NBestList] | None = None

    def failure(self, problem: str) -> DecoderError:
        """Return the error for lists that cannot be used."""
        if not self.command:
            return DecoderError(f"{self.path}: {problem}")
        return make_error(problem, self.command, self.stderr)


class ServerSettings(Protocol):
    """Settings for decoding mini-batches by a server (``--online-...``)."""

    @property
    def decoder(self) -> Literal["auto", "server", "process"]:
        """Whether the program is kept running as a server."""

    @property
    def strict(self) -> bool:
        """Whether a server may not be restarted for each mini-batch."""

    @property
    def servers(self) -> int:
        """The number of servers."""

    @property
    def network(self) -> ServerNetwork:
        """Network in which the servers listen."""


@dataclass(frozen=True)
class DecodingTask:
    """The settings and files of a run that its decoder uses.

    Attributes:
        input: file of the source sentences; None if the decoder is not called.
        config: the ``moses.ini``, or another file of weights, to decode with.
        files: where the decoder writes.
        nbest: length of the n-best lists.
        n_sentences: sentences of the input, to report progress.
        watch: receives commands and progress.
        servers: how mini-batches are decoded.
        transform: shell command that rewrites the n-best lists, ``bpe``, or None.
        samples: samples of the search lattice that are merged into each list.
        references: with forced decoding, the texts of each reference; else None.
        keeps_first_weights: whether the first iteration is decoded with the weights in ``config``
            as they are.
        parsed: called with the n-best lists that are parsed while the decoder writes them; None:
            nothing needs them so early.
    """

    input: Path | None
    config: Path
    files: RunFiles
    nbest: int
    n_sentences: int
    watch: Watcher
    servers: ServerSettings
    transform: str | None = None
    samples: int = 0
    references: Sequence[Sequence[bytes]] | None = None
    keeps_first_weights: bool = False
    parsed: Callable[[Sequence[NBestList]], None] | None = None

    @property
    def source(self) -> Path:
        """The file of the source sentences.

        Raises:
            UsageError: there is none.
        """
        if self.input is None:
            raise UsageError("this needs the source sentences: give {--input}")
        return self.input

    @property
    def batches(self) -> BatchTask:
        """The same for its mini-batches."""
        return BatchTask(self.config, self.files.directory, self.nbest)

    def report_command(self, command: tuple[str, ...]) -> None:
        """Report that a command starts."""
        self.watch(CommandStarted(command))


@dataclass(frozen=True)
class Decoder:
    """The decoder of one run: it announces its features, and decodes the input.

    Attributes:
        features: the features that it announces, with their weights in the configuration.
        no_graphs: why it makes no search graphs.
        no_batches: why it decodes no mini-batches.
    """

    features: ShowWeights

    no_graphs: ClassVar[str] = "this decoder writes n-best lists, no search graphs"
    no_batches: ClassVar[str] = "this decoder decodes the whole input: leave out {--online}"

    @property
    def version(self) -> str | None:
        """Further data that determine the hypotheses, or None.

        Model, weights and flags are not part of them.
        """
        return None

    @property
    def is_program(self) -> bool:
        """Whether decoding waits for a program and leaves this process idle."""
        return False

    @property
    def batches(self) -> BatchRecipe | None:
        """The recipe for decoders of mini-batches; None if it decodes whole inputs only."""
        return None

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the whole input into n-best lists, ``runN.bestK.out.gz``.

        Args:
            iteration: from 1.
            weights: to decode with.

        Raises:
            DecoderError: it failed, or wrote no lists.
        """
        raise NotImplementedError

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the whole input into search graphs, which replace those of the last call.

        Raises:
            DecoderError: it failed.
            UsageError: it cannot write search graphs.
        """
        del iteration, weights
        raise UsageError(self.no_graphs)

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Return a decoder of mini-batches that is open until the block ends.

        Args:
            sentences: the whole input; some of it tests whether a server is exact.
            weights: the starting weights.

        Raises:
            UsageError: a server is required, and this decoder cannot be one; or it decodes no
                mini-batches.
            DecoderError: a required server does not start or is not exact.
        """
        del sentences, weights
        return self._require_batches().make("batch", ignore_note)

    def recipe(self, served: BatchDecoder, workers: int) -> DecoderRecipe:
        """Return how to make more decoders like one that ``serve`` returned.

        Args:
            served: the decoder of mini-batches.
            workers: how many decoders will work at once.
        """
        del served, workers
        return self._require_batches()

    def with_task(self, task: DecodingTask) -> Decoder:
        """Return a decoder of another input with the same features, if it can ``domains``."""
        raise NotImplementedError

    def close(self) -> None:
        """Release processes and files; the next use opens them again."""

    def _require_batches(self) -> BatchRecipe:
        if self.batches is None:
            raise UsageError(self.no_batches)
        return self.batches


def ignore_command(command: tuple[str, ...]) -> None:
    """Do nothing."""


def ignore_note(text: str) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class BatchTask:
    """The settings and files that a decoder of mini-batches uses.

    Attributes:
        config: the ``moses.ini``, or file of weights, that the run started with.
        directory: the directory of its files.
        nbest: length of the n-best lists.
        prefix: distinguishes its files from those of other decoders.
        executing: receives each command.
        beat: called a few times a second while a program runs. An exception that it raises ends
            the program, and the mini-batch.
    """

    config: Path
    directory: Path
    nbest: int
    prefix: str = "batch"
    executing: Callable[[tuple[str, ...]], None] = ignore_command
    beat: Callable[[int], None] | None = None


@dataclass(frozen=True)
class BatchRecipe:
    """A ``DecoderRecipe`` of decoders that are opened for a task.

    Attributes:
        open: opens one; it can be pickled.
        task: the task of all of them; each has its own prefix.
    """

    open: Callable[[BatchTask], BatchDecoder]
    task: BatchTask

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """See ``DecoderRecipe.make``."""
        del note
        return self.open(replace(self.task, prefix=prefix, beat=beat))


class Description:
    """A decoder as the settings name it, and what it can do.

    Every description also has ``words`` (how the files of a run name it), ``flags``, an
    ``input_type`` and the ``weights_format`` of the files of weights.

    Attributes:
        capabilities: what it can do beside n-best lists.
        reads_weight_file: whether it gets its weights in a file, and announces no features.
        no_server: why it cannot be kept running as a server; None if it may.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"decoding"})
    reads_weight_file: ClassVar[bool] = True
    no_server: ClassVar[str | None] = None

    @property
    def stored_graphs(self) -> Path | None:
        """Search graphs that take its place, or None."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that describe it beside ``decoder``; None if not given."""
        return {}

    @property
    def wrappers(self) -> tuple[str, ...]:
        """Options whose wrappers split the input, and do not join search graphs."""
        return ()

    @property
    def work_queue(self) -> Queue | None:
        """The queue that runs helper programs, or None for this machine."""
        return None

    @property
    def timeout(self) -> float | None:
        """Seconds without output after which its program is ended; None for no limit."""
        return None

    def translate(self, config: Path, input_file: Path) -> tuple[str, ...] | None:
        """Return the command that prints 1-best translations; None if it cannot translate."""
        del config, input_file
        return None

    def open(self, task: DecodingTask) -> Decoder:
        """Return the decoder of a run.

        Raises:
            UsageError, DecoderError, FormatError: it cannot be used.
        """
        raise NotImplementedError

    def open_batches(self, task: BatchTask) -> BatchDecoder:
        """Return a decoder of mini-batches.

        Raises:
            UsageError, DecoderError: it cannot be used.
        """
        raise NotImplementedError
