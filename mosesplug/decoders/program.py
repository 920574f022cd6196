"""Programs as decoders: Moses, what is called as Moses is, any command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from formats.weights.files import ShowWeights, weight_overwrite
from mosesplug.decoders.batch import BatchDecoder, DecoderRecipe, ModelWeights
from mosesplug.decoders.batch_process import CommandProcess, ProcessDecoder
from mosesplug.decoders.batch_tables import BatchTables
from mosesplug.decoders.command import CommandTemplate
from mosesplug.decoders.forced import add_forced_derivations
from mosesplug.decoders.lists.files import (
    check_written,
    count_listed,
    follow_decoder,
    keep_list,
    merge_samples,
    pack,
)
from mosesplug.decoders.lists.following import ListFollower
from mosesplug.decoders.moses import MosesCommands
from mosesplug.decoders.prepare import (
    announce_features,
    explain_lost_models,
    require_constraints,
)
from mosesplug.decoders.processes.run import FinishedProcess, run_command
from mosesplug.decoders.protocol import (
    WEIGHT_FILES,
    BatchRecipe,
    DecodedInput,
    Decoder,
    DecodingTask,
)
from mosesplug.decoders.servers.calls import to_request_text
from mosesplug.decoders.servers.exactness import (
    Exactness,
    InexactServerError,
    is_binary,
    require_exact,
)
from mosesplug.decoders.servers.server import ServerDecoder
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Clock, DecodingProgress, Note, PhaseStarted

_COMPARED = 10
"""Sentences that are decoded both ways before a server is trusted."""
_COMPARING = "compared"


def open_program(program: MosesCommands, task: DecodingTask) -> ProgramDecoder:
    """Ask a program for its features, and return the decoder of a run.

    Raises:
        DecoderError: it failed, or announced nothing to tune; or it has not what forced decoding
            needs.
        UsageError: sparse weights cannot lie in this working directory.
    """
    features = announce_features(program, task)
    if task.references is not None:
        require_constraints(program, task)
    return ProgramDecoder(features, task, program)


@dataclass(frozen=True)
class ProgramDecoder(Decoder):
    """A ``Decoder`` that runs Moses, one of its wrappers, or the bundled decoder.

    Attributes:
        task: what it decodes; the working directory is the program's current directory.
        program: how to call it.
    """

    task: DecodingTask
    program: MosesCommands

    @property
    def is_program(self) -> bool:
        """True: another program decodes."""
        return True

    def with_task(self, task: DecodingTask) -> ProgramDecoder:
        """Return a decoder of another input with the same features."""
        return replace(self, task=task)

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

        Raises:
            DecoderError: the program failed, or wrote no list.
        """
        task, files = self.task, self.task.files
        nbest, samples = files.nbest(iteration), files.samples(iteration, task.samples)
        for leftover in (nbest, samples, files.packed_nbest(iteration)):
            leftover.unlink(missing_ok=True)
        overwrite, sparse_weights = self._overwrite(iteration, weights), self._sparse(iteration)
        command = self.program.nbest(
            task.config,
            task.source,
            run=iteration,
            nbest_file=nbest.name,
            nbest=task.nbest,
            weights=overwrite,
            sparse_weights=sparse_weights,
            samples_file=samples.name,
            samples=task.samples,
        )
        with follow_decoder(task, iteration, self.features) as follower:
            finished = self._run(command, iteration=iteration, follower=follower)
            check_written(nbest, finished)
            if task.samples:
                merge_samples(nbest, samples, finished)
                pack(samples)
            if task.references is not None:
                add_forced_derivations(
                    partial(self._run, iteration=iteration),
                    self.program,
                    task,
                    iteration,
                    weights=overwrite,
                    sparse_weights=sparse_weights,
                )
            packed, lists = keep_list(task, iteration, follower)
        return DecodedInput(
            packed, command, finished.stdout, finished.stderr, finished.seconds, lists=lists
        )

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input into search graphs.

        They replace those of the iteration before.

        Raises:
            DecoderError: the program failed.
        """
        files = self.task.files
        packed = files.packed_nbest(iteration)
        packed.unlink(missing_ok=True)
        files.remove_graphs()
        files.graphs.mkdir(exist_ok=True)
        command = self.program.graphs(
            self.task.config,
            self.task.source,
            directory=files.graphs.name,
            weights=self._overwrite(iteration, weights),
            sparse_weights=self._sparse(iteration),
        )
        done = self._run(command, iteration=iteration)
        return DecodedInput(packed, command, done.stdout, done.stderr, done.seconds, files.graphs)

    @contextmanager
    def serve(self, sentences: Sequence[bytes], weights: ModelWeights) -> Iterator[BatchDecoder]:
        """Keep the program running as a server, or start it for each mini-batch.

        If nothing about servers is set, Moses is started for each mini-batch where that is fast,
        and kept running elsewhere. Other programs are kept running, if they can be.

        Raises:
            UsageError: a server is required, and the program cannot be one.
            DecoderError: a required server does not start or is not exact.
        """
        task, settings = self.task, self.task.servers
        tables = self._cut_tables(sentences)
        if settings.decoder == "process" or self._starts_fast(tables):
            if tables is not None:
                task.watch(
                    Note(
                        "the decoder is started for each batch, with those lines of"
                        f" {', '.join(tables.names)} that its sentences need"
                    )
                )
            yield self._process("batch", tables)
            return
        try:
            server = ServerDecoder(
                self.program,
                task.config,
                task.files.directory,
                task.nbest,
                workers=settings.servers,
                network=settings.network,
                note=lambda text: task.watch(Note(text)),
                executing=task.report_command,
            )
        except UsageError as error:
            if settings.decoder == "server" or settings.network == "own":
                raise
            task.watch(Note(f"{error}; the decoder is started for each batch"))
            yield self._process("batch", tables)
            return
        with server:
            usable = self._is_usable(server, sentences, weights, tables)
            yield server if usable else self._process("batch", tables)

    def recipe(self, served: BatchDecoder, workers: int) -> DecoderRecipe:
        """Return how to make more decoders of mini-batches. Each loads the model."""
        del workers
        return served.own_recipe() or self.batches

    def _overwrite(self, iteration: int, weights: ModelWeights) -> str | None:
        if iteration == 1 and self.task.keeps_first_weights:
            return None
        # More decimals than mert-moses.pl's six: a small weight would lose most of its digits.
        return weight_overwrite(ShowWeights(weights.groups), decimals=12)

    def _sparse(self, iteration: int) -> str | None:
        path = self.task.files.run(iteration, "sparse-weights")
        return path.name if path.is_file() else None

    def _run(
        self,
        command: tuple[str, ...],
        prefix: str = "",
        *,
        iteration: int,
        follower: ListFollower | None = None,
    ) -> FinishedProcess:
        files = self.task.files
        with explain_lost_models(self.task.config, files.directory):
            return _run_decoder(
                self.task,
                command,
                iteration,
                follower,
                files.directory,
                self.program.timeout,
                prefix=prefix,
                signs=(files.nbest(iteration), files.graphs),
            )

    @property
    def batches(self) -> BatchRecipe:
        """The program is started for each mini-batch."""
        return BatchRecipe(partial(ProcessDecoder, self.program), self.task.batches)

    def _process(self, prefix: str, tables: BatchTables | None = None) -> ProcessDecoder:
        batches = replace(self.task.batches, prefix=prefix, executing=self.task.report_command)
        if tables is not None:
            tables.read()  # now, since several threads may need them at once
        return ProcessDecoder(self.program, batches, tables)

    def _cut_tables(self, sentences: Sequence[bytes]) -> BatchTables | None:
        """Return the tables to cut down for mini-batches, if Moses decodes them here."""
        program = self.program
        if program.queue or program.several or program.post_editing or program.input_type:
            return None
        if not is_binary(program.program):
            return None
        task = self.task
        return BatchTables.of(task.config, program.flags, sentences, task.files.directory)

    def _starts_fast(self, tables: BatchTables | None) -> bool:
        """Return whether processes may be used, and are cheaper than servers."""
        settings = self.task.servers
        is_free = (
            settings.decoder == "auto"
            and not settings.strict
            and settings.servers == 1
            and settings.network == "auto"
        )
        return is_free and tables is not None and tables.loads_little

    def _is_usable(
        self,
        server: ServerDecoder,
        sentences: Sequence[bytes],
        weights: ModelWeights,
        tables: BatchTables | None,
    ) -> bool:
        """Start the server, and compare it with fresh decoders; let it restart if it must."""
        task, settings = self.task, self.task.servers
        task.watch(PhaseStarted(0, "compare"))
        numbered = [(number, text) for number, text in enumerate(sentences) if text.strip()]
        compared = numbered[:_COMPARED]
        exactness: Exactness | None = None
        try:
            for number, text in enumerate(sentences):  # or an odd one ends the run in the middle
                to_request_text(number, text)
            exactness = require_exact(
                server,
                self._process(_COMPARING),
                compared,
                weights,
                config=task.config,
                flags=self.program.flags,
                text=sentences,
                strict=settings.strict,
            )
        except InexactServerError:
            raise
        except DecoderError as error:
            if settings.decoder == "server":
                raise
            server.close()
            reason = str(error).partition("\n")[0]
            clock = Clock()
            self._process(_COMPARING, tables).decode(compared, weights)
            task.watch(
                Note(
                    f"this decoder does not run as a server ({reason}); it is started for each"
                    f" batch, which takes {clock.seconds():.1f} s for {len(compared)} sentences"
                )
            )
        for path in task.files.directory.glob(f"{_COMPARING}.*"):
            path.unlink()
        if exactness is None:
            return False
        if exactness.note is not None:
            task.watch(Note(exactness.note, is_warning=exactness.is_warning))
        server.expect(sentences)
        return True


@dataclass(frozen=True)
class CommandDecoder(Decoder):
    """A ``Decoder`` that runs a command with files.

    Attributes:
        task: what it decodes.
        command: how to call it.
    """

    task: DecodingTask
    command: CommandTemplate

    no_graphs = "{--decode-command} writes n-best lists, no search graphs"

    @property
    def is_program(self) -> bool:
        """True: another program decodes."""
        return True

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

        The weights are in the file that was written for this iteration.

        Raises:
            DecoderError: the command failed, or wrote no list.
        """
        del weights
        task, nbest = self.task, self.task.files.nbest(iteration)
        for leftover in (nbest, task.files.packed_nbest(iteration)):
            leftover.unlink(missing_ok=True)
        command = self.command.call(
            weights=task.files.run(iteration, WEIGHT_FILES[self.command.weights_format]),
            input_file=task.source,
            nbest_file=nbest,
            nbest=task.nbest,
            iteration=iteration,
        )
        with follow_decoder(task, iteration, self.features) as follower:
            finished = _run_decoder(
                task,
                command,
                iteration,
                follower,
                self.command.directory,
                self.command.timeout,
                count=lambda lines: lines or count_listed(nbest),
                signs=(nbest,),
            )
            check_written(nbest, finished)
            packed, lists = keep_list(task, iteration, follower)
        return DecodedInput(
            packed, command, finished.stdout, finished.stderr, finished.seconds, lists=lists
        )

    @property
    def batches(self) -> BatchRecipe:
        """The command is run for each mini-batch."""
        return BatchRecipe(partial(CommandProcess, self.command), self.task.batches)


def _run_decoder(
    task: DecodingTask,
    command: tuple[str, ...],
    iteration: int,
    follower: ListFollower | None,
    directory: Path,
    timeout: float | None,
    *,
    prefix: str = "",
    count: Callable[[int], int] = lambda lines: lines,
    signs: Sequence[Path],
) -> FinishedProcess:
    """Run a decoder, and report its progress.

    Args:
        task: what it decodes.
        command, directory, timeout, signs: as for ``run_command``.
        follower: reads the list as it grows, or None.
        prefix: of the files with its output.
        count: the number of sentences that are done, from the lines of its standard output.
    """
    clock, total = Clock(), task.n_sentences

    def report(lines: int) -> None:
        if follower is not None:
            follower.advance()
        task.watch(DecodingProgress(iteration, min(count(lines), total), total, clock.seconds()))

    task.report_command(command)
    return run_command(
        command,
        directory=directory,
        stdout=task.files.run(iteration, f"{prefix}out"),
        stderr=task.files.run(iteration, f"{prefix}decoder.err"),
        on_lines=report,
        timeout=timeout,
        signs=signs,
    )
