"""Run a decoder that is a command for each mini-batch, and for a held-out set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from formats.moses.ini import read_moses_ini, with_weights
from formats.nbest.block import NBestList
from formats.weights.files import ShowWeights, format_sparse
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.batch_process import decode_batch, ignore_command
from mosesplug.decoders.command import WEIGHT_FILES, DecoderCommand, format_decoder_weights

__all__ = ["CommandProcess", "CommandRecipe"]


@dataclass(frozen=True)
class CommandProcess(BatchDecoder):
    """A ``BatchDecoder`` that runs a command on a file with the sentences.

    Attributes:
        command: how to call it.
        config: the file of weights that the run started with, a ``moses.ini`` for that format.
        directory: of its files ``<prefix>.*``.
        nbest: length of the n-best lists.
        prefix: distinguishes the files of several decoders in one directory.
        executing: receives each command.
        beat: called a few times a second while the command runs. An exception that it raises ends
            the command, and the mini-batch.
    """

    command: DecoderCommand
    config: Path
    directory: Path
    nbest: int
    prefix: str = "batch"
    executing: Callable[[tuple[str, ...]], None] = ignore_command
    beat: Callable[[int], None] | None = None

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Decode sentences, as ``BatchDecoder.decode``."""

        def make_command(source: Path, nbest: Path) -> tuple[str, ...]:
            return self.command.call(
                weights=self._write_weights(weights),
                input_file=source,
                nbest_file=nbest,
                nbest=self.nbest,
                iteration=1,
            )

        return decode_batch(
            sentences,
            weights,
            make_command,
            file=self._file,
            directory=self.command.directory,
            executing=self.executing,
            beat=self.beat,
            timeout=self.command.timeout,
            any_layout=True,
        )

    def close(self) -> None:
        """Do nothing: no program runs between two mini-batches."""

    def _write_weights(self, weights: ModelWeights) -> Path:
        kind = self.command.weights_format
        path = self._file(WEIGHT_FILES[kind])
        if kind != "moses":
            path.write_bytes(format_decoder_weights(weights, kind))
            return path
        sparse = None
        if weights.sparse:
            sparse = self._file("sparse-weights")
            sparse.write_bytes(format_sparse(weights.sparse))
        data = with_weights(
            read_moses_ini(self.config),
            ShowWeights(weights.groups),
            sparse_file=None if sparse is None else str(sparse),
            digits=None,
        )
        path.write_bytes(data)
        return path

    def _file(self, ending: str) -> Path:
        return (self.directory / f"{self.prefix}.{ending}").absolute()


@dataclass(frozen=True)
class CommandRecipe:
    """A ``DecoderRecipe`` for a command.

    Attributes:
        command: how to call it.
        config: the file of weights that the run started with.
        directory: of the decoders' files.
        nbest: length of the lists.
    """

    command: DecoderCommand
    config: Path
    directory: Path
    nbest: int

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> CommandProcess:
        """See ``DecoderRecipe.make``."""
        del note
        return CommandProcess(
            self.command, self.config, self.directory, self.nbest, prefix, beat=beat
        )
