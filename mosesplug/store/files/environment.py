"""One LMDB environment, which one process writes, with a growing map.

Readers in one process share it. This module enforces LMDB's rules: no use after a fork, one
environment per file, a larger map when the map is full, no remapping under arrays in use; and it
raises one clear error for each failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from mosesplug.errors import StoreError, StoreInUse
from mosesplug.store.files.commits import undo_failed_commit
from mosesplug.store.files.handles import (
    Handle,
    PinnedTransaction,
    find_key,
    guard_table,
    share_handle,
)
from mosesplug.store.files.locks import FileLock
from mosesplug.store.files.opening import (
    DATABASES,
    create_data,
    explain_failure,
    has_room,
    no_room_error,
    open_files,
    reject_links,
)
from mosesplug.store.files.pages import (
    HAS_KNOWN_LAYOUT,
    DamagedPages,
    MissingPages,
    check_pages,
    read_meta,
)
from mosesplug.store.files.replacement import keep_files, remove_drafts, replace_data
from mosesplug.store.files.writer import is_full, lock_for_writing, make_directory, writing_error
from mosesplug.store.sums import ComparedSums

Result = TypeVar("Result")

_UNIT = 1 << 16
"""A multiple of the size of a page, of which maps are multiples."""


class Environment:
    """The data file of one store.

    Args:
        path: a directory; created with its data file if missing and ``writable``.
        writable: whether to write; one process at a time may.
        map_size: initial address space in bytes (not disk space); it grows.

    Attributes:
        compared: checksums of iterations, and which records were compared with them.

    Raises:
        StoreInUse: this process has it open already.
        StoreError: there is no store, it cannot be opened, or another process writes it.
    """

    def __init__(self, path: str | os.PathLike[str], *, writable: bool, map_size: int) -> None:
        self.path = Path(path)
        self.writable = writable
        self._pid = os.getpid()
        self._lock: FileLock | None = None
        self._handle: Handle | None = None
        reject_links(self.path, writable=writable)
        self.compared: dict[int, ComparedSums] = {}
        if writable:
            make_directory(self.path)
        elif not (self.path / "data.mdb").is_file():
            raise StoreError(f"there is no n-best store at {self.path}")
        try:
            if writable:
                # Before LMDB opens its files: it could disturb a writer that copied them.
                self._lock = lock_for_writing(self.path)
                remove_drafts(self.path)
            self._handle = share_handle(
                self.path / "data.mdb", writable=writable, open_new=lambda: self._open(map_size)
            )
            if not self._handle.databases:
                self.check_pages(large=writable)
            self._handle.databases = self._open_databases(self._handle)
        except BaseException:
            self.close()
            raise

    def _open(self, map_size: int) -> Handle:
        try:
            with keep_files(self.path):
                if self.writable and not (self.path / "data.mdb").exists():
                    create_data(self.path)
                self._check_meta()
                environment, is_locked = open_files(
                    self.path, writable=self.writable, map_size=map_size
                )
                guard = guard_table(self.path / "lock.mdb") if is_locked else None
                key = find_key(self.path / "data.mdb")
        except (lmdb.Error, OSError) as error:
            if is_full(error):
                raise writing_error(self.path, error) from None
            raise explain_failure(self.path, error) from None
        except UnicodeError:
            raise StoreError(
                f"{self.path} cannot hold an n-best store: LMDB requires a path that is text in"
                " this locale. Use another directory"
            ) from None
        return Handle(environment, self.writable, guard, key, is_locked=is_locked)

    def _check_meta(self) -> None:
        """Check what LMDB believes when it opens the file."""
        file = self.path / "data.mdb"
        if not HAS_KNOWN_LAYOUT:
            return
        try:
            with self._report_pages():
                meta = read_meta(file)
        except OSError:
            return  # LMDB makes the file, or says what is wrong
        if meta is None and not self.writable:
            raise StoreError(f"there is no n-best store at {self.path}, or it is being created")

    def check_pages(self, *, large: bool) -> None:
        """Check the pages of the data file, which LMDB would trust.

        Args:
            large: whether to look at the pages of large values, too: before they are copied or
                deleted.

        Raises:
            StoreError: a page is damaged or missing.
        """
        while HAS_KNOWN_LAYOUT and not self._check_snapshot(large=large):
            pass

    def _check_snapshot(self, *, large: bool) -> bool:
        """Check the last commit; return False if it was overwritten meanwhile."""
        file = self.path / "data.mdb"
        with self.reading() as transaction, self._report_pages():
            try:
                meta = read_meta(file, transaction.id())
                if meta is not None:
                    check_pages(file, meta, DATABASES, large=large)
            except OSError as error:
                raise StoreError(
                    f"the n-best store at {self.path} cannot be read: {error.strerror}"
                ) from None
            return meta is not None

    @contextmanager
    def _report_pages(self) -> Iterator[None]:
        """Convert the error of a damaged page.

        Raises:
            StoreError: a page is damaged or missing.
        """
        try:
            yield
        except MissingPages as error:
            size = (self.path / "data.mdb").stat().st_size
            raise StoreError(
                f"the n-best store at {self.path} is truncated: data.mdb has {size} bytes, and "
                f"{error.missing} of its {error.pages} pages are beyond them. Copy it again "
                "(mosesplug nbest copy makes complete copies), or start in an empty directory"
            ) from None
        except DamagedPages as error:
            raise StoreError(
                f"the n-best store at {self.path} is damaged: {error}. Use a copy, or start in an "
                "empty directory"
            ) from None

    def _open_databases(self, handle: Handle) -> dict[str, Any]:
        if handle.databases:
            return handle.databases  # of another reader
        environment = handle.environment
        try:
            if not self.writable:
                return {
                    name: environment.open_db(name.encode(), create=False) for name in DATABASES
                }
            with self._undone_if_failed(environment), environment.begin(write=True) as transaction:
                return {name: environment.open_db(name.encode(), transaction) for name in DATABASES}
        except (lmdb.NotFoundError, lmdb.ReadonlyError):
            raise StoreError(
                f"there is no n-best store at {self.path}, or it is being created"
            ) from None
        except lmdb.Error as error:
            raise writing_error(self.path, error) from None

    def __getitem__(self, name: str) -> Any:
        """Handle of a named database."""
        return self._open_handle().databases[name]

    def make_database(self, name: str) -> Any:
        """Return the handle of another named database, which is created if it is missing.

        Raises:
            StoreError: it cannot be created.
        """
        self.check()
        handle = self._open_handle()
        if name not in handle.databases:
            handle.databases[name] = self.write(
                lambda transaction: handle.environment.open_db(name.encode(), transaction)
            )
        return handle.databases[name]

    @property
    def is_open(self) -> bool:
        """Whether it can be used by this process."""
        return self._handle is not None and os.getpid() == self._pid

    def check(self) -> None:
        """Check that the environment is open and was opened by this process.

        Raises:
            StoreError: it is closed, or was opened before a fork.
        """
        if os.getpid() != self._pid:
            raise StoreError(
                f"the n-best store at {self.path} was opened by process {self._pid}, before a "
                f"fork: open it in process {os.getpid()} itself"
            )
        self._open_handle()

    def _open_handle(self) -> Handle:
        if self._handle is None:
            raise StoreError(f"the n-best store at {self.path} is closed")
        return self._handle

    def pin(self) -> PinnedTransaction:
        """Return a new read transaction: a snapshot of what is committed now.

        Raises:
            StoreError: the store is closed, belongs to a parent process, or has too many readers.
        """
        self.check()
        handle = self._open_handle()
        try:
            try:
                return handle.begin()
            except lmdb.MapResizedError:
                self._enlarge_map(handle)
                return handle.begin()
        except lmdb.Error as error:
            raise StoreError(f"cannot read the n-best store at {self.path}: {error}") from None

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a read transaction for the block.

        Copy what it returns before the block ends.
        """
        pinned, handle = self.pin(), self._open_handle()
        try:
            yield pinned.transaction
            if not handle.is_locked:
                self._check_unchanged(handle, pinned)
        except lmdb.Error as error:
            raise StoreError(
                f"the n-best store at {self.path} cannot be read: {error}. If its file is "
                "damaged, use a copy, or start in an empty directory"
            ) from None
        finally:
            handle.end(pinned)

    def _check_unchanged(self, handle: Handle, pinned: PinnedTransaction) -> None:
        """Check that no page was reused that a reader without a lock has read."""
        if handle.environment.info()["last_txnid"] != pinned.transaction.id():
            raise StoreError(
                f"the n-best store at {self.path} was written while it was read without LMDB's "
                "lock: read it again when the run that writes it has ended"
            )

    def write(self, action: Callable[[Any], Result]) -> Result:
        """Run ``action(transaction)`` and commit all of it, or nothing.

        If the map is full, the action is run again with a larger one, so it must depend only on
        the transaction.

        Raises:
            StoreError: the store is open read-only, or arrays on the map prevent it from growing.
            StoreFull: the disk is full.
        """
        self.check()
        if not self.writable:
            raise StoreError(f"the n-best store at {self.path} is open read-only")
        handle = self._open_handle()
        environment = handle.environment
        while True:
            try:
                # The entry of a killed reader would prevent the reuse of old pages. The check is a
                # few system calls, and a run of days may have a reader killed at any commit.
                environment.reader_check()
                with (
                    self._undone_if_failed(environment),
                    environment.begin(write=True, buffers=True) as transaction,
                ):
                    return action(transaction)
            except lmdb.MapFullError:
                self._enlarge_map(handle)
            except (lmdb.Error, OSError, MemoryError) as error:
                raise writing_error(self.path, error) from None

    def _undone_if_failed(self, environment: Any) -> AbstractContextManager[None]:
        return undo_failed_commit(self.path / "data.mdb", environment.stat()["psize"])

    def copy_to(self, directory: Path) -> None:
        """Write a copy without free pages, as committed now, into an empty directory.

        Raises:
            lmdb.Error: it cannot be written.
        """
        self.check()
        self._open_handle().environment.copy(str(directory), compact=True)

    def replace_data(self, new: Path) -> None:
        """Close the store, and replace its data by a new file in a directory beside it.

        Raises:
            StoreInUse: another process has the store open.
            StoreError: the file cannot be replaced.
        """
        readers = ", ".join(map(str, self.other_readers()))
        self._open_handle().release()
        self._handle = None  # but the lock of the writer is kept
        try:
            is_replaced = replace_data(self.path, new)
        except OSError as error:
            raise writing_error(self.path, error) from None
        if not is_replaced:
            raise StoreInUse(
                f"the n-best store at {self.path} is open in "
                f"{f'process {readers}' if readers else 'another process'}: wait until it ends"
            )
        make_directory(self.path)

    def other_readers(self) -> list[int]:
        """Return the other running processes that have read the store."""
        self.check()
        environment = self._open_handle().environment
        environment.reader_check()
        rows = [line.split() for line in environment.readers().splitlines()[1:]]
        return sorted({int(row[0]) for row in rows if row and row[0].isdigit()} - {self._pid})

    def _enlarge_map(self, handle: Handle) -> None:
        """Replace the map, which has become too small."""
        size = handle.environment.info()["map_size"]
        stored = (self.path / "data.mdb").stat().st_size
        base, least = (size, size * 9 // 8) if self.writable else (max(size, stored), stored)
        # As large as the address space allows, to do it seldom.
        for eighths in (16, 12, 10, 9, 8):
            larger = -(-base * eighths // 8 // _UNIT) * _UNIT
            if larger >= least and has_room(larger - size):
                break
        else:
            raise no_room_error(self.path)
        if not handle.resize(larger):
            raise StoreError(
                f"the n-best store at {self.path} has grown, and its map cannot grow while its "
                "arrays are in use: close snapshots before writing"
            )

    def close(self) -> None:
        """Close the file and release the lock; arrays in use stay valid."""
        handle, self._handle = self._handle, None
        if handle is not None and os.getpid() == self._pid:
            handle.release()
        if self._lock is not None:
            self._lock.release()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()
