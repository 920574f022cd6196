"""Substitutions, deletions and insertions, and aligned sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.tables import print_table
from mosesplug.errors import count_noun
from mosesplug.escapes import escape_controls
from mosesplug.results.render.record import tabulate

if TYPE_CHECKING:
    from mosesplug.results.scores.alignments import EditCounts


def print_edits(
    head: Sequence[str],
    edits: Sequence[tuple[Sequence[str], EditCounts]],
    ids: Sequence[str] = (),
) -> None:
    """Print a table of edits and, as text, the aligned sentences.

    Args:
        edits: the counts, with the cells that name their rows.
        ids: the ids of the sentences; empty for their numbers.
    """
    if not edits:
        return
    is_text = current_layout() is TableLayout.TEXT
    if is_text:
        print()
    counts, *rows = tabulate(type(edits[0][1]), (counts for _, counts in edits)).plain
    named = [(*names, *row) for (names, _), row in zip(edits, rows, strict=True)]
    print_table((*head, *counts), named, left=len(head))
    if is_text:
        for names, each in edits:
            _print_alignments(" of ".join(names), each, ids)


def _print_alignments(title: str, edits: EditCounts, ids: Sequence[str]) -> None:
    """Print sentences with their references, word above word."""
    for example in edits.examples:
        name = ids[example.sentence] if ids else str(example.sentence)
        errors = count_noun(example.errors, "error")
        print(f"\n{escape_controls(title)}, sentence {escape_controls(name)}: {errors}")
        columns = []
        for one, other in example.pairs:
            mark = "" if one == other else "I" if not one else "D" if not other else "S"
            cells = [escape_controls(word.replace("\n", "_")) or "*" for word in (one, other)]
            width = max(map(len, cells))
            columns.append([cell.ljust(width) for cell in (*cells, mark)])
        for label, row in zip(("REF", "HYP", ""), zip(*columns, strict=True), strict=True):
            print(f"{label:4}{' '.join(row)}".rstrip())
