"""Edit distances by the textbook, and the alignment that jiwer chooses."""

from __future__ import annotations

from collections.abc import Sequence


def table(reference: Sequence[object], hypothesis: Sequence[object]) -> list[list[int]]:
    """Distances of all beginnings, by the textbook's recurrence."""
    rows = [list(range(len(hypothesis) + 1))]
    for i, mine in enumerate(reference, start=1):
        row = [i]
        for j, other in enumerate(hypothesis, start=1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (mine != other)))
        rows.append(row)
    return rows


def edits_of_jiwer(reference: list[str], hypothesis: list[str]) -> list[int]:
    """Hits, substitutions, deletions and insertions, traced back through the table."""
    hits = substitutions = 0
    left, right = list(reference), list(hypothesis)
    while left and right and left[0] == right[0]:
        left, right, hits = left[1:], right[1:], hits + 1
    while left and right and left[-1] == right[-1]:
        left, right, hits = left[:-1], right[:-1], hits + 1
    rows = table(left, right)
    i, j = len(left), len(right)
    while i and j:
        if rows[i][j] == rows[i - 1][j] + 1:
            i -= 1
        elif rows[i][j - 1] + 1 == rows[i - 1][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            hits += left[i] == right[j]
            substitutions += left[i] != right[j]
    pairs = hits + substitutions
    return [hits, substitutions, len(reference) - pairs, len(hypothesis) - pairs]
