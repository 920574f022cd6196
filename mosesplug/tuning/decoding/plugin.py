"""A decoder of another package, as the decoder of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from formats.errors import FormatError
from formats.nbest.entry import format_entry
from formats.text import atomic_write, read_lines, write_atomic
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.description import NamedDecoder
from mosesplug.decoders.plugin import (
    EXACT_DIGITS,
    PluginDecoder,
    PluginRecipe,
    decode_entries,
    open_plugin,
)
from mosesplug.decoders.protocol import DecodedInput
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Clock, DecodingProgress, Watcher
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.decoding.lists import finish_list
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["PluginRunDecoder"]


@dataclass(frozen=True)
class PluginRunDecoder:
    """A ``Decoder`` that calls a plug-in.

    Attributes:
        named_decoder: how the settings name it.
        plugin: the open decoder.
        configuration: the configuration of the run.
        workspace: its files.
        features: the tuned features.
        n_sentences: sentences of the input, to report progress.
        watch: receives progress.
    """

    named_decoder: NamedDecoder
    plugin: PluginDecoder
    configuration: Configuration
    workspace: Workspace
    features: ShowWeights
    n_sentences: int
    watch: Watcher

    @property
    def version(self) -> str:
        """Name and argument of the plug-in, which determine the hypotheses."""
        return self.named_decoder.words[0]

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

        Raises:
            DecoderError: the plug-in failed, or its lists cannot be used.
        """
        workspace, clock = self.workspace, Clock()
        nbest, out = workspace.nbest(iteration), workspace.run(iteration, "out")
        for leftover in (nbest, workspace.packed_nbest(iteration)):
            leftover.unlink(missing_ok=True)
        best: list[bytes] = []
        with atomic_write(nbest) as file:
            file.writelines(self._lines(iteration, weights, best))
        write_atomic(out, b"".join(text + b"\n" for text in best))
        err = workspace.run(iteration, "decoder.err")
        write_atomic(err, b"")
        packed = finish_list(self.configuration, workspace, iteration, self.watch)
        return DecodedInput(packed, self.named_decoder.words, out, err, clock.seconds())

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Raise ``UsageError``: a plug-in returns n-best lists only."""
        raise UsageError(f"{self.named_decoder.words[0]} returns n-best lists, no search graphs")

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Return a decoder of mini-batches that the end of the block closes."""
        del sentences, weights
        return self._batches.make("batch", lambda text: None)

    def recipe(self, served: BatchDecoder, workers: int) -> PluginRecipe:
        """Return how to make more decoders of mini-batches."""
        del served, workers
        return self._batches

    def close(self) -> None:
        """Close the plug-in."""
        self.plugin.close()

    def _lines(self, iteration: int, weights: ModelWeights, best: list[bytes]) -> Iterator[bytes]:
        """Yield the lines of the whole n-best list; append each 1-best to ``best``."""
        clock = Clock()
        sentences = read_lines(self.configuration.source)
        lists = decode_entries(
            self.plugin, self.named_decoder, sentences, weights, self.configuration.decoding.nbest
        )
        for done, found in enumerate(lists, start=1):
            best.append(found[0].text if found else b"")
            try:
                yield from [format_entry(entry, digits=EXACT_DIGITS) for entry in found]
            except FormatError as error:
                raise DecoderError(
                    f"the decoder {self.named_decoder.words[0]} failed: {error}"
                ) from error
            self.watch(DecodingProgress(iteration, done, self.n_sentences, clock.seconds()))

    @property
    def _batches(self) -> PluginRecipe:
        return PluginRecipe(self.named_decoder, self.configuration.decoding.nbest)


def open_run_decoder(
    named: NamedDecoder,
    configuration: Configuration,
    workspace: Workspace,
    features: ShowWeights,
    n_sentences: int,
    watch: Watcher,
) -> PluginRunDecoder:
    """Open a plug-in for a run; arguments as the attributes of ``PluginRunDecoder``.

    Raises:
        UsageError: there is no such plug-in, or it cannot use its argument.
        DecoderError: it failed.
    """
    return PluginRunDecoder(
        named, open_plugin(named), configuration, workspace, features, n_sentences, watch
    )
