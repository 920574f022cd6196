"""Read the references of a run, and of its held-out set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from formats.errors import quote
from formats.references import read_references
from formats.text import read_lines
from mosesplug.errors import DataError
from mosesplug.sentence_ids import ListedIds, TextLines, arrange_texts, begins_with_ids
from mosesplug.settings.configuration import Configuration


def read_run_references(
    configuration: Configuration, n_lines: int | None = None
) -> Sequence[Sequence[bytes]]:
    """Return the references of the tuning set without sentence ids.

    Args:
        n_lines: number of source sentences; default: that of the first reference.

    Raises:
        FormatError: see ``read_references``.
        DataError: it cannot be decided whether lines begin with ids, or the input has ids, too.
    """
    references, source = configuration.references, configuration.source_text
    return read_text_references(configuration, references, n_lines, source)


def read_text_references(
    configuration: Configuration, references: Path, n_lines: int | None, source: Path | None
) -> Sequence[Sequence[bytes]]:
    """Return the references of any text; see ``read_run_references``."""
    lines = read_references(references, n_lines, input_path=source)
    texts = [TextLines.of_lines(f"{references}", text_lines) for text_lines in lines]
    begins = begins_with_ids(texts, configuration.ids, ListedIds(what="n-best lists of a decoder"))
    if begins and source is not None:
        _check_source(source, texts)
    return arrange_texts(texts, (), begins)


def _check_source(source: Path, references: Sequence[TextLines]) -> None:
    """Check that the input does not begin with the ids of the references.

    Raises:
        DataError: it does.
    """
    text = TextLines.of_lines(f"{source}", read_lines(source))
    if text.is_distinct and any(text.known == reference.known for reference in references):
        raise DataError(
            f"{source}:1: the line begins with {quote(text.ids[0])}, a sentence id that the "
            "references have, too. Remove the ids from both: cut -d ' ' -f 2-"
        )
