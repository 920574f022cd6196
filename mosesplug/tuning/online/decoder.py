"""Settings that contradict an online run, and how to start more of its decoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mosesplug.decoders.batch import BatchDecoder
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.command import DecoderCommand
from mosesplug.decoders.description import DecodedGraphs, NamedDecoder, ServerNetwork
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.sentence_tables import SentenceTables
from mosesplug.decoders.server import ServerDecoder
from mosesplug.errors import UsageError
from mosesplug.settings.checks import reject_combinations
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import OnlineSettings


def check_online(configuration: Configuration, online: OnlineSettings) -> None:
    """Reject settings that contradict an online run.

    Raises:
        UsageError: there is one.
    """
    decoding, optimization = configuration.decoding, configuration.optimization
    rejected = {
        "lattice samples": decoding.lattice_samples > 0,
        "rewriting n-best lists": decoding.transform is not None,
        "confusion networks": decoding.decoder.input_type == 1,
        "skipping the decoder": configuration.skip_decoder,
        "extractor files": configuration.keep_extractor_files,
        "earlier iterations' lists": optimization.window >= 0,
        "historic best weights": optimization.historic_bests,
        "interpolation with earlier weights": optimization.interpolation > 0,
        "the best weights on the tuning set": configuration.select == "best-dev",
    }
    reject_combinations("--online", rejected)
    by_graphs = isinstance(decoding.decoder, DecodedGraphs) or decoding.graphs is not None
    if by_graphs and online != OnlineSettings():
        raise UsageError(
            "--online-decoder, --online-servers, --online-network and --strict-online require a"
            " decoder program, but search graphs decode the mini-batches here. Leave these options"
            " out."
        )
    if isinstance(decoding.decoder, DecoderCommand) and online.decoder == "server":
        raise UsageError(
            "--decode-command is run for each mini-batch and cannot be a server: leave out"
            " --online-decoder"
        )
    if isinstance(decoding.decoder, NamedDecoder) and online.decoder == "server":
        raise UsageError("a plug-in decodes in this process: leave out --online-decoder")
    if (sharding := optimization.sharding) is None:
        return
    if sharding.directory is not None:
        raise UsageError(
            "workers that decode keep their files in the working directory, which all of them must"
            " see. Leave out --shard-directory."
        )
    if sharding.asynchronous:
        if decoding.graphs is not None:
            raise UsageError(
                "--async does not wait for the end of an epoch, where search graphs are made. Leave"
                " out --forest, or decode with existing graphs (forest:DIR)."
            )
        if sharding.elsewhere and online.decoder != "process" and not by_graphs:
            raise UsageError(
                "with --online --async, only threads keep servers running from batch to batch. Use"
                " --online-decoder process, or leave out --workers and --scheduler."
            )
        return
    if configuration.held_out is not None and configuration.held_out.every:
        raise UsageError(
            "shards have no common weights to evaluate before the end of an epoch. Leave out"
            " --heldout-every."
        )


@dataclass(frozen=True)
class ProgramRecipe:
    """A ``DecoderRecipe`` for a program.

    Attributes:
        decoder: the program and how to call it.
        config: the ``moses.ini`` to decode with.
        directory: the decoder's current directory, where its files go.
        nbest: length of the lists.
        servers: the number of servers that are kept running; 0 for a process per batch.
        restart_each_batch: whether servers must restart for other weights.
        tables: phrase tables that servers get one sentence at a time, or None.
        network: where servers listen.
    """

    decoder: MosesDecoder
    config: Path
    directory: Path
    nbest: int
    servers: int
    restart_each_batch: bool
    tables: SentenceTables | None = None
    network: ServerNetwork = "host"

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """See ``DecoderRecipe.make``."""
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
            tables=self.tables,
            network=self.network,
            prefix=f"{prefix}.server",
            note=note,
        )
