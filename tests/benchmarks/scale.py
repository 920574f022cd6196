"""Measure ingest, merged mert and kbmira as functions of the size of the lists, as Markdown.

usage: python -m tests.benchmarks.scale [--percent P ...] [--keep DIR] [--plot FILE]

The full size is 10,000 sentences x 1,000-best x 20 features x 10 iterations: 100 million
hypotheses before duplicates, of which 43 million are distinct, and 10 text files of 2.3 GB. A
percentage takes so many sentences. Half of the second list is new to its sentence, and of each
later one 0.92 of that of the one before. Each step is a process of its own:

- ingest: parse the text of the ten lists, score them by BLEU, and store them;
- mert: optimize the merged lists from the store, one climb from the stored weights;
- kbmira: the same, 10 epochs.

Two sizes of memory are the most that a process held outside of files (anonymous), and with the
pages of files (RSS): the store and large arrays are in files, whose pages the kernel writes and
drops when memory is short. Slopes are those of a line through the measured sizes. The full size
needs some 25 GB of disk: a list is removed when it is stored.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.large_store import MEASURE

SENTENCES, N_BEST, N_FEATURES, ITERATIONS = 10_000, 1000, 20, 10
NEW = [N_BEST, *(round(N_BEST / 2 * 0.92**number) for number in range(ITERATIONS - 1))]
STEPS = ("ingest", "mert", "kbmira")
COLUMNS = ("wall s", "CPU s", "anonymous MB", "RSS MB")

Bytes = NDArray[np.uint8]


def _table(texts: Sequence[str]) -> Bytes:
    """Return texts of the same length as rows of bytes."""
    return np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1)


WORDS = _table([f"w{number:04d} " for number in range(3000)])
VALUES = _table([f"{number / 1000:.3f} " for number in range(10_000)])


def write_list(path: Path, iteration: int, n_sentences: int) -> None:
    """Write the list of an iteration, counted from 0; each line has a fixed width."""
    with path.open("wb") as file:
        for sentence in range(n_sentences):
            _, texts, values = _make_hypotheses(sentence)
            have, new = sum(NEW[:iteration]), NEW[iteration]
            rng = np.random.default_rng([2, iteration, sentence])
            old = rng.choice(have, N_BEST - new, replace=False) if have else np.zeros(0, np.int64)
            rows = rng.permutation(np.concatenate([old, np.arange(have, have + new)]))
            parts: list[bytes | Bytes] = [
                f"{sentence} ||| ".encode(),
                WORDS[texts[rows]].reshape(N_BEST, -1),
                b"||| F= ",
                VALUES[values[rows]].reshape(N_BEST, -1),
                b"||| 0\n",
            ]
            lines = [
                np.broadcast_to(np.frombuffer(part, np.uint8), (N_BEST, len(part)))
                if isinstance(part, bytes)
                else part
                for part in parts
            ]
            file.write(np.concatenate(lines, axis=1).tobytes())


def write_references(path: Path, n_sentences: int) -> None:
    """Write the reference of each sentence."""
    rows = (_make_hypotheses(sentence)[0] for sentence in range(n_sentences))
    path.write_bytes(b"".join(WORDS[row].tobytes().rstrip() + b"\n" for row in rows))


def _make_hypotheses(
    sentence: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return words of the reference, words and thousandths of features of all hypotheses."""
    rng = np.random.default_rng([1, sentence])
    reference = rng.integers(0, len(WORDS), 15)
    n = sum(NEW)
    share = 0.1 + 0.4 * rng.random((n, 1))
    kept = rng.random((n, 15)) > share
    texts = np.where(kept, reference, rng.integers(0, len(WORDS), (n, 15)))
    noise = rng.integers(0, 8000, (n, N_FEATURES))
    quality = (2000 * kept.mean(axis=1)).astype(np.int64)
    return reference, texts, noise + quality[:, None] * (np.arange(N_FEATURES) % 2)


def ingest(directory: Path) -> None:
    """Store the lists ``list1`` and so on; run in a process of its own."""
    from formats.nbest.files import read_nbest_blocks
    from mosesplug.metrics import metric
    from mosesplug.store import NBestStore
    from mosesplug.tuning.weights import Weights
    from mosesplug.tuning.workdir.records import IterationResult, IterationStart

    bleu = metric("BLEU")
    references = bleu.prepare([(directory / "refs").read_bytes().splitlines()])
    weights = Weights((1.0 / N_FEATURES,) * N_FEATURES)
    with NBestStore.open(directory / "store", writable=True) as store:
        for path in sorted(directory.glob("list*")):
            iteration = len(store.iterations()) + 1
            store.add_iteration(
                iteration,
                read_nbest_blocks(path),
                metric=bleu,
                references=references,
                n_sentences=references.n_sentences,
                record=IterationStart(weights, 1, {}, (), 0.0).as_record(),
                threads=2,
            )
            store.record_result(iteration, IterationResult(weights, 0.5, 0.1, 0.0).as_record())


def measure(command: Sequence[str]) -> list[float]:
    """Run a command, and return its ``COLUMNS``."""
    measured = [sys.executable, "-c", MEASURE, *command]
    done = subprocess.run(measured, check=True, capture_output=True, text=True)
    code, *found = map(float, done.stdout.split())
    if code:
        raise SystemExit(done.stderr)
    return found


def measure_size(directory: Path, n_sentences: int, steps: Sequence[str]) -> Iterator[Any]:
    """Yield each step with its measurements; make the store unless it is there."""
    program = [sys.executable, "-c", "from mosesplug.cli.main import main; main()", "optimize"]
    program += ["--from", str(directory / "store"), "--threads", "2", "--seed", "1"]
    commands = {
        "mert": ["--option", "restarts=0", "--option", "polish=0"],
        "kbmira": ["--algorithm", "kbmira", "--option", "epochs=10"],
    }
    if not (directory / "store").exists():
        directory.mkdir(parents=True, exist_ok=True)
        write_references(directory / "refs", n_sentences)
        parts = []
        for iteration in range(ITERATIONS):
            write_list(directory / "list", iteration, n_sentences)
            words = ["-m", "tests.benchmarks.scale", "--ingest", str(directory)]
            parts.append(measure([sys.executable, *words]))
            (directory / "list").unlink()
        table = np.array(parts)
        yield "ingest", [*table[:, :2].sum(axis=0).tolist(), *table[:, 2:].max(axis=0).tolist()]
    for step in steps:
        if step in commands:
            yield step, measure([*program, *commands[step], "-o", str(directory / "weights")])


def draw(path: Path, found: dict[str, list[tuple[float, list[float]]]]) -> None:
    """Draw time and memory of each step over the size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.5), layout="constrained")
    times, memory = figure.subplots(1, 2)
    for step, points in found.items():
        sizes = [size for size, _ in points]
        times.plot(sizes, [row[1] for _, row in points], "o-", label=step)
        memory.plot(sizes, [row[2] for _, row in points], "o-", label=f"{step}, anonymous")
        memory.plot(sizes, [row[3] for _, row in points], "x--", label=f"{step}, RSS")
    times.set_ylabel("CPU seconds")
    memory.set_ylabel("megabytes")
    for axes in (times, memory):
        axes.set_xlabel("percent of 100 million hypotheses")
        axes.legend(fontsize="small")
    figure.savefig(path)


def main() -> None:
    """Print a row for each step as soon as it has been measured, and then the slopes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--percent", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS)
    parser.add_argument("--keep", type=Path, help="where the stores are, or are to stay")
    parser.add_argument("--plot", type=Path, help="a picture of the table (matplotlib)")
    parser.add_argument("--ingest", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ingest is not None:
        ingest(given.ingest)
        return
    found: dict[str, list[tuple[float, list[float]]]] = {}
    print(f"| size | step | {' | '.join(COLUMNS)} |\n|{'---|' * (2 + len(COLUMNS))}")
    with tempfile.TemporaryDirectory() as scratch:
        for percent in given.percent:
            n_sentences = round(SENTENCES * percent / 100)
            directory = (given.keep or Path(scratch)) / f"{percent:g}"
            for step, row in measure_size(directory, n_sentences, given.steps):
                found.setdefault(step, []).append((percent, row))
                values = " | ".join(f"{value:.1f}" for value in row)
                print(f"| {percent:g} % | {step} | {values} |", flush=True)
    for step, points in found.items():
        if len(points) > 1:
            sizes = [size for size, _ in points]
            slopes = np.polyfit(sizes, [row for _, row in points], 1)[0]
            print(f"| slope, a percent | {step} | {' | '.join(f'{x:.2f}' for x in slopes)} |")
    if given.plot is not None:
        draw(given.plot, found)


if __name__ == "__main__":
    main()
