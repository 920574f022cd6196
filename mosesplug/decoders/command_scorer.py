"""Scores of a command, and those that it gave before.

Numbers are kept batch by batch (``ScoreCache``); nothing is kept of a batch with an answer that
cannot be used.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.score_program import ScoreProgramCall, open_program
from mosesplug.events import TextsScored, report_scoring
from mosesplug.metrics.outside import Formula, Question
from mosesplug.store.score_cache import ScoreCache, make_text_key


class CommandScorer:
    """A ``TextScorer``: a command, and the scores that it gave before.

    Attributes:
        call: how it is called.
        n_asked: texts that it has scored.
    """

    def __init__(self, call: ScoreProgramCall) -> None:
        self.call = call
        self.n_asked = 0
        self._program = open_program(call)
        version, formula = self._program.announce()
        self._cache = ScoreCache(call.cache, call.name, version, formula.width)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[CommandScorer], tuple[ScoreProgramCall]]:
        """Copy the call only: another process starts a command of its own if it needs one."""
        return CommandScorer, (self.call,)

    @property
    def n_known(self) -> int:
        """Number of texts whose scores were known."""
        return self._cache.n_known

    @property
    def reads_references(self) -> bool:
        """Whether the command reads references; the format ``lines`` has none."""
        return self.call.format != "lines"

    @property
    def version(self) -> str:
        """The version that the command announces."""
        return self._program.announce()[0]

    @property
    def formula(self) -> Formula:
        """The formula that makes the corpus score of the command's numbers."""
        return self._program.announce()[1]

    def score(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Return the numbers of hypotheses, float64 ``[n, width]``; see ``TextScorer``."""
        keys = [make_text_key([q.source, q.hypothesis, *q.references]) for q in questions]
        # One thread at a time looks up and asks: what another one asks is known to the next.
        with self._lock:
            known_before = self.n_known
            is_known, numbers = self._cache.find(keys)
            unknown = np.flatnonzero(~is_known).tolist()
            # Equal texts of different sentences are sent once.
            distinct: dict[bytes, int] = {}
            for row in unknown:
                distinct.setdefault(keys[row], row)
            rows = list(distinct.values())
            name, count = self.call.name, len(rows)
            report_scoring(TextsScored(name, 0, count, 0, self.n_known - known_before))
            for begin in range(0, len(rows), self.call.batch):
                batch = rows[begin : begin + self.call.batch]
                numbers[batch] = self._program.score([questions[row] for row in batch])
                self._cache.add([keys[row] for row in batch], numbers[batch])
                self.n_asked += len(batch)
                report_scoring(TextsScored(name, begin + len(batch), count, len(batch), 0))
            numbers[unknown] = numbers[[distinct[keys[row]] for row in unknown]]
        return numbers
