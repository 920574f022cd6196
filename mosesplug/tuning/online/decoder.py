"""The decoder of an online run: search graphs, or a server if it can be one, or runs by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mosesplug.decoders.batch import BatchDecoder
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.exactness import require_exact
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.server import ServerDecoder, sendable
from mosesplug.errors import DecoderError, UsageError
from mosesplug.settings.configuration import Configuration, Online
from mosesplug.tuning.context import Context
from mosesplug.tuning.events import Executing, Note, PhaseStarted
from mosesplug.tuning.online.source import model_weights

__all__ = ["DecoderRecipe", "ProgramRecipe", "check_online", "online_decoder", "recipe_of"]

_COMPARED = 10
"""Sentences that are decoded both ways before a server is trusted."""
_COMPARING = "compared"


def check_online(configuration: Configuration, online: Online) -> None:
    """Refuse settings that an online run has no use for.

    Raises:
        UsageError: there is one.
    """
    decoding, optimising = configuration.decoding, configuration.optimising
    refused = {
        "lattice samples": decoding.lattice_samples > 0,
        "rewriting n-best lists": decoding.transform is not None,
        "confusion networks": decoding.decoder.input_type == 1,
        "skipping the decoder": configuration.skip_decoder,
        "extractor files": configuration.keep_extractor_files,
        "earlier iterations' lists": optimising.window >= 0,
        "historic best weights": optimising.historic_bests,
        "interpolation with earlier weights": optimising.interpolation > 0,
        "the best weights on the tuning set": configuration.select == "best-dev",
    }
    found = [what for what, given in refused.items() if given]
    if found:
        raise UsageError(f"--online does not go together with {', '.join(found)}")
    by_graphs = decoding.forest is not None or decoding.graphs is not None
    if by_graphs and online != Online():
        raise UsageError(
            "--online-decoder, --online-servers and --strict-online are for programs that decode"
            " mini-batches; search graphs do that here: leave these options out"
        )
    if (sharding := optimising.sharding) is None:
        return
    if sharding.directory is not None:
        raise UsageError(
            "those who decode keep their files in the working directory, which all workers must"
            " see: leave out --shard-directory"
        )
    if sharding.asynchronous:
        if decoding.graphs is not None:
            raise UsageError(
                "--async does not wait for the end of an epoch, at which search graphs are made:"
                " leave out --forest, or decode by graphs that are there (forest:DIR)"
            )
        if sharding.elsewhere and online.decoder != "process" and not by_graphs:
            raise UsageError(
                "with --online --async servers are kept running from batch to batch by threads of"
                " this process; other processes, and a cluster's, can only start a decoder for each"
                " batch: give --online-decoder process, or leave out --workers and --scheduler"
            )
        return
    if configuration.held_out is not None and configuration.held_out.every:
        raise UsageError(
            "between the epochs of shards there are no weights to judge: leave out --heldout-every"
        )


@contextmanager
def online_decoder(
    context: Context, online: Online, texts: Sequence[bytes]
) -> Iterator[BatchDecoder]:
    """What decodes the batches, until the block ends.

    Raises:
        UsageError: a server is asked for, and this decoder cannot be one.
        DecoderError: a server is asked for and does not start; or it is not exact, and must be.
    """
    if context.forest is not None:
        yield context.forest.decoder
        return
    if online.decoder == "process":
        yield _process(context, "batch")
        return
    try:
        server = _server(context, online)
    except UsageError as error:
        if online.decoder == "server":
            raise
        context.files.watch(Note(f"{error}; one is started for each batch"))
        yield _process(context, "batch")
        return
    with server:
        if _serves(context, online, server, texts):
            yield server
        else:
            yield _process(context, "batch")


class DecoderRecipe(Protocol):
    """How to make the decoder of a shard or a worker, wherever that is: it can be sent there."""

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """A decoder of its own, to be closed.

        Args:
            prefix: of its files, which tells several apart.
            note: told what the user should know, also before a lost server is started again; what
                it raises ends the batch.
            beat: as ``ProcessDecoder`` has it.
        """


@dataclass(frozen=True)
class ProgramRecipe:
    """A ``DecoderRecipe`` for a program.

    Attributes:
        decoder: the program and how to call it.
        config: the ``moses.ini`` to decode with.
        directory: the decoder's current directory, where its files go.
        nbest: length of the lists.
        servers: how many are kept running; 0 for a process for each batch.
        restart_each_batch: whether servers have to start anew for other weights.
    """

    decoder: MosesDecoder
    config: Path
    directory: Path
    nbest: int
    servers: int
    restart_each_batch: bool

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """As ``DecoderRecipe.make`` says."""
        if not self.servers:
            return ProcessDecoder(
                self.decoder, self.config, self.directory, self.nbest, prefix, beat=beat
            )
        return ServerDecoder(
            self.decoder,
            self.config,
            self.directory,
            self.nbest,
            workers=self.servers,
            restart_each_batch=self.restart_each_batch,
            prefix=f"{prefix}.server",
            note=note,
        )


def recipe_of(context: Context, online: Online, decoder: BatchDecoder) -> DecoderRecipe:
    """How to make others like a decoder that ``online_decoder`` gave."""
    if context.forest is not None:
        sharding = context.data.configuration.optimising.sharding
        return context.forest.recipe.shared_among(1 if sharding is None else sharding.shards)
    server = isinstance(decoder, ServerDecoder)
    return ProgramRecipe(
        context.data.configuration.decoding.decoder,
        context.files.config,
        context.files.workspace.directory,
        context.data.configuration.decoding.nbest,
        online.servers if server else 0,
        isinstance(decoder, ServerDecoder) and decoder.restart_each_batch,
    )


def _serves(
    context: Context, online: Online, server: ServerDecoder, texts: Sequence[bytes]
) -> bool:
    """Whether the server is there; compared with fresh decoders, and told to restart if it must."""
    context.files.watch(PhaseStarted(0, "compare"))
    weights = model_weights(context.data.show, context.data.start)
    sentences = [(number, text) for number, text in enumerate(texts) if text.strip()][:_COMPARED]
    try:
        for number, text in enumerate(texts):  # or an odd one ends the run in the middle
            sendable(number, text)
        server.decode(sentences[:1], weights)
    except DecoderError as error:
        if online.decoder == "server":
            raise
        server.close()
        reason = str(error).partition("\n")[0]
        context.files.watch(
            Note(f"this decoder does not run as a server ({reason}); one is started for each batch")
        )
        return False
    fresh = _process(context, _COMPARING)
    note = require_exact(server, fresh, sentences, weights, strict=online.strict)
    for path in context.files.workspace.directory.glob(f"{_COMPARING}.*"):
        path.unlink()
    if note is not None:
        context.files.watch(Note(note, warning=True))
    return True


def _process(context: Context, prefix: str) -> ProcessDecoder:
    decoding = context.data.configuration.decoding
    return ProcessDecoder(
        decoding.decoder,
        context.files.config,
        context.files.workspace.directory,
        decoding.nbest,
        prefix,
        lambda command: context.files.watch(Executing(command)),
    )


def _server(context: Context, online: Online) -> ServerDecoder:
    decoding = context.data.configuration.decoding
    return ServerDecoder(
        decoding.decoder,
        context.files.config,
        context.files.workspace.directory,
        decoding.nbest,
        workers=online.servers,
        note=lambda text: context.files.watch(Note(text)),
        executing=lambda command: context.files.watch(Executing(command)),
    )
