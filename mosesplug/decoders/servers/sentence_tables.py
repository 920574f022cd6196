"""Give Moses' server its text phrase tables one sentence at a time.

``PhraseDictionaryMemory`` scores and prunes its entries with the weights that it is loaded with,
and never again. ``PhraseDictionaryALSuffixArray`` is the same table, but it is loaded before each
sentence, from the file ``grammar.0.gz`` of a directory (0 is the id of all sentences of a
server), with the weights of that moment. If the file has the entries for the phrases of the
sentence, in the order of the whole table, a server decodes like a process that starts with these
weights. Source: ``moses/TranslationModel/RuleTable/PhraseDictionaryALSuffixArray.cpp``.

Other tables are read at look-up, and what they read is kept with its scores. ``cache-size=0`` turns
that off in all of them but ``PhraseDictionaryOnDisk``, which then still keeps the newer half.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from formats.moses.decoder_flags import flag_name, group_flags
from formats.moses.ini import FeatureLine, MosesIni, read_moses_ini
from formats.text import open_text, write_atomic
from mosesplug.decoders.batch import ModelWeights

VOCABULARY = "words"
"""File name of the vocabulary of a feature function."""

TEXT_TABLE = "PhraseDictionaryMemory"
SENTENCE_TABLE = "PhraseDictionaryALSuffixArray"
_ON_DISK = "PhraseDictionaryOnDisk"
_CACHED = ("PhraseDictionaryBinary", "PhraseDictionaryCompact")
_CAUSES = {
    TEXT_TABLE: "keeps the scores and the pruning of the weights that it was loaded with",
    _ON_DISK: "keeps the scores of entries that it has looked up with earlier weights"
    " (cache-size=0 removes only the older half of them)",
    **dict.fromkeys(
        _CACHED, "keeps the scores of entries that it has looked up with earlier weights"
    ),
}
_LONGEST = "max-phrase-length"
_LONGEST_BY_DEFAULT = 20
"""Moses' own limit (``DEFAULT_MAX_PHRASE_LENGTH``)."""

FACTOR_DELIMITER = b"|"

Complete = Callable[[bytes, bytes], tuple[bytes, bytes]]
"""Completes text and features of a hypothesis."""

_BLANKS = re.compile(rb"[ \t]+")
_ARGUMENTS = re.compile(rb"\S+")


def describe_tables(config: Path) -> str | None:
    """Describe the tables that keep scores of earlier weights; None if none does."""
    lines = read_moses_ini(config).features
    causes = [f"{line.kind} {_CAUSES[line.kind]}" for line in lines if line.kind in _CAUSES]
    return ", and ".join(dict.fromkeys(causes)) or None


@dataclass(frozen=True)
class SentenceTables:
    """Phrase tables of a configuration, and how to give them to a server by sentence.

    Attributes:
        ini: the configuration.
        texts: its tables that are loaded from text files.
        cached_tables: its tables whose cache can be turned off.
        longest: most words of a phrase that the decoder looks up.
        entries: the entries of the tables.
    """

    ini: MosesIni
    texts: tuple[FeatureLine, ...]
    cached_tables: tuple[FeatureLine, ...]
    longest: int
    entries: TableEntries = field(compare=False, repr=False)

    @property
    def with_segmentation(self) -> bool:
        """Whether requests must ask for hypotheses with marked phrases."""
        return False

    @classmethod
    def of(cls, config: Path, flags: Sequence[str] = ()) -> SentenceTables | None:
        """Return the tables of a configuration; None if no rewriting makes a server exact.

        Args:
            config: the ``moses.ini``.
            flags: the flags of the decoder. XML markup and factors in the input hide the phrases.
        """
        ini = read_moses_ini(config)
        settings = list_settings(ini, flags)
        texts = tuple(line for line in ini.features if line.kind == TEXT_TABLE)
        cached = tuple(line for line in ini.features if line.kind in _CACHED)
        is_plain = (
            not any(line.kind == _ON_DISK for line in ini.features)
            and has_plain_input(settings)
            and all(line.arguments.get("input-factor", "0") == "0" for line in texts)
            and all(line.path is not None for line in texts)
            and all(Path(value.text).is_absolute() for value in ini.section("weight-file"))
        )
        if not is_plain or not (texts or cached):
            return None
        entries = TableEntries([line.path or "" for line in texts])
        return cls(ini, texts, cached, find_longest_phrase(settings), entries)

    def expect(self, sentences: Iterable[bytes], directory: Path) -> None:
        """Read the entries for sentences that will be decoded, all at once.

        Args:
            sentences: any number; others may follow, each of which costs a pass over the tables.
            directory: against which relative paths are resolved.

        Raises:
            OSError, FormatError: a table cannot be read.
        """
        if self.texts:
            self.entries.expect(
                {phrase for text in sentences for phrase in list_phrases(text, self.longest)},
                directory,
            )

    def write_config(self, path: Path, directory: Path) -> None:
        """Write the rewritten configuration.

        Args:
            path: to write.
            directory: the directory of the tables of the sentence, relative to the decoder's
                current directory.
        """
        lines = list(self.ini.lines)
        for line in self.texts:
            changes = {b"path": b"%b" % bytes(directory / line.name), b"name": line.name.encode()}
            lines[line.line - 1] = rewrite_line(lines[line.line - 1], SENTENCE_TABLE, changes)
        for line in self.cached_tables:
            changes = {b"cache-size": b"0"}
            lines[line.line - 1] = rewrite_line(lines[line.line - 1], line.kind, changes)
        write_atomic(path, b"".join(lines))

    def convert_weights(self, weights: ModelWeights) -> ModelWeights:
        """Return the weights that the server must be sent for these weights."""
        return weights

    def explain_unfolded(self, weights: ModelWeights) -> str | None:
        """Return why tables cannot carry the sparse weights, if one cannot."""
        del weights
        return None

    def format_constant_weights(self) -> bytes:
        """Return further lines of the server's ``-weight-file``."""
        return b""

    def write(
        self, text: bytes, directory: Path, current: Path, weights: Mapping[str, float]
    ) -> None:
        """Write the tables of one sentence.

        Args:
            text: the sentence.
            directory: the directory of the tables.
            current: the decoder's current directory.
            weights: the sparse weights.

        Raises:
            OSError, FormatError: a table cannot be read or written.
        """
        del weights
        phrases = list_phrases(text, self.longest)
        self.expect([text], current)
        for number, line in enumerate(self.texts):
            lines = self.entries.of(number, phrases)
            write_sentence_table(directory, line, b"".join(lines.values()))

    def mark_text(self, text: bytes) -> bytes:
        """Return a sentence as the server must be sent it."""
        return text

    def complete(self, text: bytes) -> Complete:
        """Return a function that completes the hypotheses of a sentence.

        It takes a hypothesis in the server's reply, with marks of phrases if requests ask for them,
        and its features field, and returns both as the decoder writes them to a list. It raises
        ``DecoderError`` if the hypothesis was not made of the entries for this sentence.
        """
        del text
        return lambda hypothesis, features: (hypothesis, features)


def write_sentence_table(directory: Path, line: FeatureLine, data: bytes) -> None:
    """Write the entries of a table for one sentence.

    Args:
        directory: the directory of all tables.
        line: the table.
        data: its entries.
    """
    place = directory / line.name
    place.mkdir(parents=True, exist_ok=True)
    # Not compressed in spite of its name: the decoder looks at the content.
    (place / "grammar.0.gz").write_bytes(data)


def remove_tables(directory: Path) -> None:
    """Remove the files that ``SentenceTables`` wrote, and no others."""
    for path in (*directory.glob("*/grammar.0.gz"), *directory.glob(f"*/{VOCABULARY}")):
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    with contextlib.suppress(OSError):
        directory.rmdir()


class EntryCheck(Protocol):
    """A check of the entries of a phrase table."""

    def __call__(self, line: bytes, path: str, number: int) -> None:
        """Raise ``FormatError`` for an entry that cannot be used."""


class TableEntries:
    """The entries of tables for some phrases, as lines. Several threads may use it."""

    def __init__(self, paths: Sequence[str], check: Callable[[], EntryCheck] | None = None) -> None:
        """Read nothing yet.

        Args:
            paths: the text files.
            check: makes the check of the entries that a pass over the tables finds.
        """
        self._paths = tuple(paths)
        self._check = check
        self._reset()

    def _reset(self) -> None:
        self._known: set[bytes] = set()
        self._lines: list[Mapping[bytes, bytes]] = [{} for _ in self._paths]
        self._lock = threading.Lock()

    def expect(self, phrases: set[bytes], directory: Path) -> None:
        """Read the entries of phrases that are not known yet.

        Args:
            phrases: source phrases.
            directory: against which relative paths are resolved.

        Raises:
            OSError, FormatError: a table cannot be read.
        """
        with self._lock:
            new = phrases - self._known
            if not new:
                return
            for number, path in enumerate(self._paths):
                entries = _find_entries(directory / path, new, self._check)
                self._lines[number] = {**self._lines[number], **entries}
            self._known |= new

    def of(self, number: int, phrases: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the lines of those phrases that a table has.

        Args:
            number: the table.
            phrases: in the order of the result.
        """
        lines = self._lines[number]
        return {phrase: lines[phrase] for phrase in phrases if phrase in lines}

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._paths, self._check)  # another process reads the tables itself

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._paths, self._check = state
        self._reset()


def _find_entries(
    path: Path, phrases: set[bytes], make_check: Callable[[], EntryCheck] | None
) -> dict[bytes, bytes]:
    entries: dict[bytes, list[bytes]] = defaultdict(list)
    check = None if make_check is None else make_check()
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            source = line.partition(b"|||")[0].strip(b" \t")
            if b"  " in source or b"\t" in source:
                source = _BLANKS.sub(b" ", source)
            if source in phrases:
                if check is not None:
                    check(line, str(path), number)
                entries[source].append(line if line.endswith(b"\n") else line + b"\n")
    return {source: b"".join(lines) for source, lines in entries.items()}


def list_settings(ini: MosesIni, flags: Sequence[str]) -> dict[str, str]:
    """Return the settings of the decoder by their long names; flags override sections."""
    settings = {
        name: " ".join(value.text for value in ini.section(name)) or "true" for name in ini.sections
    }
    for flag, values in group_flags(flags):
        settings[flag_name(flag)] = " ".join(values) or "true"
    return settings


def has_plain_input(settings: Mapping[str, str]) -> bool:
    """Return whether phrases are spans of words: one factor, and no XML markup."""
    return (
        "xml-input" not in settings
        and settings.get("input-factors", "0") == "0"
        and settings.get("factor-delimiter", "|") == "|"
    )


def find_longest_phrase(settings: Mapping[str, str]) -> int:
    """Return the limit of phrases in words.

    A value that is not a number is the decoder's to reject.
    """
    *_, limit = ("", *settings.get(_LONGEST, "").split())
    return int(limit) if limit.isascii() and limit.isdigit() else _LONGEST_BY_DEFAULT


def list_phrases(text: bytes, longest: int) -> list[bytes]:
    """Return the distinct phrases of a sentence of up to so many words, in order.

    The decoder looks up the first factor of each word: ``haus`` of ``haus|NN``.
    """
    words = [word.partition(FACTOR_DELIMITER)[0] for word in split_words(text)]
    spans = list_spans(len(words), longest)
    return list(dict.fromkeys(b" ".join(words[first:last]) for first, last in spans))


def split_words(text: bytes) -> list[bytes]:
    """Return the words of a text as Moses separates them."""
    return [word for word in _BLANKS.split(text.strip(b" \t\r\n")) if word]


def list_spans(n_words: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of all phrases of up to so many words, in order."""
    for first in range(n_words):
        for last in range(first, min(first + longest, n_words)):
            yield first, last + 1


def rewrite_line(line: bytes, kind: str, changes: Mapping[bytes, bytes]) -> bytes:
    """Return a line of ``[feature]`` with other kind and arguments, without comment."""
    words = _ARGUMENTS.findall(line.partition(b"#")[0])[1:]
    kept = [word for word in words if word.partition(b"=")[0] not in changes]
    return b" ".join([kind.encode(), *kept, *(b"%b=%b" % item for item in changes.items())]) + b"\n"
