"""Every online learner on the demo, online: held-out BLEU before and after, as Markdown.

usage: python tests/benchmarks/online_demo.py [--epochs 1,3] [--algorithms A,B]

Runs the demo's own script with ``--online`` for each learner with its defaults; the bundled
decoder runs as a server. The held-out text has no part in tuning.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DEMO = Path(__file__).parents[2] / "moses-config" / "demo" / "tune_demo.py"
_BLEU = re.compile(r"held-out BLEU (before|after) tuning +([0-9.]+)")


def scores(algorithm: str, epochs: int) -> dict[str, float]:
    """Held-out BLEU ``before`` and ``after``."""
    with tempfile.TemporaryDirectory() as directory:
        options = ["--online", "--algorithm", algorithm, "--epochs", str(epochs), "--quiet"]
        command = [sys.executable, str(DEMO), f"{directory}/tuned", *options]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{algorithm}: {done.stderr}")
    return {when: float(score) for when, score in _BLEU.findall(done.stdout)}


def main() -> None:
    """Print the table, a row as soon as it is known."""
    from mosesplug.optimizers import algorithms

    learners = [each.name for each in algorithms().values() if each.learner is not None]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", default="1,3")
    parser.add_argument("--algorithms", default=",".join(learners))
    given = parser.parse_args()
    epochs = [int(number) for number in given.epochs.split(",")]
    headings = [f"after {n} epoch{'s' if n > 1 else ''}" for n in epochs]
    print(f"| learner | before | {' | '.join(headings)} |\n|---|---|{'---|' * len(epochs)}")
    for algorithm in given.algorithms.split(","):
        found = [scores(algorithm, number) for number in epochs]
        after = " | ".join(f"{each['after']:.2f}" for each in found)
        print(f"| {algorithm} | {found[0]['before']:.2f} | {after} |", flush=True)


if __name__ == "__main__":
    main()
