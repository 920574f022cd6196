"""Compare two iterations: how other weights changed the 1-best translations.

The 1-best of an iteration is the first hypothesis of its list, the decoder's own choice. For the
sentences whose 1-best changed, the sums of weight times difference of values show which features
decided. At the weights that chose it, the new 1-best leads the old one, and at the old weights the
old one leads, except for search errors and hypotheses that the other list does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.render.record import Change, Score, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text
from mosesplug.store import IterationLists, IterationRecord
from mosesplug.store.snapshot import Snapshot
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning_set import SparseRows, TuningSet

_FEATURES = 30
"""Features in the table."""


@dataclass(frozen=True)
class FeatureChange:
    """One feature in two iterations, A and B.

    Attributes:
        weight_a, weight_b: its weights; the dense weights have an L1 norm of 1.
        values: its value in B's 1-best minus that in A's, summed over the changed sentences.
        lead_a, lead_b: this sum times the weight of A, and of B.
    """

    feature: Text
    weight_a: Score
    weight_b: Score
    values: Annotated[float, Shown("+.4g", "value")]
    lead_a: Change
    lead_b: Change

    @property
    def change(self) -> Change:
        """B's weight minus A's."""
        return self.weight_b - self.weight_a


@dataclass(frozen=True)
class SentenceChange:
    """The 1-best hypotheses of a sentence that has a list in both iterations.

    Attributes:
        same_hypothesis: whether both words and features are the same.
        metric_a, metric_b: sentence scores; larger is better.
        model_a, model_b: model scores at the weights of the own iteration, with an L1 norm of 1.
        lead_a, lead_b: model score of B's minus that of A's, at the weights of A, and of B.
        hypotheses_a, hypotheses_b: number of distinct hypotheses of each list.
        shared: number of hypotheses in both lists.
        was_there: whether B's 1-best was in A's list.
    """

    JSON_KEYS: ClassVar = "* overlap"

    sentence: int
    changed: bool
    same_hypothesis: bool
    metric_a: float
    metric_b: float
    model_a: float
    model_b: float
    lead_a: float
    lead_b: float
    hypotheses_a: int
    hypotheses_b: int
    shared: int
    was_there: bool
    text_a: str
    text_b: str

    @property
    def gain(self) -> float:
        """Sentence score of B's 1-best minus that of A's."""
        return self.metric_b - self.metric_a

    @property
    def overlap(self) -> float:
        """Hypotheses in both lists over those in either (Jaccard index)."""
        return self.shared / (self.hypotheses_a + self.hypotheses_b - self.shared)


@dataclass(frozen=True)
class IterationDifference:
    """Two iterations, A and B.

    Attributes:
        sentence_metric: name of the metric of single sentences.
        score_a, score_b: corpus scores of the decoder's translations.
        weights_known: whether the weights of both are known; imported lists may have none.
        features: dense features in the order of the columns, then sparse features whose weight
            changed or that decided anything.
        sentences: the sentences that have a list in both.
        text: source sentences and references, as far as they are known.
        top: number of sentences that blocks show, of those that gained and lost most each.
    """

    JSON_KEYS: ClassVar = (
        "a b metric sentence_metric score_a score_b weights_known features sentences"
    )

    a: int
    b: int
    metric: str
    sentence_metric: str
    score_a: float
    score_b: float
    weights_known: bool
    features: tuple[FeatureChange, ...]
    sentences: tuple[SentenceChange, ...]
    text: ParallelText
    top: int

    @property
    def changed(self) -> list[SentenceChange]:
        """The sentences whose 1-best has other words."""
        return [sentence for sentence in self.sentences if sentence.changed]

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield what changed overall, the features that decided, and some sentences."""
        yield from self._list_overview()
        yield ""
        yield from self._list_features()
        ordered = sorted(self.changed, key=lambda sentence: sentence.gain)
        gained = [sentence for sentence in ordered[::-1] if sentence.gain > 0.0]
        lost = [sentence for sentence in ordered if sentence.gain < 0.0]
        for title, sentences in (("gained most", gained), ("lost most", lost)):
            shown = sentences[: self.top]
            yield from [f"\n{title}:"] if shown else []
            for sentence in shown:
                yield from self._list_change(sentence)

    def _list_overview(self) -> Iterator[str]:
        changed, sentences = self.changed, self.sentences
        other = sum(not (s.changed or s.same_hypothesis) for s in sentences)
        yield (
            f"iteration {self.a} to {self.b}: {self.metric} {self.score_a:.4f} to "
            f"{self.score_b:.4f} ({self.score_b - self.score_a:+.4f})"
        )
        yield (
            f"{len(sentences)} sentences with lists in both: the 1-best of {len(changed)} has "
            f"other words, of {other} the same words with other features"
        )
        if changed:
            better = sum(sentence.gain > 0.0 for sentence in changed)
            worse = sum(sentence.gain < 0.0 for sentence in changed)
            mean = sum(sentence.gain for sentence in changed) / len(changed)
            there = sum(sentence.was_there for sentence in changed)
            yield (
                f"of these {len(changed)}, {better} are better by {self.sentence_metric}, {worse} "
                f"worse, mean change {mean:+.4f}; {there} were in the list of iteration {self.a}"
            )
        if sentences:
            overlap = sum(sentence.overlap for sentence in sentences) / len(sentences)
            shared = sum(sentence.shared for sentence in sentences)
            yield (
                f"{shared} hypotheses are in both lists of their sentence: {100 * overlap:.1f}% of "
                "those in either, on average"
            )
        if not self.weights_known:
            yield "the weights of one of them are not known, and count as 0"

    def _list_features(self) -> Iterator[Block]:
        """Yield the features, those that decided most first."""
        a, b, features = self.a, self.b, self.features
        ordered = sorted(features, key=lambda row: -max(abs(row.lead_a), abs(row.lead_b)))
        yield (
            f"features, and what they add to the lead of the new over the old 1-best, summed over "
            f"{len(self.changed)} sentences:"
        )
        labels = {"weight_a": f"weight {a}", "weight_b": f"weight {b}"}
        labels |= {"lead_a": f"lead at {a}", "lead_b": f"lead at {b}"}
        columns = "feature weight_a weight_b change values lead_a lead_b"
        table = tabulate(FeatureChange, ordered[:_FEATURES], columns, labels)
        leads = sum(row.lead_a for row in features), sum(row.lead_b for row in features)
        totals = ("all", "", "", "", "", *(f"{lead:+.4f}" for lead in leads))
        yield replace(table, rows=[*table.rows, totals])
        if len(ordered) > _FEATURES:
            yield f"({len(ordered) - _FEATURES} more)"

    def _list_change(self, change: SentenceChange) -> Iterator[str]:
        number = change.sentence
        yield (
            f"sentence {number}: {self.sentence_metric} {change.metric_a:.4f} to "
            f"{change.metric_b:.4f} ({change.gain:+.4f}), model {change.model_a:.4f} to "
            f"{change.model_b:.4f}, lead {change.lead_a:+.4f} and {change.lead_b:+.4f}, "
            f"{change.shared} hypotheses in both lists of {change.hypotheses_a} and "
            f"{change.hypotheses_b}"
        )
        lines = [
            ("source", self.text.source_sentence(number)),
            *(("reference", line) for line in self.text.reference_sentences(number)),
            (str(self.a), change.text_a),
            (str(self.b), change.text_b),
        ]
        yield from (f"  {name:9}  {line}" for name, line in lines if line is not None)


def compare_iterations(
    run: StoredRun,
    a: int,
    b: int,
    text: ParallelText = ParallelText(),  # noqa: B008 - immutable
    top: int = 0,
) -> IterationDifference:
    """Compare two iterations, with their lists in memory.

    Args:
        text, top: see ``IterationDifference``.

    Raises:
        UsageError: they are the same.
        DataError: the text does not belong to the run.
        StoreError: one is not in the store.
    """
    text.check_length(run.n_sentences)
    if a == b:
        raise UsageError(f"{{--iterations}} {a} {b}: give two different iterations")
    lists = [run.store.iteration_set(number) for number in (a, b)]
    records = [run.records[number - 1] for number in (a, b)]
    here, there = (np.diff(own.tuning_set.offsets) > 0 for own in lists)
    common = np.flatnonzero(here & there)
    sides = [_Side.of(run, *pair, common) for pair in zip(records, lists, strict=True)]
    one, other = sides
    with run.store.snapshot() as snapshot:
        words = [_read_texts(snapshot, side, common) for side in sides]
    changed = np.array([x != y for x, y in zip(*words, strict=True)], dtype=bool)
    models = [[side.model_scores(at.vector) for side in sides] for at in sides]
    sentences = []
    for place, sentence in enumerate(common.tolist()):
        mine, theirs = one.homes[place], other.homes[place]
        sentences.append(
            SentenceChange(
                sentence=sentence,
                changed=bool(changed[place]),
                same_hypothesis=mine[0] == theirs[0],
                metric_a=float(one.scores[place]),
                metric_b=float(other.scores[place]),
                model_a=float(models[0][0][place]),
                model_b=float(models[1][1][place]),
                lead_a=float(models[0][1][place] - models[0][0][place]),
                lead_b=float(models[1][1][place] - models[1][0][place]),
                hypotheses_a=len(set(mine)),
                hypotheses_b=len(set(theirs)),
                shared=len(set(mine) & set(theirs)),
                was_there=theirs[0] in mine,
                text_a=decode_text(words[0][place]),
                text_b=decode_text(words[1][place]),
            )
        )
    return IterationDifference(
        a=a,
        b=b,
        metric=run.metric_name,
        sentence_metric=run.metric.sentence_metric,
        score_a=_score_first_best(run, records[0], lists[0]),
        score_b=_score_first_best(run, records[1], lists[1]),
        weights_known=all(read_start(record).weights.norm > 0.0 for record in records),
        features=_compare_features(run, one, other, changed),
        sentences=tuple(sentences),
        text=text,
        top=top,
    )


@dataclass(frozen=True)
class _Side:
    """The 1-bests of one iteration, for the sentences that both iterations have.

    Attributes:
        vector: the iteration's weights, float64 ``[len(space)]``.
        dense: dense values, float64 ``[n, n_dense]``.
        sparse: sparse values; None if there are none.
        scores: sentence scores, float64 ``[n]``.
        homes: identities of all hypotheses of each list: iteration and row of first appearance.
    """

    vector: NDArray[np.float64]
    dense: NDArray[np.float64]
    sparse: SparseRows | None
    scores: NDArray[np.float64]
    homes: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, run: StoredRun, record: IterationRecord, lists: IterationLists, common: NDArray[Any]
    ) -> _Side:
        rows: TuningSet = lists.tuning_set
        first = rows.offsets[common]
        homes = (lists.home_iterations.astype(np.int64) << 32) | lists.home_rows
        bounds = zip(first.tolist(), rows.offsets[common + 1].tolist(), strict=True)
        return cls(
            vector=read_start(record).weights.normalize().vector(run.space),
            dense=rows.dense[first].astype(np.float64),
            sparse=None if rows.sparse is None else rows.sparse.take(first),
            scores=score_sentences(run.metric, rows.stats[first]),
            homes=[homes[begin:end].tolist() for begin, end in bounds],
        )

    def model_scores(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return model scores, float64 ``[n]``."""
        n, n_dense = self.dense.shape
        scores: NDArray[np.float64] = self.dense @ vector[:n_dense]
        if self.sparse is None:
            return scores
        owners = np.repeat(np.arange(n), np.diff(self.sparse.indptr))
        added = vector[n_dense + self.sparse.indices] * self.sparse.data
        return scores + np.bincount(owners, added, minlength=n)

    def sums(self, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Sum the values of all features over some sentences, float64 ``[len(vector)]``."""
        sums = np.zeros(len(self.vector))
        n_dense = self.dense.shape[1]
        sums[:n_dense] = self.dense[wanted].sum(axis=0)
        if self.sparse is not None:
            rows = self.sparse.take(np.flatnonzero(wanted))
            n_sparse = len(sums) - n_dense
            sums[n_dense:] = np.bincount(rows.indices, rows.data, minlength=n_sparse)
        return sums


def _read_texts(snapshot: Snapshot, side: _Side, common: NDArray[Any]) -> list[bytes]:
    words = []
    for sentence, (home, *_) in zip(common.tolist(), side.homes, strict=True):
        record = snapshot.record(home >> 32, sentence)
        words.append(b"" if record is None else record.hypothesis(home & 0xFFFFFFFF))
    return words


def _score_first_best(run: StoredRun, record: IterationRecord, lists: IterationLists) -> float:
    """Score the decoder's translations by the run's metric.

    The record may have scores of another metric.
    """
    if record.signature == run.signature:
        return record.first_best_score
    rows = lists.tuning_set
    first = rows.offsets[:-1][np.diff(rows.offsets) > 0]
    return float(run.metric.score(rows.stats[first].sum(axis=0, dtype=np.float64)))


def _compare_features(
    run: StoredRun, one: _Side, other: _Side, changed: NDArray[np.bool_]
) -> tuple[FeatureChange, ...]:
    values = other.sums(changed) - one.sums(changed)
    n_dense = one.dense.shape[1]
    dense: Mapping[int, str] = dict(enumerate(run.names))
    moved = (values != 0.0) & ((one.vector != 0.0) | (other.vector != 0.0))
    moved |= one.vector != other.vector
    sparse = {
        column: mark_invalid_utf8(run.space.sparse[column - n_dense])
        for column in np.flatnonzero(moved).tolist()
        if column >= n_dense
    }
    return tuple(
        FeatureChange(
            feature=name,
            weight_a=float(one.vector[column]),
            weight_b=float(other.vector[column]),
            values=float(values[column]),
            lead_a=float(one.vector[column] * values[column]),
            lead_b=float(other.vector[column] * values[column]),
        )
        for column, name in {**dense, **sparse}.items()
    )
