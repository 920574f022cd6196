"""Single sentences: what the result's weights choose in the merged lists, and what they could."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.inspection.lists import sentence_scores
from mosesplug.inspection.run import Run
from mosesplug.inspection.texts import Texts, decode_text
from mosesplug.report.data import SentenceFacts
from mosesplug.tuning_set import TuningSet

__all__ = ["worst_and_best"]


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
        chosen=decode_text(hypotheses[chosen]),
        chosen_score=float(scores[chosen]),
        oracle=decode_text(hypotheses[oracle]),
        oracle_score=float(scores[oracle]),
    )
