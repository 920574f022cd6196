"""A snapshot of a store, whose records are read without copies."""

from __future__ import annotations

from typing import Self

from mosesplug.errors import StoreError
from mosesplug.store.checksums import compare_record
from mosesplug.store.files.environment import Environment
from mosesplug.store.files.handles import PinnedTransaction
from mosesplug.store.records import KbestRecord, read_record
from mosesplug.store.state import COMMIT, iteration_key, kbest_key


class Snapshot:
    """The committed state of a store at the time of the snapshot; a context manager.

    Arrays of its records are read-only views of the memory map. They keep its transaction open and
    stay valid even if snapshot and store are closed. Release them soon: meanwhile, the store cannot
    reuse old pages or enlarge the map.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._pinned: PinnedTransaction | None = environment.pin()

    def record(self, iteration: int, sentence: int) -> KbestRecord | None:
        """Return one sentence's list of one finished iteration, or None if there is none.

        Raises:
            StoreError: the snapshot is closed, or the record is damaged.
        """
        if self._pinned is None:
            raise StoreError("the snapshot is closed")
        self._environment.check()
        transaction = self._pinned.transaction
        iterations = self._environment["iterations"]
        if transaction.get(iteration_key(iteration, COMMIT), db=iterations) is None:
            return None
        value = transaction.get(kbest_key(iteration, sentence), db=self._environment["kbest"])
        compare_record(transaction, self._environment, ("kbest", 0), iteration, sentence, value)
        if value is None:
            return None
        return read_record(self._pinned.view(value), iteration, sentence)

    def close(self) -> None:
        """Release the transaction, which ends with the last array that uses it."""
        self._pinned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
