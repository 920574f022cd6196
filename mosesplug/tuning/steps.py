"""The pieces of an iteration: files before it, lists into the store, optimise, files after it.

Every piece is a function of the run's fixed context and of what it is given. Files are written
whole or not at all, and from nothing but what the store holds: a piece can be done twice.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.files import read_nbest_blocks
from formats.text import read_lines
from formats.weights.files import ShowWeights, weight_overwrite
from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Prepared
from mosesplug.optimizers import Algorithm, Problem, Progress, Solution, corpus_score
from mosesplug.settings.configuration import Configuration, HeldOut
from mosesplug.settings.sharding import Sharding
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.clock import Clock
from mosesplug.tuning.decoding.checks import checked_blocks
from mosesplug.tuning.decoding.decode import Lists, decode, decode_graphs, skipped
from mosesplug.tuning.events import Optimising, PhaseStarted, Watcher
from mosesplug.tuning.graphs.decoding import decode_forest
from mosesplug.tuning.graphs.learning import found_weights, starting_vector, with_graphs
from mosesplug.tuning.graphs.setup import Forest
from mosesplug.tuning.graphs.storing import store_graphs
from mosesplug.tuning.memory import give_back
from mosesplug.tuning.online.source import model_weights
from mosesplug.tuning.parallel.sharded import optimize_sharded
from mosesplug.tuning.start import columns
from mosesplug.tuning.weights import Weights, ranges
from mosesplug.tuning.workdir.files import (
    write_before,
    write_extractor_files,
    write_finished_step,
    write_init_opt,
    write_sparse_weights,
    write_weights,
)
from mosesplug.tuning.workdir.records import IterationResult, IterationStart, start_of
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "PREDICTABLE_SEED",
    "Context",
    "before_decoding",
    "decoded",
    "ingest",
    "optimised",
    "problem",
    "write_after",
]

PREDICTABLE_SEED = 1000
"""With --predictable-seeds, mert-moses.pl seeds iteration N with N times this."""

_FIRST_INTERPOLATED = 3
"""mert-moses.pl interpolates after this iteration."""


@dataclass(frozen=True)
class Context:
    """What stays the same during a run.

    Attributes:
        configuration: as given.
        workspace: where files lie.
        config: the ``moses.ini`` to decode with.
        show: the decoder's features and starting weights.
        start: the starting weights, sparse ones included.
        references: compiled for the metric.
        algorithm: the optimizer.
        options: its options.
        seed: of all random choices.
        watch: told of everything.
        forest: search graphs that are the decoder, or are at times; or None.
        fixed: weights of features that are not tuned, where search graphs are learnt from.
    """

    configuration: Configuration
    workspace: Workspace
    config: Path
    show: ShowWeights
    start: Weights
    references: Prepared
    algorithm: Algorithm
    options: object
    seed: int
    watch: Watcher
    forest: Forest | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, str]:
        """What the results depend on beside the files that the store has fingerprints of."""
        optimising, decoding = self.configuration.optimising, self.configuration.decoding
        return {
            "algorithm": f"{optimising.algorithm} {self.options}",
            "active features": str(optimising.active),
            "ranges": str(optimising.ranges),
            "earlier iterations": str(optimising.window),
            "historic bests": str(optimising.historic_bests),
            "interpolation": str(optimising.interpolation),
            "predictable seeds": str(optimising.predictable_seeds),
            "n-best size": str(decoding.nbest),
            "lattice samples": str(decoding.lattice_samples),
            "transformation": str(decoding.transform),
            "decoder flags": shlex.join(decoding.decoder.flags),
            "search graphs": str(None) if self.forest is None else self.forest.version,
            "forest": str(decoding.graphs),
            "online": str(self.configuration.online is not None),
            "shards": _spelled_sharding(optimising.sharding),
            "held-out text": _spelled(self.configuration.held_out),
        }

    def decodes(self, iteration: int) -> bool:
        """Whether the decoder itself decodes an iteration, rather than search graphs."""
        graphs = self.configuration.decoding.graphs
        return self.forest is None if graphs is None else (iteration - 1) % graphs.every == 0

    @property
    def learns_from_graphs(self) -> bool:
        """Whether the algorithm learns from search graphs, as far as there are any."""
        graphs = self.configuration.decoding.graphs
        return graphs is not None and self.algorithm.graphs is not None

    def vector(self, weights: Weights, space: FeatureSpace) -> NDArray[np.float64]:
        """Weights as an algorithm takes them, float64 ``[len(space)]``."""
        return starting_vector(weights, space, self.fixed)

    def generator(self, iteration: int) -> np.random.Generator:
        """The random numbers of one iteration, the same however often it is begun."""
        if self.configuration.optimising.predictable_seeds:
            return np.random.default_rng(PREDICTABLE_SEED * iteration)
        return np.random.default_rng([self.seed, iteration])


def _spelled_sharding(sharding: Sharding | None) -> str:
    """Where shards learn does not matter."""
    if sharding is None:
        return str(None)
    return str(replace(sharding, workers="threads", scheduler=None, directory=None))


def _spelled(held_out: HeldOut | None) -> str:
    """What the scores of held-out text depend on."""
    return (
        "none"
        if held_out is None
        else f"{held_out.input}, {held_out.references}, every {held_out.every}"
    )


def before_decoding(
    context: Context, iteration: int, weights: Weights, optimum: float | None
) -> None:
    """The files that say what an iteration is decoded with."""
    workspace = context.workspace
    write_before(
        context.configuration, workspace, context.config, context.show, iteration, weights, optimum
    )
    if iteration == 1 and weights.sparse:
        write_sparse_weights(workspace, 1, _decoded_with(context, iteration, weights))


def decoded(context: Context, iteration: int, weights: Weights, *, skip: bool) -> Lists:
    """Decode with ``weights``, or take the list that is there."""
    give_back()  # the decoder's models want all the room that there is
    configuration, workspace = context.configuration, context.workspace
    sparse = workspace.run(iteration, "sparse-weights")
    graphs = configuration.decoding.graphs is not None
    if skip:
        return skipped(workspace, iteration, graphs=graphs)
    if context.forest is not None and not context.decodes(iteration):
        context.watch(PhaseStarted(iteration, "decode"))
        return decode_forest(
            configuration,
            workspace,
            context.forest.decoder,
            read_lines(configuration.input),
            model_weights(context.show, _decoded_with(context, iteration, weights)),
            iteration,
            context.watch,
        )
    overwrite = None
    if iteration > 1 or not configuration.decoding.config_weights_first:
        point = _decoded_with(context, iteration, weights)
        # More decimals than mert-moses.pl's six: a small weight would lose most of its digits.
        overwrite = weight_overwrite(context.show.with_values(point.dense), decimals=12)
    context.watch(PhaseStarted(iteration, "decode"))
    return (decode_graphs if graphs else decode)(
        configuration,
        workspace,
        context.config,
        iteration,
        n_sentences=context.references.n_sentences,
        weights=overwrite,
        sparse_weights=sparse.name if sparse.is_file() else None,
        watch=context.watch,
    )


def _decoded_with(context: Context, iteration: int, weights: Weights) -> Weights:
    """The weights as the decoder gets them: normalised at first, as later ones are anyway."""
    if iteration > 1 or context.configuration.decoding.config_weights_first:
        return weights
    return weights.normalised()


def ingest(
    context: Context, store: NBestStore, iteration: int, weights: Weights, lists: Lists
) -> None:
    """Look the lists over, score them and commit them to the store.

    Raises:
        DecoderError: they are not what was asked for.
    """
    context.watch(PhaseStarted(iteration, "score"))
    start = IterationStart(weights, context.seed, context.settings, lists.command, lists.seconds)
    n_sentences = context.references.n_sentences
    groups = columns(context.show).groups
    if lists.graphs is not None:
        store_graphs(
            context.configuration,
            context.config,
            store,
            iteration,
            _decoded_with(context, iteration, weights),
            lists,
            groups=groups,
            n_sentences=n_sentences,
            watch=context.watch,
        )
    blocks = checked_blocks(
        read_nbest_blocks(lists.path),
        lists,
        groups=groups,
        n_sentences=n_sentences,
        watch=context.watch,
    )
    try:
        store.add_iteration(
            iteration,
            blocks,
            metric=context.configuration.metric,
            references=context.references,
            n_sentences=n_sentences,
            record=start.as_record(),
            threads=context.configuration.optimising.threads,
        )
    except FormatError as error:
        raise lists.failure(f"the decoder wrote a list that cannot be used: {error}") from error


def optimised(context: Context, store: NBestStore, current: IterationRecord) -> IterationResult:
    """New weights, from the lists of this iteration and of those before it.

    Raises:
        OptimizerError: no usable weights can come of them.
    """
    iteration, weights = current.iteration, start_of(current).weights
    context.watch(PhaseStarted(iteration, "optimise"))
    clock = Clock()
    give_back()
    given = problem(context, store, iteration)
    give_back()
    space = given.tuning_set.space
    minima, maxima = (box[: space.n_dense].tolist() for box in given.box)
    write_init_opt(context.workspace, iteration, weights, minima, maxima)
    if context.configuration.keep_extractor_files:
        _write_extractor_files(context, store, iteration)

    def progress(done: int, total: int, what: str) -> None:
        context.watch(Optimising(iteration, done, total, what))

    solution = _solution(context, given, context.vector(weights, space), iteration, progress)
    found = found_weights(space, solution.weights, context.fixed).completed(weights, space)
    if not np.isfinite(solution.weights).all() or not any(found.dense):
        raise OptimizerError(
            f"{context.algorithm.name} found no usable weights in iteration {iteration}; its lists"
            " are kept: try another algorithm with --continue"
        )
    share, score = context.configuration.optimising.interpolation, solution.score
    if share and iteration > _FIRST_INTERPOLATED:
        found = found.mixed(weights, share)
        score = corpus_score(given, context.vector(found, space))
    change = found.largest_change(_decoded_with(context, iteration, weights))
    return IterationResult(found, score, change, clock.seconds(), _plain_curve(solution.history))


def _solution(
    context: Context,
    given: Problem,
    initial: NDArray[np.float64],
    iteration: int,
    progress: Progress,
) -> Solution:
    """What the algorithm finds, alone or in shards."""
    algorithm, options = context.algorithm, context.options
    generator = context.generator(iteration)
    sharding = context.configuration.optimising.sharding
    if sharding is None:
        return algorithm.optimize(given, initial, generator, options, progress)
    return optimize_sharded(given, algorithm, options, sharding, initial, generator, progress)


def _plain_curve(history: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The optimizer's report of its steps, as far as it is numbers and text.

    A number that is not finite, which JSON cannot say, becomes None.
    """
    return tuple(
        {name: _plain(value) for name, value in step.items() if np.ndim(value) == 0}
        for step in history
    )


def _plain(value: Any) -> int | float | str | None:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else str(value)


def write_after(context: Context, iteration: int, result: IterationResult) -> None:
    """The files that follow from an iteration's result."""
    write_weights(context.workspace, iteration, result.weights)
    write_finished_step(context.workspace, iteration)


def problem(context: Context, store: NBestStore, iteration: int) -> Problem:
    """The merged lists, or search graphs, of an iteration and of those before it."""
    configuration = context.configuration
    optimising = configuration.optimising
    first = 1 if optimising.window < 0 else max(1, iteration - optimising.window)
    iterations = range(first, iteration + 1)
    has_graphs = any(record.n_graphs for record in store.iterations()[first - 1 : iteration])
    from_graphs = context.learns_from_graphs and has_graphs
    tuning_set = store.batch(
        () if from_graphs else np.arange(store.n_sentences),
        iterations,
        metric=configuration.metric,
        references=context.references,
        threads=optimising.threads,
    )
    space = tuning_set.space
    earlier = store.iterations()[first - 1 : iteration - 1] if optimising.historic_bests else ()
    minima, maxima = ranges(optimising.ranges, space.group_names)
    given = Problem(
        tuning_set,
        configuration.metric,
        _active(optimising.active, space),
        np.array([*minima, *np.zeros(space.n_sparse)]),
        np.array([*maxima, *np.ones(space.n_sparse)]),
        tuple(context.vector(start_of(record).weights, space) for record in earlier),
        optimising.threads,
    )
    if not from_graphs:
        return given
    return with_graphs(
        given,
        configuration,
        context.algorithm,
        store,
        iterations,
        context.references,
        context.fixed,
    )


def _write_extractor_files(context: Context, store: NBestStore, iteration: int) -> None:
    metric = context.configuration.metric
    lists = store.tuning_set(iteration, metric=metric, references=context.references)
    write_extractor_files(context.workspace, iteration, lists, metric.name)


def _active(names: tuple[str, ...] | None, space: FeatureSpace) -> NDArray[np.bool_] | None:
    """Which weights may change; None leaves it to the algorithm.

    Sparse features that no list has shown yet have no column.
    """
    if names is None:
        return None
    known = {*space.names, *space.group_names}
    return space.select([name for name in names if name in known])
