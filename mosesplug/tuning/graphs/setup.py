"""Search graphs in the place of a decoder: found, compared with the run's data, and opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from formats.weights.files import ShowWeights
from mosesplug.errors import DataError
from mosesplug.tuning.events import Watcher
from mosesplug.tuning.graphs.decoder import ForestDecoder
from mosesplug.tuning.graphs.features import configured_features
from mosesplug.tuning.graphs.files import DecodedText, taken_in
from mosesplug.tuning.graphs.source import (
    GrowingGraphs,
    KeptGraphs,
    check_input,
    opened_store,
    store_at,
)

__all__ = ["Forest", "ForestRecipe", "open_forest"]


@dataclass(frozen=True)
class ForestRecipe:
    """How to make a decoder of search graphs, in any process that sees them.

    Attributes:
        store: that has the graphs.
        fixed: weights of features that are not tuned, by their names in the graphs.
        nbest: length of the lists.
        source: where the graphs are, for messages.
        threads: for the sentences of a batch.
        growing: whether the run itself adds graphs.
    """

    store: Path
    fixed: Mapping[str, float]
    nbest: int
    source: str
    threads: int
    growing: bool = False

    def make(
        self,
        prefix: str,
        note: Callable[[str], None],
        beat: Callable[[int], None] | None = None,
    ) -> ForestDecoder:
        """A decoder; it has no files to be told apart, nothing to say, and is done at once."""
        del prefix, note, beat
        graphs = GrowingGraphs(self.store) if self.growing else KeptGraphs(self.store)
        return ForestDecoder(
            graphs, self.fixed, self.nbest, source=self.source, threads=self.threads
        )

    def shared_among(self, users: int) -> ForestRecipe:
        """The same for several at once, who share the threads."""
        return replace(self, threads=max(1, self.threads // users))


@dataclass(frozen=True)
class Forest:
    """Search graphs of a text, open.

    Attributes:
        recipe: for more such decoders.
        decoder: that lists their translations.
        show: features and starting weights, in the order of its lists.
        version: where they are, and what tells them from others there.
    """

    recipe: ForestRecipe
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
    """Find the search graphs of a text.

    Args:
        place: the working directory of a run that stored them, its store, or files as decoders
            write them: a directory with one for each sentence, or one with all.
        cache: where such files are taken in.
        config: the ``moses.ini`` of the system that made them.
        text: that was decoded.
        nbest: length of the lists.
        threads: for sentences, or files.
        watch: told of progress.

    Raises:
        DataError: there are no graphs, or they have other features than the configuration.
        StoreMismatch: they are of another text.
        FormatError: a file cannot be read.
    """
    features = configured_features(config)
    store = store_at(place)
    if store is None:
        taken_in(place, cache, features, text, threads, watch)
        store = cache
    opened = opened_store(store)
    check_input(opened, place, text.path)
    space = opened.space
    if space is None:
        raise DataError(f"the search graphs in {place} have no features")
    show = features.announced(space.groups, place)
    recipe = ForestRecipe(store, features.fixed, nbest, str(place), threads)
    counts = [str(record.n_graphs) for record in opened.iterations()]
    version = f"{place}, {'+'.join(counts)} {opened.fingerprints.get('graphs', '')}".rstrip()
    return Forest(recipe, recipe.make("", lambda text: None), show, version)
