"""The data, files and settings that the steps of a run share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.weights.files import ShowWeights
from mosesplug.decoders.protocol import Decoder
from mosesplug.events import Watcher
from mosesplug.features import FeatureSpace
from mosesplug.metrics import PreparedReferences
from mosesplug.optimizers import Algorithm, Optimizer
from mosesplug.options import list_compared_values
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import HeldOutSet
from mosesplug.settings.sentences.source import read_source_lengths
from mosesplug.settings.sentences.weights import SentenceWeights
from mosesplug.settings.sharding import Sharding
from mosesplug.store import IterationRecord, NBestStore
from mosesplug.tuning.domains import DomainLearning
from mosesplug.tuning.heldout import HeldOutScorer
from mosesplug.tuning.reporting import Reporter
from mosesplug.tuning.scoring_ahead import AheadScorer
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import NOT_KEPT, read_result
from mosesplug.tuning.workdir.workspace import Workspace

PREDICTABLE_SEED = 1000
"""With --predictable-seeds, mert-moses.pl seeds iteration N with N times this."""


@dataclass(frozen=True)
class RunData:
    """What a run tunes and scores; nothing of it changes during the run.

    Attributes:
        show: the decoder's features and their weights.
        start: the starting weights, dense and sparse.
        seed: the seed of all random choices.
        fixed_weights: weights of features that are not tuned, if the run learns from search graphs.
        domains: learns weights of domains; None without.
        sentence_weights: the weight of each source sentence; None: 1 each.
    """

    configuration: Configuration
    show: ShowWeights
    start: Weights
    references: PreparedReferences
    seed: int
    fixed_weights: Mapping[str, float] = field(default_factory=dict)
    domains: DomainLearning | None = None
    sentence_weights: SentenceWeights | None = None

    @cached_property
    def space(self) -> FeatureSpace:
        """The dense columns of the n-best lists."""
        return FeatureSpace.of_names(self.show.names)

    @property
    def learned_sentences(self) -> NDArray[np.int64]:
        """The sentences of weight above 0, int64, ascending."""
        if self.sentence_weights is None:
            return np.arange(self.references.n_sentences)
        return self.sentence_weights.positive

    def vector(self, weights: Weights, space: FeatureSpace) -> NDArray[np.float64]:
        """Return weights as an optimizer takes them, float64 ``[len(space)]``."""
        return weights.vector(space, self.fixed_weights)

    def decoded_weights(self, iteration: int, weights: Weights) -> Weights:
        """Return weights as the decoder gets them; starting weights are normalized."""
        if iteration > 1 or self.configuration.decoding.config_weights_first:
            return weights
        return weights.normalize()

    def generator(self, iteration: int) -> np.random.Generator:
        """Return the random numbers of an iteration, the same however often it is begun."""
        if self.configuration.optimization.predictable_seeds:
            return np.random.default_rng(PREDICTABLE_SEED * iteration)
        return np.random.default_rng([self.seed, iteration])


@dataclass(frozen=True, kw_only=True)
class Context(RunData):
    """A run: its data, files, events, decoder, optimizer and held-out sets.

    Attributes:
        workspace: paths in the working directory.
        config: the ``moses.ini`` to decode with.
        store: the run's own store, open for writing.
        decoder: turns the input into hypotheses.
        optimizer: turns hypotheses into weights.
        held_out: scores weights on the held-out set and the monitors; None without any.
        ahead: asks the commands of the metric while the decoder decodes; None: nothing does.
        reporter: scores the tuning set by metrics that are reported only.
    """

    workspace: Workspace
    config: Path
    store: NBestStore
    watch: Watcher
    decoder: Decoder
    optimizer: Optimizer
    held_out: HeldOutScorer | None = None
    ahead: AheadScorer | None = None
    reporter: Reporter = field(default_factory=Reporter)

    @cached_property
    def source_lengths(self) -> NDArray[np.int64] | None:
        """The words of each source sentence, int64; None if they are not needed."""
        source = self.configuration.source_text
        if source is None or not self.optimizer.needs_source:
            return None
        return read_source_lengths(source)

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that determine the results, besides the files with fingerprints."""
        configuration = self.configuration
        optimization, decoding = configuration.optimization, configuration.decoding
        return {
            "algorithm": f"{optimization.algorithm} {self.optimizer.options}",
            **list_compared_values(optimization),
            **list_compared_values(decoding),
            "decoder flags": shlex.join(decoding.decoder.flags),
            "search graphs": str(self.decoder.version),
            "forest": str(decoding.graphs),
            "online": str(configuration.online is not None),
            "shards": _sharding_text(optimization.sharding),
            "held-out text": _held_out_text(configuration.held_out),
            **list_compared_values(configuration),
            **({} if self.domains is None else {"domains": self.domains.text}),
            **(
                {}
                if self.sentence_weights is None
                else {"sentence weights": self.sentence_weights.text}
            ),
            **(
                {}
                if configuration.score_budget is None
                else {"score budget": str(configuration.score_budget)}
            ),
            **({} if configuration.keeps_lists else NOT_KEPT),
        }

    def makes_graphs(self, iteration: int) -> bool:
        """Return whether the decoder makes new search graphs in an iteration.

        They are due every ``--redecode-every`` iterations, and after an iteration that changed no
        weight: on the same graphs, the next one would change none either. Online, they are due
        before epochs 1, N+1, ... only.
        """
        configuration, graphs = self.configuration, self.configuration.decoding.graphs
        if graphs is None:
            return False
        if configuration.online is not None:
            return (iteration - 1) % graphs.every == 0
        earlier = self.store.iterations()[: iteration - 1]
        made = [record.iteration for record in earlier if record.n_graphs]
        if not made or iteration - made[-1] >= graphs.every:
            return True
        if earlier[-1].result is None:
            return False
        return read_result(earlier[-1]).largest_change < configuration.minimum_change

    def is_decoded(self, record: IterationRecord) -> bool:
        """Return whether the decoder made the lists of an iteration, or its search graphs.

        Else they were taken from search graphs of earlier iterations. Online, it is always True.
        """
        configuration = self.configuration
        takes_from_graphs = (
            configuration.decoding.graphs is not None and configuration.online is None
        )
        return not takes_from_graphs or record.n_graphs > 0

    @property
    def learns_from_graphs(self) -> bool:
        """Whether the algorithm learns from the search graphs of the decoder."""
        return learns_from_graphs(self.configuration, self.optimizer.algorithm)


def learns_from_graphs(configuration: Configuration, algorithm: Algorithm) -> bool:
    """Return whether a run learns from search graphs, rather than from lists.

    Lists may be taken from search graphs.

    Mini-batches of a decoder and shards are lists.
    """
    if configuration.decoding.graphs is None or configuration.online is not None:
        return False
    if configuration.optimization.sharding is not None:
        return False
    return algorithm.can_learn_from_graphs(configuration.metric)


def _sharding_text(sharding: Sharding | None) -> str:
    """Return where shards learn does not change the result."""
    if sharding is None:
        return str(None)
    return str(replace(sharding, workers="threads", scheduler=None, directory=None))


def _held_out_text(held_out: HeldOutSet | None) -> str:
    if held_out is None:
        return "none"
    return f"{held_out.input}, {held_out.references}, every {held_out.every}"
