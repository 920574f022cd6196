"""Check data before tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from formats.references import read_references
from formats.text import StrPath, read_lines
from mosesplug.api.keywords import LEARNING
from mosesplug.api.lists.arrays import encode_texts, load_references
from mosesplug.api.lists.learning import take_lists
from mosesplug.api.lists.sources import ListSource, convert_lists
from mosesplug.api.tables.records import ShownRecord, tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import Metric
from mosesplug.metrics.registry import metric_of_text
from mosesplug.results.checking import DataCheck, TextStatistics, check_data

Texts = StrPath | Sequence[str] | Sequence[bytes]


@dataclass(frozen=True, repr=False)
class DataReport(ShownRecord, DataCheck):
    """The result of a check of data; it prints as tables.

    ``check`` returns it.
    """

    @property
    def warnings(self) -> tuple[str, ...]:
        """The messages of ``signs``."""
        return tuple(sign.message for sign in self.signs)

    @property
    def table(self) -> Table:
        """The size of each text: one row for each."""
        return tabulate_records(TextStatistics, self.texts)


@LEARNING.in_messages()
def check(
    source: Texts,
    references: Any,
    *,
    nbest: ListSource | Sequence[ListSource] | None = None,
    phrase_table: StrPath | None = None,
    train: Texts | None = None,
    test: Texts | None = None,
    metric: str | Metric = "BLEU",
) -> DataReport:
    """Check a tuning set and its n-best lists before tuning.

    Args:
        source: the input: a file with one sentence a line, or the sentences.
        references: its translations, in the order of the source: a file or the prefix of several;
            a text for each sentence; or several sequences of texts, ``[reference][sentence]``.
        nbest: n-best lists of the source, as ``lists`` of ``optimize``.
        phrase_table: a phrase table of Moses: a text file, compressed or not.
        train: the source side of the training text: a file, or its sentences.
        test: the source side of a test set: a file, or its sentences.
        metric: the metric to tune for, which says how texts are read: a name with settings, as
            ``"BLEU tokenize:13a"``, or a metric.

    Returns:
        ``texts``, the size of each text, which are also the rows of ``table`` and of data frames;
        ``facts``, other figures by name; ``signs``, what to mend or to know, each with ``name`` and
        ``message``; and ``warnings``, their messages. Without ``signs``, nothing was found.

    Raises:
        UsageError: an unknown metric or setting, or an argument of another type.
        DataError: texts or lists have other sentences than the source.
        FormatError: a file cannot be read, or has another number of lines than the source.

    Example:
        >>> import mosesplug
        >>> report = mosesplug.check("dev.fr", "dev.en", nbest="run1.best100.out.gz")
        >>> report.facts["dense features"]
        2
        >>> [sign.name for sign in report.signs][:1], report.warnings[0]
        (['few sentences'], '4 sentences: too few to learn weights that hold for other text...')
    """
    scorer = _find_metric(metric)
    lines = _load_texts(source, "source")
    report = check_data(
        lines,
        _load_references(references, source, len(lines)),
        scorer,
        nbest=() if nbest is None else take_lists(convert_lists(nbest, what="nbest"), "nbest"),
        phrase_table=phrase_table,
        train=None if train is None else _load_texts(train, "train"),
        test=None if test is None else _load_texts(test, "test"),
    )
    return DataReport(report.texts, report.facts, report.signs).spell(LEARNING)


def _find_metric(metric: str | Metric) -> Metric:
    if isinstance(metric, str):
        return metric_of_text(metric)
    if not hasattr(metric, "prepare"):
        raise UsageError(f"metric is {metric!r}: give a name, as 'BLEU', or a metric")
    return metric


def _load_texts(texts: Texts, what: str) -> list[bytes]:
    if isinstance(texts, str | PathLike):
        return read_lines(texts)
    return encode_texts(texts, what)


def _load_references(references: Any, source: Texts, n_sentences: int) -> list[list[bytes]]:
    """Return references, one for each source sentence."""
    if isinstance(references, str | PathLike):
        path = source if isinstance(source, str | PathLike) else None
        return read_references(references, n_sentences, input_path=path)
    lines = load_references(references)
    if len(lines[0]) != n_sentences:
        raise DataError(
            f"references has {len(lines[0])} sentences, but source has {n_sentences}: give a"
            " reference for each source sentence"
        )
    return lines
