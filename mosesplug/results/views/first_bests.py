"""Compare 1-best translations: how weights changed them, feature by feature.

The 1-best of an iteration is the first hypothesis of its list, the decoder's own choice. The same
lists may have another 1-best at other weights. For the sentences whose 1-best changed, the sums of
weight times difference of values show which features decided. At the weights that chose it, the new
1-best leads the old one, and at the old weights the old one leads. Between iterations, search
errors and hypotheses that the other list does not hold are exceptions.

The swing of a feature is the part of the lead that its changed weight has made: the change of the
weight times the difference of the values. The swings of all features add up to the lead at the new
weights minus that at the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError, count_noun
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.render.record import Change, Count, Score, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text
from mosesplug.store import IterationLists, IterationRecord
from mosesplug.store.snapshot import Snapshot
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning_set import SparseRows, TuningSet

_FEATURES = 30
"""Features in the table."""

_SWINGS = 3
"""Features that are named as the cause of one sentence's change."""


@dataclass(frozen=True)
class FeatureChange:
    """One feature at two weight vectors, A and B.

    Attributes:
        weight_a, weight_b: its weights; the dense weights have an L1 norm of 1.
        values: its value in B's 1-best minus that in A's, summed over the changed sentences.
        lead_a, lead_b: this sum times the weight of A, and of B.
        sentences: number of changed sentences in which it has the largest swing of all features.
        better, worse: how many of these have a higher, and a lower, sentence score at B.
    """

    JSON_KEYS: ClassVar = "* swing"

    feature: Text
    weight_a: Score
    weight_b: Score
    values: Annotated[float, Shown("+.4g", "value")]
    lead_a: Change
    lead_b: Change
    sentences: Count = 0
    better: Count = 0
    worse: Count = 0

    @property
    def change(self) -> Change:
        """B's weight minus A's."""
        return self.weight_b - self.weight_a

    @property
    def swing(self) -> Change:
        """The change of the weight times the sum of the differences."""
        return self.change * self.values


@dataclass(frozen=True)
class FeatureSwing:
    """What the changed weight of a feature adds to the lead of a new 1-best."""

    feature: str
    swing: float


@dataclass(frozen=True)
class SentenceChange:
    """The 1-best hypotheses of a sentence, A's and B's.

    Attributes:
        changed: whether the words differ.
        same_hypothesis: whether both words and features are the same.
        metric_a, metric_b: sentence scores; larger is better.
        model_a, model_b: model scores of A's at the weights of A, and of B's at those of B, with an
            L1 norm of 1.
        lead_a, lead_b: model score of B's minus that of A's, at the weights of A, and of B.
        causes: at most three features, those with the largest swings above 0.
    """

    JSON_KEYS: ClassVar = (
        "sentence changed same_hypothesis metric_a metric_b model_a model_b lead_a lead_b text_a "
        "text_b causes"
    )

    sentence: int
    changed: bool
    same_hypothesis: bool
    metric_a: float
    metric_b: float
    model_a: float
    model_b: float
    lead_a: float
    lead_b: float
    text_a: str
    text_b: str
    causes: tuple[FeatureSwing, ...]

    @property
    def gain(self) -> float:
        """Sentence score of B's 1-best minus that of A's."""
        return self.metric_b - self.metric_a

    def describe_lists(self) -> str:
        """Return what to say of the lists of both; empty if they are the same."""
        return ""


@dataclass(frozen=True)
class ListedChange(SentenceChange):
    """The same of a sentence that has a list in two iterations.

    Attributes:
        hypotheses_a, hypotheses_b: number of distinct hypotheses of each list.
        shared: number of hypotheses in both lists.
        was_there: whether B's 1-best was in A's list.
    """

    JSON_KEYS: ClassVar = (
        "sentence changed same_hypothesis metric_a metric_b model_a model_b lead_a lead_b "
        "hypotheses_a hypotheses_b shared was_there text_a text_b overlap causes"
    )

    hypotheses_a: int
    hypotheses_b: int
    shared: int
    was_there: bool

    @property
    def overlap(self) -> float:
        """Hypotheses in both lists over those in either (Jaccard index)."""
        return self.shared / (self.hypotheses_a + self.hypotheses_b - self.shared)

    def describe_lists(self) -> str:
        """Return how many hypotheses both lists have."""
        return (
            f", {self.shared} hypotheses in both lists of {self.hypotheses_a} and "
            f"{self.hypotheses_b}"
        )


@dataclass(frozen=True)
class FirstBestDifference:
    """The 1-bests of sentences on two sides, A and B.

    Attributes:
        a, b: what the sides are called.
        sentence_metric: name of the metric of single sentences.
        score_a, score_b: corpus scores of the 1-bests.
        features: dense features in the order of the columns, then sparse features whose weight
            changed or that decided anything.
        sentences: the sentences that have a list on both sides.
        text: source sentences and references, as far as they are known.
        top: number of sentences that blocks show, of those that gained and lost most each.
    """

    JSON_KEYS: ClassVar = "a b metric sentence_metric score_a score_b features sentences"

    a: int | str
    b: int | str
    metric: str
    sentence_metric: str
    score_a: float
    score_b: float
    features: tuple[FeatureChange, ...]
    sentences: tuple[SentenceChange, ...]
    text: ParallelText
    top: int

    @property
    def changed(self) -> list[SentenceChange]:
        """The sentences whose 1-best has other words."""
        return [sentence for sentence in self.sentences if sentence.changed]

    @property
    def labels(self) -> tuple[str, str]:
        """Both sides, in a word each."""
        return str(self.a), str(self.b)

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
        """Yield lines about both sides and their sentences."""
        yield from (f"{label}: {name}" for label, name in zip("AB", (self.a, self.b), strict=True))
        yield f"{self.metric} of the 1-bests: {self._format_scores()}"
        yield f"{count_noun(len(self.sentences), 'sentence')}: {self._count_changed()}"
        yield from self._compare_changed()

    def _format_scores(self) -> str:
        gain = self.score_b - self.score_a
        return f"{self.score_a:.4f} to {self.score_b:.4f} ({gain:+.4f})"

    def _count_changed(self) -> str:
        other = sum(not (s.changed or s.same_hypothesis) for s in self.sentences)
        return (
            f"the 1-best of {len(self.changed)} has other words, of {other} the same words with "
            "other features"
        )

    def _compare_changed(self, more: str = "") -> Iterator[str]:
        """Yield how many of the changed sentences are better, and worse."""
        if changed := self.changed:
            better = sum(sentence.gain > 0.0 for sentence in changed)
            worse = sum(sentence.gain < 0.0 for sentence in changed)
            mean = sum(sentence.gain for sentence in changed) / len(changed)
            yield (
                f"of these {len(changed)}, {better} are better by {self.sentence_metric}, {worse} "
                f"worse, mean change {mean:+.4f}{more}"
            )

    def _list_features(self) -> Iterator[Block]:
        """Yield the features, those that decided most first."""
        (a, b), features = self.labels, self.features
        ordered = sorted(features, key=lambda row: -abs(row.swing))
        yield (
            f"features, and what they add to the lead of the new over the old 1-best, summed over "
            f"{len(self.changed)} sentences:"
        )
        labels = {"weight_a": f"weight {a}", "weight_b": f"weight {b}"}
        labels |= {"lead_a": f"lead at {a}", "lead_b": f"lead at {b}"}
        columns = "feature weight_a weight_b change values lead_a lead_b swing"
        columns += " sentences better worse"
        table = tabulate(FeatureChange, ordered[:_FEATURES], columns, labels)
        leads = sum(row.lead_a for row in features), sum(row.lead_b for row in features)
        sums = (f"{lead:+.4f}" for lead in (*leads, leads[1] - leads[0]))
        counts = (
            sum(row.sentences for row in features),
            sum(row.better for row in features),
            sum(row.worse for row in features),
        )
        totals = ("all", "", "", "", "", *sums, *map(str, counts))
        yield replace(table, rows=[*table.rows, totals])
        if len(ordered) > _FEATURES:
            yield f"({len(ordered) - _FEATURES} more)"

    def _list_change(self, change: SentenceChange) -> Iterator[str]:
        number = change.sentence
        yield (
            f"sentence {number}: {self.sentence_metric} {change.metric_a:.4f} to "
            f"{change.metric_b:.4f} ({change.gain:+.4f}), model {change.model_a:.4f} to "
            f"{change.model_b:.4f}, lead {change.lead_a:+.4f} and {change.lead_b:+.4f}"
            f"{change.describe_lists()}"
        )
        causes = (f"{mark_invalid_utf8(row.feature)} {row.swing:+.4f}" for row in change.causes)
        labels = self.labels
        lines = [
            ("source", self.text.source_sentence(number)),
            *(("reference", line) for line in self.text.reference_sentences(number)),
            (labels[0], change.text_a),
            (labels[1], change.text_b),
            ("swing", ", ".join(causes) or None),
        ]
        yield from (f"  {name:9}  {line}" for name, line in lines if line is not None)


@dataclass(frozen=True)
class IterationDifference(FirstBestDifference):
    """The decoder's translations in two iterations, A and B.

    Attributes:
        a, b: the numbers of the iterations.
        sentences: the sentences that have a list in both.
        weights_known: whether the weights of both are known; imported lists may have none.
    """

    JSON_KEYS: ClassVar = (
        "a b metric sentence_metric score_a score_b weights_known features sentences"
    )

    sentences: tuple[ListedChange, ...]
    weights_known: bool

    def _list_overview(self) -> Iterator[str]:
        sentences = self.sentences
        yield f"iteration {self.a} to {self.b}: {self.metric} {self._format_scores()}"
        yield f"{len(sentences)} sentences with lists in both: {self._count_changed()}"
        there = sum(sentence.changed and sentence.was_there for sentence in sentences)
        yield from self._compare_changed(f"; {there} were in the list of iteration {self.a}")
        if sentences:
            overlap = sum(sentence.overlap for sentence in sentences) / len(sentences)
            shared = sum(sentence.shared for sentence in sentences)
            yield (
                f"{shared} hypotheses are in both lists of their sentence: {100 * overlap:.1f}% of "
                "those in either, on average"
            )
        if not self.weights_known:
            yield "the weights of one of them are not known, and count as 0"


@dataclass(frozen=True)
class WeightEffect(FirstBestDifference):
    """The 1-bests of the same lists at two weight vectors, A and B.

    Attributes:
        a, b: the weights as the user named them.
    """

    @property
    def labels(self) -> tuple[str, str]:
        """Both weight vectors."""
        return "A", "B"


def compare_iterations(
    run: StoredRun,
    a: int,
    b: int,
    text: ParallelText = ParallelText(),  # noqa: B008 - immutable
    top: int = 0,
) -> IterationDifference:
    """Compare two iterations, with their lists in memory.

    Args:
        text, top: see ``FirstBestDifference``.

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
    homes = [_identify_hypotheses(own, common) for own in lists]
    with run.store.snapshot() as snapshot:
        one, other = (
            _Side.of(
                run,
                read_start(record).weights.normalize().vector(run.space),
                own.tuning_set,
                own.tuning_set.offsets[common],
                _read_texts(snapshot, common, identities),
            )
            for record, own, identities in zip(records, lists, homes, strict=True)
        )
    same = np.array([x[0] == y[0] for x, y in zip(*homes, strict=True)], dtype=bool)
    features, changes = _compare_sides(run, common, one, other, same)
    return IterationDifference(
        a=a,
        b=b,
        metric=run.metric_name,
        sentence_metric=run.metric.sentence_metric,
        score_a=_score_first_best(run, records[0], lists[0]),
        score_b=_score_first_best(run, records[1], lists[1]),
        weights_known=all(read_start(record).weights.norm > 0.0 for record in records),
        features=features,
        sentences=tuple(
            ListedChange(
                **vars(change),
                hypotheses_a=len(set(mine)),
                hypotheses_b=len(set(theirs)),
                shared=len(set(mine) & set(theirs)),
                was_there=theirs[0] in mine,
            )
            for change, mine, theirs in zip(changes, *homes, strict=True)
        ),
        text=text,
        top=top,
    )


def compare_first_bests(
    run: StoredRun,
    weights: Sequence[tuple[str, Weights]],
    *,
    sentence: int | None = None,
    iteration: int | None = None,
    text: ParallelText = ParallelText(),  # noqa: B008 - immutable
    top: int = 0,
) -> WeightEffect:
    """Compare the 1-bests of the same lists at two weight vectors.

    Args:
        weights: what A and B are called, and their weights, which are normalized.
        sentence: the only sentence; None: all.
        iteration: the lists of this iteration; None: all lists, merged.
        text, top: see ``FirstBestDifference``.

    Raises:
        DataError: there is no such sentence, it has no hypotheses, or the text does not belong to
            the run.
        StoreError: there is no such iteration.
    """
    text.check_length(run.n_sentences)
    wanted = np.arange(run.n_sentences) if sentence is None else np.array([sentence])
    iterations = None if iteration is None else [iteration]
    rows = run.store.batch(wanted, iterations)
    filled = np.diff(rows.offsets) > 0
    if sentence is not None and not filled.any():
        raise DataError(f"sentence {run.name_sentence(sentence)} has no hypotheses to compare")
    sentences, starts = wanted[filled], rows.offsets[:-1][filled]
    texts = [run.store.hypotheses(number, iterations) for number in sentences.tolist()]
    sides = []
    for vector in (side.normalize().vector(run.space) for _, side in weights):
        first = rows.first_best(vector)
        places = (first - starts).tolist()
        words = [strings[place] for strings, place in zip(texts, places, strict=True)]
        sides.append((first, _Side.of(run, vector, rows, first, words)))
    (here, one), (there, other) = sides
    features, changes = _compare_sides(run, sentences, one, other, here == there)
    score_a, score_b = (
        float(run.metric.score(rows.stats[first].sum(axis=0, dtype=np.float64)))
        for first in (here, there)
    )
    return WeightEffect(
        a=weights[0][0],
        b=weights[1][0],
        metric=run.metric_name,
        sentence_metric=run.metric.sentence_metric,
        score_a=score_a,
        score_b=score_b,
        features=features,
        sentences=tuple(changes),
        text=text,
        top=top,
    )


@dataclass(frozen=True)
class _Side:
    """The 1-bests of some sentences at one weight vector.

    Attributes:
        vector: the weights, normalized, float64 ``[len(space)]``.
        dense: dense values, float64 ``[n, n_dense]``.
        sparse: sparse values; None if there are none.
        scores: sentence scores, float64 ``[n]``.
        texts: the words.
    """

    vector: NDArray[np.float64]
    dense: NDArray[np.float64]
    sparse: SparseRows | None
    scores: NDArray[np.float64]
    texts: Sequence[bytes]

    @classmethod
    def of(
        cls,
        run: StoredRun,
        vector: NDArray[np.float64],
        rows: TuningSet,
        first: NDArray[np.int64],
        texts: Sequence[bytes],
    ) -> _Side:
        return cls(
            vector=vector,
            dense=rows.dense[first].astype(np.float64),
            sparse=None if rows.sparse is None else rows.sparse.take(first),
            scores=score_sentences(run.metric, rows.stats[first]),
            texts=texts,
        )

    def model_scores(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return model scores, float64 ``[n]``."""
        n, n_dense = self.dense.shape
        scores: NDArray[np.float64] = self.dense @ vector[:n_dense]
        if self.sparse is None:
            return scores
        added = vector[n_dense + self.sparse.indices] * self.sparse.data
        return scores + np.bincount(_list_owners(self.sparse), added, minlength=n)

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


def _list_owners(rows: SparseRows) -> NDArray[np.int64]:
    """Return the row of each sparse value."""
    return np.repeat(np.arange(len(rows.indptr) - 1), np.diff(rows.indptr))


def _identify_hypotheses(lists: IterationLists, common: NDArray[np.int64]) -> list[list[int]]:
    """Return numbers that identify the hypotheses of each sentence.

    They hold the iteration and the row of the first appearance.
    """
    homes = (lists.home_iterations.astype(np.int64) << 32) | lists.home_rows
    offsets = lists.tuning_set.offsets
    bounds = zip(offsets[common].tolist(), offsets[common + 1].tolist(), strict=True)
    return [homes[begin:end].tolist() for begin, end in bounds]


def _read_texts(
    snapshot: Snapshot, common: NDArray[np.int64], homes: Sequence[Sequence[int]]
) -> list[bytes]:
    words = []
    for sentence, (home, *_) in zip(common.tolist(), homes, strict=True):
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


def _compare_sides(
    run: StoredRun,
    sentences: NDArray[np.int64],
    one: _Side,
    other: _Side,
    same: NDArray[np.bool_],
) -> tuple[tuple[FeatureChange, ...], list[SentenceChange]]:
    """Return the features that decided, and the change of each sentence.

    Args:
        sentences: int64 ``[n]``, their numbers.
        same: bool ``[n]``, whether both sides have the same hypothesis.
    """
    changed = np.array([x != y for x, y in zip(one.texts, other.texts, strict=True)], dtype=bool)
    models = [[side.model_scores(at.vector) for side in (one, other)] for at in (one, other)]
    names = [*run.names, *map(mark_invalid_utf8, run.space.sparse)]
    swings = _find_swings(one, other)
    changes = [
        SentenceChange(
            sentence=sentence,
            changed=bool(changed[place]),
            same_hypothesis=bool(same[place]),
            metric_a=float(one.scores[place]),
            metric_b=float(other.scores[place]),
            model_a=float(models[0][0][place]),
            model_b=float(models[1][1][place]),
            lead_a=float(models[0][1][place] - models[0][0][place]),
            lead_b=float(models[1][1][place] - models[1][0][place]),
            text_a=decode_text(one.texts[place]),
            text_b=decode_text(other.texts[place]),
            causes=tuple(
                FeatureSwing(names[column], swing) for column, swing in swings.get(place, ())
            ),
        )
        for place, sentence in enumerate(sentences.tolist())
    ]
    decisive = {
        place: swings[place][0][0] for place in np.flatnonzero(changed).tolist() if place in swings
    }
    return _compare_features(names, one, other, changed, decisive), changes


def _find_swings(one: _Side, other: _Side) -> dict[int, list[tuple[int, float]]]:
    """Return columns and values of the largest swings above 0 of each sentence.

    Keys are positions of sentences. Of equal swings, that of the first column comes first.
    """
    change = other.vector - one.vector
    n_dense = one.dense.shape[1]
    values = (other.dense - one.dense) * change[:n_dense]
    owners, columns = np.nonzero(values > 0.0)
    swings = values[owners, columns]
    if one.sparse is not None and other.sparse is not None:
        n_sparse = len(change) - n_dense
        keys, amounts = [], []
        for rows, sign in ((one.sparse, -1.0), (other.sparse, 1.0)):
            keys.append(_list_owners(rows) * n_sparse + rows.indices)
            amounts.append(sign * rows.data.astype(np.float64))
        known, positions = np.unique(np.concatenate(keys), return_inverse=True)
        differences = np.bincount(positions, np.concatenate(amounts), minlength=len(known))
        added = differences * change[n_dense + known % n_sparse]
        kept = added > 0.0
        owners = np.concatenate([owners, known[kept] // n_sparse])
        columns = np.concatenate([columns, n_dense + known[kept] % n_sparse])
        swings = np.concatenate([swings, added[kept]])
    largest: dict[int, list[tuple[int, float]]] = {}
    for entry in np.lexsort((columns, -swings, owners)).tolist():
        listed = largest.setdefault(int(owners[entry]), [])
        if len(listed) < _SWINGS:
            listed.append((int(columns[entry]), float(swings[entry])))
    return largest


def _compare_features(
    names: Sequence[str],
    one: _Side,
    other: _Side,
    changed: NDArray[np.bool_],
    decisive: Mapping[int, int],
) -> tuple[FeatureChange, ...]:
    """Return the features that decided.

    Args:
        decisive: the column with the largest swing, by position of a changed sentence.
    """
    values = other.sums(changed) - one.sums(changed)
    n_dense = one.dense.shape[1]
    moved = (values != 0.0) & ((one.vector != 0.0) | (other.vector != 0.0))
    moved |= one.vector != other.vector
    moved[:n_dense] = True
    places, columns = np.array([*decisive.items()], dtype=np.int64).reshape(-1, 2).T
    gains = other.scores[places] - one.scores[places]
    counts, better, worse = (
        np.bincount(columns[wanted], minlength=len(names))
        for wanted in (slice(None), gains > 0.0, gains < 0.0)
    )
    return tuple(
        FeatureChange(
            feature=names[column],
            weight_a=float(one.vector[column]),
            weight_b=float(other.vector[column]),
            values=float(values[column]),
            lead_a=float(one.vector[column] * values[column]),
            lead_b=float(other.vector[column] * values[column]),
            sentences=int(counts[column]),
            better=int(better[column]),
            worse=int(worse[column]),
        )
        for column in np.flatnonzero(moved).tolist()
    )
