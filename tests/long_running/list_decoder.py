"""A decoder that makes n-best lists as fast as Python can, of any size, for runs of days.

    list_decoder.py --make DIRECTORY SENTENCES      writes input, reference and moses.ini
    list_decoder.py -config INI [-weight-overwrite W] -show-weights
    list_decoder.py -config INI [-weight-overwrite W] -n-best-list LIST N distinct -input-file INPUT

A sentence is its number and eight words; translations are its reference with words replaced. Of a
list, one half is the same at all weights, and the other half follows from the weights: every
decoding with new weights brings so many new hypotheses. The 14 features are noise around the
number of wrong words.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import numpy as np

GROUPS = (("Distortion0", 1), ("LM0", 1), ("WordPenalty0", 1), ("PhrasePenalty0", 1))
GROUPS += (("TranslationModel0", 4), ("LexicalReordering0", 6))
N_FEATURES = sum(width for _, width in GROUPS)
VOCABULARY = [f"w{number}" for number in range(60)]
LENGTH = 8
_NUMBERS = [f"{number / 100:.2f}" for number in range(-1000, 1)]


def reference_of(sentence: int) -> np.ndarray:
    """int ``[LENGTH]``, places in the vocabulary."""
    return np.random.default_rng([1, sentence]).integers(0, len(VOCABULARY), LENGTH)


def block(sentence: int, key: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Words ``[size, LENGTH]`` and features ``[size, N_FEATURES]`` of some hypotheses."""
    rng = np.random.default_rng([2, sentence, key])
    reference = reference_of(sentence)
    wrong = rng.random((size, LENGTH)) < rng.random((size, 1)) * 0.7
    words = np.where(wrong, rng.integers(0, len(VOCABULARY), (size, LENGTH)), reference)
    errors = (words != reference).sum(axis=1)
    features = -rng.integers(0, 400, (size, N_FEATURES))
    features[:, :5] -= 60 * errors[:, None]
    return words, features


def groups_of(text: str) -> dict[str, list[float]]:
    """``Name= v v Name= v`` as a dictionary."""
    found: dict[str, list[float]] = {}
    values: list[float] = []
    for word in text.split():
        if word.endswith("="):
            values = found.setdefault(word[:-1], [])
        else:
            values.append(float(word))
    return found


def lines_of(
    place: int, sentence: int, weights: np.ndarray, key: int, size: int
) -> tuple[str, list[str]]:
    """The best translation, and the lines of the list."""
    halves = [block(sentence, 0, size // 2), block(sentence, key, size - size // 2)]
    words, features = (np.concatenate(pair) for pair in zip(*halves, strict=True))
    scores = features @ weights / 100
    order = np.argsort(-scores, kind="stable").tolist()
    texts = [" ".join([VOCABULARY[word] for word in row]) for row in words.tolist()]
    spelled = [[_NUMBERS[value] for value in row] for row in (features + 1000).tolist()]
    lines = []
    for row in order:
        numbers, fields = iter(spelled[row]), []
        for name, width in GROUPS:
            fields += [f"{name}=", *(next(numbers) for _ in range(width))]
        lines.append(f"{place} ||| {texts[row]} ||| {' '.join(fields)} ||| {scores[row]:.5g}\n")
    return texts[order[0]], lines


def decode(given: dict[str, list[str]], weights: dict[str, list[float]]) -> None:
    """Write the lists."""
    path, size = given["n-best-list"][:2]
    vector = np.array([value for name, _ in GROUPS for value in weights[name]])
    key = 1 + zlib.crc32(vector.tobytes())
    with Path(path).open("w") as lists:
        for place, line in enumerate(Path(given["input-file"][0]).read_text().splitlines()):
            best, lines = lines_of(place, int(line.split()[0]), vector, key, int(size))
            print(best)
            lists.writelines(lines)


def make(directory: Path, sentences: int) -> None:
    """Write ``input``, ``reference`` and ``moses.ini``."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [" ".join(VOCABULARY[word] for word in reference_of(i)) for i in range(sentences)]
    (directory / "reference").write_text("".join(f"{line}\n" for line in lines))
    (directory / "input").write_text("".join(f"{i} {line}\n" for i, line in enumerate(lines)))
    features = "".join(f"Noise name={name} num-features={width}\n" for name, width in GROUPS)
    weights = "".join(f"{name}= {' '.join(['0.1'] * width)}\n" for name, width in GROUPS)
    config = f"[input-factors]\n0\n\n[feature]\n{features}\n[weight]\n{weights}"
    (directory / "moses.ini").write_text(config)


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1] == "--make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
        return
    given: dict[str, list[str]] = {}
    values: list[str] = []
    for word in sys.argv[1:]:
        if word.startswith("-") and not word[1:2].isdigit():
            values = given.setdefault(word.lstrip("-"), [])
        else:
            values.append(word)
    text = Path(given["config"][0]).read_text().partition("[weight]")[2]
    if "show-weights" in given:
        print(text, end="")
        return
    weights = groups_of(text)
    for spelled in given.get("weight-overwrite", []):
        weights.update(groups_of(spelled))
    decode(given, weights)


if __name__ == "__main__":
    main()
