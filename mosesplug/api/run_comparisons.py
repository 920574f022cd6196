"""Explain why a hypothesis wins, and which 1-bests change with the weights."""

from __future__ import annotations

from dataclasses import dataclass

from mosesplug.api.tables.records import ShownRecord, tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.results.views.differences import FeatureChange, ReweightedDifference, SentenceChange
from mosesplug.results.views.sentence import (
    FeatureContrast,
    HypothesisComparison,
    ScoredHypothesis,
)

_HYPOTHESIS = "rank text model_score=model sentence_score=metric"
_SENTENCE = (
    "sentence changed same_hypothesis metric_a metric_b model_a model_b lead_a lead_b text_a "
    "text_b causes=swings"
)


@dataclass(frozen=True, repr=False)
class Explanation(ShownRecord):
    """Which features make hypothesis A win over hypothesis B of the same sentence.

    ``Run.explain`` returns it. It prints as ``mosesplug weights why`` does.

    Attributes:
        comparison: the record of all facts.

    Example:
        >>> import mosesplug
        >>> run = mosesplug.open_run("mert-work")
        >>> why = run.explain(1)
        >>> [row["text"] for row in why.hypotheses]
        ['she sees a small dog', 'she sees a small dog today']
        >>> [(row["feature"], row["lead"]) for row in why.features]
        [('LM0_0', 0.25), ('TM0_0', 0.0)]
    """

    comparison: HypothesisComparison

    @property
    def hypotheses(self) -> Table:
        """A and B: rank by model score, text, model_score, sentence_score."""
        pair = (self.comparison.a, self.comparison.b)
        return tabulate_records(ScoredHypothesis, pair, _HYPOTHESIS)

    @property
    def features(self) -> Table:
        """The features, the most decisive first.

        Columns: feature; a, b, its values; weight, over the L1 norm of the dense ones; lead, its
        contribution to A's model score minus B's; tie, the weight at which both tie if the other
        weights stay, NaN if the values are equal; low, high, the interval of weights at which B is
        the 1-best of all hypotheses, NaN if it is the 1-best at no weight.
        """
        return tabulate_records(FeatureContrast, self.comparison.features)

    @property
    def table(self) -> Table:
        """The same as ``features``."""
        return self.features

    @property
    def _record(self) -> object:
        return self.comparison


@dataclass(frozen=True, repr=False)
class WeightEffect(ShownRecord):
    """Which sentences have another 1-best at weights B than at A, and why.

    ``Run.compare_weights`` returns it. It prints as ``mosesplug nbest diff`` does.

    Attributes:
        difference: the record of all facts.

    Example:
        >>> import mosesplug
        >>> run = mosesplug.open_run("mert-work")
        >>> effect = run.compare_weights({"LM0": 1, "TM0": 0}, run.weights())
        >>> effect.score_a < effect.score_b
        True
        >>> [row["text_b"] for row in effect.sentences if row["changed"]]
        ['she sees a small dog']
        >>> [row["causes"] for row in effect.sentences if row["changed"]]
        [{'LM0_0': 1.5, 'TM0_0': 0.75}]
        >>> [(row["feature"], row["swing"]) for row in effect.features]
        [('LM0_0', 1.5), ('TM0_0', 0.75)]
    """

    difference: ReweightedDifference

    @property
    def score_a(self) -> float:
        """Corpus score of the hypotheses that A chooses."""
        return self.difference.score_a

    @property
    def score_b(self) -> float:
        """Corpus score of the hypotheses that B chooses."""
        return self.difference.score_b

    @property
    def features(self) -> Table:
        """The features: dense ones, then sparse ones whose weight changed or that decided.

        Columns: feature; weight_a, weight_b, over the L1 norm of the dense ones; values, the
        difference of its values in B's and A's hypotheses, summed over the changed sentences;
        lead_a, lead_b, this sum times the weights; swing, lead_b - lead_a; sentences, in how many
        it has the largest swing; better, worse, how many of these have a higher and a lower score.
        """
        columns = "feature weight_a weight_b values lead_a lead_b swing sentences better worse"
        return tabulate_records(FeatureChange, self.difference.features, columns)

    @property
    def sentences(self) -> Table:
        """The sentences that have hypotheses.

        Columns: sentence; changed, 1 if the words differ; same_hypothesis, 1 if words and features
        are equal; metric_a, metric_b, sentence scores; model_a, model_b, model scores of A's
        hypothesis at the weights of A, and of B's at those of B; lead_a, lead_b, model score of B's
        hypothesis minus that of A's, at the weights of A, and of B; text_a, text_b; causes, the
        swings of at most three features by name, the largest first.
        """
        return tabulate_records(SentenceChange, self.difference.sentences, _SENTENCE)

    @property
    def table(self) -> Table:
        """The same as ``sentences``."""
        return self.sentences

    @property
    def _record(self) -> object:
        return self.difference
