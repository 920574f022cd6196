"""Decode mini-batches with translation servers that keep running.

The first request of a mini-batch to each server sends the dense weights. Sparse weights, which
Moses' server does not take, are folded into the phrase table where that is possible (see
``folding``). The servers are restarted for other sparse weights, and for all weights if the phrase
table keeps scores of earlier weights (see ``exactness``) and cannot be given to the server one
sentence at a time (see ``sentence_tables``).

Moses' server listens on all network interfaces and has no option for less, so it can be given a
network namespace of its own (see ``own_network``); the bundled decoder listens on the loopback
interface only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from formats.moses.ini import MosesIni, read_moses_ini
from formats.moses.ini_features import TRUE_WORDS
from formats.nbest.block import NBestList
from formats.weights.files import format_sparse
from mosesplug.decoders.batch import BatchDecoder, ModelWeights, parse_lists
from mosesplug.decoders.kinds import ServerNetwork
from mosesplug.decoders.moses import MosesCommands
from mosesplug.decoders.processes.run import make_error
from mosesplug.decoders.servers.calls import (
    ServerLost,
    format_nbest_lines,
    format_request_weights,
    largest_reply,
    parse_reply,
    to_request_text,
    translate_request,
)
from mosesplug.decoders.servers.own_network import explain_unavailable
from mosesplug.decoders.servers.process import ServerProcess
from mosesplug.decoders.servers.sentence_tables import SentenceTables, remove_tables
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Clock

_CALL_SECONDS, _START_SECONDS = 600.0, 1800.0


@dataclass(frozen=True)
class ServerRecipe:
    """A ``DecoderRecipe`` for servers.

    Attributes:
        decoder: the program and how to call it.
        config: the ``moses.ini`` to decode with.
        directory: the decoder's current directory, where its files go.
        nbest: length of the lists.
        servers: the number of servers of each decoder.
        restart_each_batch: whether servers must restart for other weights.
        tables: phrase tables that servers get one sentence at a time, or None.
        network: where servers listen.
        no_folding: why sparse weights are not folded into their tables, for messages.
    """

    decoder: MosesCommands
    config: Path
    directory: Path
    nbest: int
    servers: int
    restart_each_batch: bool
    tables: SentenceTables | None
    network: ServerNetwork
    no_folding: str | None = None

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> ServerDecoder:
        """See ``DecoderRecipe.make``."""
        del beat
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
            no_folding=self.no_folding,
        )


class ServerDecoder(BatchDecoder):
    """A ``BatchDecoder`` of one or more servers.

    The lists do not depend on the number of servers. Servers start with the first mini-batch. If
    one died, it is restarted and the mini-batch decoded again; a second death is an error. They end
    with ``close``, and when this process ends.
    """

    def __init__(
        self,
        decoder: MosesCommands,
        config: Path,
        directory: Path,
        nbest: int,
        *,
        workers: int = 1,
        timeout: float | None = None,
        start_timeout: float | None = None,
        restart_each_batch: bool = False,
        tables: SentenceTables | None = None,
        network: ServerNetwork = "host",
        prefix: str = "server",
        note: Callable[[str], None] = lambda text: None,
        executing: Callable[[tuple[str, ...]], None] = lambda command: None,
        no_folding: str | None = None,
    ) -> None:
        """Take the settings; nothing is started yet.

        Args:
            decoder: how to call the program.
            directory: the servers' current directory, for their files ``<prefix><n>.*``.
            nbest: length of the n-best lists.
            workers: number of servers that share a mini-batch.
            timeout: seconds that a server may take for one sentence; None for the decoder's, or
                600.
            start_timeout: seconds that it may take to load its model; None for the decoder's, or
                1800.
            restart_each_batch: restart whenever the weights change.
            tables: phrase tables that the servers get one sentence at a time, or None.
            network: where the servers listen: in a network namespace of their own (``own``), in
                one if the system allows it (``auto``), or with all other programs (``host``).
            prefix: distinguishes the files of several decoders in one directory.
            note: receives messages for the user.
            executing: receives each command.
            no_folding: why sparse weights are not folded into the tables, for messages.

        Raises:
            UsageError: this decoder cannot be a server (for example behind a wrapper), or the
                system allows no network of its own.
        """
        decoder.server(config, 0, weights="")
        reason = None if network == "host" else explain_unavailable()
        if network == "own" and reason is not None:
            raise UsageError(
                f"{{--online-network}} own: this system allows no network namespace ({reason}). Use"
                " host, and let a firewall protect the decoder's server"
            )
        self._network = network
        self._own_network = network != "host" and reason is None
        self._why_not = reason
        self.restart_each_batch = restart_each_batch
        self.no_folding = no_folding
        self._tables = tables
        self._decoder = decoder
        self._config = config
        self.directory = directory
        self._nbest = nbest
        self._timeout = timeout or decoder.timeout or _CALL_SECONDS
        self._start_timeout = start_timeout or decoder.timeout or _START_SECONDS
        self._prefix = prefix
        self._note = note
        self._executing = executing
        self._noted: set[str] = set()
        self._servers: list[ServerProcess | None] = [None] * max(1, workers)
        self._started_with: ModelWeights | None = None
        self._seconds_to_start = 0.0
        self._restarts_for_sparse = False
        self._has_noted_restarts = False
        self._pool = ThreadPoolExecutor(len(self._servers), "decoder")

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Decode sentences, as ``BatchDecoder.decode``.

        Raises:
            DecoderError: also if a sentence is not UTF-8, or has characters that XML excludes.
        """
        texts = [(number, to_request_text(number, text)) for number, text in sentences]
        if not texts:
            return []
        try:
            replies = self._replies(texts, weights)
        except ServerLost as lost:
            self._note(f"{lost}\nthe server is started again, and the batch decoded once more")
            replies = self._replies(texts, weights)
        numbers = [number for number, _ in texts]
        source = f"the replies of {self._decoder.program}"
        return parse_lists(b"".join(replies), numbers, weights.columns, source)

    @property
    def tables(self) -> SentenceTables | None:
        """Phrase tables that servers get by sentence; setting them ends the servers."""
        return self._tables

    @tables.setter
    def tables(self, tables: SentenceTables | None) -> None:
        self.close()
        self._tables = tables

    def own_recipe(self) -> ServerRecipe:
        """Return how to make decoders that need no comparison with fresh processes."""
        return ServerRecipe(
            self._decoder,
            self._config,
            self.directory,
            self._nbest,
            len(self._servers),
            self.restart_each_batch,
            self.tables,
            self._network,
            self.no_folding,
        )

    @property
    def program(self) -> Path:
        """The decoder."""
        return self._decoder.program

    def expect(self, sentences: Iterable[bytes]) -> None:
        """Prepare for sentences that will be decoded; others cost more.

        Raises:
            FormatError: a phrase table cannot be read.
        """
        if self._tables is not None:
            self._tables.expect(sentences, self.directory)

    def close(self) -> None:
        """End the servers. The next mini-batch starts them again."""
        for place, server in enumerate(self._servers):
            if server is not None:
                server.close()
                self._servers[place] = None
                remove_tables(self.directory / self._tables_of(place))
        self._started_with = None

    def __exit__(self, *_: object) -> None:
        self.close()
        self._pool.shutdown()

    def _replies(self, texts: Sequence[tuple[int, str]], weights: ModelWeights) -> list[bytes]:
        servers = self._running(weights)
        tables = self._tables
        sent_weights = weights if tables is None else tables.convert_weights(weights)
        spelled = format_request_weights(sent_weights, self._ini.weights)
        replies = [b""] * len(texts)
        waiting = deque(range(len(texts)))

        def work(number: int) -> None:
            sent: str | None = spelled
            for place in _take_items(waiting):
                if tables is not None:
                    directory = self.directory / self._tables_of(number)
                    text = texts[place][1].encode()
                    tables.write(text, directory, self.directory, weights.sparse)
                replies[place] = self._lines(servers[number], place, *texts[place], sent)
                sent = None

        futures: list[Future[None]] = []
        try:
            numbers = range(min(len(servers), len(texts)))
            futures.extend(self._pool.submit(work, number) for number in numbers)
            wait(futures, return_when=FIRST_EXCEPTION)
            waiting.clear()
            wait(futures)
        except BaseException:
            # Without servers, no thread waits for an answer.
            waiting.clear()
            self.close()
            wait(futures)
            raise
        for future in futures:
            future.result()
        return replies

    def _lines(
        self, server: ServerProcess, place: int, number: int, text: str, weights: str | None
    ) -> bytes:
        """Return a sentence's n-best lines; its id is its place in the mini-batch."""
        tables = self._tables
        with_segmentation = tables is not None and tables.with_segmentation
        marked = text if tables is None else tables.mark_text(text.encode()).decode()
        request = translate_request(
            marked, self._nbest, weights, with_segmentation=with_segmentation
        )
        try:
            largest = largest_reply(self._nbest, len(text.split()), self._n_contexts)
            answer = server.call(request, self._timeout, largest)
        except DecoderError as error:
            raise type(error)(f"sentence {number}: {error}") from error
        try:
            reply = parse_reply(answer)
            if tables is None:
                return format_nbest_lines(place, reply, self._nbest)
            return format_nbest_lines(place, reply, self._nbest, tables.complete(text.encode()))
        except DecoderError as error:
            problem = f"sentence {number}: {error}"
            raise make_error(problem, server.command, server.stderr) from error

    def _running(self, weights: ModelWeights) -> list[ServerProcess]:
        """Start or restart servers as needed, and return all of them."""
        weights = self._weights_of_servers(weights)
        old = self._started_with
        if old is not None and old != weights:
            if old.sparse != weights.sparse:
                self._restarts_for_sparse = True
                self.close()
            elif self.restart_each_batch:
                self.close()
        missing: list[ServerProcess] = []
        clock = Clock()
        try:
            for place, server in enumerate(self._servers):
                if server is not None and server.is_dead:
                    if server.problem:
                        self._note(f"{server.problem} between two batches; it is started again")
                    server.close()  # its own children may still run
                if server is None or server.is_dead:
                    missing.append(self._launched(place, weights))
                    self._servers[place] = missing[-1]
            for launched in missing:
                launched.wait_until_ready(self._start_timeout)
            if missing:
                self._seconds_to_start = clock.seconds()
        except BaseException:
            self.close()
            raise
        if missing:
            self._started_with = weights
            if self._restarts_for_sparse:
                self._note_restarts()
        if any(server.listens_everywhere() for server in missing):
            refused = "" if self._why_not is None else f" (no network of its own: {self._why_not})"
            self._note_once(
                "the decoder's server listens on all network interfaces, and has no option for"
                f" less{refused}: where others can reach this machine, let a firewall keep them out"
            )
        running = [server for server in self._servers if server is not None]
        if len(running) < len(self._servers):  # closed by another thread at the end of a run
            raise DecoderError("the decoder's servers were closed while a batch was at work")
        return running

    def _weights_of_servers(self, weights: ModelWeights) -> ModelWeights:
        """Return the weights that servers must be sent for these weights.

        Tables by sentence are exact only without further sparse weights: these would act on their
        pruning, as they do not in a process that loads whole tables.
        """
        if self._tables is None:
            return weights
        sent = self._tables.convert_weights(weights)
        if not any(sent.sparse.values()):
            return sent
        self._restarts_for_sparse = True
        self.no_folding = self.no_folding or self._tables.explain_unfolded(sent)
        self.tables = None
        self.restart_each_batch = True
        return weights

    def _note_restarts(self) -> None:
        """Say what restarts cost, after one: servers without tables start sooner."""
        if self._has_noted_restarts:
            return
        self._has_noted_restarts = True
        reason = (
            ""
            if self.no_folding is None
            else f", and sums of them cannot be folded into its phrase table ({self.no_folding})"
        )
        self._note(
            f"the decoder's server takes no sparse weights in a request{reason}: it is started"
            f" again whenever they change, in {self._seconds_to_start:.1f} s"
        )

    def _launched(self, place: int, weights: ModelWeights) -> ServerProcess:
        """Start a server, which then loads its model."""
        sparse = None
        constant = b"" if self._tables is None else self._tables.format_constant_weights()
        if weights.sparse or constant:
            sparse = f"{self._prefix}{place + 1}.sparse-weights"
            (self.directory / sparse).write_bytes(constant + format_sparse(weights.sparse))

        config = self._config
        if self._tables is not None:
            config = self.directory / f"{self._prefix}{place + 1}.moses.ini"
            self._tables.write_config(config, Path(self._tables_of(place)))

        def command(port: int) -> tuple[str, ...]:
            return self._decoder.server(
                config, port, weights=weights.overwrite(), sparse_weights=sparse
            )

        stderr = self.directory / f"{self._prefix}{place + 1}.err"
        server = ServerProcess(
            command, directory=self.directory, stderr=stderr, own_network=self._own_network
        )
        self._executing(server.command)
        return server

    def _tables_of(self, place: int) -> str:
        """The directory of the phrase tables of a sentence, in the decoder's directory."""
        return f"{self._prefix}{place + 1}.tables"

    @cached_property
    def _ini(self) -> MosesIni:
        return read_moses_ini(self._config)

    @cached_property
    def _n_contexts(self) -> int:
        """The number of functions with source contexts."""
        texts = (line.arguments.get("source-context", "") for line in self._ini.features)
        return sum(text.lower() in TRUE_WORDS for text in texts)

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def _take_items(waiting: deque[int]) -> Iterator[int]:
    """Take items until none is left; several threads may share a queue."""
    while True:
        try:
            place = waiting.popleft()
        except IndexError:
            return
        yield place
