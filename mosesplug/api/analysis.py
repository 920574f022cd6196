"""Analyze how systems differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from formats.text import StrPath, write_atomic
from mosesplug.api.keywords import LEARNING
from mosesplug.api.lists.arrays import encode_texts, load_references, name_references
from mosesplug.api.numbers import check_integer
from mosesplug.api.progress import Progress, open_progress
from mosesplug.api.scoring import list_metrics, load_systems
from mosesplug.api.tables.records import tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.errors import UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics import Metric
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.results.analysis.analysis import (
    SystemAnalysis,
    analyze_systems,
    measure_metric,
    read_source,
    read_systems,
)
from mosesplug.results.analysis.examples import Example
from mosesplug.results.analysis.ngrams import NgramDifference
from mosesplug.results.analysis.sentences import SentenceBucket
from mosesplug.results.analysis.words import WordAccuracy
from mosesplug.results.report.analysis_page import render_analysis
from mosesplug.results.scores.comparison import System, SystemScore, find_shared_weights
from mosesplug.results.scores.scoring import prepare_metrics
from mosesplug.results.scores.sentence_ids import arrange_systems


class Analysis:
    """The differences between systems, as tables and as a page.

    ``analyze`` returns it.

    Attributes:
        facts: the records of the tables.
        warnings: how the tables differ from the scores of ``compare``, if they do.

    Example:
        >>> import mosesplug
        >>> systems = {"base": ["a house", "yes"], "new": ["the house", "yes"]}
        >>> analysis = mosesplug.analyze(systems, ["the house", "yes"], "WER")
        >>> [(row["bucket"], row["system"], row["f1"]) for row in analysis.words][-2:]
        [('all', 'base', 0.6666666666666666), ('all', 'new', 1.0)]
        >>> analysis.write_html("analysis.html").name
        'analysis.html'
    """

    def __init__(self, facts: SystemAnalysis, warnings: Sequence[str] = ()) -> None:
        self.facts = facts
        self.warnings = tuple(warnings)

    @property
    def words(self) -> Table:
        """Precision, recall and F1 of words by their frequency."""
        return tabulate_records(WordAccuracy, self.facts.words)

    @property
    def sentences(self) -> Table:
        """Scores of sentences by length, by difference of length, and by sentence score."""
        return tabulate_records(SentenceBucket, self.facts.sentences)

    @property
    def ngrams(self) -> Table:
        """N-grams that one system has right, or wrong, more often than the baseline."""
        return tabulate_records(NgramDifference, self.facts.ngrams)

    @property
    def examples(self) -> Table:
        """Sentences whose scores differ most; line breaks separate several references."""
        return tabulate_records(Example, self.facts.examples)

    def write_html(
        self,
        path: StrPath,
        *,
        scores: Sequence[SystemScore] = (),
        title: str = "Comparison of systems",
    ) -> Path:
        """Write one HTML page with all tables and charts; it needs no other files.

        Args:
            path: the file.
            scores: result of ``compare``, shown first.
            title: title of the page.

        Raises:
            OSError: the file cannot be written.
        """
        page = render_analysis(self.facts, title, scores, self.warnings)
        write_atomic(path, mark_invalid_utf8(page).encode())
        return Path(path)

    def __repr__(self) -> str:
        tables = (self.words, self.sentences, self.ngrams, self.examples)
        warnings = (f"warning: {warning}" for warning in self.warnings)
        return "\n\n".join([*(repr(table) for table in tables if len(table)), *warnings])

    def _repr_html_(self) -> str:
        tables = (self.words, self.sentences, self.ngrams, self.examples)
        warnings = "".join(f"<p>warning: {escape(warning)}</p>" for warning in self.warnings)
        return "".join(table._repr_html_() for table in tables if len(table)) + warnings


@LEARNING.in_messages()
def analyze(
    systems: Mapping[str, Any],
    references: Any,
    metrics: Sequence[str | Metric] | str | None = None,
    *,
    source: StrPath | Sequence[str] | Sequence[bytes] | None = None,
    frequencies: StrPath | Mapping[str, int] | None = None,
    ngrams: int = 10,
    examples: int = 5,
    ids: bool | None = None,
    progress: Progress = None,
) -> Analysis:
    """Analyze how systems differ from the first one.

    The tables are about words, sentences, n-grams and examples. The reports are those of compare-mt
    (Neubig et al. 2019).

    Args:
        systems: as for ``compare``.
        references: as for ``optimize``.
        metrics: as for ``score``; sentence scores are those of the first one.
        source: the source sentences, or their file; None leaves them out.
        frequencies: how often words occur, 0 for others; or a file: a text, such as the training
            text, or lines of word, tab and count. None: in the references.
        ngrams: number of n-grams for each pair of systems, kind, and system that has more.
        examples: number of sentences for each pair of systems, and system that is better.
        ids: as for ``score``.
        progress: as for ``optimize``.

    Returns:
        The tables ``words``, ``sentences``, ``ngrams`` and ``examples``; ``write_html`` writes
        them with charts as one page. Counts and scores of several runs are means. Each sentence
        counts once, also if runs have sentence weights: ``warnings`` says so then.

    Raises:
        UsageError: fewer than two systems, or an unknown metric.
        DataError: a system has another number of sentences than the references.
        FormatError: a file cannot be read.

    Example:
        >>> import mosesplug
        >>> references = ["the house is small", "yes it is", "we see the old town"]
        >>> worse = [text.replace("the", "a") for text in references]
        >>> analysis = mosesplug.analyze({"base": worse, "new": references}, references, "WER")
        >>> first = analysis.ngrams[0]
        >>> first["kind"], first["more"], first["ngram"], first["ratio"]
        ('right', 'new', 'the', 0.75)
        >>> analysis.examples[0]["sentence"], analysis.examples[0]["difference"]
        (0, -0.25)
    """
    ngrams, examples = check_integer(ngrams, "ngrams", 0), check_integer(examples, "examples", 0)
    lines = load_references(references)
    compared = load_systems(systems, len(lines[0]))
    compared, arranged = arrange_systems(compared, lines, ids, what=name_references(references))
    with open_progress(progress) as report:
        return analyze_all(
            compared,
            arranged,
            list_metrics(metrics),
            source=source,
            frequencies=_check_frequencies(frequencies),
            ngrams=ngrams,
            examples=examples,
            progress=report,
        )


def _load_source(
    source: StrPath | Sequence[str] | Sequence[bytes] | None, n_sentences: int
) -> list[bytes] | None:
    if source is None:
        return None
    if isinstance(source, str | PathLike):
        return read_source(source, n_sentences)
    return encode_texts(source, "source", n_sentences)


def _check_frequencies(
    frequencies: StrPath | Mapping[str, int] | None,
) -> Mapping[bytes, int] | StrPath | None:
    if frequencies is None or isinstance(frequencies, str | PathLike):
        return frequencies
    if not isinstance(frequencies, Mapping):
        raise UsageError("frequencies must be a file, or a mapping from words to numbers")
    words = encode_texts(list(frequencies), "frequencies")
    return {
        word: check_integer(count, f"frequencies[{key!r}]", 0)
        for word, (key, count) in zip(words, frequencies.items(), strict=True)
    }


def analyze_all(
    systems: Sequence[System],
    references: Sequence[Sequence[bytes]],
    metrics: Sequence[str | Metric],
    outside: Sequence[OutsideMetric] = (),
    *,
    source: StrPath | Sequence[str] | Sequence[bytes] | None,
    frequencies: Mapping[bytes, int] | StrPath | None,
    ngrams: int,
    examples: int,
    progress: Any,
) -> Analysis:
    """Return the analysis of systems.

    Arguments and errors are as for ``analyze``; ``outside`` are metrics of the scores from outside
    that systems have. Without references, there are only sentence scores and examples.
    """
    n_sentences = len(references[0]) if references else len(systems[0].outside[0])
    texts = read_systems(systems, n_sentences)
    sources = _load_source(source, n_sentences)
    statistics = []
    for prepared in prepare_metrics(metrics, references, outside):
        statistics.append(measure_metric(systems, prepared))
        progress(len(statistics), len(metrics), "metrics of the analysis")
    facts = analyze_systems(
        texts,
        references,
        statistics,
        source=sources,
        frequencies=frequencies,
        ngrams=ngrams,
        examples=examples,
    )
    _, note = find_shared_weights(systems)
    return Analysis(facts, [note] if note else ())
