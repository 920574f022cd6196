"""Keep the scores of oracles, whose search takes long, beside a store's data.

The file only saves time. A reader that may not write there, or finds a damaged file, computes the
scores anew.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from formats.text import write_atomic
from mosesplug.store import IterationRecord

_FILE = "oracles.json"
_SEARCH = "greedy 1"
"""The search that finds the oracles. Another one would give other scores."""


class OracleCache:
    """The scores of the oracle of all lists up to each iteration."""

    def __init__(
        self, store: Path, records: Sequence[IterationRecord], fingerprints: object
    ) -> None:
        self._path = store / _FILE
        self._keys = _make_keys(records, fingerprints)
        known = self._read()
        self._scores = {key: known[key] for key in self._keys if key is not None and key in known}
        self._is_new = False

    def find(self, iteration: int) -> float | None:
        """Return the score up to an iteration, counted from 1; None if it is unknown."""
        key = self._keys[iteration - 1]
        return None if key is None else self._scores.get(key)

    def add(self, iteration: int, score: float) -> None:
        """Add the score up to an iteration."""
        key = self._keys[iteration - 1]
        if key is not None:
            self._scores[key] = score
            self._is_new = True

    def write(self) -> None:
        """Write the scores if there are new ones, and if this is allowed."""
        if self._is_new and not self._path.is_symlink():
            text = json.dumps(self._scores, indent=1) + "\n"
            with suppress(OSError):
                write_atomic(self._path, text.encode())

    def _read(self) -> dict[str, float]:
        # A link or a pipe may lie in the place of the file.
        if self._path.is_symlink() or not self._path.is_file():
            return {}
        with suppress(OSError, ValueError, AttributeError):
            scores = json.loads(self._path.read_bytes()).items()
            return {key: s for key, s in scores if isinstance(s, float) and math.isfinite(s)}
        return {}


def _make_keys(records: Sequence[IterationRecord], fingerprints: object) -> list[str | None]:
    """Return what identifies the lists up to each iteration; None if nothing does.

    Version 0.1 stored no dates.
    """
    digest = hashlib.sha256(f"{_SEARCH} {fingerprints}".encode("utf-8", "backslashreplace"))
    keys: list[str | None] = []
    for record in records:
        sizes = (record.n_sentences, record.n_lists, record.hypotheses, record.new_hypotheses)
        facts = f"{record.signature} {record.date} {sizes} {record.first_best_score!r}\n"
        digest.update(facts.encode("utf-8", "backslashreplace"))
        is_known = record.date is not None and (not keys or keys[-1] is not None)
        keys.append(digest.hexdigest() if is_known else None)
    return keys
