"""Two iterations side by side: what other weights made of the first-best translations.

The first-best of an iteration is the first of its list: the decoder's own choice. Where it changed,
the sums of weight times difference of values say which features decided: at the weights of the
iteration that chose it, the new translation leads the old one (but for search errors, and for what
the old list did not hold), and at the old weights the old one leads the new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.inspection.run import Run
from mosesplug.inspection.sentence import worth, worth_name
from mosesplug.inspection.texts import Texts, decode_text, mark_invalid_utf8
from mosesplug.store import IterationLists, IterationRecord
from mosesplug.store.snapshot import Snapshot
from mosesplug.tuning.workdir.records import start_of
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["Change", "FeatureChange", "IterationDifference", "difference"]


@dataclass(frozen=True)
class FeatureChange:
    """What became of a feature.

    Attributes:
        feature: its name.
        weight_a, weight_b: in both iterations; dense weights have an L1 norm of 1.
        values: sum over the changed sentences of its value in B's first-best less that in A's.
        lead_a, lead_b: that sum times the weight of A, and of B.
    """

    feature: str
    weight_a: float
    weight_b: float
    values: float
    lead_a: float
    lead_b: float


@dataclass(frozen=True)
class Change:
    """One sentence that has a list in both iterations.

    Attributes:
        sentence: line of the input, from 0.
        changed: whether its first-best has other words.
        same_hypothesis: whether it is the same with the same features.
        metric_a, metric_b: what both are worth by themselves; larger is better.
        model_a, model_b: scores, each at the weights of its iteration, their L1 norm being 1.
        lead_a, lead_b: model score of B's less that of A's, at the weights of A, and of B.
        hypotheses_a, hypotheses_b: distinct ones of each list.
        shared: of these, those in both lists.
        was_there: whether B's first-best was in A's list.
        text_a, text_b: the words of both.
    """

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
        """By how much B's first-best is worth more than A's."""
        return self.metric_b - self.metric_a

    @property
    def overlap(self) -> float:
        """Shared hypotheses over those of either list (Jaccard's index)."""
        return self.shared / (self.hypotheses_a + self.hypotheses_b - self.shared)


@dataclass(frozen=True)
class IterationDifference:
    """Two iterations, A and B.

    Attributes:
        a, b: their numbers.
        metric: name of the metric of the corpus; ``worth`` that of single sentences.
        worth: see ``sentence.worth``.
        score_a, score_b: of the decoder's own translations of all sentences.
        weights_known: whether both iterations' weights are; imported lists may have none.
        features: dense ones in the order of the columns, then sparse ones that have a weight or
            decided anything.
        sentences: those that have a list in both.
    """

    a: int
    b: int
    metric: str
    worth: str
    score_a: float
    score_b: float
    weights_known: bool
    features: tuple[FeatureChange, ...]
    sentences: tuple[Change, ...]

    @property
    def changed(self) -> list[Change]:
        """The sentences whose first-best has other words."""
        return [each for each in self.sentences if each.changed]


def difference(run: Run, a: int, b: int, texts: Texts = Texts()) -> IterationDifference:  # noqa: B008
    """Compare two iterations; memory is that of their lists.

    Args:
        run: the run.
        a, b: the iterations.
        texts: what is known beside the store; they are checked only.

    Raises:
        UsageError: they are the same.
        StoreError: one is not in the store.
        DataError: the texts are not of this run.
    """
    texts.check(run.n_sentences)
    if a == b:
        raise UsageError(f"--iterations {a} {b}: give two different ones")
    lists = [run.store.iteration_set(number) for number in (a, b)]
    records = [run.records[number - 1] for number in (a, b)]
    here, there = (np.diff(each.tuning_set.offsets) > 0 for each in lists)
    common = np.flatnonzero(here & there)
    sides = [_Side.of(run, *each, common) for each in zip(records, lists, strict=True)]
    one, other = sides
    with run.store.snapshot() as snapshot:
        words = [_words(snapshot, side, common) for side in sides]
    changed = np.array([x != y for x, y in zip(*words, strict=True)], dtype=bool)
    models = [[side.scores(with_weights.vector) for side in sides] for with_weights in sides]
    sentences = []
    for place, sentence in enumerate(common.tolist()):
        mine, theirs = one.homes[place], other.homes[place]
        sentences.append(
            Change(
                sentence=sentence,
                changed=bool(changed[place]),
                same_hypothesis=mine[0] == theirs[0],
                metric_a=float(one.worth[place]),
                metric_b=float(other.worth[place]),
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
        metric=run.signature.partition("|")[0],
        worth=worth_name(run),
        score_a=_score(run, records[0], lists[0]),
        score_b=_score(run, records[1], lists[1]),
        weights_known=all(start_of(record).weights.norm > 0.0 for record in records),
        features=_features(run, one, other, changed),
        sentences=tuple(sentences),
    )


@dataclass(frozen=True)
class _Side:
    """The first-bests of one iteration, of the sentences that both have.

    Attributes:
        vector: the iteration's weights, float64 ``[len(space)]``.
        dense: float64 ``[n, n_dense]``.
        sparse: the sparse features, or None where there are none.
        worth: float64 ``[n]``.
        homes: where all hypotheses of each list are kept, one number each.
    """

    vector: NDArray[np.float64]
    dense: NDArray[np.float64]
    sparse: SparseRows | None
    worth: NDArray[np.float64]
    homes: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, run: Run, record: IterationRecord, lists: IterationLists, common: NDArray[Any]
    ) -> _Side:
        rows: TuningSet = lists.tuning_set
        first = rows.offsets[common]
        homes = (lists.home_iterations.astype(np.int64) << 32) | lists.home_rows
        bounds = zip(first.tolist(), rows.offsets[common + 1].tolist(), strict=True)
        return cls(
            vector=start_of(record).weights.normalised().vector(run.space),
            dense=rows.dense[first].astype(np.float64),
            sparse=None if rows.sparse is None else rows.sparse.take(first),
            worth=worth(run, rows.stats[first]),
            homes=[homes[begin:end].tolist() for begin, end in bounds],
        )

    def scores(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Model scores, float64 ``[n]``."""
        n, n_dense = self.dense.shape
        scores: NDArray[np.float64] = self.dense @ vector[:n_dense]
        if self.sparse is None:
            return scores
        owners = np.repeat(np.arange(n), np.diff(self.sparse.indptr))
        added = vector[n_dense + self.sparse.indices] * self.sparse.data
        return scores + np.bincount(owners, added, minlength=n)

    def sums(self, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Summed values of all features over some of the sentences, float64 ``[len(vector)]``."""
        sums = np.zeros(len(self.vector))
        n_dense = self.dense.shape[1]
        sums[:n_dense] = self.dense[wanted].sum(axis=0)
        if self.sparse is not None:
            rows = self.sparse.take(np.flatnonzero(wanted))
            n_sparse = len(sums) - n_dense
            sums[n_dense:] = np.bincount(rows.indices, rows.data, minlength=n_sparse)
        return sums


def _words(snapshot: Snapshot, side: _Side, common: NDArray[Any]) -> list[bytes]:
    """Texts of the first-bests."""
    words = []
    for sentence, (home, *_) in zip(common.tolist(), side.homes, strict=True):
        record = snapshot.record(home >> 32, sentence)
        words.append(b"" if record is None else record.hypothesis(home & 0xFFFFFFFF))
    return words


def _score(run: Run, record: IterationRecord, lists: IterationLists) -> float:
    """The metric of the decoder's own translations, the same metric for both."""
    if record.signature == run.signature:
        return record.first_best_score
    rows = lists.tuning_set
    first = rows.offsets[:-1][np.diff(rows.offsets) > 0]
    return float(run.metric.score(rows.stats[first].sum(axis=0, dtype=np.float64)))


def _features(
    run: Run, one: _Side, other: _Side, changed: NDArray[np.bool_]
) -> tuple[FeatureChange, ...]:
    values = other.sums(changed) - one.sums(changed)
    n_dense = one.dense.shape[1]
    shown: Mapping[int, str] = dict(enumerate(run.names))
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
        for column, name in {**shown, **sparse}.items()
    )
