"""Score translations, and compare systems."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Unpack

from formats.nbest.block import NBestList
from formats.pipes import wrap_files
from formats.text import StrPath
from mosesplug.api.keywords import LEARNING, ListKeywords, make_list_keywords
from mosesplug.api.lists.arrays import encode_texts, load_references, name_references
from mosesplug.api.lists.nbest import NBest
from mosesplug.api.lists.statistics import (
    attach_named_scores,
    attach_to_block,
    convert_named_scores,
    read_columns,
)
from mosesplug.api.numbers import check_integer
from mosesplug.api.progress import Progress, log_warnings, open_progress
from mosesplug.api.tables.records import Records, tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.errors import Message, UsageError
from mosesplug.learning.lists.outside import make_outside_metrics
from mosesplug.learning.lists.references import match_references
from mosesplug.metrics import Metric
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.results.scores.comparison import (
    System,
    SystemScore,
    compare_systems,
    find_shared_weights,
    find_system_warnings,
)
from mosesplug.results.scores.decodings import RunDecoding, find_decodings
from mosesplug.results.scores.scoring import (
    DEFAULT_METRICS,
    MetricScore,
    prepare_metrics,
    score_translation,
)
from mosesplug.results.scores.sentence_ids import arrange_by_ids, arrange_systems

Score = TypeVar("Score", bound=MetricScore | SystemScore)


class Scores(Records[Score], Generic[Score]):
    """Scores that print as a table.

    Args:
        records: the scores, ``MetricScore`` or ``SystemScore``.
        warnings: what to check about the texts that were scored.
    """

    def __init__(self, records: Sequence[Score], warnings: Sequence[str] = ()) -> None:
        super().__init__(records)
        self.warnings = tuple(warnings)

    @property
    def table(self) -> Table:
        """The scores as a table, without those of single sentences."""
        kind = type(self._records[0]) if self._records else None
        return Table.of_columns({}) if kind is None else tabulate_records(kind, self._records)

    def __repr__(self) -> str:
        return "\n".join([repr(self.table), *(f"warning: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        warnings = "".join(f"<p>warning: {escape(warning)}</p>" for warning in self.warnings)
        return f"{self.table._repr_html_()}{warnings}"


@LEARNING.in_messages()
def score(
    hypotheses: NBest | StrPath | Sequence[str] | Sequence[bytes],
    references: Any = None,
    metrics: Sequence[str | Metric] | str | None = None,
    *,
    scores: Mapping[str, Any] | None = None,
    select: int | Literal["oracle"] | None = None,
    ids: bool | None = None,
    errors: int | None = None,
    samples: int = 1000,
    seed: int = 1,
    **reading: Unpack[ListKeywords],
) -> Scores[MetricScore]:
    """Score translations by several metrics.

    Texts are scored as they are, tokens separated by blanks.

    Args:
        hypotheses: a translation for each sentence, or their file; or n-best lists of all
            sentences.
        references: as for ``optimize``; optional with ``scores``.
        metrics: names with settings, as ``"CHRF beta:2"``, or metrics; None: BLEU, TER-SACREBLEU
            and CHRF with beta 2; without references, all of ``scores``.
        scores: scores that another program computed, by name as for ``optimize``: a number for each
            sentence, or for each hypothesis of n-best lists, or a file of them.
        select: which hypothesis of n-best lists (``NBest``, or a file of lists) to score: a rank
            from 1, or ``"oracle"``, a greedy search for the best of the corpus. None: the first
            of an ``NBest``; a file has translations.
        ids: whether the lines of translations and references begin with sentence ids, by which they
            are matched, as in Kaldi's ``text``. None: the lines decide; what cannot be decided, or
            ids on one side only, is an error. False: lines have one order, and first words are
            words.
        errors: align translations and references, and return this number of sentences with the most
            errors in ``edits`` of WER, MER and CER, with the numbers of substitutions, deletions
            and insertions.
        samples: bootstrap samples for the 95 % intervals; 0 for none.
        seed: seed of the bootstrap.
        reading: how n-best lists are read, see ``ListKeywords``.

    Returns:
        The score by each metric: ``metric``, ``score``, ``interval``, ``signature`` and
        ``sentences``, the scores of the sentences; and ``warnings``, what to check about the texts.
        Error rates (TER, WER, CER, ...) are rates:
        less is better. Sentence scores of BLEU are BLEU+1 (Lin & Och 2004).

    Raises:
        UsageError: an unknown metric or setting.
        DataError: the references have another number of sentences, or it cannot be decided
            whether lines begin with ids.
        FormatError: a file cannot be read.

    Example:
        >>> import mosesplug
        >>> texts = ["the house is small", "yes"]
        >>> found = mosesplug.score(texts, [["the house is big", "yes"]], metrics=["WER", "CHRF"])
        >>> round(found[0].score, 4), found[0].sentences
        (0.2, (0.25, 0.0))
        >>> len(found)
        2
    """
    samples, seed = check_integer(samples, "samples", 0), check_integer(seed, "seed", 0)
    errors = None if errors is None else check_integer(errors, "errors", 0)
    if select is not None and select != "oracle" and not isinstance(select, int):
        raise UsageError(f"select is {select!r}: give a rank from 1, or 'oracle'")
    if isinstance(select, int) and select < 1:
        raise UsageError(f"select is {select}: give a rank from 1, or 'oracle'")
    settings = make_list_keywords(reading)
    given = () if metrics is None or isinstance(metrics, str) else metrics
    if references is None and not scores and all(isinstance(metric, str) for metric in given):
        raise UsageError("references is missing: give references, or scores")
    if settings.transform is not None and select is None and not isinstance(hypotheses, NBest):
        raise UsageError(
            "transform requires n-best lists: give select, or transform the translation"
        )
    sources = convert_named_scores(scores) if scores else ()
    lines: Sequence[Sequence[bytes]] = [] if references is None else load_references(references)
    source: Any
    outside = None
    what = name_references(references)
    known_ids: Sequence[str] = ()
    is_listed = isinstance(hypotheses, NBest) or select is not None
    if isinstance(hypotheses, NBest):
        source = attach_to_block(hypotheses.block, sources)
    elif isinstance(hypotheses, str | PathLike):
        (source,) = wrap_files([hypotheses])
    else:
        source = encode_texts(hypotheses, "hypotheses")
    if sources and not is_listed:
        outside = read_columns(sources, source)
    elif sources:
        settings = replace(settings, scores=sources)
    if is_listed and isinstance(source, NBestList | str | PathLike):
        matched = match_references([source], replace(settings, ids=ids), lines, what)
        lines, known_ids = matched.lines, matched.ids.names
    elif not is_listed:
        arranged = arrange_by_ids([source], lines, ids, what=what)
        (source,), (order,), lines = arranged.translations, arranged.orders, arranged.references
        known_ids = arranged.ids
    if not is_listed:
        outside = outside if outside is None or order is None else outside[order]
    known = make_outside_metrics(sources)
    chosen = list_metrics(metrics)
    if metrics is None:
        chosen = [*(chosen if lines else ()), *(name.name for name in known)]
    prepared = prepare_metrics(chosen, lines, known)
    records, warnings = score_translation(
        source,
        prepared,
        selection=select,
        settings=settings,
        ids=known_ids,
        outside=outside,
        references=lines,
        errors=errors,
        samples=samples,
        seed=seed,
    )
    return _tell_warnings(Scores(records, warnings))


def _tell_warnings(scores: Scores[Score]) -> Scores[Score]:
    """Log the warnings of scores, and return the scores with keywords in them."""
    warnings = [Message(warning, LEARNING) for warning in scores.warnings]
    log_warnings(warnings)
    return Scores(scores, warnings)


@LEARNING.in_messages()
def compare(
    systems: Mapping[str, Any],
    references: Any = None,
    metrics: Sequence[str | Metric] | str | None = None,
    *,
    scores: Mapping[str, Mapping[str, Any]] | None = None,
    ids: bool | None = None,
    decode: bool = False,
    samples: int = 1000,
    trials: int = 10_000,
    seed: int = 1,
    progress: Progress = None,
) -> Scores[SystemScore]:
    """Test whether systems differ from the first by more than chance.

    Args:
        systems: the systems by name, the baseline first: a translation for each sentence, its file,
            or the working directory of a tuning run; or, for several runs of a system with other
            optimizer seeds, a sequence of these (``Path`` objects or sequences of texts).
        references: as for ``optimize``; optional with ``scores``.
        metrics: as for ``score``; names of ``scores``, too. None: also all of ``scores``.
        scores: scores that another program computed, by metric and system: ``{"COMET": {"base":
            numbers, "new": numbers}}``, a number for each sentence, or a file of them; of several
            runs, a list of these. Names are as for ``optimize``.
        ids: as for ``score``.
        decode: decode the tuning sets of working directories with the weights of their results,
            where no iteration did; otherwise the last decoding counts, and a note is logged.
        samples: bootstrap samples.
        trials: trials of approximate randomization.
        seed: seed of all draws.
        progress: as for ``optimize``.

    Returns:
        The score of each system by each metric: ``score``, ``interval``, ``difference`` from the
        baseline, ``p_randomization`` (Riezler & Maxwell 2005; of several runs Clark et al. 2011),
        ``p_bootstrap``, ``wins`` and ``difference_interval`` (Koehn 2004), and more.

    Raises:
        UsageError: fewer than two systems, or an unknown metric.
        DataError: a system has another number of sentences than the references.
        FormatError: a file cannot be read.

    Example:
        >>> import mosesplug
        >>> references = ["the house is small", "yes it is", "we see the old town"] * 5
        >>> worse = [text.replace("the", "a") for text in references]
        >>> base, new = mosesplug.compare({"base": worse, "new": references}, references, "WER")
        >>> round(base.score, 4), new.score, round(new.difference, 4)
        (0.1667, 0.0, -0.1667)
        >>> new.p_randomization < 0.05
        True
    """
    samples, trials = check_integer(samples, "samples", 1), check_integer(trials, "trials", 1)
    seed = check_integer(seed, "seed", 0)
    given = () if metrics is None or isinstance(metrics, str) else metrics
    if references is None and not scores and all(isinstance(metric, str) for metric in given):
        raise UsageError("references is missing: give references, or scores")
    lines: Sequence[Sequence[bytes]] = [] if references is None else load_references(references)
    compared = load_systems(systems, len(lines[0]) if lines else None, decode=decode)
    outside: Sequence[OutsideMetric] = ()
    if scores:
        compared, outside = attach_named_scores(compared, scores)
    compared, lines = arrange_systems(compared, lines, ids, what=name_references(references))
    chosen = list_metrics(metrics)
    if metrics is None:
        chosen = [*(chosen if lines else ()), *(metric.name for metric in outside)]
    with open_progress(progress) as report:
        return _tell_warnings(
            compare_all(
                compared,
                lines,
                chosen,
                outside,
                samples=samples,
                trials=trials,
                seed=seed,
                progress=report,
            )
        )


def compare_all(
    systems: Sequence[System],
    references: Sequence[Sequence[bytes]],
    metrics: Sequence[str | Metric],
    outside: Sequence[OutsideMetric] = (),
    *,
    samples: int,
    trials: int,
    seed: int,
    progress: Any,
) -> Scores[SystemScore]:
    """Return the scores of systems by all metrics.

    Arguments and errors are as for ``compare``; ``outside`` are metrics of the scores from outside
    that systems have.
    """
    prepared = prepare_metrics(metrics, references, outside)
    scores: list[SystemScore] = []
    for metric in prepared:
        scores += compare_systems(systems, metric, samples=samples, trials=trials, seed=seed)
        progress(len(scores), len(prepared) * len(systems), "systems")
    signatures = [metric.references.signature for metric in prepared]
    _, note = find_shared_weights(systems)
    warnings = find_system_warnings(systems, references, signatures)
    return Scores(scores, (*([note] if note else ()), *warnings))


def list_metrics(metrics: Sequence[str | Metric] | str | None) -> Sequence[str | Metric]:
    """Return the metrics of a call, those of ``score`` by default.

    Raises:
        UsageError: something else than metrics is given.
    """
    if metrics is None:
        return DEFAULT_METRICS
    if isinstance(metrics, str):
        return [metrics]
    if not isinstance(metrics, Sequence):
        raise UsageError(f"metrics is a {type(metrics).__name__}: give a list of names or metrics")
    if not metrics:
        raise UsageError("metrics is empty: give one metric or more")
    for place, metric in enumerate(metrics):
        if not isinstance(metric, str) and not hasattr(metric, "prepare"):
            raise UsageError(f"metrics[{place}] is {metric!r}: give a name, as 'BLEU', or a metric")
    return metrics


def load_systems(
    systems: Mapping[str, Any], n_sentences: int | None, *, decode: bool = False
) -> list[System]:
    """Return the systems of ``compare``.

    Raises:
        UsageError: they have no names, there are fewer than two, or one is no translation.
    """
    if not isinstance(systems, Mapping):
        raise UsageError("systems must be a mapping of names to translations, the baseline first")
    if len(systems) < 2:
        raise UsageError("systems: give two systems or more, the baseline first")
    return [
        System.of_decodings(
            name, _find_translations(value, f"systems[{name!r}]", n_sentences, decode)
        )
        for name, value in systems.items()
    ]


def _find_translations(
    value: Any, what: str, n_sentences: int | None, decode: bool
) -> list[RunDecoding]:
    """Return the translations of each run of a system."""
    if isinstance(value, str | PathLike):
        path = Path(value)
        if not path.is_dir():
            return [*map(RunDecoding, wrap_files([value]))]
        decodings = find_decodings(path, decode=decode)
        for decoding in decodings:
            if decoding.note:
                remedy = ". decode=True decodes with the result" if decoding.has_result else ""
                logging.getLogger("mosesplug").warning("note: %s%s", decoding.note, remedy)
        return decodings
    if isinstance(value, Mapping) or not hasattr(value, "__len__") or not len(value):
        raise UsageError(f"{what} must be a file, a text for each sentence, or several of these")
    if isinstance(next(iter(value)), str | bytes):
        return [RunDecoding(encode_texts(value, what, n_sentences))]
    runs = (
        _find_translations(run, f"{what}[{place}]", n_sentences, decode)
        for place, run in enumerate(value)
    )
    return [decoding for run in runs for decoding in run]
