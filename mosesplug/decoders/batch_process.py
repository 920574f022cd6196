"""Run the decoder per mini-batch, which is exact with any decoder.

With large models it is slow, unless the tables can be cut down to the mini-batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from formats.moses.ini import read_moses_ini, with_weights
from formats.nbest.block import NBestList
from formats.text import read_bytes, read_lines
from formats.weights.files import ShowWeights, format_sparse
from mosesplug.decoders.batch import BatchDecoder, DecoderRecipe, ModelWeights, parse_lists
from mosesplug.decoders.batch_tables import BatchTables
from mosesplug.decoders.command import CommandTemplate, format_decoder_weights
from mosesplug.decoders.kinds import WeightsFormat
from mosesplug.decoders.moses import MosesCommands
from mosesplug.decoders.processes.run import FinishedProcess, make_error, run_command
from mosesplug.decoders.protocol import (
    WEIGHT_FILES,
    BatchRecipe,
    BatchTask,
    ignore_command,
)
from mosesplug.errors import DecoderError

Program = TypeVar("Program", MosesCommands, CommandTemplate)


@dataclass(frozen=True)
class _FileDecoder(BatchDecoder, Generic[Program]):
    """A ``BatchDecoder`` that runs a program on a file with the sentences.

    Attributes:
        decoder: how to call it.
        task: its files are ``<prefix>.*`` in the directory.
    """

    decoder: Program
    task: BatchTask

    any_layout: ClassVar[bool] = False
    """Whether the decoder may write another list format than Moses'."""

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Decode sentences, as ``BatchDecoder.decode``.

        Raises:
            DecoderError: a list is missing, cut off, or not one of these sentences and features.
        """
        if not sentences:
            return []
        source, nbest = self._file("in"), self._file("nbest")
        texts = [text for _, text in sentences]
        source.write_bytes(b"".join(text + b"\n" for text in texts))
        nbest.unlink(missing_ok=True)
        command = self._command(source, nbest, weights, texts)
        self.task.executing(command)
        finished = run_command(
            command,
            directory=self._work,
            stdout=self._file("out"),
            stderr=self._file("err"),
            on_lines=self.task.beat,
            timeout=self.decoder.timeout,
            signs=[nbest],
        )
        return self._read(nbest, [number for number, _ in sentences], weights, finished)

    def close(self) -> None:
        """Do nothing: no program runs between two mini-batches."""

    @abstractmethod
    def _command(
        self, source: Path, nbest: Path, weights: ModelWeights, texts: Sequence[bytes]
    ) -> tuple[str, ...]:
        """Return the command that writes the lists of a file of sentences to another."""

    @property
    def _work(self) -> Path:
        """The program's current directory."""
        return self.task.directory

    def _file(self, ending: str) -> Path:
        return self.task.directory / f"{self.task.prefix}.{ending}"

    def _write_sparse(self, weights: ModelWeights) -> Path | None:
        """Write the sparse weights; return their file, None without any."""
        if not weights.sparse:
            return None
        path = self._file("sparse-weights")
        path.write_bytes(format_sparse(weights.sparse))
        return path

    def _read(
        self, nbest: Path, numbers: Sequence[int], weights: ModelWeights, finished: FinishedProcess
    ) -> list[NBestList]:
        """Return the lists of a mini-batch that a process wrote."""
        if not nbest.is_file():
            raise make_error("the decoder wrote no n-best list", finished.command, finished.stderr)
        try:
            text = read_bytes(nbest)
            if text and not text.endswith(b"\n"):
                raise DecoderError(f"{nbest} is cut off: its last line has no end")
            lists = parse_lists(
                text, numbers, weights.columns, str(nbest), any_layout=self.any_layout
            )
            _check_missing_lists(numbers, lists, finished.stdout)
        except DecoderError as error:
            raise make_error(str(error), finished.command, finished.stderr) from error
        return lists


@dataclass(frozen=True)
class ProcessDecoder(_FileDecoder[MosesCommands]):
    """A ``BatchDecoder`` that runs Moses or a program like it.

    Attributes:
        tables: the tables of which each process gets the lines of its sentences; None: it loads
            all tables as they are.
    """

    tables: BatchTables | None = None

    def own_recipe(self) -> DecoderRecipe | None:
        """Return how to make more decoders with these tables, if there are any."""
        if self.tables is None:
            return None
        task = replace(self.task, executing=ignore_command)
        return BatchRecipe(partial(ProcessDecoder, self.decoder, tables=self.tables), task)

    def _command(
        self, source: Path, nbest: Path, weights: ModelWeights, texts: Sequence[bytes]
    ) -> tuple[str, ...]:
        sparse = self._write_sparse(weights)
        config = self.task.config
        if self.tables is not None:
            config = self.tables.write(texts, self.task.prefix)
        return self.decoder.nbest(
            config,
            source.absolute(),
            run=1,
            nbest_file=nbest.name,
            nbest=self.task.nbest,
            weights=weights.overwrite(),
            sparse_weights=None if sparse is None else sparse.name,
        )


@dataclass(frozen=True)
class CommandProcess(_FileDecoder[CommandTemplate]):
    """A ``BatchDecoder`` that runs a decoder that is a command."""

    any_layout = True

    def _command(
        self, source: Path, nbest: Path, weights: ModelWeights, texts: Sequence[bytes]
    ) -> tuple[str, ...]:
        return self.decoder.call(
            weights=self._write_weights(weights),
            input_file=source,
            nbest_file=nbest,
            nbest=self.task.nbest,
            iteration=1,
        )

    @property
    def _work(self) -> Path:
        return self.decoder.directory

    def _file(self, ending: str) -> Path:
        return super()._file(ending).absolute()

    def _write_weights(self, weights: ModelWeights) -> Path:
        kind = self.decoder.weights_format
        path = self._file(WEIGHT_FILES[kind])
        write_weights(path, weights, kind, self.task.config)
        return path


def write_weights(path: Path, weights: ModelWeights, kind: WeightsFormat, config: Path) -> None:
    """Write the weights of a mini-batch with all digits.

    Args:
        path: its name ends as that of a file of this kind. A ``moses.ini`` names a file of sparse
            weights, which is written beside it.
        config: the ``moses.ini`` in which weights are replaced, if they are written so.
    """
    if kind != "moses":
        path.write_bytes(format_decoder_weights(weights, kind))
        return
    sparse = None
    if weights.sparse:
        sparse = path.with_name(path.name.removesuffix(WEIGHT_FILES[kind]) + "sparse-weights")
        sparse.write_bytes(format_sparse(weights.sparse))
    data = with_weights(
        read_moses_ini(config),
        ShowWeights(weights.groups),
        sparse_file=None if sparse is None else str(sparse),
        digits=None,
    )
    path.write_bytes(data)


def _check_missing_lists(numbers: Sequence[int], lists: Sequence[NBestList], stdout: Path) -> None:
    """Check that sentences without a list have an empty translation, as if unparsed."""
    listed = {int(nbest.sentence_ids[0]) for nbest in lists}
    missing = [place for place, number in enumerate(numbers) if number not in listed]
    if not missing:
        return
    translations = read_lines(stdout)
    if len(translations) == len(numbers) and not any(translations[i].strip() for i in missing):
        return
    raise DecoderError(
        f"the decoder wrote n-best lists of {len(lists)} of {len(numbers)} sentences and"
        f" {len(translations)} translations; it left out sentence {numbers[missing[0]]}"
    )
