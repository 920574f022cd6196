"""Differences of 1-best translations, as records that render."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from mosesplug.errors import count_noun
from mosesplug.results.render.record import Change, Count, Score, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block
from mosesplug.results.views.texts import ParallelText

_FEATURES = 30
"""Features in the table."""


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
    def swing(self) -> Change:
        """The change of the weight times the sum of the differences."""
        return (self.weight_b - self.weight_a) * self.values


@dataclass(frozen=True)
class FeatureSwing:
    """A feature whose changed weight made B's 1-best overtake A's.

    Attributes:
        feature: its name, printable.
        swing: B's weight minus A's, times the value in B's 1-best minus that in A's.
    """

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
    def swings(self) -> Mapping[str, float]:
        """The swings of the causes by feature, the largest first."""
        return {cause.feature: cause.swing for cause in self.causes}

    @property
    def gain(self) -> float:
        """Sentence score of B's 1-best minus that of A's."""
        return self.metric_b - self.metric_a

    def describe_lists(self) -> str:
        """Describe the lists of both sides; empty if both choose from the same lists."""
        return ""


@dataclass(frozen=True)
class ListedChange(SentenceChange):
    """The 1-best hypotheses of a sentence in two iterations, and their lists.

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
        a, b: names of the sides.
        sentence_metric: name of the metric of single sentences.
        score_a, score_b: corpus scores of the 1-bests.
        features: dense features in the order of the columns, then sparse features whose weight
            changed, or whose sum of values changed at a weight other than 0.
        sentences: the sentences that have a list on both sides.
        text: source sentences and references, as far as they are known.
        top: largest number of sentences that blocks show of those that gained, of those that lost,
            and of those that kept their score.
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
        """Short names of both sides, for columns."""
        return str(self.a), str(self.b)

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield totals, the features by their swing, and the sentences that changed most.

        Sentences with other words and the same score come last.
        """
        yield from self._list_overview()
        if self.changed:
            yield ""
            yield from self._list_features()
        ordered = sorted(self.changed, key=lambda sentence: sentence.gain)
        gained = [sentence for sentence in ordered[::-1] if sentence.gain > 0.0]
        lost = [sentence for sentence in ordered if sentence.gain < 0.0]
        equal = [sentence for sentence in ordered if sentence.gain == 0.0]
        groups = {"gained most": gained, "lost most": lost, "other words, the same score": equal}
        for title, sentences in groups.items():
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
            f"the 1-best of {len(self.changed)} has other words, that of {other} the same words "
            "with other features"
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
        # The table of one sentence fits on a terminal of 80 columns.
        counted = ("sentences", "better", "worse") if len(self.sentences) > 1 else ()
        yield (
            "value: that of the new 1-best minus that of the old one, summed over "
            f"{count_noun(len(self.changed), 'sentence')}"
        )
        yield f"lead: weight times value; swing: lead {b} minus lead {a}"
        if counted:
            yield "sentences: number of sentences in which this swing is the largest"
        labels = {"weight_a": f"weight {a}", "weight_b": f"weight {b}"}
        labels |= {"lead_a": f"lead {a}", "lead_b": f"lead {b}"}
        columns = " ".join(["feature weight_a weight_b values lead_a lead_b swing", *counted])
        table = tabulate(FeatureChange, ordered[:_FEATURES], columns, labels)
        leads = sum(row.lead_a for row in features), sum(row.lead_b for row in features)
        sums = (f"{lead:+.4f}" for lead in (*leads, leads[1] - leads[0]))
        counts = (str(sum(getattr(row, name) for row in features)) for name in counted)
        totals = ("all", "", "", "", *sums, *counts)
        yield replace(table, rows=[*table.rows, totals])
        if len(ordered) > _FEATURES:
            yield f"({len(ordered) - _FEATURES} more)"

    def _list_change(self, change: SentenceChange) -> Iterator[str]:
        number, (a, b) = change.sentence, self.labels
        yield (
            f"sentence {number}: {self.sentence_metric} {change.metric_a:.4f} to "
            f"{change.metric_b:.4f} ({change.gain:+.4f}), lead {change.lead_a:+.4f} at {a}, "
            f"{change.lead_b:+.4f} at {b}{change.describe_lists()}"
        )
        causes = (f"{feature} {swing:+.4f}" for feature, swing in change.swings.items())
        lines = [
            ("source", self.text.source_sentence(number)),
            *(("reference", line) for line in self.text.reference_sentences(number)),
            (a, change.text_a),
            (b, change.text_b),
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
        yield from self._compare_changed(
            f"; {there} new 1-bests were in the list of iteration {self.a}"
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


@dataclass(frozen=True)
class ReweightedDifference(FirstBestDifference):
    """The 1-bests of the same lists at two weight vectors, A and B.

    Attributes:
        a, b: the weights as the user named them.
    """

    @property
    def labels(self) -> tuple[str, str]:
        """Both weight vectors."""
        return "A", "B"
