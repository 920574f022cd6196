"""A map from integers to integers with array look-ups: open addressing in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Ints, Ints32

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: Fibonacci hashing (Knuth, volume 3, section 6.4)."""


@dataclass(frozen=True)
class IntegerMap:
    """Maps non-negative int64 keys to int32 values; linear probing, at most half full."""

    keys: Ints
    values: Ints32
    shift: np.uint64

    @classmethod
    def of(cls, keys: Ints, values: Ints32) -> IntegerMap:
        """Build a map from ``keys[i]`` to ``values[i]``; keys are distinct."""
        bits = max(4, int(2 * len(keys)).bit_length())
        table = cls(
            keys=np.full(1 << bits, -1, dtype=np.int64),
            values=np.full(1 << bits, -1, dtype=np.int32),
            shift=np.uint64(64 - bits),
        )
        slots = table._slots(keys)
        rows = np.arange(len(keys))
        while len(rows):
            free = table.keys[slots] == -1
            # If several keys hash to one free slot, the last one written remains.
            table.keys[slots[free]] = keys[rows[free]]
            placed = table.keys[slots] == keys[rows]
            table.values[slots[placed]] = values[rows[placed]]
            rows, slots = rows[~placed], (slots[~placed] + 1) & ((1 << bits) - 1)
        return table

    def find(self, keys: Ints) -> Ints32:
        """Return the value of each key, int32 ``[len(keys)]``; -1 if missing."""
        slots = self._slots(keys)
        found = self.keys[slots]
        values = self.values[slots]
        pending = np.flatnonzero((found != keys) & (found != -1))
        slots = slots[pending]
        while len(pending):
            slots = (slots + 1) & (len(self.keys) - 1)
            found = self.keys[slots]
            values[pending] = self.values[slots]
            again = (found != keys[pending]) & (found != -1)
            pending, slots = pending[again], slots[again]
        return values

    def _slots(self, keys: Ints) -> Ints:
        return ((keys.view(np.uint64) * MULTIPLIER) >> self.shift).astype(np.int64)
