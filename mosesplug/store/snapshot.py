"""Records read without a copy, from the store as it was at one moment."""

from __future__ import annotations

from typing import Self

from mosesplug.errors import StoreError
from mosesplug.store.environment import Environment, Pinned
from mosesplug.store.records import KbestRecord, read_record
from mosesplug.store.state import COMMIT, iteration_key, kbest_key

__all__ = ["Snapshot"]


class Snapshot:
    """The store as it was committed when the snapshot was taken; a context manager.

    Arrays of its records are read-only views on the memory map. They keep its transaction open,
    and stay valid for as long as one of them lives, whatever becomes of snapshot and store. Do
    not hoard them: old pages cannot be used again meanwhile, nor the map grow.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._pinned: Pinned | None = environment.pin()

    def record(self, iteration: int, sentence: int) -> KbestRecord | None:
        """Return one sentence's list of one finished iteration, or None if there is none.

        Raises:
            StoreError: the snapshot is closed.
        """
        if self._pinned is None:
            raise StoreError("the snapshot is closed")
        self._environment.check()
        get = self._pinned.transaction.get
        if get(iteration_key(iteration, COMMIT), db=self._environment["iterations"]) is None:
            return None
        value = get(kbest_key(iteration, sentence), db=self._environment["kbest"])
        if value is None:
            return None
        return read_record(self._pinned.view(value), iteration, sentence)

    def close(self) -> None:
        """Let go of the transaction; it ends with the last array that needs it."""
        self._pinned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
