"""Open the merged lists in which oracles are found, and sort them by model score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.pipes import wrap_files
from formats.text import StrPath
from formats.weights.any_format import WeightFile
from mosesplug.errors import OptionName, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.data import read_data
from mosesplug.learning.lengths import find_recorded_length, make_length_scale
from mosesplug.learning.lists.merging import NO_REFERENCES, note_text_signs, store_lists
from mosesplug.learning.lists.outside import find_metric_of, make_named_metrics
from mosesplug.learning.made_features import apply_recorded
from mosesplug.learning.sparse_coverage import warn_of_sparse
from mosesplug.learning.weights import arrange_weights
from mosesplug.metrics import Metric
from mosesplug.metrics.protocol import needs_references
from mosesplug.optimizers import Progress
from mosesplug.optimizers.problem import no_progress
from mosesplug.results.views.importing import open_as_store
from mosesplug.results.views.run import choose_run, open_run
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lists import NO_SETTINGS, ListSettings, hint_at_tables
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet


@dataclass(frozen=True)
class OracleLists:
    """Merged lists, with a metric to find oracles by.

    Attributes:
        store: the open store, which holds the texts.
        metric: the metric of their statistics.
        scores: model scores, float64 ``[n_hyps]``; None to keep the order of the lists.
        ids: the sentence ids that are texts, by their numbers; empty if they are integers.
        warnings: what to check about the texts and the references.
    """

    store: NBestStore
    lists: TuningSet
    metric: Metric
    signature: str
    scores: NDArray[np.float64] | None
    ids: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def name_sentence(self, sentence: int) -> str:
        """Return the id of a sentence as the lists have it."""
        number = int(self.lists.sentence_ids[sentence])
        return self.ids[number] if self.ids else str(number)

    def read_texts(self, ranked: RankedLists, oracle: ListOracle) -> list[bytes]:
        """Return the oracle of each sentence, empty for a sentence without hypotheses."""
        texts = [b""] * self.lists.n_sentences
        for sentence, row in ranked.pair_rows(oracle):
            place = int(ranked.rows[row]) - int(self.lists.offsets[sentence])
            texts[sentence] = self.store.hypotheses(sentence)[place]
        return texts


@contextmanager
def open_oracle_lists(
    places: Sequence[StrPath],
    references: Path | None = None,
    *,
    metric: str | None = None,
    metric_settings: str = "",
    settings: ListSettings = NO_SETTINGS,
    weights: WeightFile | None = None,
    threads: int = 1,
    progress: Progress = no_progress,
) -> Iterator[OracleLists]:
    """Open the merged lists of a run, or of n-best files.

    Args:
        places: a working directory or store, or n-best lists of one text.
        references: the references, a file or a prefix; None for the statistics of a store, or for
            scores from outside.
        metric: the metric's name; None for the first of the scores, else that of the run, or BLEU.
        weights: weights of the model scores; None for the result of a run, and for files no
            ranking.
        progress: is called with the work done.

    Raises:
        UsageError: references are missing, or a store is given with settings of lists.
        FormatError, StoreError, DataError: a file or store cannot be read.
    """
    if name := metric or next(iter(settings.score_names), None):
        settings.score_commands.check_use("metric", [name])
    if len(places) == 1 and Path(places[0]).is_dir():
        if (option := replace(settings, scores=(), ids=None).first_given) is not None:
            raise UsageError(
                f"{OptionName(option)} requires n-best lists: a store has its own features"
                f"{hint_at_tables(settings)}"
            )
        with open_as_store(choose_run(Path(places[0])), references, threads=threads) as place:
            learning = LearningSettings(
                store=place,
                metric=metric,
                metric_settings=metric_settings,
                references=references,
                lists=settings,
                threads=threads,
            )
            data = read_data(learning, progress)
            lists = data.problem.tuning_set
            with open_run(place, with_lists=True) as run:
                if weights is not None:
                    model_scores = _score_lists(lists, weights, str(run.path))
                else:
                    model_scores = lists.model_scores(run.vector)
                measure, signature = data.problem.metric, data.signature
                ids = run.store.sentence_ids
                yield OracleLists(
                    run.store, lists, measure, signature, model_scores, ids, warnings=data.notes
                )
        return
    measure = find_metric_of(metric, metric_settings, make_named_metrics(settings))
    if references is None and needs_references(measure):
        raise UsageError("there are no references: give {--refs} FILE")
    files = wrap_files(places)
    if weights is not None:
        settings = apply_recorded(weights, settings)
    with store_lists(
        files,
        NO_REFERENCES if references is None else references,
        measure,
        settings,
        threads=threads,
        loaded=lambda done: progress(done, len(places), "lists"),
    ) as stored:
        lists = stored.store.tuning_set()
        ranking = None
        if weights is not None:
            ranking = _score_lists(lists, weights, ", ".join(map(str, places)))
        signature = stored.prepared_references.signature
        notes = note_text_signs(stored.store, stored.references, signature)
        yield OracleLists(stored.store, lists, measure, signature, ranking, stored.ids, notes)


def _score_lists(lists: TuningSet, file: WeightFile, source: str) -> NDArray[np.float64]:
    """Return model scores by a weight file, divided by lengths if it records that."""
    vector = arrange_weights(file, lists.space, source).weights
    warn_of_sparse(file, lists.space.sparse, source)
    lengths = find_recorded_length(file)
    if lengths is None or lengths.low == 0.0:
        return lists.model_scores(vector)
    scale = make_length_scale(lengths, lists.space)
    return scale.divide_lists(lists, lengths.low).model_scores(vector)


@dataclass(frozen=True)
class RankedLists:
    """Lists sorted by model score, as far as oracles need them.

    Attributes:
        lists: identities, offsets and statistics, without features.
        rows: int64 ``[n_hyps]``, the row of each hypothesis in the unsorted lists.
    """

    lists: TuningSet
    rows: NDArray[np.int64]

    def pair_rows(self, oracle: ListOracle) -> Iterator[tuple[int, int]]:
        """Return the position of each sentence that has hypotheses, with its oracle's row."""
        filled = np.flatnonzero(np.diff(self.lists.offsets) > 0)
        return zip(filled.tolist(), oracle.rows.tolist(), strict=True)

    def truncate(self, count: int | None) -> RankedLists:
        """Keep the first hypotheses of each list; None keeps all."""
        if count is None:
            return self
        places = np.arange(len(self.rows)) - np.repeat(
            self.lists.offsets[:-1], np.diff(self.lists.offsets)
        )
        kept = np.flatnonzero(places < count)
        return RankedLists(self.lists.take_hypotheses(kept), self.rows[kept])

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each list that is not empty, int64."""
        return self.lists.offsets[:-1][np.diff(self.lists.offsets) > 0]


def rank_lists(tuning_set: TuningSet, scores: NDArray[np.float64] | None) -> RankedLists:
    """Sort each list by model score, the highest first; ties keep their order.

    Args:
        scores: float64 ``[n_hyps]``; None keeps the order.
    """
    rows = np.arange(tuning_set.n_hyps)
    if scores is not None:
        owners = np.repeat(np.arange(tuning_set.n_sentences), np.diff(tuning_set.offsets))
        rows = np.lexsort((rows, -scores, owners))
    lists = TuningSet(
        space=FeatureSpace(()),
        sentence_ids=tuning_set.sentence_ids,
        offsets=tuning_set.offsets,
        dense=np.zeros((len(rows), 0), dtype=np.float32),
        sparse=None,
        stats=tuning_set.stats[rows],
        lengths=tuning_set.lengths[rows],
    )
    return RankedLists(lists, rows)


@dataclass(frozen=True)
class ListOracle:
    """The oracle hypothesis of each sentence.

    Attributes:
        rows: int64, the oracle's row of each sentence that has hypotheses.
        equals: int64, number of hypotheses of the sentence that the method finds equally good.
        scores: the corpus score of each restart; one for methods without restarts.
    """

    rows: NDArray[np.int64]
    equals: NDArray[np.int64]
    score: float
    scores: tuple[float, ...]
