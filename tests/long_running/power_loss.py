"""Loses the power at every call that changes a store, and looks at what is left on the disk.

usage: python -m tests.long_running.power_loss [--draws 20] [--seed 1] [--no-syncs]

A store is written while the writes and syncs of its file are logged. What a disk holds after a loss
of power is then made from the log, as SQLite's tests do it: everything before the last sync; of the
writes since, any selection, in any order, each sector of 512 bytes by itself. For each call of the
log, several such disks are drawn. Each must hold a store that opens and has exactly the records of
the last commit that was acknowledged, or of the one that was under way; it must be sound, and the
writer must be able to continue it to the records of an undisturbed run.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.long_running.watched import (
    TASKS,
    Call,
    Writer,
    continue_writing,
    list_faults,
    open_writer,
    read_calls,
    read_records,
)

_SECTOR = 512
_CONTINUED = 0.1
"""Share of the disks on which the writer continues."""


def main() -> None:
    """Lose the power, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-syncs", action="store_true", help="a disk that ignores syncs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mosesplug-power-") as name:
        count, problems = lose_power(
            Path(name), draws=given.draws, seed=given.seed, syncs=not given.no_syncs
        )
    print(f"{count} disks, {len(problems)} problems", *problems, sep="\n")
    sys.exit(1 if problems else 0)


def lose_power(
    directory: Path, *, draws: int, seed: int, syncs: bool = True
) -> tuple[int, list[str]]:
    """Lose the power so many times at each call.

    Args:
        directory: an empty one.
        draws: disks that are drawn for each call of the log.
        seed: of all draws.
        syncs: False for a disk that ignores them: stores are lost, and LMDB may end this process.

    Returns:
        The number of disks, and what was wrong with them.
    """
    chance = random.Random(seed)
    problems = []
    with open_writer(directory) as writer:
        calls = _log(writer, directory)
        if not syncs:
            calls = [
                call._replace(kind="w") if call.kind == "d" else call
                for call in calls
                if call.kind != "s"
            ]
        states = list(list_states(calls, directory))
        count = 0
        for number, disk, acknowledged in _draw_disks(calls, draws, chance):
            count += 1
            path = directory / "disk"
            _place(path, disk)
            found = read_records(path)
            allowed = states[acknowledged : acknowledged + 2]
            if found not in allowed:
                problems.append(f"call {number}: other records than those of commit {acknowledged}")
                continue
            problems += [f"call {number}: {fault}" for fault in list_faults(path)]
            if chance.random() < _CONTINUED and not continue_writing(writer, path, states[-1]):
                problems.append(f"call {number}: the writer cannot continue")
    return count, problems


def _log(writer: Writer, directory: Path) -> list[Call]:
    log = directory / "log"
    for task in TASKS:
        code = writer.run(
            directory / "whole",
            environment={"WATCH_LOG": str(log)},
            acks=str(directory / "acks.txt"),
            **task,
        )
        if code:
            raise RuntimeError("the undisturbed run failed")
    return read_calls(log)


def list_states(calls: Sequence[Call], directory: Path) -> Iterator[object]:
    """Yield the records after each commit, from those before the first."""
    disk = bytearray()
    yield None
    for call in calls:
        _apply(disk, call)
        if call.kind == "a":
            _place(directory / "state", bytes(disk))
            yield read_records(directory / "state")


def _draw_disks(
    calls: Sequence[Call], draws: int, chance: random.Random
) -> Iterator[tuple[int, bytes, int]]:
    """Yield the number of a call, a disk after a loss of power in it, and the commits before."""
    durable = bytearray()
    pending: list[Call] = []
    acknowledged = 0
    for number, call in enumerate(calls, start=1):
        if call.kind == "a":
            acknowledged += 1
        elif call.kind == "r":
            _apply(durable, call)  # synced before it was put in place
        elif call.kind != "s":
            pending.append(call)
        for _ in range(draws):
            yield number, _draw(durable, pending, chance), acknowledged
        if call.kind == "s":
            for each in pending:
                _apply(durable, each)
            pending.clear()
        elif call.kind == "d":
            _apply(durable, pending.pop())


def _draw(durable: bytearray, pending: Sequence[Call], chance: random.Random) -> bytes:
    """Return what a disk may hold: each sector of the pending writes came to it, or did not."""
    disk = bytearray(durable)
    share = chance.choice((0.0, 0.5, 0.9, 1.0))
    for call in chance.sample(pending, len(pending)):
        if call.kind == "t":
            if chance.random() < share:
                _apply(disk, call)
            continue
        place = 0
        while place < len(call.data):
            size = _SECTOR - (call.offset + place) % _SECTOR
            if chance.random() < share:
                part = call.data[place : place + size]
                _apply(disk, Call("w", call.offset + place, part))
            place += size
    return bytes(disk)


def _apply(disk: bytearray, call: Call) -> None:
    if call.kind == "r":
        disk[:] = call.data
    elif call.kind == "t":
        del disk[call.offset :]
        disk += bytes(call.offset - len(disk))
    elif call.kind in "wd":
        end = call.offset + len(call.data)
        disk += bytes(max(0, end - len(disk)))
        disk[call.offset : end] = call.data


def _place(path: Path, disk: bytes) -> None:
    path.mkdir(exist_ok=True)
    for left in path.iterdir():
        left.unlink()
    (path / "data.mdb").write_bytes(disk)


if __name__ == "__main__":
    main()
