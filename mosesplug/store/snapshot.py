"""A snapshot of a store, whose records are read without copies."""

from __future__ import annotations

from typing import Any, Self

from mosesplug.errors import StoreError
from mosesplug.store.checksums import compare_record
from mosesplug.store.files.environment import Environment
from mosesplug.store.files.handles import PinnedTransaction
from mosesplug.store.records import KbestRecord, read_record
from mosesplug.store.state import COMMIT, iteration_key, kbest_key


class PinnedReader:
    """A consistent view of a store, read without copies; a context manager.

    Arrays of its records are read-only views of the memory map. They keep its transaction open and
    stay valid even if this object and the store are closed. Release them soon: meanwhile, the store
    cannot reuse old pages or enlarge the map.
    """

    what = "the snapshot is"

    def __init__(self, environment: Environment, pinned: PinnedTransaction) -> None:
        self._environment = environment
        self._pinned: PinnedTransaction | None = pinned

    def _check(self) -> PinnedTransaction:
        if self._pinned is None:
            raise StoreError(f"{self.what} closed")
        self._environment.check()
        return self._pinned

    def _get(self, area: str, iteration: int, sentence: int) -> Any:
        """Return the checked bytes of a record, uint8; None without one."""
        pinned = self._check()
        transaction, database = pinned.transaction, self._environment[area]
        value = transaction.get(kbest_key(iteration, sentence), db=database)
        compare_record(transaction, self._environment, (area, 0), iteration, sentence, value)
        return None if value is None else pinned.view(value)

    def close(self) -> None:
        """Release the transaction, which ends with the last array that uses it."""
        self._pinned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Snapshot(PinnedReader):
    """The committed lists of a store at the time of the snapshot."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment, environment.pin())

    def record(self, iteration: int, sentence: int) -> KbestRecord | None:
        """Return one sentence's list of one finished iteration, or None if there is none.

        Raises:
            StoreError: the snapshot is closed, or the record is damaged.
        """
        transaction, iterations = self._check().transaction, self._environment["iterations"]
        if transaction.get(iteration_key(iteration, COMMIT), db=iterations) is None:
            return None
        record = self._get("kbest", iteration, sentence)
        return None if record is None else read_record(record, iteration, sentence)
