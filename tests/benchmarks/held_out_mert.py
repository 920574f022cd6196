"""Score every stage of MERT on sentences that it did not see.

usage: python tests/benchmarks/held_out_mert.py [--folds N] [--seeds N] [--split N]
           [--restarts N] [--polish N] [--interval best|average|minimum]

Splits the sentences of the seven recorded lists (MOSES_RECORDINGS) into folds, tunes on all but one
from the weights before the first tuning, and scores the other. Prints the mean score of the lists
and the score of all folds together: of the start, after the climb from it, after the restarts, and
after the polish.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from formats.weights.files import read_init_opt
from mosesplug.learning.lists.merging import load_lists
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.registry import algorithm

mert = algorithm("mert").optimize

BLEU = metric("BLEU", "case:true")


def stages(
    problem: Problem, start: NDArray[np.float64], seed: int, options: MertOptions
) -> dict[str, NDArray[np.float64]]:
    """Return the weights after each stage. A longer search begins as a shorter one."""
    shorter = {
        "one climb": replace(options, restarts=0, polish=0),
        "restarts": replace(options, polish=0),
        "polish": options,
    }
    found = {"start": start}
    for name, each in shorter.items():
        found[name] = mert(problem, start, np.random.default_rng(seed), each).weights
    return found


def main() -> None:
    """Run all folds and seeds, and print a line for each seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--split", type=int, default=99, help="seed of the split")
    parser.add_argument("--restarts", type=int, default=MertOptions().restarts)
    parser.add_argument("--polish", type=int, default=MertOptions().polish)
    parser.add_argument("--interval", choices=["best", "average", "minimum"], default="best")
    given = parser.parse_args()
    options = MertOptions(restarts=given.restarts, polish=given.polish, interval=given.interval)
    data = Path(os.environ.get("MOSES_RECORDINGS", "../shared/data")) / "multi30k-de-en"
    files = [data / "mert-work" / f"run{run}.best100.out.gz" for run in range(1, 8)]
    lists = load_lists(files, data / "text" / "dev.en", BLEU, threads=1).tuning_set
    start = np.asarray(read_init_opt(data / "mert-work" / "run1.init.opt").start)
    n_sentences = len(lists.sentence_ids)
    fold = np.random.default_rng(given.split).permutation(n_sentences) % given.folds
    parts = [
        [Problem(lists.take_sentences(np.flatnonzero(mask)), BLEU) for mask in (seen, ~seen)]
        for seen in (fold != number for number in range(given.folds))
    ]
    for seed in range(1, given.seeds + 1):
        on_lists: dict[str, list[float]] = {}
        held_out: dict[str, NDArray[np.float64]] = {}
        for tuned, judged in parts:
            for name, weights in stages(tuned, start, seed, options).items():
                score = float(BLEU.score(tuned.candidates.first_best(weights)))
                on_lists.setdefault(name, []).append(score)
                sums = judged.candidates.first_best(weights)
                held_out[name] = held_out.get(name, np.zeros(len(sums))) + sums
        pieces = [
            f"{name} {np.mean(on_lists[name]):.4f} {float(BLEU.score(sums)):.4f}"
            for name, sums in held_out.items()
        ]
        print(f"seed {seed}: {'; '.join(pieces)}", flush=True)


if __name__ == "__main__":
    main()
