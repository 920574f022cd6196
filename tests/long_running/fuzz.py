"""Fuzz readers: each must reject a file with one line or read it correctly.

usage: python -m tests.long_running.fuzz [--inputs 1000000] [--seed 1] [--processes 2] [--keep DIR]
           [--family NAME]...

Inputs are files of ``tests/data`` and made ones, changed at random, and texts of a format's words
(``tests.long_running.mutations``), for every reader of ``tests.long_running.hostile_readers``.
Findings are: any error but the reader's own, an array that does not fit, more memory than
``MEMORY``, more time than ``SECONDS``, anything written or run. They are printed once a place in
the code, with the smallest input kept in ``DIR``. The same seed gives the same inputs, whatever the
processes. Exit code 1 if anything was found."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.long_running.hostile_readers import FAMILIES, Family
from tests.long_running.mutations import Chance, composed, mutated, packed

__all__ = ["Finding", "Found", "fuzz", "read_one"]

PART = 1000
"""Inputs that one seed gives."""

SECONDS = 5.0
"""Of processor time, for an input of 4 KiB."""

_WAITING = 120.0
"""Of time, for one that waits for something."""

MEMORY = 3 << 30
"""Bytes of address space: far more than anything small takes, little beside 10^12 rows."""

_RUNS = (
    *("subprocess.Popen", "os.system", "os.exec", "os.spawn", "os.posix_spawn"),
    *("pickle.find_class", "socket.connect", "ctypes.dlopen"),
)
_CHANGES = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"),
    *("os.truncate", "shutil.rmtree"),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _TooSlow(BaseException):
    """An input that takes more than ``SECONDS``."""


@dataclass(frozen=True)
class Finding:
    """The effect of an input.

    Attributes:
        family, reader: what it was given to.
        where: the error and its place in the code.
        text: the input.
        told: the traceback.
    """

    family: str
    reader: str
    where: str
    text: bytes
    told: str


@dataclass
class Found:
    """What some inputs did.

    Attributes:
        inputs: how many, by family.
        read: how many of them were read, by family; the others were refused.
        findings: the smallest of each place.
        counts: of each place.
        slowest: seconds and family.
    """

    inputs: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")

    def add(self, finding: Finding) -> None:
        """Take a finding; of one place, keep the smallest."""
        self.counts[finding.where] += 1
        known = self.findings.get(finding.where)
        if known is None or len(finding.text) < len(known.text):
            self.findings[finding.where] = finding

    def join(self, other: Found) -> None:
        """Take what other inputs did."""
        self.inputs += other.inputs
        self.read += other.read
        for finding in other.findings.values():
            self.add(finding)
        self.counts += other.counts - Counter(list(other.findings))
        self.slowest = max(self.slowest, other.slowest)


class _Watch:
    """Notes what a reader does beside reading, by the interpreter's audit events."""

    def __init__(self) -> None:
        self.is_on = False
        self.seen: list[str] = []
        sys.addaudithook(self._event)

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        # Readers of a store write LMDB's table of readers.
        writes = writes and Path(str(arguments[0])).name != "lock.mdb"
        if writes or event in _RUNS or event in _CHANGES:
            self.seen.append(f"{event} {arguments!r}")


_watch: list[_Watch] = []


def _watching() -> _Watch:
    """The watch of this process; a hook cannot be taken away again."""
    if not _watch:
        _watch.append(_Watch())
    return _watch[0]


def inputs(
    seed: int, part: int, count: int, families: Sequence[str] = ()
) -> Iterator[tuple[str, str, bytes]]:
    """Family, reader and text of some inputs; of all families unless some are named."""
    chance = Chance((seed, part))
    names = list(families or FAMILIES)
    for _ in range(count):
        name = chance.one_of(names)
        family = FAMILIES[name]
        reader = chance.one_of(list(family.readers))
        text = family.make(chance) if family.make else _text(chance, family)
        yield name, reader, text


def _text(chance: Chance, family: Family) -> bytes:
    kind = chance.below(10)
    if kind == 0:
        text = composed(chance, family.words)
    else:
        text = mutated(chance, chance.one_of(family.corpus), family.corpus)
        if kind == 1:
            text = mutated(chance, text, (composed(chance, family.words),))
    if family.is_packed and chance.below(20) == 0:
        text = packed(chance, text)
    return text


def read_one(name: str, reader: str, text: bytes, path: Path) -> tuple[bool, Finding | None]:
    """Give one input to one reader.

    Returns:
        Whether it was read, and what was found.
    """
    family, watch = FAMILIES[name], _watching()
    path.write_bytes(text)
    family.begin(path)
    problem: BaseException | None = None
    is_read = False
    watch.is_on = True
    try:
        family.readers[reader](path)
        is_read = True
    except family.refusals as refusal:
        if "\n" in str(refusal) or not str(refusal):
            problem = refusal
    except (Exception, _TooSlow) as error:
        problem = error
    finally:
        watch.is_on = False
    if watch.seen:
        problem = problem or RuntimeError(watch.seen[0])
        watch.seen.clear()
    if problem is None:
        return is_read, None
    place = traceback.extract_tb(problem.__traceback__)[-6:]
    own = [
        frame
        for frame in place
        if "site-packages" not in frame.filename and "/lib/" not in frame.filename
    ]
    at = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else "?"
    where = f"{name}: {type(problem).__name__} in {at}"
    told = "".join(traceback.format_exception(problem))[-3000:]
    return is_read, Finding(name, reader, where, text, told)


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Bounds on time; warnings of NumPy are errors, as they would reach a user."""

    def stop(*_: object) -> None:
        raise _TooSlow("too slow")

    numbers = (signal.SIGVTALRM, signal.SIGALRM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def fuzz(seed: int, part: int, count: int, directory: Path, families: Sequence[str] = ()) -> Found:
    """Give ``count`` inputs to readers; files are made in ``directory``."""
    found = Found()
    path = directory / f"input.{os.getpid()}"
    with _guarded():
        for name, reader, text in inputs(seed, part, count, families):
            begun = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            signal.setitimer(signal.ITIMER_REAL, _WAITING)
            is_read, finding = read_one(name, reader, text, path)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            found.inputs[name] += 1
            found.read[name] += is_read
            found.slowest = max(found.slowest, (time.process_time() - begun, f"{name}, {reader}"))
            if finding is not None:
                found.add(finding)
    path.unlink()
    return found


def _begin_worker(place: str) -> None:
    tempfile.tempdir = place  # so that what readers need goes with the rest
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Give many inputs to readers, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a directory for inputs that found something")
    parser.add_argument("--family", action="append", choices=FAMILIES, default=[])
    given = parser.parse_args()
    total = Found()
    fast = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="mosesplug-fuzz-", dir=fast if fast.is_dir() else None
    ) as place:
        parts = range(-(-given.inputs // PART))
        with ProcessPoolExecutor(
            given.processes, initializer=_begin_worker, initargs=(place,)
        ) as pool:
            try:
                jobs = pool.map(
                    fuzz, itertools.repeat(given.seed), parts, itertools.repeat(PART),
                    itertools.repeat(Path(place)), itertools.repeat(given.family),
                )  # fmt: skip
                for done, found in enumerate(jobs, start=1):
                    for where in found.findings.keys() - total.findings.keys():
                        print(f"{where}: {found.findings[where].text!r}", flush=True)
                    total.join(found)
                    if done % 50 == 0:
                        print(f"{done * PART} inputs, {len(total.findings)} places", flush=True)
            except BrokenProcessPool:
                for left in Path(place).iterdir():
                    total.add(Finding("a reader", "", f"killed {left.name}", left.read_bytes(), ""))
    _print(total, given.keep)
    sys.exit(1 if total.findings else 0)


def _print(total: Found, keep: Path | None) -> None:
    print("| files | inputs | read |\n|---|---|---|")
    for name, count in sorted(total.inputs.items()):
        print(f"| {name} | {count} | {total.read[name] / count:.0%} |")
    seconds, reader = total.slowest
    print(f"\n{sum(total.inputs.values())} inputs, the slowest {seconds:.2f} s: {reader}")
    for number, (where, finding) in enumerate(sorted(total.findings.items()), start=1):
        print(
            f"\n{number}. {total.counts[where]} times: {where} ({finding.reader})\n{finding.told}"
        )
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{number:03}").write_bytes(finding.text)
    print(f"\n{len(total.findings)} findings")


if __name__ == "__main__":
    main()
