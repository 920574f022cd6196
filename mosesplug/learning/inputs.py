"""Data to learn from: hypotheses, starting weights, and data of a caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.errors import OptionName, UsageError, count_noun, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.learning.bounds import describe_moves, make_bounds
from mosesplug.learning.deferred_scoring import DeferredScoring
from mosesplug.learning.domains import LearningDomains
from mosesplug.learning.lengths import LengthScale, make_length_scale
from mosesplug.learning.watched import WatchedMetric
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import Metric
from mosesplug.optimizers import Problem
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.settings.features import DerivedFeature
from mosesplug.settings.intervals import Bound, StartRange
from mosesplug.settings.lengths import LengthRange
from mosesplug.settings.sentences.domains import Domains
from mosesplug.tuning.weights import arrange_ranges
from mosesplug.tuning_set import TuningSet

ALL_FEATURES = FeatureSelection()


@dataclass(frozen=True)
class LearningData:
    """Hypotheses or search graphs to learn from, with starting weights.

    Attributes:
        problem: all sentences; every dense feature is active unless features were selected.
        description: the size of the data, for people.
        signature: the metric with its settings and the number of references.
        sentences: int64, positions of the sentences that have hypotheses and a weight above 0,
            ascending.
        restrict: returns a problem that has only the sentences at some positions.
        notes: what a user should know about the data.
        lengths: how model scores depend on the length; None: they do not.
        watched_metrics: metrics that are reported and not optimized, on the rows of the problem's
            lists.
        domains: the features with copies for each domain; None without weights of domains.
        derived: the definitions of derived features, with the bounds of their bins.
        deferred: computes the statistics of commands, which are 0 in the lists; None if the lists
            have them.
    """

    problem: Problem
    start: StartingWeights
    description: str
    signature: str
    sentences: NDArray[np.int64]
    restrict: Callable[[Problem, NDArray[np.int64]], Problem]
    notes: tuple[str, ...] = ()
    lengths: LengthScale | None = None
    watched_metrics: tuple[WatchedMetric, ...] = ()
    domains: LearningDomains | None = None
    derived: tuple[DerivedFeature, ...] = ()
    deferred: DeferredScoring | None = None

    @property
    def start_exponent(self) -> float | None:
        """The length exponent of the starting weights; None without any."""
        return None if self.lengths is None else self.lengths.start

    def rescore(self, problem: Problem, exponent: float | None) -> Problem:
        """Return a problem of this space with features divided for a length exponent."""
        return problem if self.lengths is None else self.lengths.divide(problem, exponent)

    @property
    def space(self) -> FeatureSpace:
        """The features."""
        return self.problem.tuning_set.space

    def take_sentences(self, positions: NDArray[np.int64]) -> Problem:
        """Return the problem of the sentences at some positions."""
        return self.restrict(self.problem, positions)

    def hold_out(self, positions: NDArray[np.int64]) -> Problem:
        """Return the problem of sentences to score, which count alike."""
        lists = self.problem.tuning_set.weigh(None)
        return self.restrict(replace(self.problem, tuning_set=lists), positions)

    def note_missing(self, n_sentences: int, what: str, source: str) -> LearningData:
        """Return the data with a note if some of all sentences cannot be learned from."""
        if not (missing := n_sentences - len(self.sentences)):
            return self
        note = (
            f"{missing} of {n_sentences} sentences have no {what}; they do not count. Check that "
            f"the {source} are complete and belong to these references"
        )
        return replace(self, notes=(*self.notes, note))

    def select_features(
        self,
        selection: FeatureSelection = ALL_FEATURES,
        ranges: Sequence[StartRange] = (),
        bounds: Sequence[Bound] = (),
        lengths: LengthRange | None = None,
        *,
        tunes_sparse: bool = True,
    ) -> LearningData:
        """Return the data with some features active, and limits of starts and weights.

        Starting weights are moved into the bounds.

        Args:
            selection: the features to tune.
            ranges: intervals of random starts; none: the box of the starting weights.
            bounds: limits of weights.
            lengths: exponents of the length that scores are divided by; None: they are not.
            tunes_sparse: whether the algorithm tunes sparse features unless told otherwise.
        """
        space = self.space
        for option, name in selection.find_unmatched(space):
            known = [*space.group_names, *space.sparse]
            raise UsageError(f"{OptionName(option)}: {explain_unknown_feature(name, known)}")
        mask = selection.select(self.problem.tuning_set, tunes_sparse=tunes_sparse)
        minima, maxima = self.start.minima, self.start.maxima
        if ranges:
            low, high = arrange_ranges(ranges, space.group_names)
            minima = np.concatenate([low, np.zeros(space.n_sparse)])
            maxima = np.concatenate([high, np.ones(space.n_sparse)])
        limits, start, notes = make_bounds(bounds, space, mask), self.start, self.notes
        if limits is not None:
            notes = (*notes, *describe_moves(limits, start.weights, space.labels))
            start = replace(start, weights=limits.project(start.weights))
        problem = replace(self.problem, active=mask, minima=minima, maxima=maxima, bounds=limits)
        scale = None if lengths is None else make_length_scale(lengths, space)
        if scale is not None:
            scale.lengths(problem.tuning_set)  # fail before the search
        return replace(self, problem=problem, start=start, notes=notes, lengths=scale)


@dataclass(frozen=True)
class GivenData:
    """Data that a caller has in memory. Each part outweighs what settings name.

    Attributes:
        lists: n-best lists to merge: lists that have been read, or files.
        learning_data: lists with their statistics, and their starting weights; nothing else is read
            then.
        references: their lines, ``[reference][line]``.
        has_bare_references: whether these have the order of the sentences, and no ids.
        start: returns the starting weights of the features; of search graphs, ``graph_start``.
        graph_start: starting weights of search graphs.
        graph_names: names of features that search graphs must have.
        names, dense: as for ``load_lists``.
        heldout_lists, heldout_references, has_bare_heldout: held-out lists, the lines of their
            references, and as ``has_bare_references``.
        domains: the domain of each source sentence.
        source: int64, words of each source sentence.
    """

    lists: tuple[StrPath | NBestList, ...] = ()
    learning_data: LearningData | None = None
    references: Sequence[Sequence[bytes]] | None = None
    has_bare_references: bool = False
    metric: Metric | None = None
    start: Callable[[FeatureSpace], StartingWeights] | None = None
    graph_start: WeightFile | None = None
    graph_names: tuple[str, ...] = ()
    names: Sequence[str] | None = None
    dense: Sequence[str] | None = None
    heldout_lists: tuple[StrPath | NBestList, ...] = ()
    heldout_references: Sequence[Sequence[bytes]] | None = None
    has_bare_heldout: bool = False
    domains: Domains | None = None
    source: NDArray[np.int64] | None = None


NOTHING_GIVEN = GivenData()


def make_list_data(
    lists: TuningSet,
    metric: Metric,
    start: StartingWeights,
    signature: str,
    hypotheses: int,
    threads: int,
    watched: tuple[WatchedMetric, ...] = (),
    notes: tuple[str, ...] = (),
) -> LearningData:
    """Return merged lists to learn from.

    Args:
        signature: the metric with its settings and the number of references.
        hypotheses: number of hypotheses before duplicates were removed.
        watched: metrics that are reported and not optimized.
    """
    sentences = np.flatnonzero(np.diff(lists.offsets)).astype(np.int64)
    return LearningData(
        Problem(lists, metric, minima=start.minima, maxima=start.maxima, threads=threads),
        start,
        f"{count_sentences(len(sentences), lists.n_sentences)}, "
        f"{count_noun(lists.n_hyps, 'distinct hypothesis')} of {hypotheses}, "
        f"{count_noun(len(lists.space), 'feature')}",
        signature,
        sentences,
        restrict_lists,
        notes,
        watched_metrics=watched,
    )


def restrict_lists(problem: Problem, positions: NDArray[np.int64]) -> Problem:
    """Return the problem of the lists at some positions."""
    return replace(problem, tuning_set=problem.tuning_set.take_sentences(positions))


def count_sentences(some: int, every: int) -> str:
    """Return how many of the sentences there are, in words."""
    return f"{some} of {every} sentences" if some < every else count_noun(some, "sentence")
