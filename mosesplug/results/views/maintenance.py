"""Maintenance of a store: verify its records, drop its newest iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mosesplug.errors import DataError, count_noun
from mosesplug.results.render.record import Count, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block
from mosesplug.store import NBestStore
from mosesplug.tuning.workdir.iteration_files import read_finished_step, write_finished_step
from mosesplug.tuning.workdir.workspace import Workspace


@dataclass(frozen=True)
class RecordFault:
    """A fault of a record.

    Attributes:
        iteration: the iteration, from 1.
        sentence: the sentence id; None for a record of the whole iteration.
    """

    iteration: Count
    sentence: Count | None
    fault: Text


@dataclass(frozen=True)
class Verification:
    """The state of a verification.

    Attributes:
        lists: number of lists of all iterations.
        done: number of sentences verified, of ``total``.
        records: number of records whose checksums were compared.
        without: number of records without a checksum.
        is_quiet: whether blocks show faults only.
    """

    iterations: int = 0
    lists: int = 0
    done: int = 0
    total: int = 0
    records: int = 0
    without: int = 0
    faults: tuple[RecordFault, ...] = ()
    is_quiet: bool = False

    @property
    def document(self) -> tuple[RecordFault, ...]:
        """The faults."""
        return self.faults

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the faults, or a line if none was found."""
        if not medium.is_text:
            yield tabulate(RecordFault, self.faults)
        for fault in self.faults if medium.is_text else ():
            where = "" if fault.sentence is None else f", sentence {fault.sentence}"
            yield f"iteration {fault.iteration}{where}: {fault.fault}"
        if not (self.faults or self.is_quiet):
            iterations = count_noun(self.iterations, "iteration")
            yield f"{iterations}, {count_noun(self.lists, 'list')}: no fault found"
            if self.without:
                yield (
                    f"{self.without} of {self.without + self.records} records have no checksum: an "
                    "earlier version wrote them"
                )


def verify_store(path: Path) -> Iterator[Verification]:
    """Verify checksums and records of a store; yield the state after each step.

    The checksums of an iteration are one step, and the records of each sentence another.

    Only the store is read, since files beside it may be damaged as well.

    Raises:
        StoreError: there is no store, a page of it is damaged, or its list of iterations cannot be
            read.
        DataError: it has no finished iteration.
    """
    # Without comparison, since all faults are to be found.
    with NBestStore.open(path, compare=False) as store:
        store.verify_pages()
        iterations = store.iterations()
        if not iterations:
            raise DataError(f"the n-best store at {path} has no finished iteration yet")
        state = Verification(
            iterations=len(iterations),
            lists=sum(record.n_lists for record in iterations),
            total=sum(record.n_sentences for record in iterations),
        )
        for record in iterations:
            number = record.iteration
            checked = store.verify_iteration(number)
            faults = tuple(RecordFault(number, *fault) for fault in checked.faults)
            state = replace(
                state,
                records=state.records + checked.records,
                without=state.without + checked.without,
                faults=state.faults + faults,
            )
            yield state
            for sentence in range(record.n_sentences):
                faults = tuple(
                    RecordFault(number, sentence, fault) for fault in store.faults(number, sentence)
                )
                state = replace(state, done=state.done + 1, faults=state.faults + faults)
                yield state


def drop_iteration(store: Path, iteration: int) -> list[Path]:
    """Remove the newest iteration of a store; return the files that changed.

    They were set back to the iteration before, or removed.

    In a working directory, ``finished_step.txt`` then names the iteration before or is removed, so
    that a resumed run decodes the iteration again, and ``summary.json`` is removed. Both happen
    first: a kill leaves an unfinished iteration, as a kill of a run does. ``moses.ini`` and files
    of single iterations stay until a run writes them again.

    Raises:
        StoreError: it is not the newest, or the store is being written.
        DataError: ``finished_step.txt`` holds no number.
    """
    workspace = Workspace(store.parent, 0)
    changed: list[Path] = []
    with NBestStore.open(store, writable=True) as opened:
        is_newest = opened.open_iteration() is None and len(opened.iterations()) == iteration
        if is_newest and workspace.store == store:
            changed = _set_back(workspace, iteration)
        opened.drop_last(iteration)
    return changed


def _set_back(workspace: Workspace, iteration: int) -> list[Path]:
    """Record in the working directory that an iteration is not finished."""
    step, summary = workspace.finished_step, workspace.summary
    changed = []
    if step.is_file() and read_finished_step(workspace) >= iteration:
        if iteration > 1:
            write_finished_step(workspace, iteration - 1)
        else:
            step.unlink()
        changed.append(step)
    if summary.is_file():
        summary.unlink()
        changed.append(summary)
    return changed
