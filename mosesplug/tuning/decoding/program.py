"""A program that is called as Moses is, as the decoder of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from formats.weights.files import ShowWeights, weight_overwrite
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.exactness import InexactServerError, require_exact
from mosesplug.decoders.following import ListFollower
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.process import FinishedProcess, run_command
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.decoders.server import ServerDecoder, to_request_text
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Clock, CommandStarted, DecodingProgress, Note, PhaseStarted, Watcher
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import OnlineSettings
from mosesplug.tuning.decoding.forced import add_forced_derivations
from mosesplug.tuning.decoding.lists import (
    check_written,
    follow_decoder,
    keep_list,
    merge_samples,
    pack,
)
from mosesplug.tuning.decoding.prepare import explain_lost_models
from mosesplug.tuning.online.decoder import ProgramRecipe
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["ProgramDecoder"]

_COMPARED = 10
"""Sentences that are decoded both ways before a server is trusted."""
_COMPARING = "compared"


@dataclass(frozen=True)
class ProgramDecoder:
    """A ``Decoder`` that runs a program.

    The program is Moses, one of its wrappers, or the bundled decoder.

    Attributes:
        program: how to call it.
        configuration: the configuration of the run.
        workspace: its files; the working directory is the program's current directory.
        config: the ``moses.ini`` to decode with.
        features: the features that the decoder announced.
        n_sentences: sentences of the input, to report progress.
        watch: receives commands and progress.
    """

    program: MosesDecoder
    configuration: Configuration
    workspace: Workspace
    config: Path
    features: ShowWeights
    n_sentences: int
    watch: Watcher
    version: str | None = None

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

        Raises:
            DecoderError: the program failed, or wrote no list.
        """
        decoding, workspace = self.configuration.decoding, self.workspace
        nbest, samples = workspace.nbest(iteration), workspace.samples(iteration, 0)
        if decoding.lattice_samples:
            samples = workspace.samples(iteration, decoding.lattice_samples)
        for leftover in (nbest, samples, workspace.packed_nbest(iteration)):
            leftover.unlink(missing_ok=True)
        command = self.program.nbest(
            self.config,
            self.configuration.source,
            run=iteration,
            nbest_file=nbest.name,
            nbest=decoding.nbest,
            weights=self._overwrite(iteration, weights),
            sparse_weights=self._sparse_file(iteration),
            samples_file=samples.name,
            samples=decoding.lattice_samples,
        )
        with follow_decoder(self.configuration, workspace, iteration, self.features) as follower:
            finished = self._run(command, iteration=iteration, follower=follower)
            check_written(nbest, finished)
            if decoding.lattice_samples:
                merge_samples(nbest, samples, finished)
                pack(samples)
            if decoding.forced:
                add_forced_derivations(
                    partial(self._run, iteration=iteration),
                    self.program,
                    self.configuration,
                    workspace,
                    self.config,
                    iteration,
                    weights=self._overwrite(iteration, weights),
                    sparse_weights=self._sparse_file(iteration),
                    n_sentences=self.n_sentences,
                    watch=self.watch,
                )
            packed, lists = keep_list(
                self.configuration, workspace, iteration, self.watch, follower
            )
        return DecodedInput(
            packed, command, finished.stdout, finished.stderr, finished.seconds, lists=lists
        )

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input into search graphs.

        They replace those of the iteration before.

        Raises:
            DecoderError: the program failed.
        """
        workspace = self.workspace
        packed = workspace.packed_nbest(iteration)
        packed.unlink(missing_ok=True)
        workspace.remove_graphs()
        workspace.graphs.mkdir(exist_ok=True)
        command = self.program.graphs(
            self.config,
            self.configuration.source,
            directory=workspace.graphs.name,
            weights=self._overwrite(iteration, weights),
            sparse_weights=self._sparse_file(iteration),
        )
        done = self._run(command, iteration=iteration)
        return DecodedInput(
            packed, command, done.stdout, done.stderr, done.seconds, workspace.graphs
        )

    @contextmanager
    def serve(self, sentences: Sequence[bytes], weights: ModelWeights) -> Iterator[BatchDecoder]:
        """Keep the program running as a server, or start it for each mini-batch.

        A server is used if the program can be one.

        Raises:
            UsageError: a server is required, and the program cannot be one.
            DecoderError: a required server does not start or is not exact.
        """
        online = self.configuration.online or OnlineSettings()
        if online.decoder == "process":
            yield self._process("batch")
            return
        try:
            server = self._server(online)
        except UsageError as error:
            if online.decoder == "server" or online.network == "own":
                raise
            self.watch(Note(f"{error}; one is started for each batch"))
            yield self._process("batch")
            return
        with server:
            usable = self._is_usable(server, online, sentences, weights)
            yield server if usable else self._process("batch")

    def recipe(self, served: BatchDecoder, workers: int) -> ProgramRecipe:
        """Return how to make more decoders of mini-batches. Each loads the model."""
        del workers
        online = self.configuration.online
        server = served if isinstance(served, ServerDecoder) else None
        return ProgramRecipe(
            self.program,
            self.config,
            self.workspace.directory,
            self.configuration.decoding.nbest,
            0 if server is None or online is None else online.servers,
            server is not None and server.restart_each_batch,
            None if server is None else server.tables,
            "host" if online is None else online.network,
        )

    def close(self) -> None:
        """Do nothing: no program runs between two calls."""

    def _overwrite(self, iteration: int, weights: ModelWeights) -> str | None:
        if iteration == 1 and self.configuration.decoding.config_weights_first:
            return None
        # More decimals than mert-moses.pl's six: a small weight would lose most of its digits.
        return weight_overwrite(ShowWeights(weights.groups), decimals=12)

    def _sparse_file(self, iteration: int) -> str | None:
        path = self.workspace.run(iteration, "sparse-weights")
        return path.name if path.is_file() else None

    def _run(
        self,
        command: tuple[str, ...],
        prefix: str = "",
        *,
        iteration: int,
        follower: ListFollower | None = None,
    ) -> FinishedProcess:
        clock, workspace, total = Clock(), self.workspace, self.n_sentences

        def report(lines: int) -> None:
            if follower is not None:
                follower.advance()
            self.watch(DecodingProgress(iteration, min(lines, total), total, clock.seconds()))

        self.watch(CommandStarted(command))
        with explain_lost_models(self.config, workspace):
            return run_command(
                command,
                directory=workspace.directory,
                stdout=workspace.run(iteration, f"{prefix}out"),
                stderr=workspace.run(iteration, f"{prefix}decoder.err"),
                on_lines=report,
                timeout=self.program.timeout,
                signs=[workspace.nbest(iteration), workspace.graphs],
            )

    def _process(self, prefix: str) -> ProcessDecoder:
        return ProcessDecoder(
            self.program,
            self.config,
            self.workspace.directory,
            self.configuration.decoding.nbest,
            prefix,
            lambda command: self.watch(CommandStarted(command)),
        )

    def _server(self, online: OnlineSettings) -> ServerDecoder:
        return ServerDecoder(
            self.program,
            self.config,
            self.workspace.directory,
            self.configuration.decoding.nbest,
            workers=online.servers,
            network=online.network,
            note=lambda text: self.watch(Note(text)),
            executing=lambda command: self.watch(CommandStarted(command)),
        )

    def _is_usable(
        self,
        server: ServerDecoder,
        online: OnlineSettings,
        sentences: Sequence[bytes],
        weights: ModelWeights,
    ) -> bool:
        """Start the server, and compare it with fresh decoders; let it restart if it must."""
        self.watch(PhaseStarted(0, "compare"))
        numbered = [(number, text) for number, text in enumerate(sentences) if text.strip()]
        compared = numbered[:_COMPARED]
        try:
            for number, text in enumerate(sentences):  # or an odd one ends the run in the middle
                to_request_text(number, text)
            found = require_exact(
                server,
                self._process(_COMPARING),
                compared,
                weights,
                config=self.config,
                flags=self.program.flags,
                strict=online.strict,
            )
        except InexactServerError:
            raise
        except DecoderError as error:
            if online.decoder == "server":
                raise
            server.close()
            reason = str(error).partition("\n")[0]
            self.watch(
                Note(
                    f"this decoder does not run as a server ({reason}); one is started for each"
                    " batch"
                )
            )
            return False
        for path in self.workspace.directory.glob(f"{_COMPARING}.*"):
            path.unlink()
        if found.note is not None:
            self.watch(Note(found.note, is_warning=found.is_warning))
        server.expect(sentences)
        return True
