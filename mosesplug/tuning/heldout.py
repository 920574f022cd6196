"""Score weights on a held-out set that they were not tuned on.

The decoder runs with n-best lists of one hypothesis, or stored search graphs give the best one. The
scores of all iterations form one sequence; a score that is a new best is stored with its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formats.text import read_lines
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.protocol import BatchTask
from mosesplug.errors import DataError, UsageError
from mosesplug.events import CommandStarted, HeldOutScored, PhaseStarted, Watcher
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import HeldOutSet
from mosesplug.tuning.graphs.files import DecodedText
from mosesplug.tuning.graphs.forest import open_forest
from mosesplug.tuning.references import read_text_references
from mosesplug.tuning.weights import Weights, to_model_weights
from mosesplug.tuning.workdir.records import Evaluation

_CACHE = "heldout-forest.lmdb"
"""The store, in the working directory, of search graphs that are imported from files."""


@dataclass(frozen=True)
class HeldOutScorer:
    """Decodes the held-out set and scores it.

    Attributes:
        decoder: the decoder of the sentences.
        metric: that scores the 1-best.
    """

    texts: tuple[bytes, ...]
    references: PreparedReferences
    decoder: BatchDecoder
    show: ShowWeights
    metric: Metric
    watch: Watcher
    threads: int

    def score(self, weights: Weights) -> float:
        """Return the corpus score with these weights.

        A missing translation counts as empty.

        Raises:
            DecoderError: the decoder failed.
        """
        lines = self.translate(weights)
        ends = np.cumsum([0, *map(len, lines)], dtype=np.int64)
        statistics = self.metric.statistics(
            self.references,
            np.arange(len(lines)),
            np.frombuffer(b"".join(lines), dtype=np.uint8),
            ends[:-1],
            ends[1:],
            threads=self.threads,
        )
        return float(self.metric.score(statistics.sum(axis=0, dtype=np.int64)))

    def translate(self, weights: Weights) -> list[bytes]:
        """Return the 1-best translations with these weights, empty where one is missing.

        Raises:
            DecoderError: the decoder failed.
        """
        return translate_sentences(self.decoder, self.texts, to_model_weights(self.show, weights))

    def evaluate(
        self, iteration: int, updates: int, weights: Weights, before: Sequence[Evaluation]
    ) -> Evaluation:
        """Score weights on the held-out set."""
        self.watch(PhaseStarted(iteration, "judge"))
        score = self.score(weights)
        best = find_best(before)
        highest = None if best is None else best.score
        self.watch(HeldOutScored(iteration, updates, self.metric.name, score, highest))
        is_better = highest is None or score > highest
        return Evaluation(updates, score, weights if is_better else None)

    def evaluate_iteration(
        self, iteration: int, start: Weights, optimized: Weights, before: Sequence[Evaluation]
    ) -> tuple[Evaluation, ...]:
        """Score the weights of an iteration.

        Args:
            start: the weights of its decoding; scored, too, if nothing was scored before,
                because they may stay the best.
        """
        first = () if before else (self.evaluate(iteration, iteration - 1, start, before),)
        return (*first, self.evaluate(iteration, iteration, optimized, (*before, *first)))


def open_held_out_scorer(
    configuration: Configuration, config: Path, show: ShowWeights, watch: Watcher
) -> HeldOutScorer | None:
    """Return the scorer of the held-out set, or None without one.

    Raises:
        UsageError: n-best lists are rewritten before scoring, which translations are not.
        DataError: the held-out set is empty, input and references differ in length, or there are no
            search graphs.
        FormatError: a file cannot be read.
    """
    held_out = configuration.held_out
    if held_out is None:
        return None
    if configuration.decoding.transform is not None:
        raise UsageError(
            "held-out text cannot be scored where n-best lists are rewritten before scoring: leave"
            " one of the two out"
        )
    texts = tuple(read_lines(held_out.input))
    if not any(text.strip() for text in texts):
        raise DataError(f"the held-out text {held_out.input} is empty; give a file with sentences")
    metric, optimization = configuration.metric, configuration.optimization
    references = metric.prepare(
        read_text_references(configuration, held_out.references, len(texts), held_out.input)
    )
    text = DecodedText(held_out.input, texts, metric, references)
    decoder = _open_decoder(configuration, held_out, config, text, watch)
    return HeldOutScorer(texts, references, decoder, show, metric, watch, optimization.threads)


def _open_decoder(
    configuration: Configuration,
    held_out: HeldOutSet,
    config: Path,
    text: DecodedText,
    watch: Watcher,
) -> BatchDecoder:
    """Return the decoder of the held-out set, which gives one hypothesis a sentence."""

    description = held_out.decoder or configuration.decoding.decoder
    directory = configuration.working_directory
    if description.stored_graphs is None:
        return description.open_batches(
            BatchTask(
                config,
                directory,
                1,
                prefix="heldout",
                executing=lambda command: watch(CommandStarted(command)),
            )
        )
    return open_forest(
        description.stored_graphs,
        directory / _CACHE,
        configuration.config,
        text,
        nbest=1,
        threads=configuration.optimization.threads,
        watch=watch,
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
    """Return the first evaluation with the highest score, or None."""
    return max(evaluations, key=lambda evaluation: evaluation.score, default=None)


def count_since_best(evaluations: Sequence[Evaluation]) -> int:
    """Return how many evaluations came after the best one.

    The starting weights do not count: they may be better than those of the first iterations.
    """
    after_updates = [evaluation for evaluation in evaluations if evaluation.updates]
    best = find_best(after_updates)
    return 0 if best is None else len(after_updates) - 1 - after_updates.index(best)
