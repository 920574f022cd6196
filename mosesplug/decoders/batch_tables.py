"""Cut text tables of Moses down to the sentences of a mini-batch.

Most of what Moses does when it starts is to load its phrase and reordering tables. From tables that
have only the lines of the phrases of some sentences, in their order, it decodes these sentences as
from the whole tables, and starts in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from formats.moses.ini import FeatureLine, MosesIni, read_moses_ini
from formats.text import write_atomic
from mosesplug.decoders.servers.sentence_tables import (
    TEXT_TABLE,
    TableEntries,
    find_longest_phrase,
    has_plain_input,
    list_phrases,
    list_settings,
    rewrite_line,
)

_REORDERING = "LexicalReordering"
_BY_SOURCE = frozenset(("f", "fe"))
"""Words of the type of a reordering model whose lines begin with the source phrase."""
_CONVERTED = (".minlexr", ".binlexr.idx")
"""Endings of reordering tables that Moses prefers to the text."""

_PHRASE_BASED = frozenset(("0", "1"))
"""Search algorithms that look up phrases of words; the others also look up rules."""

_MAPPED = b"mmap lm http://kheafield.com/code"
"""Start of a binary language model, which is mapped into memory instead of loaded."""
_MOST_TO_LOAD = 1 << 22


@dataclass(frozen=True)
class BatchTables:
    """The tables of a configuration that are cut down.

    Attributes:
        ini: the configuration.
        lines: the feature functions with these tables.
        longest: most words of a phrase that the decoder looks up.
        directory: the decoder's current directory.
        sentences: all that are known to be decoded; others cost a pass over the tables.
    """

    ini: MosesIni
    lines: tuple[FeatureLine, ...]
    longest: int
    directory: Path
    sentences: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(
        cls, config: Path, flags: Sequence[str], sentences: Iterable[bytes], directory: Path
    ) -> BatchTables | None:
        """Return the tables that can be cut down; None if there are none.

        Args:
            config: the ``moses.ini``.
            flags: the flags of the decoder. XML markup and factors in the input hide the phrases.
            sentences: all that will be decoded.
            directory: the decoder's current directory.
        """
        ini = read_moses_ini(config)
        settings = list_settings(ini, flags)
        is_phrase_based = settings.get("search-algorithm", "0") in _PHRASE_BASED
        is_text = settings.get("inputtype", "0") == "0" and has_plain_input(settings)
        if not (is_phrase_based and is_text):
            return None
        lines = tuple(line for line in ini.features if _can_be_cut(line, directory))
        if not lines:
            return None
        return cls(ini, lines, find_longest_phrase(settings), directory, tuple(sentences))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the feature functions."""
        return tuple(line.name for line in self.lines)

    @property
    def loads_little(self) -> bool:
        """Whether all other files of the model are small, or mapped into memory."""
        size = 0
        for line in self.ini.features:
            if line in self.lines:
                continue
            if line.kind.startswith(("PhraseDictionary", _REORDERING)):
                return False
            files = [self.directory / value for value in line.arguments.values()]
            size += sum(_count_loaded(path) for path in files if path.is_file())
        return size <= _MOST_TO_LOAD

    def read(self) -> TableEntries:
        """Return the lines of all sentences; each process reads them once.

        Raises:
            OSError, FormatError: a table cannot be read.
        """
        paths = tuple(line.path or "" for line in self.lines)
        states = tuple((self.directory / path).stat() for path in paths)
        versions = tuple((state.st_mtime_ns, state.st_size) for state in states)
        return _read_entries(paths, versions, self.longest, self.directory, self.sentences)

    def write(self, sentences: Sequence[bytes], prefix: str) -> Path:
        """Write the tables of some sentences, and a configuration with them.

        Args:
            prefix: the names of the files in the decoder's directory begin so.

        Returns:
            The configuration.

        Raises:
            OSError, FormatError: a table cannot be read.
        """
        # In the order of the sentences, so that equal batches give equal files.
        phrases = dict.fromkeys(
            phrase for text in sentences for phrase in list_phrases(text, self.longest)
        )
        entries = self.read()
        entries.expect(set(phrases), self.directory)
        rewritten = list(self.ini.lines)
        for number, line in enumerate(self.lines):
            table = f"{prefix}.table{number + 1}"
            (self.directory / table).write_bytes(b"".join(entries.of(number, phrases).values()))
            rewritten[line.line - 1] = rewrite_line(
                rewritten[line.line - 1], line.kind, {b"path": table.encode()}
            )
        config = self.directory / f"{prefix}.moses.ini"
        write_atomic(config, b"".join(rewritten))
        return config


@lru_cache(maxsize=1)
def _read_entries(
    paths: tuple[str, ...],
    versions: tuple[tuple[int, int], ...],
    longest: int,
    directory: Path,
    sentences: tuple[bytes, ...],
) -> TableEntries:
    del versions  # another run of this process may find the tables changed
    entries = TableEntries(paths)
    entries.expect({p for text in sentences for p in list_phrases(text, longest)}, directory)
    return entries


def _can_be_cut(line: FeatureLine, directory: Path) -> bool:
    """Return whether the lines of a function's text table begin with source phrases."""
    if line.path is None or line.arguments.get("input-factor", "0") != "0":
        return False
    if line.kind == _REORDERING:
        if _BY_SOURCE.isdisjoint(line.arguments.get("type", "").split("-")):
            return False
        if any((directory / f"{line.path}{ending}").exists() for ending in _CONVERTED):
            return False
    elif line.kind != TEXT_TABLE:
        return False
    return (directory / line.path).is_file()


def _count_loaded(path: Path) -> int:
    """Return how many bytes of a file a decoder loads when it starts."""
    with path.open("rb") as file:
        is_mapped = file.read(len(_MAPPED)) == _MAPPED
    return 0 if is_mapped else path.stat().st_size
