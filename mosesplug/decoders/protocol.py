"""The decoder protocol of a tuning run.

Two kinds implement it: programs that are called as Moses is (Moses itself, ``moses-parallel.pl``
and the other wrappers, the bundled decoder), and stored search graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from formats.nbest.block import NBestList
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.process import make_error
from mosesplug.errors import DecoderError

__all__ = ["DecodedInput", "Decoder", "DecoderRecipe"]


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


class DecoderRecipe(Protocol):
    """A factory of decoders for shards and workers.

    It can be sent to other processes.
    """

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> BatchDecoder:
        """Return a new decoder. The caller closes it.

        Args:
            prefix: distinguishes its files from those of other decoders.
            note: receives messages for the user, also before a lost server is restarted. An
                exception that it raises ends the mini-batch.
            beat: called a few times a second while a program runs. An exception that it raises
                ends the program, and the mini-batch.
        """


class Decoder(Protocol):
    """The decoder of one run: it announces its features, and decodes the input."""

    @property
    def features(self) -> ShowWeights:
        """The features that it announces, with their weights in the configuration."""

    @property
    def version(self) -> str | None:
        """Further data that determine the hypotheses, or None.

        Model, weights and flags are not part of them.
        """

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the whole input into n-best lists.

        Args:
            iteration: from 1.
            weights: to decode with.

        Raises:
            DecoderError: it failed, or wrote no lists.
        """

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the whole input into search graphs, which replace those of the last call.

        Raises:
            DecoderError: it failed, or cannot write search graphs.
        """

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Return a decoder of mini-batches that is open until the block ends.

        Args:
            sentences: the whole input; some of it tests whether a server is exact.
            weights: the starting weights.

        Raises:
            UsageError: a server is required, and this decoder cannot be one.
            DecoderError: a required server does not start or is not exact.
        """

    def recipe(self, served: BatchDecoder, workers: int) -> DecoderRecipe:
        """Return how to make more decoders like one that ``serve`` returned.

        Args:
            served: the decoder of mini-batches.
            workers: how many decoders will work at once.
        """

    def close(self) -> None:
        """Release processes and files; the next use opens them again."""
