"""A command that reads and writes files, as the decoder of a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.batch_process import CommandRecipe
from mosesplug.decoders.command import DecoderCommand
from mosesplug.decoders.process import run_command
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import UsageError
from mosesplug.events import Clock, CommandStarted, DecodingProgress, Watcher
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.decoding.lists import (
    check_written,
    count_listed,
    follow_decoder,
    keep_list,
)
from mosesplug.tuning.workdir.iteration_files import weights_path
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["CommandDecoder"]


@dataclass(frozen=True)
class CommandDecoder:
    """A ``Decoder`` that runs a ``DecoderCommand``.

    Attributes:
        command: how to call it.
        configuration: the configuration of the run.
        workspace: its files.
        features: the tuned features.
        n_sentences: sentences of the input, to report progress.
        watch: receives commands and progress.
    """

    command: DecoderCommand
    configuration: Configuration
    workspace: Workspace
    features: ShowWeights
    n_sentences: int
    watch: Watcher
    version: str | None = None

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

        The weights are in the file that was written for this iteration.

        Raises:
            DecoderError: the command failed, or wrote no list.
        """
        del weights
        workspace, total, clock = self.workspace, self.n_sentences, Clock()
        nbest = workspace.nbest(iteration)
        for leftover in (nbest, workspace.packed_nbest(iteration)):
            leftover.unlink(missing_ok=True)
        command = self.command.call(
            weights=weights_path(self.configuration, workspace, iteration),
            input_file=self.configuration.source,
            nbest_file=nbest,
            nbest=self.configuration.decoding.nbest,
            iteration=iteration,
        )

        def report(lines: int) -> None:
            if follower is not None:
                follower.advance()
            done = min(lines or count_listed(nbest), total)
            self.watch(DecodingProgress(iteration, done, total, clock.seconds()))

        self.watch(CommandStarted(command))
        with follow_decoder(self.configuration, workspace, iteration, self.features) as follower:
            finished = run_command(
                command,
                directory=self.command.directory,
                stdout=workspace.run(iteration, "out"),
                stderr=workspace.run(iteration, "decoder.err"),
                on_lines=report,
                timeout=self.command.timeout,
                signs=[nbest],
            )
            check_written(nbest, finished)
            packed, lists = keep_list(
                self.configuration, workspace, iteration, self.watch, follower
            )
        return DecodedInput(
            packed, command, finished.stdout, finished.stderr, finished.seconds, lists=lists
        )

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Raise ``UsageError``: a command writes n-best lists only."""
        raise UsageError("--decode-command writes n-best lists, no search graphs")

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Return a decoder that runs the command for each mini-batch."""
        del sentences, weights
        return nullcontext(self._batches.make("batch", lambda text: None))

    def recipe(self, served: BatchDecoder, workers: int) -> CommandRecipe:
        """Return how to make more decoders of mini-batches."""
        del served, workers
        return self._batches

    def close(self) -> None:
        """Do nothing: no program runs between two calls."""

    @property
    def _batches(self) -> CommandRecipe:
        return CommandRecipe(
            self.command,
            self.configuration.config,
            self.workspace.directory,
            self.configuration.decoding.nbest,
        )
