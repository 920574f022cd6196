"""Ask the commands of a metric while the decoder decodes.

A thread scores the lists that are parsed so far, and the metric keeps the scores. When the lists
are stored, the command is asked only for missing scores. Results do not depend on the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from formats.nbest.block import NBestList
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.scored import describe_scoring, find_scorers, list_scored


class AheadScorer:
    """Scores lists in a thread, for those metrics that a command computes."""

    def __init__(
        self, metric: Metric, references: PreparedReferences, reported: Iterable[Metric] = ()
    ) -> None:
        """Take the metric of a run; ``describe`` counts the commands of ``reported``, too."""
        self._parts = list_scored(metric, references)
        self._scorers = find_scorers(metric)
        for other in reported:
            self._scorers |= find_scorers(other)
        self._n_sentences = references.n_sentences
        self._before = self._count()
        self._waiting: SimpleQueue[HypothesisRanges | None] | None = None
        self._reduce: Callable[[NBestList], NBestList] | None = None

    @property
    def is_needed(self) -> bool:
        """Whether a command computes the metric, or a part of it."""
        return bool(self._parts)

    def describe(self) -> tuple[str, ...]:
        """Return how many texts each command has scored since this object was made."""
        counts = zip(self._scorers, self._count(), self._before, strict=True)
        return tuple(
            describe_scoring(name, n_asked - asked_before, n_known - known_before)
            for name, (n_asked, n_known), (asked_before, known_before) in counts
        )

    def _count(self) -> list[tuple[int, int]]:
        """Return how many texts each command has scored, and how many had scores."""
        return [(scorer.n_asked, scorer.n_known) for scorer in self._scorers.values()]

    def add(self, lists: Sequence[NBestList]) -> None:
        """Score lists soon; outside the block of ``score`` nothing is done."""
        if self._waiting is None:
            return
        for block in lists:
            # Sentences that are unknown are an error of the list, which storing it reports.
            known = (block.sentence_ids >= 0) & (block.sentence_ids < self._n_sentences)
            block = block.take(known.nonzero()[0])
            if self._reduce is not None:
                block = self._reduce(block)
            # Copies, because a block holds the whole text of the list around its hypotheses.
            texts = [block.text(row) for row in range(len(block))]
            self._waiting.put(HypothesisRanges.of_lines(texts, block.sentence_ids))

    @contextmanager
    def score(self, reduce: Callable[[NBestList], NBestList] | None = None) -> Iterator[None]:
        """Score what is added in the block.

        At its end, the thread finishes the lists that it is scoring, and leaves the others.

        Args:
            reduce: returns the hypotheses of lists that are to be scored; None: all.

        Raises:
            DataError: a command failed. The block is not interrupted: its lists are worth keeping.
        """
        if not self._parts:
            yield
            return
        waiting, self._reduce = SimpleQueue[HypothesisRanges | None](), reduce
        self._waiting = waiting
        stop, failures = threading.Event(), list[Exception]()

        def work() -> None:
            try:
                while (hypotheses := waiting.get()) is not None and not stop.is_set():
                    for metric, references in self._parts:
                        metric.statistics(references, *hypotheses)
            except Exception as error:
                failures.append(error)

        # A process that ends because of an error does not wait for answers.
        thread = threading.Thread(target=work, name="mosesplug-ahead-scorer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._waiting = None
            stop.set()
            waiting.put(None)
        thread.join()
        if failures:
            raise failures[0]
