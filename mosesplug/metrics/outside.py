"""Metrics whose statistics another program computes.

Scores of COMET are an example. An n-best list carries such numbers in ``NBestList.outside``, or a
command that keeps running computes them from the texts (``TextScorer``). A metric has a formula of
their sums over the chosen hypotheses, one of each sentence:

- ``mean``: one column; its sum divided by the number of hypotheses;
- ``ratio``: two columns; the sum of the first divided by that of the second (Travatar's
  ``zeroone`` with ``-stat_in``), 0 if that is 0. Of an error rate, see ``divide_errors``;
- that of a metric, such as ``BLEU``: a column for each of its statistics.

All are exact for every choice, so that a line search over them is exact, too. Statistics are
float64, but those of a metric have its type. An error rate has the score 1 minus its value, as
every error rate of this package.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError, count_noun
from mosesplug.metrics.hypotheses import HypothesisRanges, check_hypotheses
from mosesplug.metrics.plain import split_hypotheses
from mosesplug.metrics.protocol import (
    Metric,
    PreparedReferences,
    Smoothing,
    UnsmoothedMetric,
    check_references,
    find_limits,
    has_doubles,
    needs_outside,
    reference_fingerprint,
)
from mosesplug.metrics.reference_metric import check_totals, divide, divide_errors

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_LARGEST_COUNT = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Formula:
    """A function that computes the corpus score from sums of numbers.

    Attributes:
        name: ``mean``, ``ratio``, or a metric with its settings, as ``CHRF[words:2]``.
        width: how many numbers a hypothesis has.
        metric: the metric whose statistics the numbers are; None for ``mean`` and ``ratio``.
    """

    name: str
    width: int
    metric: Metric | None = field(default=None, compare=False)

    def describe(self) -> str:
        """Return how many numbers a hypothesis has, and their names if they have any."""
        names = "" if self.metric is None else f" ({', '.join(self.metric.statistics_names)})"
        return f"{count_noun(self.width, 'number')}{names}"

    def find_fault(self, values: NDArray[np.float64]) -> tuple[int, str] | None:
        """Return the first row with an invalid number, and what is wrong; else None.

        Args:
            values: float64 ``[n, width]``, finite.
        """
        faults = (
            (int(np.argmax(is_wrong)), why)
            for is_wrong, why in self._list_faults(values)
            if is_wrong.any()
        )
        return min(faults, key=lambda fault: fault[0], default=None)

    def _list_faults(self, values: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.bool_], str]]:
        """Yield the rows that have a fault, bool ``[n]``, and what it is."""
        if self.metric is None:
            for divisors in values.T[1:]:
                yield divisors < 0, "the second number is below 0, but it divides the first"
            return
        columns = dict(zip(self.metric.statistics_names, values.T, strict=True))
        for name, column in columns.items():
            yield column != np.floor(column), f"{name} is not a whole number"
            yield column < 0, f"{name} is below 0"
            yield column > _LARGEST_COUNT, f"{name} is above {_LARGEST_COUNT}"
        for smaller, larger in find_limits(self.metric):
            yield columns[smaller] > columns[larger], f"{smaller} is above {larger}"


MEAN, RATIO = Formula("mean", 1), Formula("ratio", 2)


def find_formula_of_width(width: int) -> Formula | None:
    """Return the default formula for ``width`` numbers; None for three or more."""
    return next((formula for formula in (MEAN, RATIO) if formula.width == width), None)


class Question(NamedTuple):
    """A hypothesis to score.

    Attributes:
        sentence: its number, from 0.
        source: the source sentence; None if it is unknown.
    """

    sentence: int
    source: bytes | None
    hypothesis: bytes
    references: tuple[bytes, ...]


class TextScorer(Protocol):
    """Another program that scores texts, each text once."""

    @property
    def n_asked(self) -> int:
        """Number of texts that the program has scored."""

    @property
    def n_known(self) -> int:
        """Number of texts whose scores were known."""

    @property
    def reads_references(self) -> bool:
        """Whether the program reads references, so that it can compare two texts."""

    def score(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Return the numbers of hypotheses, float64 ``[n, width]``.

        Raises:
            DataError: the program failed, or its answer cannot be used.
        """


@dataclass(frozen=True, kw_only=True)
class ScoredReferences(PreparedReferences):
    """The texts that a scorer reads beside the hypotheses.

    Attributes:
        lines: ``lines[sentence][k]``; empty without references.
        source: the source sentences; None if they are unknown.
        sentence: as for ``OutsideMetric``.
    """

    lines: tuple[tuple[bytes, ...], ...]
    source: tuple[bytes, ...] | None
    sentence: int | None = None

    def ask(self, sentence: int, hypothesis: bytes) -> Question:
        """Return the question for a hypothesis.

        Raises:
            DataError: the sentence has no source or reference.
        """
        if (self.lines and sentence >= len(self.lines)) or (
            self.source is not None and sentence >= len(self.source)
        ):
            known = len(self.lines) if self.lines else len(self.source or ())
            raise DataError(
                f"sentence {sentence} has no {'reference' if self.lines else 'source'}: there are "
                f"{known}, counted from 0"
            )
        source = None if self.source is None else self.source[sentence]
        references = self.lines[sentence] if self.lines else ()
        number = sentence if self.sentence is None else self.sentence
        return Question(number, source, hypothesis, references)


def compute_statistics(
    metric: Metric,
    prepared: PreparedReferences,
    sentence_ids: NDArray[np.int64],
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    outside: NDArray[np.float64] | None = None,
    *,
    threads: int = 1,
) -> NDArray[Any]:
    """Return the statistics of ``n`` hypotheses, ``[n, n_statistics]``.

    They are int32 for metrics of texts, and float64 for those that read scores from outside.

    Args:
        prepared, sentence_ids, buffer, starts, ends, threads: see ``Metric.statistics``.
        outside: float64 ``[n, k]``, the scores from outside of the same hypotheses; or None.

    Raises:
        DataError: the metric needs scores from outside, and there are none; or as
            ``Metric.statistics``.
    """
    if needs_outside(metric):
        # Only metrics with ``needs_outside`` take the keyword, which the protocol lacks.
        read: Callable[..., NDArray[Any]] = metric.statistics
        return read(prepared, sentence_ids, buffer, starts, ends, threads=threads, outside=outside)
    return metric.statistics(prepared, sentence_ids, buffer, starts, ends, threads=threads)


def divide_sums(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first of two sums over the second; 0 where nothing was counted."""
    return divide(totals[..., 0], totals[..., 1], 0.0)


def combine_fingerprints(fingerprints: Iterable[str]) -> str:
    """Return one fingerprint of several, in their order."""
    return hashlib.blake2b("|".join(fingerprints).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class OutsideMetric(UnsmoothedMetric):
    """A metric of scores from outside; see the module.

    Args:
        name: the name in signatures and messages, such as ``COMET``.
        formula: how sums of its numbers become a score.
        is_error_rate: whether less is better. Scores are 1 minus the value, then.
        columns: the columns of ``NBestList.outside`` that it reads, as many as the formula takes.
            They do not count in comparisons.
        fingerprint: a digest of the scores. Statistics of different files never mix in a store.
        version: that of the program that computes them, which the signature names.
        scorer: computes the scores from texts, in the place of ``columns``.
        source: the source sentences for the scorer; None if they are unknown.
        sentence: the source sentence that all references belong to, where they are the hypotheses
            of one sentence; None: each has its own.

    Raises:
        UsageError: an invalid name, or number of columns.
    """

    name: str = "SCORES"
    formula: Formula = MEAN
    is_error_rate: bool = False
    columns: tuple[int, ...] = field(default=(0,), compare=False)
    fingerprint: str = field(default="", compare=False)
    version: str = ""
    scorer: TextScorer | None = field(default=None, compare=False, repr=False)
    source: tuple[bytes, ...] | None = field(default=None, compare=False, repr=False)
    sentence: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"the name {self.name!r} of scores is invalid: use letters, digits, '_', '.' and "
                "'-', a letter first"
            )
        if len(self.columns) != self.formula.width:
            raise UsageError(
                f"{self.formula.name} of {self.name} takes {self.formula.width} numbers for each "
                f"hypothesis, not {len(self.columns)}"
            )

    @property
    def has_doubles(self) -> bool:
        """True, unless the numbers are the counts of a metric."""
        return self.formula.metric is None or has_doubles(self.formula.metric)

    @property
    def has_bleu_statistics(self) -> bool:
        """True if the formula is that of BLEU."""
        return self.formula.metric is not None and self.formula.metric.has_bleu_statistics

    @property
    def has_smoothing(self) -> bool:
        """True if the formula is that of a metric with smoothing."""
        return self.formula.metric is not None and self.formula.metric.has_smoothing

    @property
    def sentence_metric(self) -> str:
        """The name of this metric; with the formula of BLEU ``NAME+1``."""
        counted = self.formula.metric
        return (
            self.name
            if counted is None
            else counted.sentence_metric.replace(counted.name, self.name, 1)
        )

    @property
    def needs_texts(self) -> bool:
        """Whether statistics need the texts, which a scorer reads."""
        return self.scorer is not None

    @property
    def needs_references(self) -> bool:
        """False: a scorer gets them if there are any."""
        return False

    @property
    def needs_outside(self) -> bool:
        """Whether statistics need scores from outside, as without a scorer."""
        return self.scorer is None

    @property
    def n_statistics(self) -> int:
        """Number of statistics of one hypothesis; 2 for ``mean`` and ``ratio``."""
        return len(self.statistics_names)

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Name of each statistic."""
        if self.formula.metric is not None:
            return self.formula.metric.statistics_names
        return ("sum", "hypotheses") if self.formula == MEAN else ("numerator", "denominator")

    def signature(self) -> str:
        """Name, formula, whether it is an error rate, and the version of the program."""
        rate = "|rate:yes" if self.is_error_rate else ""
        version = f"|version:{self.version}" if self.version else ""
        return f"{self.name}|outside:{self.formula.name}{rate}{version}"

    def prepare(self, references: Sequence[Sequence[bytes]]) -> PreparedReferences:
        """Return the signature and fingerprint of the scores, and the texts for a scorer.

        Raises:
            DataError: references differ in length, or from the source sentences; or ``sentence``
                has no source.
        """
        if self.scorer is None:
            return PreparedReferences(
                n_sentences=0,
                n_references=0,
                signature=self.signature(),
                fingerprint=self.fingerprint,
            )
        n_sentences = check_references(references) if references else 0
        source = self.source
        if source is not None and self.sentence is not None:
            if self.sentence >= len(source):
                raise DataError(
                    f"sentence {self.sentence} has no source: there are {len(source)}, counted "
                    "from 0"
                )
            source = (source[self.sentence],) * n_sentences
        if references and source is not None and len(source) != n_sentences:
            raise DataError(
                f"{self.name} reads {len(source)} source sentences, but the references have "
                f"{n_sentences} lines: give the source that the references translate"
            )
        texts = [*references, *([] if source is None else [source])]
        return ScoredReferences(
            n_sentences=n_sentences,
            n_references=len(references),
            signature=f"{self.signature()}|nrefs:{len(references)}",
            fingerprint=combine_fingerprints(
                ["source" if source is not None else "", reference_fingerprint(texts)]
            ),
            lines=tuple(zip(*references, strict=True)),
            source=source,
            sentence=self.sentence,
        )

    def statistics(
        self,
        prepared: PreparedReferences,
        sentence_ids: NDArray[np.int64],
        buffer: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        threads: int = 1,
        outside: NDArray[np.float64] | None = None,
    ) -> NDArray[Any]:
        """Return the statistics of each hypothesis, ``[n, n_statistics]``.

        They are int32 if they are those of a metric that counts, else float64.

        Raises:
            DataError: the hypotheses carry no scores from outside, too few columns, or numbers
                that the formula does not take; or as ``TextScorer.score``.
            ValueError: the references were prepared for other settings.
        """
        if self.scorer is not None:
            hypotheses = HypothesisRanges(sentence_ids, buffer, starts, ends)
            values = self._ask(self.scorer, prepared, hypotheses)
        elif outside is None or outside.shape[1] <= max(self.columns):
            raise DataError(
                f"these hypotheses have no scores of {self.name}: give {{--scores}} "
                f"{self.name}=FILE, one line for each hypothesis"
            )
        else:
            values = np.asarray(outside[:, list(self.columns)], dtype=np.float64)
        if (fault := self.formula.find_fault(values)) is not None:
            row, why = fault
            raise DataError(
                f"{self.name} of hypothesis {row} (from 0), which belongs to sentence "
                f"{sentence_ids[row]}: {why}. {self.formula.name} takes {self.formula.describe()}"
            )
        if self.formula == MEAN:
            return np.column_stack([values, np.ones(len(values))])
        return values if self.has_doubles else values.astype(np.int32)

    def _ask(
        self,
        scorer: TextScorer,
        prepared: PreparedReferences,
        hypotheses: HypothesisRanges,
    ) -> NDArray[np.float64]:
        """Return the numbers of a scorer, which reads each text of a sentence once."""
        if not isinstance(prepared, ScoredReferences) or not prepared.signature.startswith(
            f"{self.signature()}|nrefs:"
        ):
            raise ValueError(
                f"references prepared for {prepared.signature} cannot serve {self.signature()}"
            )
        # Without references, any sentence can be scored; ``ask`` knows whether it has a source.
        n_sentences = prepared.n_sentences if prepared.n_references else sys.maxsize
        hypotheses = check_hypotheses(*hypotheses, n_sentences=n_sentences)
        places: dict[tuple[int, bytes], int] = {}
        rows = [places.setdefault(key, len(places)) for key in split_hypotheses(hypotheses)]
        numbers = scorer.score([prepared.ask(*key) for key in places])
        return numbers[np.array(rows, dtype=np.int64)]

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of sums: ``[..., n_statistics]`` to float64 ``[...]``."""
        if self.formula.metric is not None:
            return self.formula.metric.score(totals)
        totals = check_totals(self.name, self.n_statistics, totals)
        if self.is_error_rate:
            return np.asarray(1.0 - divide_errors(totals[..., 0], totals[..., 1]))
        return divide_sums(totals)

    def sentence_scores(
        self, stats: NDArray[np.float64], smoothing: Smoothing = "lin-och"
    ) -> NDArray[np.float64]:
        """Return the score of each row of ``stats``; see ``Metric.sentence_scores``."""
        if self.formula.metric is not None:
            return self.formula.metric.sentence_scores(stats, smoothing)
        return super().sentence_scores(stats, smoothing)

    def floor_matches(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return totals without zero matches of a metric; see ``Metric.floor_matches``."""
        return totals if self.formula.metric is None else self.formula.metric.floor_matches(totals)
