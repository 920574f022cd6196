"""Source sentences and references beside a store, and texts as people see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosesplug.errors import DataError

if TYPE_CHECKING:
    # Texts are shown by commands that open no store.
    from mosesplug.store import NBestStore


@dataclass(frozen=True)
class ParallelText:
    """The source sentences and references of a tuning set, as far as they are known.

    Attributes:
        source: one line for each sentence; empty if unknown.
        references: one or more translations of all sentences; empty if unknown.
    """

    source: Sequence[bytes] = ()
    references: Sequence[Sequence[bytes]] = ()

    @classmethod
    def read(
        cls,
        source: Path | None,
        references: Path | None,
        store: NBestStore,
        ids: bool | None = None,
    ) -> ParallelText:
        """Read the files that are given; references may be a prefix of several files.

        Args:
            source: the source sentences, or None.
            references: the references, or None.
            store: the store of the run, with its sentence ids.
            ids: whether lines begin with sentence ids; None: ``begins_with_ids`` decides.

        Raises:
            FormatError: a file cannot be read.
            DataError: a sentence has no line, or it cannot be decided whether lines begin with ids.
        """
        from formats.references import read_references
        from formats.text import read_lines
        from mosesplug.sentence_ids import arrange_lines

        def arrange(lines: Sequence[Sequence[bytes]], what: str) -> Sequence[Sequence[bytes]]:
            return arrange_lines(lines, store.sentence_ids, what, ids, store.first_hypotheses)

        sources = arrange([] if source is None else [read_lines(source)], f"{source}")
        lines = [] if references is None else read_references(references)
        return cls(sources[0] if sources else (), arrange(lines, f"{references}"))

    def check_length(self, n_sentences: int) -> None:
        """Check that all files have one line for each sentence of a run.

        Raises:
            DataError: a file has another number of lines.
        """
        for what, lines in (
            ("source", self.source),
            *(("reference", lines) for lines in self.references),
        ):
            if len(lines) not in (0, n_sentences):
                raise DataError(
                    f"the {what} has {len(lines)} lines, but the run has {n_sentences} sentences: "
                    "give the files that it was tuned on"
                )

    def source_sentence(self, sentence: int) -> str | None:
        """Return a source sentence, None if unknown."""
        return decode_text(self.source[sentence]) if self.source else None

    def reference_sentences(self, sentence: int) -> tuple[str, ...]:
        """Return the references of a sentence."""
        return tuple(decode_text(lines[sentence]) for lines in self.references)


def decode_text(text: bytes) -> str:
    """Return text to show; bytes that are not valid UTF-8 are replaced by U+FFFD."""
    return text.decode("utf-8", "replace").strip()


def format_translations(texts: Mapping[int, bytes], ids: Sequence[str] | None = None) -> bytes:
    """Return one line per sentence, empty without text, up to the last with text.

    Args:
        texts: the translations by sentence.
        ids: the ids of the sentences, which begin their lines; empty for the numbers themselves.
            Sentences without text have no line then. None: lines without ids.
    """
    if ids is not None:
        named = ((ids[number] if ids else str(number), texts[number]) for number in sorted(texts))
        return b"".join(
            name.encode("utf-8", "surrogateescape") + b" " + text + b"\n" for name, text in named
        )
    count = max(texts, default=-1) + 1
    return b"".join(texts.get(sentence, b"") + b"\n" for sentence in range(count))
