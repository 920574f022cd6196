"""Whether a store holds what was written: checksums, and records taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mosesplug.errors import DataError
from mosesplug.store import NBestStore

__all__ = ["Fault", "Soundness", "soundness"]


@dataclass(frozen=True)
class Fault:
    """Something that is not as it should be.

    Attributes:
        iteration: from 1.
        sentence: line of the input, from 0; None for a record of the iteration as a whole.
        fault: in words.
    """

    iteration: int
    sentence: int | None
    fault: str


@dataclass(frozen=True)
class Soundness:
    """What is known of a store so far.

    Attributes:
        iterations: finished ones.
        lists: of all of them.
        done: sentences of iterations that were looked at, of ``total``.
        records: records whose checksums were compared.
        without: records that have none.
        faults: those found.
    """

    iterations: int = 0
    lists: int = 0
    done: int = 0
    total: int = 0
    records: int = 0
    without: int = 0
    faults: tuple[Fault, ...] = ()


def soundness(path: Path) -> Iterator[Soundness]:
    """What is known of a store, again after each iteration and sentence; the last is of all.

    It reads nothing but the store: what lies beside it may be damaged as well.

    Args:
        path: of the store.

    Raises:
        StoreError: there is none, or what tells of its iterations cannot be read.
        DataError: it has no finished iteration.
    """
    with NBestStore.open(path) as store:
        iterations = store.iterations()
        if not iterations:
            raise DataError(f"the n-best store at {path} has no finished iteration yet")
        known = Soundness(
            iterations=len(iterations),
            lists=sum(record.n_lists for record in iterations),
            total=sum(record.n_sentences for record in iterations),
        )
        for record in iterations:
            number = record.iteration
            checked = store.checked(number)
            known = replace(
                known,
                records=known.records + checked.records,
                without=known.without + checked.without,
                faults=(*known.faults, *(Fault(number, *fault) for fault in checked.faults)),
            )
            yield known
            for sentence in range(record.n_sentences):
                faults = tuple(
                    Fault(number, sentence, fault) for fault in store.faults(number, sentence)
                )
                known = replace(known, done=known.done + 1, faults=(*known.faults, *faults))
                yield known
