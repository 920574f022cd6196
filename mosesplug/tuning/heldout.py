"""Held-out text: translated with weights that were never tuned on it, to judge them.

The decoder is run as for any text, with lists of one hypothesis; or its search graphs, where it
was decoded before, give the best. Evaluations follow each other through the whole run, over its
iterations; one that is better than all before keeps its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from formats.nbest.files import NBestList
from formats.references import read_references
from formats.text import read_lines
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import Metric, Prepared
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.events import Executing, Judged, PhaseStarted, Watcher
from mosesplug.tuning.graphs.files import DecodedText
from mosesplug.tuning.graphs.forest import open_forest
from mosesplug.tuning.online.source import model_weights
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import Evaluation

__all__ = ["Judge", "best_of", "judge", "since_best"]

_CACHE = "heldout-forest.lmdb"
"""In the working directory, the store of its search graphs where they came as files."""


@dataclass(frozen=True)
class Judge:
    """Translates the held-out text and scores it.

    Attributes:
        texts: its sentences.
        references: compiled for the metric.
        decoder: that translates them.
        show: the decoder's features.
        metric: what scores.
        watch: told of the scores.
        threads: for scoring.
    """

    texts: tuple[bytes, ...]
    references: Prepared
    decoder: BatchDecoder
    show: ShowWeights
    metric: Metric
    watch: Watcher
    threads: int

    def score(self, weights: Weights) -> float:
        """The metric of the translations with these weights; what has none counts as empty.

        Raises:
            DecoderError: the decoder failed.
        """
        lists = self.decoder.decode(self._numbered, model_weights(self.show, weights))
        lines = [b""] * len(self.texts)
        for found in lists:
            lines[int(found.sentence_ids[0])] = _first(found)
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

    def evaluated(
        self, iteration: int, updates: int, weights: Weights, before: Sequence[Evaluation]
    ) -> Evaluation:
        """The next evaluation of a run.

        Args:
            iteration: for those who watch.
            updates: before these weights.
            weights: to judge.
            before: all evaluations of the run so far.
        """
        self.watch(PhaseStarted(iteration, "judge"))
        score = self.score(weights)
        best = best_of(before)
        highest = None if best is None else best.score
        self.watch(Judged(iteration, updates, self.metric.name, score, highest))
        is_better = highest is None or score > highest
        return Evaluation(updates, score, weights if is_better else None)

    def of_iteration(
        self, iteration: int, start: Weights, found: Weights, before: Sequence[Evaluation]
    ) -> tuple[Evaluation, ...]:
        """What an iteration adds to the evaluations of a run.

        Args:
            iteration: from 1.
            start: the weights that it was decoded with. Where nothing was evaluated before, they
                are, too: what the run starts with may stay the best.
            found: in its lists.
            before: all evaluations of the run so far.
        """
        first = () if before else (self.evaluated(iteration, iteration - 1, start, before),)
        return (*first, self.evaluated(iteration, iteration, found, (*before, *first)))

    @cached_property
    def _numbered(self) -> list[tuple[int, bytes]]:
        return list(enumerate(self.texts))


def judge(
    configuration: Configuration, config: Path, show: ShowWeights, watch: Watcher
) -> Judge | None:
    """What translates the configuration's held-out text; None where there is none.

    Raises:
        UsageError: lists are rewritten before scoring, which translations would have to be, too.
        DataError: it is empty; its input and its references differ in their number of lines; or
            there are no search graphs of it where they should be.
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
        raise DataError(
            f"the held-out text {held_out.input} is empty, so all weights translate it alike"
        )
    metric, optimising = configuration.metric, configuration.optimising
    references = metric.prepare(
        read_references(held_out.references, len(texts), input_path=held_out.input)
    )
    decoder: BatchDecoder
    if held_out.forest is not None:
        text = DecodedText(held_out.input, texts, metric, references)
        decoder = open_forest(
            held_out.forest,
            configuration.working_directory / _CACHE,
            configuration.config,
            text,
            nbest=1,
            threads=optimising.threads,
            watch=watch,
        ).decoder
    else:
        told: Callable[[tuple[str, ...]], None] = lambda command: watch(Executing(command))  # noqa: E731
        decoder = ProcessDecoder(
            held_out.decoder or configuration.decoding.decoder,
            config,
            configuration.working_directory,
            nbest=1,
            prefix="heldout",
            executing=told,
        )
    return Judge(texts, references, decoder, show, metric, watch, optimising.threads)


def best_of(evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """The first of those with the highest score, which has its weights; None of none."""
    return max(evaluations, key=lambda evaluation: evaluation.score, default=None)


def since_best(evaluations: Sequence[Evaluation]) -> int:
    """How many evaluations came after the best of what was learnt.

    The weights that a run starts with may be better than those of its first iterations; that is
    no reason to give up on what comes next.
    """
    learnt = [evaluation for evaluation in evaluations if evaluation.updates]
    best = best_of(learnt)
    return 0 if best is None else len(learnt) - 1 - learnt.index(best)


def _first(found: NBestList) -> bytes:
    return found.text(0) if len(found) else b""
