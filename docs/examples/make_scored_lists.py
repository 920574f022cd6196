"""Make n-best lists with scores: ``python make_scored_lists.py neural|speech [DIRECTORY]``.

Sentences of the demo's language stand for references, and hypotheses are references with errors.
Their scores are random numbers around what each model would see of the errors: nothing is
translated or recognized, and no network is needed. The same bytes every time.

``neural``: lists of a neural translation system as JSON lines, with the scores of three models, a
quality estimate in a file of its own, and two learned metrics. ``speech``: lists of a recognizer,
as a table and as archives of Kaldi, with three models whose scores sum over words.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

HYPOTHESES = 8
SENTENCES = {"dev": 120, "test": 80}

sys.path.insert(0, str(Path(__file__).parents[2] / "moses-config" / "demo" / "making"))


def make_errors(
    rng: random.Random, words: Sequence[str], vocabulary: Sequence[str], kinds: Sequence[str]
) -> tuple[list[str], int]:
    """Return words with some errors, and the number of errors."""
    made = list(words)
    count = min(rng.choice((0, 1, 1, 2, 2, 3, 4)), len(made) - 1)
    for _ in range(count):
        at = rng.randrange(len(made))
        kind = rng.choice(kinds)
        if kind == "delete" and len(made) > 1:
            del made[at]
        elif kind == "insert":
            made.insert(at, rng.choice(vocabulary))
        elif kind == "mishear":
            letters = list(made[at])
            letters[rng.randrange(len(letters))] = rng.choice("aeiounrst")
            made[at] = "".join(letters)
        else:
            made[at] = rng.choice(vocabulary)
    return made, count


def make_neural(target: Path) -> None:
    """Make the lists of a translation system.

    The quality estimate ``qe`` and the first metric share a liking for something that is no
    quality, and that the second metric dislikes.
    """
    rng = random.Random(17)
    for part, sentences, vocabulary in read_parts(rng):
        lines, files = [], {name: [] for name in ("qe", "comet", "bleurt")}
        for number, words in enumerate(sentences):
            for _ in range(HYPOTHESES):
                kinds = ("replace", "replace", "insert", "delete")
                made, count = make_errors(rng, words, vocabulary, kinds)
                quality = -count / len(words) + rng.gauss(0, 0.05)
                liking = rng.gauss(0, 1)
                scores = {
                    "fwd": -0.5 * len(made) + 6 * quality + rng.gauss(0, 2.0),
                    "bwd": -0.8 * len(words) + 8 * quality + rng.gauss(0, 1.2),
                    "lm": -2.0 * len(made) + 6 * quality + rng.gauss(0, 1.5),
                }
                scores = {name: round(value, 4) for name, value in scores.items()}
                lines.append(
                    json.dumps({"id": f"{part}-{number}", "hyp": " ".join(made), "scores": scores})
                )
                files["qe"].append(0.5 + 0.1 * quality + 0.2 * liking + rng.gauss(0, 0.1))
                files["comet"].append(0.86 + 0.4 * quality + 0.05 * liking + rng.gauss(0, 0.02))
                files["bleurt"].append(0.74 + 0.5 * quality - 0.05 * liking + rng.gauss(0, 0.03))
        write(target / f"{part}.jsonl", lines)
        write(target / f"{part}.ref", [" ".join(words) for words in sentences])
        for name, values in files.items():
            write(target / f"{part}.{name}", [f"{value:.4f}" for value in values])


def make_speech(target: Path) -> None:
    """Make the lists of a recognizer that loses words.

    All three scores are sums over the words of a hypothesis, so that a lost word improves them.
    """
    rng = random.Random(28)
    for part, sentences, vocabulary in read_parts(rng):
        table, references = ["id\thyp\tam\tlm\tatt"], []
        archives: dict[str, list[str]] = {"words_text": [], "am": [], "lm": [], "att": []}
        for number, words in enumerate(sentences):
            name = f"{1000 + number // 10}-{part}-{number % 10:04d}"
            references.append(f"{name} {' '.join(words)}")
            for rank in range(1, HYPOTHESES + 1):
                kinds = ("delete", "delete", "mishear", "mishear", "replace")
                made, count = make_errors(rng, words, vocabulary, kinds)
                length, errors = len(made), count / len(words)
                scores = {
                    "am": length * (-1.5 - 0.8 * errors + rng.gauss(0, 0.2)),
                    "lm": length * (-2.0 - 1.2 * errors + rng.gauss(0, 0.3)),
                    "att": length * (-0.4 - 0.8 * errors + rng.gauss(0, 0.2)),
                }
                text = " ".join(made)
                table.append("\t".join([name, text, *(f"{s:.4f}" for s in scores.values())]))
                archives["words_text"].append(f"{name}-{rank} {text}")
                for model, score in scores.items():
                    archives[model].append(f"{name}-{rank} {-score:.4f}")
        write(target / f"{part}.tsv", table)
        write(target / f"{part}.text", references)
        for model, lines in archives.items():
            write(target / f"{part}.archives" / model, lines)


def read_parts(rng: random.Random) -> list[tuple[str, list[list[str]], list[str]]]:
    """Return name, sentences and vocabulary of the tuning and the test set."""
    from language import random_sentence

    vocabulary = sorted({word for _ in range(500) for word in random_sentence(rng).english})
    return [
        (part, [list(random_sentence(rng).english) for _ in range(size)], vocabulary)
        for part, size in SENTENCES.items()
    ]


def write(path: Path, lines: Sequence[str]) -> None:
    """Write lines, and the directory if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    make = {"neural": make_neural, "speech": make_speech}[sys.argv[1]]
    make(Path(sys.argv[2]) if len(sys.argv) > 2 else Path())
