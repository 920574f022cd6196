"""Makes the demo system: ``python make_demo.py [DIRECTORY]``, by default the directory above.

Writes the tuning and test sets with their references (two for the test), and the phrase table,
reordering table and language model that a small noisy training corpus gives. In ``postcards``, it
writes sets of postcards, with one reference, and tables of the same corpus for them. The same bytes
every time. The tables hold what the two sets beside them need, as Moses' filtered models do.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from language import NAMES, NOUNS, Sentence, random_sentence
from postcards import write_postcard
from training import LONGEST_PHRASE, arpa_lines, phrase_tables

SEED = 20
POSTCARD_SEED = 22
TRAINING_SENTENCES = 1200
LANGUAGE_MODEL_SENTENCES = 4000
SET_SENTENCES = 200
POSTCARD_SENTENCES = {"tune": 600, "test": 400}
NEW_NAMES = ("Wanda", "Kasimir", "Juno")
"""Names that only the tuning and test sets have: unknown words."""
MISALIGNED = 0.06
WRONG_WORD = 0.04
WRONG_LINK = 0.10


def noisy(rng: random.Random, corpus: Sequence[Sentence]) -> list[Sentence]:
    """What a corpus from the street looks like: wrong translations, words and word alignments."""
    result = []
    for sentence in corpus:
        english = list(sentence.english)
        links = set(sentence.links)
        if rng.random() < MISALIGNED:
            english = list(rng.choice(corpus).english)
            links = {(i, min(i, len(english) - 1)) for i in range(len(sentence.tarvian))}
        for position in range(len(english)):
            if rng.random() < WRONG_WORD:
                english[position] = rng.choice(NOUNS)[0]
        for link in sorted(links):
            if rng.random() < WRONG_LINK:
                links.remove(link)
        for position in range(len(sentence.tarvian)):
            if rng.random() < WRONG_LINK / 2:
                links.add((position, rng.randrange(len(english))))
        result.append(Sentence(sentence.tarvian, tuple(english), tuple(sorted(links))))
    return result


def write(path: Path, lines: Iterable[str]) -> None:
    """Write text, gzip if the name says so, without a time stamp."""
    data = "".join(lines).encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)


def lines(text: Iterable[Sequence[str]]) -> list[str]:
    """Sentences as lines."""
    return [" ".join(words) + "\n" for words in text]


def other_words(rng: random.Random, english: Sequence[str]) -> tuple[str, ...]:
    """Another good translation: a synonym, or the adverb in front."""
    words = [{"big": "large", "large": "big"}.get(word, word) for word in english]
    for adverb in (["yesterday"], ["last", "week"], ["every", "day"], ["today"], ["tomorrow"]):
        end = len(words) - 1
        if words[end - len(adverb) : end] == adverb and "," not in words and rng.random() < 0.5:
            words = [*adverb, ",", *words[: end - len(adverb)], "."]
    return tuple(words)


def write_tables(
    target: Path, corpus: Sequence[Sentence], sentences: Iterable[Sequence[str]]
) -> None:
    """Write the entries of a training corpus' tables that Tarvian sentences need."""
    wanted = {
        " ".join(words[i:j])
        for words in sentences
        for i in range(len(words))
        for j in range(i + 1, i + LONGEST_PHRASE + 1)
    }
    table, reordering = phrase_tables(corpus, wanted)
    write(target / "phrase-table.gz", table)
    write(target / "reordering-table.gz", reordering)


def write_system(
    target: Path, sets: Mapping[str, Sequence[Sentence]], corpus: Sequence[Sentence]
) -> None:
    """Write the Tarvian texts, and tables of a training corpus that hold what they need."""
    target.mkdir(exist_ok=True)
    texts = [sentence.tarvian for sentences in sets.values() for sentence in sentences]
    write_tables(target, corpus, texts)
    for name, sentences in sets.items():
        write(target / f"{name}.tarvian", lines(sentence.tarvian for sentence in sentences))


def main() -> None:
    """Make everything."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    rng = random.Random(SEED)
    names = (*NAMES, *NEW_NAMES)
    sets = {
        name: [random_sentence(rng, names) for _ in range(SET_SENTENCES)]
        for name in ("tune", "test")
    }
    training = [random_sentence(rng) for _ in range(TRAINING_SENTENCES)]
    more_english = [random_sentence(rng).english for _ in range(LANGUAGE_MODEL_SENTENCES)]
    corpus = noisy(rng, training)
    write_system(target, sets, corpus)
    write(target / "lm.arpa.gz", arpa_lines(more_english, 3))
    write(target / "tune.english", lines(sentence.english for sentence in sets["tune"]))
    english = [sentence.english for sentence in sets["test"]]
    write(target / "test.english0", lines(english))
    write(target / "test.english1", lines(other_words(rng, words) for words in english))
    rng = random.Random(POSTCARD_SEED)
    postcards = {
        name: [write_postcard(rng, names) for _ in range(count)]
        for name, count in POSTCARD_SENTENCES.items()
    }
    write_system(target / "postcards", postcards, corpus)
    for name, sentences in postcards.items():
        english_text = lines(sentence.english for sentence in sentences)
        write(target / "postcards" / f"{name}.english", english_text)


if __name__ == "__main__":
    main()
