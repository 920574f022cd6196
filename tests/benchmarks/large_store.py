"""Measure the inspection commands on a large store, as Markdown.

usage: python -m tests.benchmarks.large_store [--keep DIR] [--only WORD] [--sentences N] ...

The store is made up: 25 iterations of 2,000 200-best lists, 14 dense features, BLEU. Half of the
second list is new to its sentence, and of each later one 0.92 of that of the one before; the rest
repeats earlier ones. Each command is a process of its own; what counts is its CPU time, which other
processes disturb little, and the most memory that it held, without the pages of the store that the
kernel had mapped for it and can take back at any time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.metrics import metric
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationResult, IterationStart

GROUPS = (("Lex0", 6), ("Distortion0", 1), ("LM0", 1), ("WordPenalty0", 1), ("TM0", 5))
N_DENSE = 14
BLOCK = 250
COMMANDS = (
    "nbest show STORE 7",
    "nbest show STORE 7 --iteration 3 --features",
    "nbest diff STORE 7",
    "nbest diff STORE --iterations 3 4",
    "nbest ls STORE --no-oracle",
    "nbest ls STORE",
    "nbest grep STORE word17 --in hypothesis --max 20",
    "nbest grep STORE wort --in hypothesis",
    "nbest stats STORE",
    "nbest verify STORE",
    "nbest export STORE --iteration 2 -o LIST",
    "line STORE --direction LM0",
    "report STORE -o PAGE",
)

# In a process of its own: exit code, seconds, CPU seconds, and the most megabytes that one command
# held outside of files, and with the pages of files that the kernel had mapped for it.
MEASURE = """
import resource, subprocess, sys, threading, time
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
most = {"RssAnon": 0, "VmHWM": 0}
def watch():
    while True:
        try:
            lines = open(f"/proc/{child.pid}/status").read().splitlines()
        except OSError:
            return
        for line in lines:
            name = line.partition(":")[0]
            if name in most:
                most[name] = max(most[name], int(line.split()[1]))
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
began = time.perf_counter()
code = child.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, time.perf_counter() - began, used.ru_utime + used.ru_stime)
print(*(kilobytes // 1024 for kilobytes in most.values()))
"""


class MadeUp:
    """Hypotheses of all sentences, and the lists of each iteration."""

    def __init__(self, n_sentences: int, n_iterations: int, n_best: int) -> None:
        rng = np.random.default_rng(0)
        words = np.array([f"word{k}".encode() for k in range(3000)], dtype=object)
        self.n_new = [n_best, *(round(n_best / 2 * 0.92**i) for i in range(n_iterations - 1))]
        self.n_best = n_best
        self.references: list[bytes] = []
        self.texts: list[list[bytes]] = []
        n = sum(self.n_new)
        for _ in range(n_sentences):
            sentence = rng.choice(words, rng.integers(6, 20))
            self.references.append(b" ".join(sentence))
            kept = rng.random((n, len(sentence))) > 0.1 + 0.4 * rng.random((n, 1))
            rows = np.where(kept, sentence, rng.choice(words, (n, len(sentence))))
            self.texts.append(list(map(b" ".join, rows.tolist())))
        shape = (n_sentences, n, N_DENSE)
        self.dense = rng.standard_normal(shape, dtype=np.float32) * np.float32(3.0)

    def block(self, iteration: int, sentences: Sequence[int]) -> NBestList:
        """Lists of some sentences in one iteration, counted from 0."""
        rng = np.random.default_rng([iteration, sentences[0]])
        have, new = sum(self.n_new[:iteration]), self.n_new[iteration]
        texts: list[bytes] = []
        dense: list[NDArray[np.float32]] = []
        for sentence in sentences:
            old = rng.choice(have, self.n_best - new, replace=False) if have else []
            rows = rng.permutation(np.concatenate([old, np.arange(have, have + new)]).astype(int))
            texts += [self.texts[sentence][row] for row in rows.tolist()]
            dense.append(self.dense[sentence, rows])
        bounds = np.concatenate([[0], np.cumsum(list(map(len, texts)))]).astype(np.int64)
        n = len(texts)
        values = np.concatenate(dense)
        return NBestList(
            path="made up",
            sentence_ids=np.repeat(np.array(sentences, dtype=np.int64), self.n_best),
            buffer=np.frombuffer(b"".join(texts), dtype=np.uint8),
            text_starts=bounds[:-1],
            text_ends=bounds[1:],
            groups=GROUPS,
            dense=values,
            sparse_names=(),
            sparse_indptr=np.zeros(n + 1, dtype=np.int64),
            sparse_indices=np.zeros(0, dtype=np.int32),
            sparse_data=np.zeros(0, dtype=np.float32),
            scores=values.sum(axis=1).astype(np.float64),
            extra_starts=bounds[1:],
            extra_ends=bounds[1:],
            lines=np.arange(1, n + 1),
        )


def make_store(path: Path, n_sentences: int, n_iterations: int, n_best: int) -> None:
    """Make the store."""
    lists = MadeUp(n_sentences, n_iterations, n_best)
    bleu = metric("BLEU")
    references = bleu.prepare([lists.references])
    rng = np.random.default_rng(1)
    weights = [
        Weights(tuple(rng.dirichlet(np.ones(N_DENSE)).tolist())) for _ in range(n_iterations + 1)
    ]
    with NBestStore.open(path, writable=True) as store:
        for iteration in range(n_iterations):
            store.add_iteration(
                iteration + 1,
                (
                    lists.block(iteration, range(first, min(first + BLOCK, n_sentences)))
                    for first in range(0, n_sentences, BLOCK)
                ),
                metric=bleu,
                references=references,
                n_sentences=n_sentences,
                record=IterationStart(weights[iteration], 1, {}, (), 0.0).as_record(),
                threads=2,
            )
            result = IterationResult(weights[iteration + 1], 0.5, 0.1, 0.0)
            store.record_result(iteration + 1, result.as_record())


def main() -> None:
    """Make a store, and print a row for each command as soon as it has ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--nbest", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="where the store is, or is to stay")
    parser.add_argument("--only", default="", help="commands that have this in them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        store = given.keep or Path(scratch) / "store"
        if not store.exists():
            make_store(store, given.sentences, given.iterations, given.nbest)
        size = (store / "data.mdb").stat().st_size
        print(
            f"{given.iterations} iterations of {given.sentences} lists of {given.nbest}: ", end=""
        )
        print(f"{size / 1e9:.2f} GB\n\n| command | seconds | CPU s | MB |\n|---|---|---|---|")
        for command in COMMANDS:
            if given.only not in command:
                continue
            places = {"STORE": store, "LIST": f"{scratch}/list", "PAGE": f"{scratch}/page.html"}
            words = [str(places.get(word, word)) for word in command.split()]
            program = [sys.executable, "-c", "from mosesplug.cli.main import main; main()", *words]
            measured = [sys.executable, "-c", MEASURE, *program]
            said = subprocess.run(measured, check=True, capture_output=True, text=True).stdout
            code, wall, cpu, memory, _ = map(float, said.split())
            failed = f" (code {code:g})" if code not in (0, 1) else ""
            print(f"| `{command}`{failed} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
