"""n-best lists of the size of a real tuning set, made up from a seed."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

GROUPS = (("Lex0", 6), ("Distortion0", 1), ("LM0", 1), ("WordPenalty0", 1), ("TM0", 5))
N_SENTENCES = 1014
N_HYPS = 69


def make(
    directory: Path, n_lists: int, seed: int = 0, n_sentences: int = N_SENTENCES
) -> tuple[list[Path], Path]:
    """Write ``n_lists`` gzipped lists of 69 hypotheses per sentence, and their reference."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{k}" for k in range(3000)])
    references = [rng.choice(words, rng.integers(6, 20)) for _ in range(n_sentences)]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "references").write_text("".join(" ".join(r) + "\n" for r in references))
    lists = []
    for number in range(n_lists):
        lines = []
        for sentence, reference in enumerate(references):
            for _ in range(N_HYPS):
                kept = rng.random(len(reference)) > 0.1 + 0.4 * rng.random()
                text = np.where(kept, reference, rng.choice(words, len(reference)))
                values = rng.standard_normal(14) * 3.0 - 4.0 * (1.0 - kept.mean())
                lines.append(_line(sentence, text, values))
        path = directory / f"run{number + 1}.best100.out.gz"
        with gzip.open(path, "wt", compresslevel=6) as stream:
            stream.writelines(lines)
        lists.append(path)
    return lists, directory / "references"


def _line(sentence: int, text: np.ndarray, values: np.ndarray) -> str:
    fields, first = [], 0
    for name, width in GROUPS:
        fields.append(f"{name}= " + " ".join(f"{v:g}" for v in values[first : first + width]))
        first += width
    return f"{sentence} ||| {' '.join(text)}  ||| {' '.join(fields)} ||| {values.sum():g}\n"
