"""Small problems to learn weights from, as files and as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

N_SENTENCES, N_HYPOTHESES = 12, 8
NAMES = ("LM0", "TM0", "TM0", "Words")


@dataclass(frozen=True)
class Problem:
    """Random hypotheses, some of which occur twice.

    Attributes:
        features: float64 ``[n_hyps, 4]`` of few digits, so that a file holds them exactly.
        sentence_ids: int64 ``[n_hyps]``, ascending.
        hypotheses: the texts.
        references: one for each sentence.
    """

    features: NDArray[np.float64]
    sentence_ids: NDArray[np.int64]
    hypotheses: list[str]
    references: list[str]

    def write(self, directory: Path) -> tuple[Path, Path]:
        """Write the lists and the references, and return their files."""
        lines = []
        for row, text in enumerate(self.hypotheses):
            lm, first, second, words = (f"{value:.6g}" for value in self.features[row])
            lines.append(
                f"{self.sentence_ids[row]} ||| {text}  ||| LM0= {lm} TM0= {first} {second} "
                f"Words= {words} ||| 0\n"
            )
        lists, references = directory / "lists", directory / "references"
        lists.write_text("".join(lines))
        references.write_text("".join(f"{line}\n" for line in self.references))
        return lists, references


def make_problem(seed: int = 1) -> Problem:
    """Return a problem in which no weight vector finds all references."""
    rng = np.random.default_rng(seed)
    references, texts, ids, rows = [], [], [], []
    for sentence in range(N_SENTENCES):
        words = [f"w{number}" for number in rng.integers(12, size=rng.integers(5, 9))]
        references.append(" ".join(words))
        for _ in range(N_HYPOTHESES):
            wrong = rng.random(len(words)) < rng.random()
            dropped = rng.random(len(words)) < 0.4
            text = [
                "x" if bad else word
                for word, bad, gone in zip(words, wrong, dropped, strict=True)
                if not (bad and gone)
            ]
            values = [-wrong.sum() + rng.normal(), rng.normal(), rng.normal(), -len(text)]
            texts.append(" ".join(text))
            ids.append(sentence)
            rows.append(np.round(values, 2))
        texts[-1], rows[-1] = texts[-2], rows[-2]
    return Problem(np.array(rows), np.array(ids), texts, references)
