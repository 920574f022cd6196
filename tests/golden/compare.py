"""Compare what two commits compute: ``python -m tests.golden.compare BASE [NEW]``.

Runs every row of the matrix (``matrix.txt``) with both and compares exit codes, stdout and every
file that is left, byte for byte; ``results`` says what is taken out before. NEW is a commit, or
without it the working tree as it is, changes and new files included. Prints a line for each row and
ends with 1 if any differs.

    python -m tests.golden.compare 32ff256                       # the working tree
    python -m tests.golden.compare 32ff256 --rows 'online-*'     # some rows
    python -m tests.golden.compare 32ff256 HEAD --jobs 2

What BASE leaves is kept in the directory ``--cache``, so that only NEW is run the next time;
several processes can share it. Rows run in ``/tmp/mosesplug-golden``, one at a time in each of its
directories, because paths stand in some files. Kernels are compiled once for each version.
"""

from __future__ import annotations

import argparse
import difflib
import fcntl
import fnmatch
import hashlib
import json
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from tests.golden.results import numbers
from tests.golden.rows import Row, matching_rows
from tests.golden.running import INPUTS, Runner, run_row
from tests.golden.sources import REPOSITORY, Source, copy_source, resolve

_VERSION = 3
"""Version of the inputs and of the filters; stored results of other versions are recomputed."""
_SCRATCH = Path(tempfile.gettempdir()) / "mosesplug-golden"
_CACHE = Path(tempfile.gettempdir()) / "mosesplug-golden-cache"
_ALLOW_NEW = "a file that NEW may leave and BASE does not, as settings.toml; repeat"
_DIFF_LINES = 12

Left = dict[str, bytes]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Side:
    """One of the two versions: runs rows, or reads what was kept of them.

    Args:
        commit: its full name; None for the working tree.
        cache: where results and kernels are kept.
        keep: whether results are kept.
    """

    def __init__(self, commit: str | None, cache: Path, *, keep: bool) -> None:
        clone = hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:8]
        self._directory = cache / (commit if commit and keep else f"clone-{clone}")
        self._commit = commit
        self._keep = keep
        self._source: Source | None = None
        self._lock = threading.Lock()
        self._idle: queue.SimpleQueue[Runner] = queue.SimpleQueue()
        self._runners: list[Runner] = []
        self._held = ExitStack()

    def result(self, row: Row) -> Left:
        """Return the files and output of the row."""
        kept = self._directory / "results" / f"{row.name}-{_key(row)}"
        if not self._keep:
            return self._run(row)
        with _locked(kept.with_name(kept.name + ".lock")):
            if not kept.exists():
                _write(kept, self._run(row))
            return _read(kept)

    def _run(self, row: Row) -> Left:
        runner = self._runner()
        try:
            directory = _SCRATCH / row.name
            with _locked(_SCRATCH / f"{row.name}.lock"):
                shutil.rmtree(directory, ignore_errors=True)
                try:
                    return run_row(row, runner, directory)
                finally:
                    shutil.rmtree(directory, ignore_errors=True)
        finally:
            self._idle.put(runner)

    def _runner(self) -> Runner:
        with self._lock:
            if self._source is None:
                self._source = self._copy()
            if self._idle.empty():
                self._runners.append(Runner(self._source))
                return self._runners[-1]
        return self._idle.get()

    def _copy(self) -> Source:
        """Copy the code; a copy that may change belongs to one process until the end."""
        lock: AbstractContextManager[None] = _locked(
            self._directory.with_name(self._directory.name + ".lock")
        )
        if not self._keep:
            self._held.enter_context(lock)
            lock = nullcontext()
        with lock:
            kernels = self._directory.with_name("kernels")
            return copy_source(self._commit, self._directory, kernels)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self._runners:
            runner.close()
        self._held.close()


def _key(row: Row) -> str:
    """A digest of all that decides what a row leaves, but for the commit."""
    digest = hashlib.sha256(repr((_VERSION, row.name, row.commands, row.files)).encode())
    for path in INPUTS:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _write(directory: Path, left: Left) -> None:
    """Keep a result: an index of names, and files."""
    draft = directory.with_name(directory.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    (draft / "names.json").write_text(json.dumps(list(left)))
    for number, data in enumerate(left.values()):
        (draft / str(number)).write_bytes(data)
    draft.rename(directory)


def _read(directory: Path) -> Left:
    names = json.loads((directory / "names.json").read_text())
    return {name: (directory / str(n)).read_bytes() for n, name in enumerate(names)}


def differences(row: Row, base: Left, new: Left, allowed: list[str]) -> tuple[list[str], bool]:
    """Names of files that differ, and whether only words differ in tables that people read."""
    loose = {f"stdout.{n}" for n, each in enumerate(row.commands, 1) if not each.exact}
    differing, words = [], False
    for name in dict.fromkeys([*base, *new]):
        old, now = base.get(name), new.get(name)
        if old == now:
            continue
        if old is None and any(fnmatch.fnmatch(Path(name).name, each) for each in allowed):
            continue
        is_loose = name in loose or name.endswith(".html")
        if is_loose and old is not None and now is not None and numbers(old) == numbers(now):
            words = True
            continue
        differing.append(name)
    return differing, words


def diff(name: str, base: Left, new: Left) -> str:
    """A few lines of what differs in a file."""
    if name.startswith("failed.") and name in new:
        return new[name].decode("utf-8", "backslashreplace")[-2000:]
    if name not in base or name not in new:
        return f"  {name}: only in {'NEW' if name in new else 'BASE'}"
    old, now = (side[name].decode("utf-8", "backslashreplace").splitlines() for side in (base, new))
    lines = list(difflib.unified_diff(old, now, "BASE", "NEW", n=1, lineterm=""))[2:]
    shown = [f"  {line[:160]}" for line in lines[:_DIFF_LINES]]
    more = [f"  ... {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    return "\n".join([f"  {name}:", *shown, *more])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.compare",
        description="Compare what two commits compute, byte for byte.",
    )
    add = parser.add_argument
    add("base", metavar="BASE", help="a commit")
    add("new", metavar="NEW", nargs="?", help="a commit [the working tree]")
    add("--rows", metavar="PATTERN", action="append", help="only these, as 'tune-*'; repeat")
    add("--jobs", metavar="N", type=int, default=1, help="rows at a time [1]")
    add("--cache", metavar="DIR", type=Path, default=_CACHE, help="kept results [%(default)s]")
    add("--allow-new", metavar="NAME", action="append", default=[], help=_ALLOW_NEW)
    add("--strict", action="store_true", help="compare the words of tables on stdout, too")
    add("--all", action="store_true", help="show every file that differs, not the first only")
    add("--list", action="store_true", help="print the names of the rows, and stop")
    return parser.parse_args()


def _both(row: Row, base: Side, new: Side) -> tuple[Left, Left, float]:
    """Return the results of a row with both, and the seconds that NEW takes."""
    left = base.result(row)
    began = time.monotonic()
    return left, new.result(row), time.monotonic() - began


def _say(row: Row, base: Left, new: Left, seconds: float, asked: argparse.Namespace) -> bool:
    """Print the outcome of a row; return whether it is as it should be."""
    differing, words = differences(row, base, new, asked.allow_new)
    failed = [name for name in new if name.startswith("failed.")]
    words_only = words and not differing
    note = " (words of stdout differ)" if words_only else ""
    if differing or (words_only and asked.strict):
        print(f"DIFFERS  {row.name}: {len(differing)} files")
        for name in differing if asked.all else [*failed, *differing][:1]:
            print(diff(name, base, new))
    elif failed:
        print(f"FAILS    {row.name}, with both")
        print(diff(failed[0], base, new))
    else:
        print(f"same     {row.name} [{seconds:.1f} s]{note}")
    sys.stdout.flush()
    return not (differing or failed or (words_only and asked.strict))


def main() -> int:
    """Run the comparison."""
    asked = _arguments()
    rows = matching_rows(asked.rows or [])
    if asked.list:
        print("\n".join(row.name for row in rows))
        return 0
    commit = resolve(asked.new) if asked.new else None
    same = 0
    with (
        Side(resolve(asked.base), asked.cache.absolute(), keep=True) as base,
        Side(commit, asked.cache.absolute(), keep=False) as new,
        ThreadPoolExecutor(asked.jobs) as pool,
    ):
        waiting = {pool.submit(_both, row, base, new): row for row in rows}
        for done in as_completed(waiting):
            row = waiting[done]
            if error := done.exception():
                print(f"BROKEN   {row.name}: {error}", flush=True)
            else:
                same += _say(row, *done.result(), asked)
    print(f"{same} of {len(rows)} rows are the same")
    return int(same < len(rows))


if __name__ == "__main__":
    sys.exit(main())
