"""Tune on sentences weighted by likeness to a test set, and score that test set.

usage: python tests/benchmarks/weigh_sentences.py [--splits N]

Cuts the sentences of three recorded, merged lists (MOSES_RECORDINGS) at random in halves. Learns
from one half, and scores sentences of the other: those of up to nine words, or those that mention
women or girls. Sentences have the weights of the script in docs/howto/sentence-weights.md
(``half``), the likeness of all sentences (``likeness``), 1 (``all``), or 1 for a random half
(``random``). Prints BLEU, mean and standard deviation over the splits, as Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from mosesplug.learning.lists.merging import load_lists
from mosesplug.learning.weights import read_starting_weights
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, algorithm, corpus_score

BLEU = metric("BLEU", "case:true")
ALGORITHMS = ("kbmira", "softmax")
WOMEN = {"frau", "frauen", "mädchen"}

Numbers = NDArray[np.float64]


def compute_likeness(tuning: Sequence[str], test: Sequence[str]) -> Numbers:
    """Return the share of each tuning sentence that the test set has, as in the how-to."""

    def pieces(line: str) -> set[Any]:
        words = line.split()
        return {*words, *itertools.pairwise(words)}

    sentences = [pieces(line) for line in tuning]
    known = set().union(*map(pieces, test))
    counts = Counter(piece for sentence in sentences for piece in sentence)
    rarity = {piece: math.log(1 + len(tuning) / count) for piece, count in counts.items()}
    return np.array(
        [
            sum(rarity[piece] for piece in sentence & known)
            / sum(rarity[piece] for piece in sentence)
            for sentence in sentences
        ]
    )


def weigh(likeness: Numbers, rng: np.random.Generator) -> Mapping[str, Numbers]:
    """Return the weights of the tuning sentences by the name of the selection."""
    middle = sorted(likeness)[len(likeness) // 2]
    half = np.where(likeness >= middle, likeness, 0.0)
    return {
        "all": np.ones(len(likeness)),
        "likeness": likeness / likeness.mean(),
        "half": half / half[half > 0.0].mean(),
        "random": rng.permutation(len(likeness)) % 2.0,
    }


def main() -> None:
    """Learn from all splits, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    data = Path(os.environ.get("MOSES_RECORDINGS", "../shared/data")) / "multi30k-de-en"
    files = [data / "mert-work" / f"run{run}.best100.out.gz" for run in (1, 2, 3)]
    lists = load_lists(files, data / "text" / "dev.en", BLEU, threads=1).tuning_set
    source = (data / "text" / "dev.de").read_text(encoding="utf-8").splitlines()
    initial = read_starting_weights(lists.space, data / "mert-work" / "run1.dense").weights
    scores: dict[tuple[str, str, str], list[float]] = {}
    for split in range(1, arguments.splits + 1):
        rng = np.random.default_rng(split)
        rows = rng.permutation(len(source))
        tuned, others = np.sort(rows[: len(rows) // 2]), np.sort(rows[len(rows) // 2 :])
        tests = {
            "short": [row for row in others if len(source[row].split()) <= 9],
            "women": [row for row in others if WOMEN & set(source[row].lower().split())],
        }
        for test, chosen in tests.items():
            judged = Problem(lists.take_sentences(np.array(chosen)), BLEU)
            likeness = compute_likeness([source[row] for row in tuned], [source[r] for r in chosen])
            selections = weigh(likeness, np.random.default_rng(split))
            for name in ALGORITHMS:
                scores.setdefault((test, name, "start"), []).append(corpus_score(judged, initial))
                for selection, weights in selections.items():
                    problem = Problem(lists.take_sentences(tuned).weigh(weights), BLEU)
                    row = algorithm(name)
                    rng = np.random.default_rng(1)
                    solution = row.optimize(problem, initial, rng, row.options())
                    score = corpus_score(judged, solution.weights)
                    scores.setdefault((test, name, selection), []).append(score)
    columns = [(test, name) for test in ("short", "women") for name in ALGORITHMS]
    print("|", " | ".join(["tuning sentences", *(", ".join(column) for column in columns)]), "|")
    for selection in ("start", "all", "likeness", "half", "random"):
        cells = []
        for column in columns:
            own = [100.0 * score for score in scores[*column, selection]]
            deviation = statistics.stdev(own) if len(own) > 1 else 0.0
            cells.append(f"{statistics.mean(own):.2f} ± {deviation:.2f}")
        print("|", " | ".join([selection, *cells]), "|")


if __name__ == "__main__":
    main()
