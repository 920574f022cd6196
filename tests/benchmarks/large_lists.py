"""Measure a tuning by outside scores on many long lists, as Markdown.

usage: python -m tests.benchmarks.large_lists [--keep DIR] [--restarts R] [N K D] ...

The lists are made up: N sentences, K hypotheses each, D features, and a file of one score a
hypothesis. Each tuning is a process of its own with one thread. Its memory is the most that it
held outside of files: the pages of the store and of large arrays are in files, which the kernel
writes and drops when memory is short. Lists of 10,000 sentences, 1,000 hypotheses and 10 features
need 5 GB of disk.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.benchmarks.large_store import MEASURE

SIZES = ("1000", "1000", "10")
TIMES = re.compile(r"loading ([0-9.]+) s, optimizing ([0-9.]+) s \(([0-9.]+) s of CPU\)")


def make_lists(directory: Path, n_sentences: int, n_best: int, n_features: int) -> None:
    """Write the files ``list`` and ``scores.npy``."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=n_features)
    scores = []
    with (directory / "list").open("w") as file:
        for sentence in range(n_sentences):
            values = rng.normal(size=(n_best, n_features)).astype(np.float32)
            scores.append(values @ weights + 2.0 * rng.normal(size=n_best))
            for number, row in enumerate(values.tolist()):
                named = " ".join(f"f{column}= {value:.5f}" for column, value in enumerate(row))
                file.write(f"{sentence} ||| h{number} ||| {named} ||| 0\n")
    np.save(directory / "scores.npy", np.concatenate(scores))


def main() -> None:
    """Print a row for each size as soon as it has been measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", default=SIZES, help="N K D, one or several times")
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where the lists are, or are to stay")
    given = parser.parse_args()
    sizes = np.array(list(map(int, given.sizes))).reshape(-1, 3).tolist()
    print("| lists | loading s | MERT s | MERT CPU s | s | CPU s | MB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for n_sentences, n_best, n_features in sizes:
            directory = (given.keep or Path(scratch)) / f"{n_sentences}x{n_best}x{n_features}"
            if not directory.exists():
                directory.mkdir(parents=True)
                make_lists(directory, n_sentences, n_best, n_features)
            program = [sys.executable, "-c", "from mosesplug.cli.main import main; main()"]
            program += ["optimize", "--nbest", f"{directory / 'list'}", "--threads", "1"]
            program += ["--scores", f"Q={directory / 'scores.npy'}", "--seed", "1"]
            program += ["--option", f"restarts={given.restarts}", "--option", "polish=0"]
            measured = [sys.executable, "-c", MEASURE, *program]
            done = subprocess.run(measured, check=True, capture_output=True, text=True)
            code, wall, cpu, memory, _ = map(float, done.stdout.split())
            times = TIMES.search(done.stderr)
            if code or times is None:
                raise SystemExit(done.stderr)
            print(
                f"| {n_sentences:,} x {n_best:,} x {n_features} | {times[1]} | {times[2]} | "
                f"{times[3]} | {wall:.1f} | {cpu:.1f} | {memory:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
