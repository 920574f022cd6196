"""Score weights on sets that they were not tuned on: a held-out set and monitors.

The decoder runs with n-best lists of one hypothesis, or stored search graphs give the best one. The
scores of all iterations form one sequence; a score of the held-out set that is a new best is stored
with its weights. Monitors are translated with the held-out set, but nothing is selected by them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formats.text import read_lines
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.description import DecoderDescription
from mosesplug.decoders.protocol import BatchTask
from mosesplug.errors import DataError, UsageError
from mosesplug.events import CommandStarted, HeldOutScored, PhaseStarted, Watcher
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.scored import bind_source
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import HeldOutSet, Monitor
from mosesplug.tuning.graphs.files import DecodedText
from mosesplug.tuning.graphs.forest import open_forest
from mosesplug.tuning.references import read_text_references
from mosesplug.tuning.reporting import Reporter, score_texts
from mosesplug.tuning.weights import Weights, to_model_weights
from mosesplug.tuning.workdir.records import HELD_OUT, Evaluation


@dataclass(frozen=True)
class ScoredSet:
    """Source sentences that are translated and scored.

    Attributes:
        name: of a monitor; ``HELD_OUT`` for the held-out set.
        decoder: translates the sentences; several sets may have the same.
        reporter: scores the translations by metrics that are reported only.
    """

    name: str
    texts: tuple[bytes, ...]
    references: PreparedReferences
    decoder: BatchDecoder
    reporter: Reporter


@dataclass(frozen=True)
class HeldOutScorer:
    """Decodes the held-out set and the monitors and scores them.

    Attributes:
        sets: the held-out set, if there is one, and the monitors.
        metric: that scores the 1-best.
    """

    sets: tuple[ScoredSet, ...]
    show: ShowWeights
    metric: Metric
    watch: Watcher
    threads: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sets."""
        return tuple(scored_set.name for scored_set in self.sets)

    def _score_lines(
        self, scored_set: ScoredSet, lines: Sequence[bytes]
    ) -> tuple[float, dict[str, float]]:
        """Return the corpus score, and those by metrics that are reported only."""
        texts = HypothesisRanges.of_lines(lines, np.arange(len(lines)))
        score = score_texts(self.metric, scored_set.references, texts, threads=self.threads)
        return score, scored_set.reporter.score(texts)

    def translate(self, scored_set: ScoredSet, weights: Weights) -> list[bytes]:
        """Return the 1-best translations with these weights.

        A missing translation counts as empty.

        Raises:
            DecoderError: the decoder failed.
        """
        return translate_sentences(
            scored_set.decoder, scored_set.texts, to_model_weights(self.show, weights)
        )

    def evaluate(
        self,
        iteration: int,
        updates: int,
        weights: Weights,
        before: Sequence[Evaluation],
        names: Collection[str] | None = None,
    ) -> Evaluation:
        """Score weights on the held-out set and the monitors.

        Args:
            before: earlier evaluations.
            names: the names of the sets; None for all.
        """
        self.watch(PhaseStarted(iteration, "judge"))
        scores: dict[str, float] = {}
        reported: dict[str, dict[str, float]] = {}
        is_better = False
        wanted = [one for one in self.sets if names is None or one.name in names]
        # All are translated before one is reported: translations may have to be asked for.
        translations = [self.translate(scored_set, weights) for scored_set in wanted]
        for scored_set, lines in zip(wanted, translations, strict=True):
            name = scored_set.name
            score, others = self._score_lines(scored_set, lines)
            scores[name] = score
            if others:
                reported[name] = others
            known = [evaluation.scores() for evaluation in before]
            best = max((earlier[name] for earlier in known if name in earlier), default=None)
            shown = scored_set.reporter.display(others)
            self.watch(
                HeldOutScored(iteration, updates, self.metric.name, score, best, name, shown)
            )
            is_better |= name == HELD_OUT and (best is None or score > best)
        held_out = scores.pop(HELD_OUT, None)
        return Evaluation(updates, held_out, weights if is_better else None, scores, reported)

    def evaluate_iteration(
        self, iteration: int, start: Weights, optimized: Weights, before: Sequence[Evaluation]
    ) -> Iterator[Evaluation]:
        """Score the weights of an iteration.

        Args:
            start: the weights of its decoding; scored, too, on sets that were not scored before,
                because they may stay the best.
            before: earlier evaluations, also that of ``start`` if the run was killed after it.
        """
        if new := find_new(self.names, before):
            first = self.evaluate(iteration, iteration - 1, start, before, new)
            yield first
            before = (*before, first)
        yield self.evaluate(iteration, iteration, optimized, before)

    def score_monitors(self, weights: Weights, known: Evaluation) -> Evaluation:
        """Return the scores of all monitors; known ones are not repeated."""
        scores: dict[str, float] = {}
        reported: dict[str, Mapping[str, float]] = {}
        for monitor in self.sets:
            name = monitor.name
            if name == HELD_OUT:
                continue
            if name in known.monitors:
                scores[name], others = known.monitors[name], known.reported.get(name, {})
            else:
                scores[name], others = self._score_lines(monitor, self.translate(monitor, weights))
            if others:
                reported[name] = others
        return Evaluation(known.updates, monitors=scores, reported=reported)


def find_new(names: Iterable[str], before: Sequence[Evaluation]) -> tuple[str, ...]:
    """Return those of the sets that no earlier evaluation has scored."""
    known = {name for evaluation in before for name in evaluation.scores()}
    return tuple(name for name in names if name not in known)


def open_held_out_scorer(
    configuration: Configuration, config: Path, show: ShowWeights, watch: Watcher
) -> HeldOutScorer | None:
    """Return the scorer of the held-out set and the monitors, or None without any.

    Raises:
        UsageError: n-best lists are rewritten before scoring, which translations are not.
        DataError: a set is empty, input and references differ in length, or there are no search
            graphs.
        FormatError: a file cannot be read.
    """
    held_out, monitors = configuration.held_out, configuration.monitors
    if held_out is None and not monitors:
        return None
    if configuration.decoding.transform is not None:
        raise UsageError(
            "held-out text cannot be scored where n-best lists are rewritten before scoring: leave"
            " one of the two out"
        )
    sets: list[tuple[str, HeldOutSet | Monitor]] = []
    if held_out is not None:
        sets.append((HELD_OUT, held_out))
    sets += [(monitor.name, monitor) for monitor in monitors]
    opened = _Decoders(configuration, config, watch)
    return HeldOutScorer(
        tuple(_read_set(configuration, name, files, opened) for name, files in sets),
        show,
        configuration.metric,
        watch,
        configuration.optimization.threads,
    )


def _read_set(
    configuration: Configuration, name: str, files: HeldOutSet | Monitor, opened: _Decoders
) -> ScoredSet:
    source = files.input
    texts = tuple(read_lines(source))
    if not any(text.strip() for text in texts):
        raise DataError(f"the held-out text {source} is empty; give a file with sentences")
    lines = read_text_references(configuration, files.references, len(texts), source)
    # Its own source: that of the metric is the tuning set.
    metric = bind_source(configuration.metric, texts)
    references = metric.prepare(lines)
    text = DecodedText(source, texts, metric, references)
    decoder = opened.find(configuration.decoder_of(files), name, text)
    reporter = Reporter.prepare(
        configuration.report_metrics, lines, texts, threads=configuration.optimization.threads
    )
    return ScoredSet(name, texts, references, decoder, reporter)


class _Decoders:
    """Opens the decoders of the sets, which give one hypothesis a sentence."""

    def __init__(self, configuration: Configuration, config: Path, watch: Watcher) -> None:
        self._configuration, self._watch = configuration, watch
        self._task = BatchTask(
            config,
            configuration.working_directory,
            1,
            prefix="heldout",
            executing=lambda command: watch(CommandStarted(command)),
        )
        self._shared: BatchDecoder | None = None

    def find(self, description: DecoderDescription, name: str, text: DecodedText) -> BatchDecoder:
        """Return the decoder of a set; all that are not search graphs are the same one."""
        if description.stored_graphs is None:
            self._shared = self._shared or description.open_batches(self._task)
            return self._shared
        cache = f"monitor.{name}-forest.lmdb" if name else "heldout-forest.lmdb"
        return open_forest(
            description.stored_graphs,
            self._task.directory / cache,
            self._configuration.config,
            text,
            nbest=1,
            threads=self._configuration.optimization.threads,
            watch=self._watch,
        ).decoder


def translate_sentences(
    decoder: BatchDecoder, sentences: Sequence[bytes], weights: ModelWeights
) -> list[bytes]:
    """Return the 1-best translations of sentences, empty where one is missing.

    Raises:
        DecoderError: the decoder failed.
    """
    lines = [b""] * len(sentences)
    for nbest in decoder.decode(list(enumerate(sentences)), weights):
        if len(nbest):
            lines[int(nbest.sentence_ids[0])] = nbest.text(0)
    return lines


def find_best(evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """Return the first evaluation with the highest score of the held-out set, or None."""
    scores = [evaluation.score for evaluation in evaluations if evaluation.score is not None]
    if not scores:
        return None
    best = max(scores)
    return next(evaluation for evaluation in evaluations if evaluation.score == best)


def count_since_best(evaluations: Sequence[Evaluation]) -> int:
    """Return how many scores of the held-out set came after the best one.

    The starting weights do not count: they may be better than those of the first iterations.
    """
    after_updates = [
        evaluation
        for evaluation in evaluations
        if evaluation.updates and evaluation.score is not None
    ]
    best = find_best(after_updates)
    return 0 if best is None else len(after_updates) - 1 - after_updates.index(best)
