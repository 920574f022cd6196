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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics.protocol import score_sentences
from mosesplug.results.views.differences import (
    FeatureChange,
    FeatureSwing,
    IterationDifference,
    ListedChange,
    ReweightedDifference,
    SentenceChange,
)
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.texts import ParallelText, decode_text
from mosesplug.store import IterationLists, IterationRecord
from mosesplug.store.snapshot import Snapshot
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning_set import SparseRows, TuningSet

_SWINGS = 3
"""Features that are named as the cause of one sentence's change."""


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
        metric=run.score_label,
        sentence_metric=run.sentence_score_label,
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
) -> ReweightedDifference:
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
    return ReweightedDifference(
        a=weights[0][0],
        b=weights[1][0],
        metric=run.score_label,
        sentence_metric=run.sentence_score_label,
        score_a=_score_rows(run, rows, here),
        score_b=_score_rows(run, rows, there),
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
    return _score_rows(run, rows, first)


def _score_rows(run: StoredRun, rows: TuningSet, chosen: NDArray[np.int64]) -> float:
    """Return the corpus score of some hypotheses."""
    return float(run.metric.score(rows.weighted_stats[chosen].sum(axis=0, dtype=np.float64)))


def _compare_sides(
    run: StoredRun,
    sentences: NDArray[np.int64],
    one: _Side,
    other: _Side,
    same: NDArray[np.bool_],
) -> tuple[tuple[FeatureChange, ...], list[SentenceChange]]:
    """Return the change of each feature and of each sentence.

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
    """Return the change of each feature over the changed sentences.

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
