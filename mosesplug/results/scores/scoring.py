"""Score translations, or one hypothesis of each n-best list, by several metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError
from mosesplug.escapes import escape_controls
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists.blocks import read_list
from mosesplug.learning.lists.transforming import pair_transformed
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics.error_rates import display_score
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.outside import OutsideMetric, compute_statistics
from mosesplug.metrics.protocol import needs_references, needs_texts, score_sentences
from mosesplug.metrics.registry import metric_of_text
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.results.render.record import Score, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable, format_score
from mosesplug.results.scores.alignments import EditCounts, count_edits, list_edits
from mosesplug.results.scores.scores import Translation, read_translation
from mosesplug.results.scores.significance import bootstrap_interval
from mosesplug.settings.lists import NO_SETTINGS, ListSettings
from mosesplug.tuning.text_signs.comparison import find_text_signs
from mosesplug.tuning.text_signs.view import views_of_signatures
from mosesplug.tuning.warning_signs import WarningSign
from mosesplug.tuning_set import TuningSet

DEFAULT_METRICS = ("BLEU", "TER-SACREBLEU", "CHRF beta:2")

Selection = int | Literal["oracle"]
"""Which hypothesis of an n-best list: a rank from 1, or the greedy corpus oracle."""


@dataclass(frozen=True)
class PreparedMetric:
    """A metric with its references."""

    metric: Metric
    references: PreparedReferences

    @property
    def n_sentences(self) -> int | None:
        """Number of sentences of the references; None without references."""
        return self.references.n_sentences if self.references.n_references else None

    def statistics(
        self,
        hypotheses: HypothesisRanges,
        threads: int | None = None,
        outside: NDArray[np.float64] | None = None,
    ) -> NDArray[Any]:
        """Return the statistics of each hypothesis, ``[n, n_statistics]``.

        Args:
            threads: number of threads; None: all.
            outside: float64 ``[n, k]``, their scores from outside; or None.
        """
        return compute_statistics(
            self.metric,
            self.references,
            *hypotheses,
            outside,
            threads=threads or usable_cores(),
        )


@dataclass(frozen=True)
class MetricScore:
    """Scores of one translation by one metric; error rates are given as rates.

    Attributes:
        interval: the 95 % bootstrap interval; None if it was not computed.
        sentences: sentence scores, BLEU+1 (Lin & Och 2004) for BLEU.
        edits: substitutions, deletions and insertions, for error rates of an alignment.
        ids: the ids of the sentences where n-best lists have texts as ids; else empty.
    """

    JSON_KEYS: ClassVar = "metric score interval? signature edits? sentences? ids?"

    metric: Text
    score: Score
    interval: Annotated[tuple[float, float] | None, Shown(".4f", "95 % interval")]
    signature: Text
    sentences: tuple[float, ...]
    ids: tuple[str, ...] = ()
    edits: EditCounts | None = None


@dataclass(frozen=True)
class ScoreReport:
    """Scores of one translation, at least one.

    Attributes:
        with_sentences: whether to show the scores of sentences.
    """

    scores: tuple[MetricScore, ...]
    with_sentences: bool

    @property
    def document(self) -> list[MetricScore]:
        """The scores, without those of sentences if these are not wanted."""
        if self.with_sentences:
            return [*self.scores]
        return [replace(score, sentences=(), ids=()) for score in self.scores]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the scores of sentences, those of the corpus, and edits."""
        first = self.scores[0]
        if self.with_sentences:
            ids = first.ids or [str(number) for number in range(len(first.sentences))]
            columns = (map(format_score, score.sentences) for score in self.scores)
            rows: list[tuple[str, ...]] = [("sentence", *(score.metric for score in self.scores))]
            rows += zip(ids, *columns, strict=True)
            if medium.is_text:  # scripts read it
                yield from ("\t".join(map(escape_controls, row)) for row in rows)
                yield ""
            else:
                yield TextTable(rows, left=1)
        yield tabulate(MetricScore, self.scores)
        edits = [((score.metric,), score.edits) for score in self.scores]
        yield from list_edits(("metric",), edits, medium, first.ids)


def prepare_metrics(
    specifications: Sequence[str | Metric],
    references: Sequence[Sequence[bytes]],
    outside: Sequence[OutsideMetric] = (),
) -> list[PreparedMetric]:
    """Return metrics, or those of specifications such as ``BLEU`` or ``CHRF beta:2``.

    Args:
        references: ``[reference][line]``; none for metrics of scores from outside.
        outside: metrics of scores from outside, which specifications may name.

    Raises:
        UsageError: a metric or setting is unknown, or a metric needs references.
        DataError: a metric cannot use these references.
    """
    prepared = []
    for specification in specifications:
        if not isinstance(specification, str):
            prepared.append(PreparedMetric(specification, specification.prepare(references)))
            continue
        bound = metric_of_text(specification, outside)
        if needs_references(bound) and not references:
            raise UsageError(f"{bound.name} compares texts with references: give references")
        prepared.append(PreparedMetric(bound, bound.prepare(references)))
    return prepared


def score_translation(
    path: Translation | NBestList,
    metrics: Sequence[PreparedMetric],
    *,
    selection: Selection | None = None,
    settings: ListSettings = NO_SETTINGS,
    ids: Sequence[str] = (),
    outside: NDArray[np.float64] | None = None,
    references: Sequence[Sequence[bytes]] = (),
    errors: int | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> tuple[tuple[MetricScore, ...], tuple[str, ...]]:
    """Score a translation by each metric; return warnings about its text, too.

    Args:
        path: a translation or its file; with ``selection``, an n-best list or its file.
        selection: which hypothesis of each list to score.
        ids: the ids of the sentences of lists that have been read, if they are texts.
        outside: float64 ``[n_sentences, k]``, scores from outside of a translation.
        references: ``[reference][line]``, which texts are compared with for warnings.
        errors: number of aligned sentences to return, with counts of edits; None: no alignment.
        samples: bootstrap samples for the interval; 0 for no interval.

    Raises:
        FormatError: the file cannot be read, or does not fit the references.
    """
    texts: HypothesisRanges | None = None
    block: NBestList | None = None
    known_ids = SentenceIds(ids)
    if selection is not None or isinstance(path, NBestList):
        if not isinstance(path, NBestList | str | PathLike):
            raise UsageError("a rank or the oracle requires n-best lists, not a translation")
        block = _read_lists(path, settings, known_ids)
    scores: list[MetricScore] = []
    for prepared in metrics:
        if block is not None:
            statistics = _select_hypotheses(block, prepared, selection or 1)
        elif not isinstance(path, NBestList) and (needs_texts(prepared.metric) or outside is None):
            texts = texts or read_translation(path, prepared.n_sentences)
            statistics = prepared.statistics(texts, outside=outside)
        else:
            assert outside is not None
            empty = HypothesisRanges.of_lines([b""] * len(outside), np.arange(len(outside)))
            statistics = prepared.statistics(empty, outside=outside)
        signature, interval = prepared.references.signature, None
        if samples:
            rng = np.random.default_rng(seed)
            low, high, _ = bootstrap_interval(prepared.metric, statistics, samples, rng)
            low, high = sorted([display_score(signature, low), display_score(signature, high)])
            interval = low, high
        scores.append(
            MetricScore(
                metric=prepared.metric.name,
                score=display_score(
                    signature, float(prepared.metric.score(statistics.sum(axis=0)))
                ),
                interval=interval,
                signature=signature,
                sentences=tuple(
                    display_score(signature, score)
                    for score in score_sentences(prepared.metric, statistics).tolist()
                ),
                ids=known_ids.names,
            )
        )
    if errors is not None and texts is not None:
        scores = [
            replace(score, edits=count_edits(prepared.metric, references, texts.lines(), errors))
            for score, prepared in zip(scores, metrics, strict=True)
        ]
    views = views_of_signatures(score.signature for score in scores)
    signs: list[WarningSign] = []
    if block is not None and block.has_texts and views:
        lines = HypothesisRanges(*block.ranges).first_of_lists().lines()
        signs = find_text_signs(references, lines, views, rewriting="lists")
    elif texts is not None:
        signs = find_text_signs(references, texts.lines(), views)
    return tuple(scores), tuple(sign.message for sign in signs)


def _read_lists(
    path: str | PathLike[str] | NBestList, settings: ListSettings, ids: SentenceIds
) -> NBestList:
    """Return lists with the texts that are scored."""
    if isinstance(path, NBestList):
        [(_, block)] = pair_transformed(iter([path]), settings.transform)
        return block
    return read_list(path, settings, ids=ids)


def _select_hypotheses(
    block: NBestList, metric: PreparedMetric, selection: Selection
) -> NDArray[np.int32]:
    """Return the statistics of one hypothesis of each sentence in an n-best list.

    Args:
        selection: a rank from 1 (the last hypothesis of a shorter list), or ``oracle`` for the
            hypotheses that a greedy search finds best for the corpus.

    Raises:
        FormatError: a sentence is missing.
    """
    if needs_texts(metric.metric) and not block.has_texts:
        raise UsageError(f"{block.path} has no texts to score")
    n_sentences = metric.references.n_sentences
    if not metric.references.n_references:
        n_sentences = int(block.sentence_ids[-1]) + 1
    block.require_references(n_sentences)
    sentences = np.arange(n_sentences)
    offsets = np.searchsorted(block.sentence_ids, np.append(sentences, len(sentences)))
    widths = np.diff(offsets)
    if not widths.all():
        raise FormatError(
            f"sentence {int(np.argmin(widths))} has no hypothesis",
            path=block.path,
            remedy="Give the n-best list of the whole text that the references translate",
        )
    statistics = metric.statistics(HypothesisRanges(*block.ranges), outside=block.outside)
    if selection == "oracle":
        lists = TuningSet(
            space=FeatureSpace(()),
            sentence_ids=sentences,
            offsets=offsets.astype(np.int64),
            dense=np.zeros((len(block), 0), dtype=np.float32),
            sparse=None,
            stats=statistics,
            lengths=np.zeros(len(block), dtype=np.int32),
        )
        rows = corpus_oracles(lists, metric.metric, np.random.default_rng(1)).first
    else:
        rows = offsets[:-1] + np.minimum(selection, widths) - 1
    return statistics[rows]
