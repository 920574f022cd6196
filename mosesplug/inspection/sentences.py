"""Single sentences: what the result's weights choose in the merged lists, and what they could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.inspection.lists import sentence_scores
from mosesplug.inspection.run import Run
from mosesplug.report.data import SentenceFacts
from mosesplug.tuning_set import TuningSet

__all__ = ["Texts", "readable", "worst_and_best"]


@dataclass(frozen=True)
class Texts:
    """The input and its translations, as far as they are known.

    Attributes:
        source: the sentences; empty where they are not known.
        references: one or more translations of all of them; empty where they are not known.
    """

    source: Sequence[bytes] = ()
    references: Sequence[Sequence[bytes]] = ()

    def check(self, n_sentences: int) -> None:
        """See that they belong to a run.

        Raises:
            DataError: they have another number of lines.
        """
        for what, lines in (
            ("source", self.source),
            *(("reference", lines) for lines in self.references),
        ):
            if len(lines) not in (0, n_sentences):
                raise DataError(
                    f"the {what} has {len(lines)} lines, and the run's input {n_sentences}: give "
                    "the files that it was tuned on"
                )

    def source_of(self, sentence: int) -> str | None:
        """The text of one sentence."""
        return readable(self.source[sentence]) if self.source else None

    def references_of(self, sentence: int) -> tuple[str, ...]:
        """The translations of one sentence."""
        return tuple(readable(lines[sentence]) for lines in self.references)


def readable(text: bytes) -> str:
    """Bytes for people; what is no UTF-8 is marked."""
    return text.decode("utf-8", "replace").strip()


def worst_and_best(
    run: Run, merged: TuningSet, texts: Texts, count: int
) -> tuple[tuple[SentenceFacts, ...], tuple[SentenceFacts, ...]]:
    """The sentences whose chosen hypotheses score least, and most; no sentence is in both.

    Args:
        run: the run.
        merged: its lists, merged.
        texts: what is known beside them.
        count: how many of each.
    """
    scores = sentence_scores(run.metric, merged.stats)
    chosen = merged.first_best(run.vector)
    filled = np.flatnonzero(np.diff(merged.offsets) > 0)
    order = np.argsort(scores[chosen], kind="stable")
    count = min(count, len(order) // 2)

    def facts(place: int) -> SentenceFacts:
        sentence, row = int(filled[place]), int(chosen[place])
        start, end = merged.offsets[sentence], merged.offsets[sentence + 1]
        return _facts(run, texts, sentence, scores[start:end], row - int(start))

    worst = [facts(place) for place in order[:count].tolist()]
    best = [facts(place) for place in order[::-1][:count].tolist()]
    return tuple(worst), tuple(best)


def _facts(
    run: Run, texts: Texts, sentence: int, scores: NDArray[np.float64], chosen: int
) -> SentenceFacts:
    hypotheses = run.store.hypotheses(sentence)
    oracle = int(np.argmax(scores))
    return SentenceFacts(
        number=sentence,
        source=texts.source_of(sentence),
        references=texts.references_of(sentence),
        chosen=readable(hypotheses[chosen]),
        chosen_score=float(scores[chosen]),
        oracle=readable(hypotheses[oracle]),
        oracle_score=float(scores[oracle]),
    )
