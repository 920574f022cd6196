"""Compare the default MERT with Moses' mert on small problems.

usage: python tests/benchmarks/small_problems.py [--problems N] [--seeds N] [--restarts N] MOSES_BIN

Each problem has 2 to 9 sentences of 10 to 60 hypotheses and 3 to 7 features, with statistics of
BLEU that follow hidden weights and noise. Both programs get the same features, statistics and
starting weights, and the same number of restarts. Prints how often the default MERT ends lower,
equal and higher, the mean of both scores, and its CPU time. Exit code 1 if it ends lower once.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from formats.extractor.data import write_features, write_scores
from mosesplug.features import FeatureSpace
from mosesplug.metrics import metric
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import TuningSet

mert = algorithm("mert").optimize

BLEU = metric("BLEU", "case:true")
BEST_POINT = re.compile(r"Best point:\s*([\s\d.\-e]+?)\s*=> ([\-\d.]+)")


@dataclass(frozen=True)
class SmallProblem:
    """Hypotheses of a few sentences.

    Attributes:
        lists: features and statistics of BLEU.
    """

    lists: TuningSet

    @classmethod
    def make(
        cls,
        seed: int,
        sentences: tuple[int, int] = (2, 9),
        features: tuple[int, int] = (3, 7),
        hypotheses: tuple[int, int] = (10, 60),
    ) -> SmallProblem:
        """Return a problem of a size, within the limits, and noise drawn from the seed."""
        rng = np.random.default_rng(seed)
        n_sentences = int(rng.integers(*sentences, endpoint=True))
        n_features = int(rng.integers(*features, endpoint=True))
        sizes = rng.integers(*hypotheses, n_sentences, endpoint=True)
        n_hyps = int(sizes.sum())
        dense = rng.standard_normal((n_hyps, n_features)).astype(np.float32)
        hidden = rng.uniform(-1.0, 1.0, n_features)
        quality = dense @ hidden + rng.uniform(0.5, 2.0) * rng.standard_normal(n_hyps)
        lengths = rng.integers(8, 30, n_sentences).repeat(sizes)
        shares = 1.0 / (1.0 + np.exp(-0.7 * quality))
        stats = np.zeros((n_hyps, 9), dtype=np.int32)
        tokens = np.maximum(4, lengths + rng.integers(-3, 4, n_hyps))
        stats[:, 8] = lengths
        for order in range(4):
            stats[:, 2 * order + 1] = tokens - order
            stats[:, 2 * order] = np.round(shares ** (order + 1) * (tokens - order))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        space = FeatureSpace.of_names([f"F{number}" for number in range(n_features)])
        ids = np.arange(n_sentences)
        return cls(TuningSet(space, ids, offsets, dense, None, stats, tokens.astype(np.int32)))

    @property
    def start(self) -> NDArray[np.float64]:
        """Equal weights, float64 ``[n_features]``."""
        return np.full(len(self.lists.space), 1.0 / len(self.lists.space))

    def ours(self, seed: int, options: MertOptions) -> float:
        """Return the score of our MERT."""
        problem = Problem(self.lists, BLEU)
        return mert(problem, self.start, np.random.default_rng(seed), options).score

    def theirs(self, seed: int, restarts: int, program: Path, directory: Path) -> float:
        """Return the score of Moses' program at its weights.

        Raises:
            RuntimeError: it fails.
        """
        made, size = self.lists, len(self.lists.space)
        names = tuple(f"{name}_0" for name, _ in made.space.groups)
        write_features(
            directory / "features.data", names, made.sentence_ids, made.offsets, made.dense
        )
        write_scores(
            directory / "statscore.data", "BLEU", made.sentence_ids, made.offsets, made.stats
        )
        rows = (" ".join(map(repr, self.start.tolist())), "0 " * size, "1 " * size)
        (directory / "init.opt").write_text("".join(f"{row}\n" for row in rows))
        words = ["-d", size, "-n", restarts, "-r", seed, "--ifile", "init.opt",
                 "--ffile", "features.data", "--scfile", "statscore.data"]  # fmt: skip
        done = subprocess.run(
            [program, *map(str, words)], cwd=directory, capture_output=True, text=True, check=False
        )
        found = BEST_POINT.search(done.stderr + done.stdout)
        if done.returncode or found is None:
            raise RuntimeError(f"{program} failed: {done.stderr[-500:]}")
        weights = np.array([float(word) for word in found[1].split()])
        chosen = made.first_best(weights)
        return max(float(BLEU.score(made.stats[chosen].sum(axis=0))), float(found[2]))


def main() -> int:
    """Run all problems with all seeds, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("moses_bin", type=Path, help="Moses' bin folder")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--restarts", type=int, default=20)
    given = parser.parse_args()
    program = (given.moses_bin / "mert").absolute()
    ours, theirs, seconds = [], [], 0.0
    with tempfile.TemporaryDirectory() as directory:
        for number in range(given.problems):
            problem = SmallProblem.make(number)
            for seed in range(1, given.seeds + 1):
                began = time.process_time()
                ours.append(problem.ours(seed, MertOptions(restarts=given.restarts)))
                seconds += time.process_time() - began
                theirs.append(problem.theirs(seed, given.restarts, program, Path(directory)))
    differences = np.array(ours) - np.array(theirs)
    lower = differences < -1e-6  # Moses prints six digits
    print(f"{len(ours)} runs: lower {lower.sum()}, equal {(np.abs(differences) <= 1e-6).sum()}, "
          f"higher {(differences > 1e-6).sum()}")  # fmt: skip
    print(f"mean score {np.mean(ours):.6f}, Moses' mert {np.mean(theirs):.6f}")
    print(f"largest loss {max(0.0, -differences.min()):.6f}, CPU {seconds / len(ours):.3f} s a run")
    return int(lower.any())


if __name__ == "__main__":
    sys.exit(main())
