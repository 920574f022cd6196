"""Fails each call by which the store's writer changes its file, and looks at what is kept.

usage: python -m tests.long_running.io_errors [--every 1]

The writer of a store is started again and again. In the first run the first call fails, in the
second the second, and so on until a run has fewer calls; with each of two errors, for one call or
for all from there, and with writes that fail after half of their bytes. Each run must end with one
message; the store must have exactly the records of the last commit that was acknowledged, or of the
one that was under way; it must be sound, and the writer must be able to continue it to the records
of an undisturbed run.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.long_running.power_loss import list_states
from tests.long_running.watched import (
    TASKS,
    Writer,
    continue_writing,
    list_faults,
    open_writer,
    read_calls,
    read_records,
    without_times,
)

_ERRORS = (errno.EIO, errno.ENOSPC)
_WAYS = ({}, {"WATCH_ONCE": "1"}, {"WATCH_SHORT": "1"})


def main() -> None:
    """Fail the calls, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="fail only every N-th call")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mosesplug-errors-") as name:
        count, problems = fail_calls(Path(name), every=given.every)
    print(f"{count} failed calls, {len(problems)} problems", *problems, sep="\n")
    sys.exit(1 if problems else 0)


def fail_calls(directory: Path, *, every: int) -> tuple[int, list[str]]:
    """Fail every N-th call.

    Args:
        directory: an empty one.
        every: N.

    Returns:
        The number of runs in which a call failed, and what was wrong with them.
    """
    problems: list[str] = []
    count = 0
    with open_writer(directory) as writer:
        log = directory / "log"
        for task in TASKS:
            acks = str(directory / "acks.txt")
            writer.run(directory / "whole", environment={"WATCH_LOG": str(log)}, acks=acks, **task)
        states = [
            None if state is None else without_times(state)
            for state in list_states(read_calls(log), directory)
        ]
        for task, error, way in itertools.product(TASKS, _ERRORS, _WAYS):
            for number in itertools.count(1, every):
                found = _fail(writer, directory, task, number, {"WATCH_ERRNO": str(error), **way})
                if found is None:
                    break
                said, path, acknowledged = found
                count += 1
                name = f"{task}, {os.strerror(error)}, {way}, call {number}"
                before = 0 if task is TASKS[0] else _commits_of_first(states)
                left = read_records(path)
                allowed = states[before + acknowledged : before + acknowledged + 2]
                if not said or (left and without_times(left)) not in allowed:
                    problems.append(f"{name}: {said or 'no message'}; or other records")
                    continue
                problems += [f"{name}: {fault}" for fault in list_faults(path)]
                if not continue_writing(writer, path, states[-1]):
                    problems.append(f"{name}: the writer cannot continue")
    return count, problems


def _commits_of_first(states: list[Any]) -> int:
    """Return how many commits the first task has: then two iterations have results."""
    return next(
        number
        for number, state in enumerate(states)
        if state and (b"iterations", b"\0\0\0\2\2") in state
    )


def _fail(
    writer: Writer, directory: Path, task: dict[str, Any], number: int, way: dict[str, str]
) -> tuple[str, Path, int] | None:
    """Fail a call of a task.

    Returns:
        The message, the store, and the acknowledged commits; None if there is no such call.
    """
    path, acks, said = directory / "failed", directory / "failed-acks.txt", directory / "said"
    shutil.rmtree(path, ignore_errors=True)
    acks.unlink(missing_ok=True)
    said.unlink(missing_ok=True)
    if task is not TASKS[0] and writer.run(path, environment={}, **TASKS[0]):
        raise RuntimeError("the undisturbed run failed")
    environment = {"WATCH_FAIL": str(number), **way}
    code = writer.run(path, environment=environment, acks=str(acks), errors=str(said), **task)
    if not code:
        return None
    message = said.read_text() if code == 3 else ""
    return message, path, acks.stat().st_size if acks.exists() else 0


if __name__ == "__main__":
    main()
