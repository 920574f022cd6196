"""The texts beside a store: input and references, and how bytes are shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mosesplug.errors import DataError

__all__ = ["Texts", "decode_text", "mark_invalid_utf8"]


@dataclass(frozen=True)
class Texts:
    """The input and its translations, as far as they are known.

    Attributes:
        source: the sentences; empty where they are not known.
        references: one or more translations of all of them; empty where they are not known.
    """

    source: Sequence[bytes] = ()
    references: Sequence[Sequence[bytes]] = ()

    def check(self, n_sentences: int) -> None:
        """See that they belong to a run.

        Raises:
            DataError: they have another number of lines.
        """
        for what, lines in (
            ("source", self.source),
            *(("reference", lines) for lines in self.references),
        ):
            if len(lines) not in (0, n_sentences):
                raise DataError(
                    f"the {what} has {len(lines)} lines, and the run's input {n_sentences}: give "
                    "the files that it was tuned on"
                )

    def source_of(self, sentence: int) -> str | None:
        """The text of one sentence."""
        return decode_text(self.source[sentence]) if self.source else None

    def references_of(self, sentence: int) -> tuple[str, ...]:
        """The translations of one sentence."""
        return tuple(decode_text(lines[sentence]) for lines in self.references)


def decode_text(text: bytes) -> str:
    """Bytes for people; what is no UTF-8 is marked."""
    return text.decode("utf-8", "replace").strip()


def mark_invalid_utf8(text: str) -> str:
    """Text with names of features or files, in which bytes that are no UTF-8 are marked, too."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
