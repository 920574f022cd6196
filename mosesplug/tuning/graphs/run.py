"""A run with search graphs for a decoder: what it is refused, and how its graphs are found."""

from __future__ import annotations

from formats.text import read_lines, write_atomic
from formats.weights.files import ShowWeights, format_show_weights
from mosesplug.errors import UsageError
from mosesplug.metrics import Prepared
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.events import PhaseStarted, Watcher
from mosesplug.tuning.graphs.features import configured_features
from mosesplug.tuning.graphs.files import DecodedText
from mosesplug.tuning.graphs.setup import Forest, ForestRecipe, open_forest
from mosesplug.tuning.graphs.source import share_store
from mosesplug.tuning.workdir import caches
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["check_forest", "forest_of", "own_forest"]

_CACHE = "forest.lmdb"
"""In the working directory, the store of graphs that came as files."""


def check_forest(configuration: Configuration) -> None:
    """Refuse settings that search graphs have no use for.

    Raises:
        UsageError: there is one; or the graphs are those of the run itself.
    """
    decoding, held_out = configuration.decoding, configuration.held_out
    workspace = Workspace(configuration.working_directory, decoding.nbest)
    own = {path.resolve() for path in (workspace.directory, workspace.store, workspace.graphs)}
    for place in (decoding.forest, None if held_out is None else held_out.forest):
        if place is not None and place.resolve() in own:
            raise UsageError(
                f"the search graphs of {place} are those of the run in the working directory"
                " itself, which would replace them: name another --working-dir"
            )
    if decoding.forest is None:
        return
    refused = {
        "decoder flags": bool(decoding.decoder.flags),
        "an input type": decoding.decoder.input_type is not None,
        "parallel jobs": decoding.decoder.queue is not None,
        "several decoders": decoding.decoder.several is not None,
        "simulated post-editing": decoding.decoder.post_editing is not None,
        "lattice samples": decoding.lattice_samples > 0,
        "filtering the model": decoding.filtering is not None,
        "copying the model": decoding.cache is not None,
    }
    found = [what for what, given in refused.items() if given]
    if found:
        raise UsageError(
            f"search graphs are no program: they do not go together with {', '.join(found)}"
        )
    if held_out is not None and held_out.decoder is None and held_out.forest is None:
        raise UsageError(
            f"the search graphs of {decoding.forest} are of the tuning set, not of the held-out"
            " text: name a decoder of that by --heldout-decoder, or leave out --heldout"
        )


def forest_of(
    configuration: Configuration, workspace: Workspace, references: Prepared, watch: Watcher
) -> Forest | None:
    """The search graphs that are the decoder, or None; their features are in ``features.list``.

    Raises:
        DataError: there are none, or they have other features than the configuration.
        StoreMismatch: they are of another text.
        FormatError: a file cannot be read.
    """
    decoding = configuration.decoding
    if decoding.forest is None:
        return None
    watch(PhaseStarted(0, "features"))
    text = DecodedText(
        configuration.input, read_lines(configuration.input), configuration.metric, references
    )
    forest = open_forest(
        decoding.forest,
        workspace.directory / _CACHE,
        configuration.config,
        text,
        nbest=decoding.nbest,
        threads=configuration.optimising.threads,
        watch=watch,
    )
    caches.forget(workspace.features_list)
    write_atomic(workspace.features_list, format_show_weights(forest.show))
    return forest


def own_forest(
    configuration: Configuration, workspace: Workspace, store: NBestStore, show: ShowWeights
) -> Forest | None:
    """The search graphs that the run itself stores, where they make lists; or None.

    Args:
        configuration: of the run.
        workspace: its files.
        store: its store, open to be written.
        show: features and starting weights.
    """
    graphs = configuration.decoding.graphs
    if graphs is None or (graphs.every == 1 and configuration.online is None):
        return None
    share_store(store, workspace.store)
    recipe = ForestRecipe(
        workspace.store,
        configured_features(configuration.config).fixed,
        configuration.decoding.nbest,
        str(workspace.store),
        configuration.optimising.threads,
        growing=True,
    )
    return Forest(recipe, recipe.make("", lambda text: None), show, "the run's own")
