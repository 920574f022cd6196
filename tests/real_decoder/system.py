"""Cut a small translation system out of the recorded German-English one.

It has some short sentences, the phrases that occur in them, and the n-grams that these can form:
Moses loads it in a moment and decodes a sentence in milliseconds.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["System", "cut_language_model", "cut_system"]

_LONGEST_SENTENCE = 10
_LONGEST_PHRASE = 7
_ORDER = 3

_FACTORS = "input-factor=0 output-factor=0"
_REORDERING = "type=wbe-msd-bidirectional-fe-allff"
_INI = """\
[input-factors]
0

[mapping]
0 T 0

[distortion-limit]
6

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={model}/phrase-table.gz {factors}
LexicalReordering num-features=6 {kind} {factors} path={model}/reordering-table.gz
Distortion
KENLM name=LM0 factor=0 path={model}/lm.arpa.gz order=3

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
"""


@dataclass(frozen=True)
class System:
    """The files of a system.

    Attributes:
        directory: all of them lie here.
        source, reference: the sentences and their translations.
        config: the ``moses.ini``, with absolute paths.
    """

    directory: Path
    source: Path
    reference: Path
    config: Path

    @property
    def phrase_table(self) -> Path:
        """The text phrase table."""
        return self.directory / "phrase-table.gz"

    def rewrite(self, name: str, *changes: tuple[str, str]) -> Path:
        """Write another configuration beside the first and return its path.

        Args:
            name: of the file.
            changes: texts that occur in the configuration, and what replaces them.
        """
        text = self.config.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = self.directory / name
        path.write_text(text)
        return path


def cut_system(recorded: Path, directory: Path, *, sentences: int, options: int) -> System:
    """Write a system into a directory.

    Args:
        recorded: the recorded system (``model/``, ``text/``).
        directory: to write into.
        sentences: how many; the first short ones of the tuning set.
        options: how many translations a phrase keeps.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pairs = list(_short_pairs(recorded / "text", sentences))
    source, reference = directory / "dev.de", directory / "dev.en"
    source.write_text("".join(f"{words}\n" for words, _ in pairs))
    reference.write_text("".join(f"{words}\n" for _, words in pairs))
    known = _cut_tables(recorded / "model", directory, {*_phrases(pairs)}, options)
    cut_language_model(recorded / "model", directory, known)
    config = directory / "moses.ini"
    config.write_text(_INI.format(model=directory, kind=_REORDERING, factors=_FACTORS))
    return System(directory, source, reference, config)


def _short_pairs(text: Path, count: int) -> Iterator[tuple[str, str]]:
    lines = (path.read_text().splitlines() for path in (text / "dev.de", text / "dev.en"))
    short = (pair for pair in zip(*lines, strict=True) if len(pair[0].split()) <= _LONGEST_SENTENCE)
    for _, pair in zip(range(count), short, strict=False):
        yield pair


def _phrases(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    for text, _ in pairs:
        words = text.split()
        for first in range(len(words)):
            for last in range(first, min(first + _LONGEST_PHRASE, len(words))):
                yield " ".join(words[first : last + 1])


def _cut_tables(model: Path, directory: Path, phrases: set[str], options: int) -> set[str]:
    """Write the phrase and reordering tables; return the target words."""
    entries: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    for line in _lines(model / "phrase-table.gz"):
        source, target, scores, _ = line.split(" ||| ", 3)
        if source in phrases:
            entries[source].append((-float(scores.split()[2]), target, line))
    chosen = {source: sorted(found)[:options] for source, found in entries.items()}
    kept = {(source, entry[1]) for source, found in chosen.items() for entry in found}
    with gzip.open(directory / "phrase-table.gz", "wt", 1) as out:
        out.writelines(entry[2] for found in chosen.values() for entry in found)
    with gzip.open(directory / "reordering-table.gz", "wt", 1) as out:
        for line in _lines(model / "reordering-table.gz"):
            if tuple(line.split(" ||| ", 2)[:2]) in kept:
                out.write(line)
    return {word for _, target in kept for word in target.split()}


def cut_language_model(model: Path, directory: Path, known: set[str]) -> None:
    """Write the n-grams of known words into a directory."""
    known = {*known, "<s>", "</s>", "<unk>"}
    sections: dict[int, list[str]] = {}
    order = 0
    for line in _lines(model / "lm.arpa.gz"):
        fields = line.rstrip("\n").split("\t")
        if found := re.match(r"\\(\d)-grams:", line):
            order = int(found[1])
            if order > _ORDER:
                break
        elif order and len(fields) > 1 and known.issuperset(fields[1].split(" ")):
            kept = fields if order < _ORDER else fields[:2]  # the longest have no back-off
            sections.setdefault(order, []).append("\t".join(kept))
    with gzip.open(directory / "lm.arpa.gz", "wt", 1) as out:
        counts = "".join(f"ngram {n}={len(found)}\n" for n, found in sections.items())
        out.write(f"\\data\\\n{counts}\n")
        for n, found in sections.items():
            out.write(f"\\{n}-grams:\n" + "\n".join(found) + "\n\n")
        out.write("\\end\\\n")


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from file
