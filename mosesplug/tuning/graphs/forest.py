"""Stored search graphs as a decoder: find, check, open, and list hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from formats.nbest.files import format_list
from formats.text import atomic_write, read_lines
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.lists.files import finish_list
from mosesplug.decoders.prepare import write_features
from mosesplug.decoders.protocol import DecodedInput, Decoder, DecodingTask
from mosesplug.errors import DataError, DecoderError, UsageError
from mosesplug.events import Clock, DecodingProgress, PhaseStarted, Watcher
from mosesplug.metrics import PreparedReferences
from mosesplug.settings.checks import reject_combinations
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.graphs.decoder import (
    ForestDecoder,
    ForestRecipe,
    check_input,
    find_graph_store,
    open_shared_store,
    share_store,
)
from mosesplug.tuning.graphs.features import read_configured_features
from mosesplug.tuning.graphs.files import DecodedText, import_graphs
from mosesplug.tuning.workdir.workspace import Workspace


class Forest(NamedTuple):
    """The opened search graphs of a text, and features in the order of their lists.

    ``version`` identifies the place and the content of the graphs.
    """

    decoder: ForestDecoder
    show: ShowWeights
    version: str


def open_forest(
    place: Path,
    cache: Path,
    config: Path,
    text: DecodedText,
    *,
    nbest: int,
    threads: int,
    watch: Watcher,
) -> Forest:
    """Find and open the search graphs of a text.

    Args:
        place: the working directory of a run that stored them, its store, or files of a decoder:
            a directory with one file per sentence, or one file with all graphs.
        config: the ``moses.ini`` of the system that made them.

    Raises:
        DataError: there are no graphs, or they have other features than the configuration.
    """
    features = read_configured_features(config)
    store = find_graph_store(place)
    if store is None:
        import_graphs(place, cache, features, text, threads, watch)
        store = cache
    opened = open_shared_store(store)
    check_input(opened, place, text.path)
    space = opened.space
    if space is None:
        raise DataError(f"the search graphs in {place} have no features")
    show = features.announce(space.groups, place)
    recipe = ForestRecipe(store, features.fixed_weights, nbest, str(place), threads)
    counts = [str(record.n_graphs) for record in opened.iterations()]
    version = f"{place}, {'+'.join(counts)} {opened.fingerprints.get('graphs', '')}".rstrip()
    return Forest(ForestDecoder(recipe), show, version)


_AT_ONCE = 64
"""Sentences between two reports of progress."""
_DIGITS = 9
"""These tell every float32 from its neighbors, so that files lose nothing."""
_CACHE = "forest.lmdb"
"""The store, in the working directory, of graphs that are imported from files."""


def check_forest(configuration: Configuration) -> None:
    """Reject settings that exclude search graphs as the decoder.

    Raises:
        UsageError: such a setting is given, or the graphs belong to this run itself.
    """
    decoding, held_out = configuration.decoding, configuration.held_out
    scored_sets = (*((held_out,) if held_out else ()), *configuration.monitors)
    workspace = Workspace(configuration.working_directory, decoding.nbest)
    own = {path.resolve() for path in (workspace.directory, workspace.store, workspace.graphs)}
    for decoder in (decoding.decoder, *(scored_set.decoder for scored_set in scored_sets)):
        graphs = None if decoder is None else decoder.stored_graphs
        if graphs is not None and graphs.resolve() in own:
            raise UsageError(
                f"the search graphs of {graphs} belong to the run in the working directory"
                " itself, which would replace them: name another {--working-dir}"
            )
    graphs = decoding.decoder.stored_graphs
    if graphs is None:
        return
    rejected = {
        "{--lattice-samples}": decoding.lattice_samples > 0,
        "{--filter-command}": decoding.filtering is not None,
        "{--cache-model}": decoding.cache is not None,
    }
    reject_combinations("a decoder that is search graphs (forest:)", rejected)
    for monitor in configuration.monitors:
        if monitor.decoder is None and configuration.decoder_of(monitor) is decoding.decoder:
            name, files = monitor.name, f"{monitor.input},{monitor.references}"
            raise UsageError(
                f"the search graphs in {graphs} do not contain the text of {{--monitor {name}}}:"
                f" name its own, {{--monitor {name}={files},forest:DIR}}, or a program that"
                " translates it and a held-out set ({--heldout}, {--heldout-decoder})"
            )
    if held_out is not None and held_out.decoder is None:
        raise UsageError(
            f"the search graphs in {graphs} do not contain the held-out text: name a decoder for it"
            " with {--heldout-decoder}, or leave out {--heldout}"
        )


def open_graph_decoder(
    place: Path, task: DecodingTask, configuration: Configuration, references: PreparedReferences
) -> GraphDecoder:
    """Open the search graphs that replace the decoder; write ``features.list``.

    Raises:
        DataError: there are no graphs, or their features differ from those of the configuration.
    """
    task.watch(PhaseStarted(0, "features"))
    text = DecodedText(task.source, read_lines(task.source), configuration.metric, references)
    forest = open_forest(
        place,
        task.files.directory / _CACHE,
        configuration.config,
        text,
        nbest=task.nbest,
        threads=configuration.optimization.threads,
        watch=task.watch,
    )
    write_features(task.files, forest.show)
    return GraphDecoder(forest.show, task, forest)


def use_own_graphs(
    decoder: Decoder,
    task: DecodingTask,
    configuration: Configuration,
    store: NBestStore,
    path: Path,
) -> Decoder:
    """Return a decoder of the run's own search graphs, if it uses them.

    The decoder takes n-best lists from them.
    """
    graphs = configuration.decoding.graphs
    if graphs is None or (graphs.every == 1 and configuration.online is None):
        return decoder
    share_store(store, path)
    recipe = ForestRecipe(
        path,
        read_configured_features(configuration.config).fixed_weights,
        task.nbest,
        str(path),
        configuration.optimization.threads,
        is_growing=True,
    )
    forest = Forest(ForestDecoder(recipe), decoder.features, "the run's own")
    return GraphDecoder(decoder.features, task, forest, decoder)


@dataclass(frozen=True)
class GraphDecoder(Decoder):
    """A ``Decoder`` that takes n-best lists from stored search graphs.

    Attributes:
        maker: decoder that makes new search graphs, or None.
    """

    task: DecodingTask
    forest: Forest
    maker: Decoder | None = None

    @property
    def version(self) -> str:
        """Where the graphs are, and what tells them from others there."""
        return self.forest.version

    @property
    def is_program(self) -> bool:
        """Whether a program makes the search graphs."""
        return self.maker is not None and self.maker.is_program

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """List the best hypotheses of the input, and keep them as ``runN.bestK.out.gz``."""
        clock, texts, files = Clock(), read_lines(self.task.source), self.task.files
        nbest, out = files.nbest(iteration), files.run(iteration, "out")
        n_hypotheses = 0
        with atomic_write(nbest) as lists, atomic_write(out) as translations:
            for begin in range(0, len(texts), _AT_ONCE):
                sentences = list(enumerate(texts[begin : begin + _AT_ONCE], start=begin))
                decoded = self.forest.decoder.decode(sentences, weights)
                by_number = {int(own_list.sentence_ids[0]): own_list for own_list in decoded}
                for number, _ in sentences:
                    own_list = by_number.get(number)
                    translations.write((b"" if own_list is None else own_list.text(0)) + b"\n")
                    if own_list is not None:
                        lists.writelines(format_list(own_list, digits=_DIGITS))
                        n_hypotheses += len(own_list)
                done = begin + len(sentences)
                self.task.watch(DecodingProgress(iteration, done, len(texts), clock.seconds()))
        if not n_hypotheses:
            raise DecoderError("the search graphs hold no hypotheses")
        packed = finish_list(self.task, iteration)
        errors = files.run(iteration, "decoder.err")
        return DecodedInput(packed, (), out, errors, clock.seconds())

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Let ``maker`` decode the input into search graphs."""
        if self.maker is None:
            raise DecoderError(f"stored search graphs ({self.version}) make no new ones")
        return self.maker.search_graphs(iteration, weights)

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Return what decodes mini-batches; it stays open."""
        return nullcontext(self.forest.decoder)

    def recipe(self, served: BatchDecoder, workers: int) -> ForestRecipe:
        """Return how to make more decoders of mini-batches. They share the threads."""
        return self.forest.decoder.recipe.shared_among(workers)

    def close(self) -> None:
        """Close the graphs."""
        self.forest.decoder.close()
