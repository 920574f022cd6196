"""Compare MERT with the best weights of all, on problems small enough to know them.

usage: python tests/benchmarks/exact_mert.py [--problems N] [--seeds N] [MOSES_BIN]

Each problem has 2 to 5 sentences of 5 to 15 hypotheses and 3 features, with statistics of BLEU that
follow hidden weights and noise. Prints, for each kind of search, how often it ends at the optimum
and how far below it ends on average. With Moses' bin folder, its ``mert`` is one of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.problem import Problem
from tests.benchmarks.small_problems import BLEU, SmallProblem
from tests.optimizers.exact import best_score_of_all

SEARCHES = {
    "20 restarts, `polish=8` (the defaults of `optimize`)": MertOptions(),
    "20 restarts, `polish=32`": MertOptions(polish=32),
    "20 restarts, no polish": MertOptions(polish=0),
    "20 restarts, no polish, none given up": MertOptions(polish=0, give_up=0.0),
    "no restarts, `polish=8` (the defaults of `tune`)": MertOptions(restarts=0),
    "no restarts, `polish=32`": MertOptions(restarts=0, polish=32),
    "no restarts, no polish": MertOptions(restarts=0, polish=0),
    "random directions, 20 restarts, no polish": MertOptions(method="random-direction", polish=0),
}
CLOSE = 1e-6
"""Moses prints six digits."""


def main() -> None:
    """Run all searches on all problems with all seeds, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("moses_bin", type=Path, nargs="?", help="Moses' bin folder")
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    gaps: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(given.problems):
            problem = SmallProblem.make(number, (2, 5), (3, 3), (5, 15))
            optimum = best_score_of_all(Problem(problem.lists, BLEU))
            searches: dict[str, Callable[[int], float]] = {
                name: partial(problem.ours, options=options) for name, options in SEARCHES.items()
            }
            if given.moses_bin is not None:
                searches["Moses' mert, 20 restarts"] = partial(
                    problem.theirs,
                    restarts=20,
                    program=(given.moses_bin / "mert").absolute(),
                    directory=Path(directory),
                )
            for name, search in searches.items():
                for seed in range(1, given.seeds + 1):
                    gaps.setdefault(name, []).append(optimum - search(seed))
    print("| search | ends at the optimum | mean distance | largest |\n|---|---|---|---|")
    for name, found in gaps.items():
        at_optimum = np.mean(np.array(found) <= CLOSE)
        print(f"| {name} | {at_optimum:.0%} | {np.mean(found):.4f} | {max(found):.4f} |")
    print(f"least distance {min(map(min, gaps.values())):.2e}")


if __name__ == "__main__":
    main()
