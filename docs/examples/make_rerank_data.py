"""Make the data of ``rerank.ipynb``: ``python make_rerank_data.py MOSES_CONFIG [DIRECTORY]``.

``MOSES_CONFIG`` is the directory ``moses-config`` of the repository. The bundled decoder translates
the tuning and the test set of the demo system with untuned weights. Two other models, trained on
other sentences of the demo's language, score its n-best lists: a language model that reads from
right to left, and lexical translation probabilities (Brown et al. 1993, Model 1). The same bytes
every time.
"""

from __future__ import annotations

import gzip
import math
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

SIZE = 10
"""Hypotheses of a list."""
PARALLEL, MONOLINGUAL = 3000, 6000
"""Sentences that the two models are trained on."""
ROUNDS = 5


class BackwardModel:
    """A trigram language model that reads from right to left, interpolated with fixed shares."""

    def __init__(self, corpus: Sequence[Sequence[str]]) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.contexts: Counter[tuple[str, ...]] = Counter()
        for words in corpus:
            for history, word in self._events(words):
                for n in range(3):
                    self.counts[(*history[n:], word)] += 1
                    self.contexts[tuple(history[n:])] += 1

    @staticmethod
    def _events(words: Sequence[str]) -> list[tuple[tuple[str, ...], str]]:
        padded = ["<s>", "<s>", *reversed(words), "</s>"]
        return [((padded[i - 2], padded[i - 1]), padded[i]) for i in range(2, len(padded))]

    def score(self, words: Sequence[str]) -> float:
        """Return the logarithm of the probability of a sentence."""
        total = 0.0
        for history, word in self._events(words):
            probability = 1e-5
            for n, share in enumerate((0.6, 0.3, 0.1)):
                if context := self.contexts[tuple(history[n:])]:
                    probability += share * self.counts[(*history[n:], word)] / context
            total += math.log(probability)
        return total


class LexicalModel:
    """The probability of the source given a hypothesis, word by word (Model 1)."""

    def __init__(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
        table: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
        for _ in range(ROUNDS):
            counts: Counter[tuple[str, str]] = Counter()
            for source, target in pairs:
                for word in source:
                    shares = [table[word, other] for other in (*target, "")]
                    for other, share in zip((*target, ""), shares, strict=True):
                        counts[word, other] += share / sum(shares)
            totals: Counter[str] = Counter()
            for (_, other), count in counts.items():
                totals[other] += count
            table = defaultdict(float, {p: c / totals[p[1]] for p, c in counts.items()})
        self.table = table

    def score(self, source: Sequence[str], words: Sequence[str]) -> float:
        """Return the logarithm of the probability of the source sentence."""
        total = 0.0
        for word in source:
            every = sum(self.table[word, other] for other in (*words, ""))
            total += math.log(1e-5 + every / (len(words) + 1))
        return total


def main() -> None:
    """Make everything."""
    config = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "rerank"
    target.mkdir(exist_ok=True)
    demo = config / "demo"
    sys.path.insert(0, str(demo / "making"))
    from language import random_sentence

    rng = random.Random(7)
    lexical = LexicalModel(
        [(s.tarvian, s.english) for s in (random_sentence(rng) for _ in range(PARALLEL))]
    )
    backward = BackwardModel([random_sentence(rng).english for _ in range(MONOLINGUAL)])
    for name, text in (("dev", "tune"), ("test", "test")):
        source = (demo / f"{text}.tarvian").read_text().splitlines()
        command = ["mosesplug-decoder", "-config", str(demo / "moses.ini"), "-n-best-list", "-"]
        command += [str(SIZE), "distinct", "-input-file", str(demo / f"{text}.tarvian")]
        printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        lists, scores = [], []
        for line in printed.splitlines():
            if " ||| " not in line:
                continue
            number, hypothesis, _, score = line.split(" ||| ")[:4]
            words = hypothesis.split()
            lists.append(f"{number} ||| {hypothesis} ||| Decoder= {score} ||| {score}\n")
            scores.append(
                f"{backward.score(words):.4f} "
                f"{lexical.score(source[int(number)].split(), words):.4f}\n"
            )
        _write(target / f"{name}.best{SIZE}.gz", lists)
        _write(target / f"{name}.scores.gz", scores)
    for name, text in (("dev.ref", "tune.english"), ("test.ref0", "test.english0")):
        (target / name).write_bytes((demo / text).read_bytes())
    (target / "test.ref1").write_bytes((demo / "test.english1").read_bytes())


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_bytes(gzip.compress("".join(lines).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
