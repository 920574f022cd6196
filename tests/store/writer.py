"""A process that writes stores in children it forks, to be killed there.

Run as a program with an empty directory: each line of the input is one task in JSON, done in a
fresh child; its exit code is written as one line (-9 for a killed one). Kernels are loaded before,
so that a test can kill dozens of them.

Tasks: ``path``, ``iterations`` (the first and the last to add), with ``parts`` if they are to grow
in parts (one that is open is gone on with from its progress), and when to die: the ``count``-th
time at a ``point`` (one of ``POINTS``), or after ``delay`` seconds. With ``seen``, a directory,
each iteration waits until the one before it has a file there. With ``transaction_bytes``, so many
bytes of records are stored in a transaction. With ``environment``, these variables are set. With
``acks``, a file, a byte is written there after each commit. With ``errors``, a file, the message of
an expected error is written there, and the exit code is 3.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.errors import StoreError
from mosesplug.store import NBestStore, writing
from mosesplug.store.files.environment import Environment
from tests.store.toys import Hypothesis, ToyMetric, make_list

N_PARTS = 8
PART = 3
N_SENTENCES = N_PARTS * PART
REFERENCES = (tuple(b"w%d w1 w2" % (i % 5) for i in range(N_SENTENCES)),)
POINTS = ("block", "score", "put", "write", "committed")


def lines_of(iteration: int) -> list[Hypothesis]:
    """The lists of one iteration; half of each is in the one before."""
    rng = np.random.default_rng(7)
    pool = rng.integers(0, 9, (N_SENTENCES, 40, 3))
    return [
        Hypothesis(i, b" ".join(b"w%d" % w for w in pool[i, j]), tuple(map(float, pool[i, j])))
        for i in range(N_SENTENCES)
        for j in range(4 * iteration, 4 * iteration + 8)
    ]


def blocks_of(iteration: int) -> Iterator[NBestList]:
    """The same in eight blocks."""
    lines = lines_of(iteration)
    for i in range(0, N_SENTENCES, PART):
        yield make_list(line for line in lines if i <= line.sentence < i + PART)


def add(store: NBestStore, iteration: int) -> None:
    """Add one of the iterations, and its result."""
    metric = ToyMetric()
    store.add_iteration(
        iteration,
        blocks_of(iteration),
        metric=metric,
        references=metric.prepare(REFERENCES),
        n_sentences=N_SENTENCES,
        record={"iteration": iteration},
        threads=1 + iteration % 2,
    )
    store.record_result(iteration, {"done": iteration})


def parts_of(iteration: int) -> list[list[Hypothesis]]:
    """Write the same lists in eight parts, with sentences in random order."""
    lines = lines_of(iteration)
    order = np.random.default_rng(iteration).permutation(N_SENTENCES)
    return [
        [line for line in lines if line.sentence in chosen]
        for chosen in order.reshape(N_PARTS, PART)
    ]


def grow(store: NBestStore, iteration: int) -> None:
    """Add one of the iterations in parts; go on where an earlier process was killed."""
    metric = ToyMetric()
    references = metric.prepare(REFERENCES)
    found = store.open_iteration()
    done = 0 if found is None else found.progress["done"]
    for number, part in enumerate(parts_of(iteration)[done:], start=done + 1):
        store.add_part(
            iteration,
            [make_list(part)],
            metric=metric,
            references=references,
            n_sentences=N_SENTENCES,
            progress={"done": number, "state": np.full(3000, float(number))},
        )
    store.finish_iteration(iteration, {"iteration": iteration})
    store.record_result(iteration, {"done": iteration})


def die_at(point: str, count: int) -> None:
    """Kill this process the ``count``-th time it comes to a point."""
    passed = 0

    def watched(function: Callable[..., Any], *, after: bool = False) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal passed
            result = function(*arguments, **options) if after else None
            passed += 1
            if passed == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return result if after else function(*arguments, **options)

        return call

    if point == "block":
        globals()["make_list"] = watched(make_list)
    elif point == "score":
        ToyMetric.statistics = watched(ToyMetric.statistics)  # type: ignore[method-assign]
    elif point == "put":
        writing.put_sorted = watched(writing.put_sorted, after=True)  # type: ignore[attr-defined]
    else:
        Environment.write = watched(Environment.write, after=point == "committed")  # type: ignore[method-assign]


def acknowledge(path: str) -> None:
    """Write a byte into a file after each commit."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    write = Environment.write

    def write_and_say(self: Environment, action: Callable[[Any], Any]) -> Any:
        result = write(self, action)
        os.write(descriptor, b"x")
        return result

    Environment.write = write_and_say  # type: ignore[method-assign]


def work(task: dict[str, Any]) -> None:
    """Do a task, or die of it."""
    if "transaction_bytes" in task:
        writing.TRANSACTION_BYTES = task["transaction_bytes"]
    os.environ.update(task.get("environment", {}))
    if "acks" in task:
        acknowledge(task["acks"])
    if "point" in task:
        die_at(task["point"], task["count"])
    first, last = task["iterations"]
    with NBestStore.open(task["path"], writable=True, map_size=1 << 16) as store:
        for iteration in range(first, last + 1):
            (grow if "parts" in task else add)(store, iteration)
            while "seen" in task and not (Path(task["seen"]) / str(iteration)).exists():
                time.sleep(0.001)


def main() -> None:
    """Do the tasks of the input."""
    # Loads the kernels; this store is closed before the first child is made.
    work({"path": sys.argv[1], "iterations": (1, 3)})
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if not child:
            try:
                work(task)
                os._exit(0)
            except StoreError as error:
                if "errors" not in task:
                    raise
                Path(task["errors"]).write_text(str(error))
                os._exit(3)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        if "delay" in task:
            time.sleep(task["delay"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
