"""Train a demo system on a text of your own choice, as Moses' training does on a real one.

    python train_demo.py text DIRECTORY
    python train_demo.py model SRC REF ALIGN DIRECTORY TEXT...

``text`` writes a noisy training text of the invented language: ``train.src``, ``train.ref``, and
its word alignment ``train.align`` (Moses' format, ``0-0 1-2``). ``model`` extracts phrases from a
training text and writes a system that has what the sentences of TEXT need, with the untuned
weights of the demo.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from language import Sentence, random_sentence
from make_demo import noisy, write, write_tables
from training import arpa_lines

SEED = 21
TRAINING_SENTENCES = 1600


def write_text(directory: Path) -> None:
    """Write a training text with its word alignment."""
    rng = random.Random(SEED)
    corpus = noisy(rng, [random_sentence(rng) for _ in range(TRAINING_SENTENCES)])
    for name, texts in (
        ("src", (sentence.tarvian for sentence in corpus)),
        ("ref", (sentence.english for sentence in corpus)),
        ("align", ([f"{s}-{e}" for s, e in sentence.links] for sentence in corpus)),
    ):
        write(directory / f"train.{name}", (" ".join(words) + "\n" for words in texts))


def write_model(corpus: Sequence[Sentence], texts: Sequence[str], directory: Path) -> None:
    """Write the tables, the language model and ``moses.ini``."""
    directory.mkdir(exist_ok=True)
    write_tables(directory, corpus, map(str.split, texts))
    write(directory / "lm.arpa.gz", arpa_lines((sentence.english for sentence in corpus), 3))
    shutil.copyfile(Path(__file__).parents[1] / "moses.ini", directory / "moses.ini")


def read_corpus(source: str, reference: str, alignment: str) -> list[Sentence]:
    """Return the sentence pairs of a training text."""
    files = [Path(name).read_text().splitlines() for name in (source, reference, alignment)]
    return [
        Sentence(
            tuple(left.split()),
            tuple(right.split()),
            tuple((int(s), int(e)) for s, e in (link.split("-") for link in links.split())),
        )
        for left, right, links in zip(*files, strict=True)
    ]


def main() -> None:
    """Do what the first word says."""
    match sys.argv[1:]:
        case ["text", directory]:
            write_text(Path(directory))
        case ["model", source, reference, alignment, directory, *files] if files:
            texts = [line for name in files for line in Path(name).read_text().splitlines()]
            write_model(read_corpus(source, reference, alignment), texts, Path(directory))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
