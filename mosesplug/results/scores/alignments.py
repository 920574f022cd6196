"""Alignments of hypotheses and references: what error rates count.

The alignment is that of ``MER`` and jiwer: the fewest edits; from the end of both sentences, after
words in common at the beginning and at the end are aligned, a deletion is preferred to an
insertion, and both to a pair of words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mosesplug.errors import count_noun
from mosesplug.escapes import escape_controls
from mosesplug.metrics import Metric
from mosesplug.metrics.word_metric import WordMetric
from mosesplug.results.render.record import Count, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable

_ALIGNED = ("WER", "MER", "CER")
"""Metrics that count the edits of an alignment of whole sentences."""

Pair = tuple[str, str]
"""A word of the reference and one of the hypothesis; one is empty if the other has no partner."""


@dataclass(frozen=True)
class AlignedSentence:
    """A sentence with its reference, word by word, or character by character.

    Attributes:
        sentence: its number from 0.
        pairs: aligned words of the reference and of the hypothesis; an inserted or deleted word
            has the empty text as its partner.
    """

    sentence: int
    pairs: tuple[Pair, ...]
    errors: int


@dataclass(frozen=True)
class EditCounts:
    """The edits of a text, and its sentences with the most.

    Attributes:
        correct, substitutions, deletions, insertions: how many pairs are equal, differ, or lack a
            word of the hypothesis or of the reference.
        examples: sentences with the most errors, the worst first.
    """

    correct: Count
    substitutions: Count
    deletions: Count
    insertions: Count
    examples: tuple[AlignedSentence, ...]


def count_edits(
    metric: Metric,
    references: Sequence[Sequence[bytes]],
    hypotheses: Sequence[bytes],
    most: int,
) -> EditCounts | None:
    """Align each hypothesis with its reference, and count the edits.

    Args:
        metric: which says what words are.
        references: ``[reference][line]``; of several, the one with the fewest errors counts.

    Returns:
        The counts; None if the metric counts no edits of an alignment.
    """
    if not isinstance(metric, WordMetric) or metric.name not in _ALIGNED:
        return None
    split = [metric.split(lines) for lines in references]
    totals = {"correct": 0, "substitutions": 0, "deletions": 0, "insertions": 0}
    sentences: list[AlignedSentence] = []
    for number, words in enumerate(metric.split(hypotheses)):
        options = [_measure(number, align(lines[number], words)) for lines in split]
        best = min(options, key=lambda aligned: aligned.errors / max(len(aligned.pairs), 1))
        for one, other in best.pairs:
            kind = "correct" if one == other else "substitutions"
            totals["insertions" if not one else "deletions" if not other else kind] += 1
        sentences.append(best)
    worst = sorted(sentences, key=lambda sentence: -sentence.errors)[:most]
    return EditCounts(**totals, examples=tuple(sentence for sentence in worst if sentence.errors))


def _measure(number: int, pairs: tuple[Pair, ...]) -> AlignedSentence:
    return AlignedSentence(number, pairs, sum(one != other for one, other in pairs))


def list_edits(
    head: Sequence[str],
    edits: Sequence[tuple[Sequence[str], EditCounts | None]],
    medium: Medium,
    ids: Sequence[str] = (),
) -> Iterator[Block]:
    """Yield a table of edits and, as text, the aligned sentences.

    Args:
        head: names of the cells that name a row.
        edits: these cells and the counts of each row; those without counts are left out.
        ids: the ids of the sentences; empty for their numbers.
    """
    known = [(names, counts) for names, counts in edits if counts is not None]
    if not known:
        return
    counted, *rows = tabulate(EditCounts, (counts for _, counts in known)).plain
    named = [(*names, *row) for (names, _), row in zip(known, rows, strict=True)]
    yield from [""] if medium.is_text else []
    yield TextTable([(*head, *counted), *named], left=len(head))
    for names, counts in known if medium.is_text else ():
        for example in counts.examples:
            yield from _list_alignment(" of ".join(names), example, ids)


def _list_alignment(title: str, example: AlignedSentence, ids: Sequence[str]) -> Iterator[str]:
    """Yield a sentence with its reference, word above word."""
    name = ids[example.sentence] if ids else str(example.sentence)
    errors = count_noun(example.errors, "error")
    yield f"\n{escape_controls(title)}, sentence {escape_controls(name)}: {errors}"
    columns = []
    for one, other in example.pairs:
        mark = "" if one == other else "I" if not one else "D" if not other else "S"
        cells = [escape_controls(word.replace("\n", "_")) or "*" for word in (one, other)]
        width = max(map(len, cells))
        columns.append([cell.ljust(width) for cell in (*cells, mark)])
    for label, row in zip(("REF", "HYP", ""), zip(*columns, strict=True), strict=True):
        yield f"{label:4}{' '.join(row)}".rstrip()


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[Pair, ...]:
    """Return the pairs of an alignment with the fewest edits."""
    start, n, m = 0, len(reference), len(hypothesis)
    while start < min(n, m) and reference[start] == hypothesis[start]:
        start += 1
    while start < min(n, m) and reference[n - 1] == hypothesis[m - 1]:
        n, m = n - 1, m - 1
    left, right = reference[start:n], hypothesis[start:m]
    rows = [list(range(len(right) + 1))]
    for i, word in enumerate(left, start=1):
        before, row = rows[-1], [i]
        for j, other in enumerate(right):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (word != other)))
        rows.append(row)
    middle: list[Pair] = []
    i, j = len(left), len(right)
    while i or j:
        if i and (not j or rows[i][j] == rows[i - 1][j] + 1):
            i -= 1
            middle.append((left[i], ""))
        elif j and (not i or rows[i][j - 1] + 1 == rows[i - 1][j - 1]):
            j -= 1
            middle.append(("", right[j]))
        else:
            i, j = i - 1, j - 1
            middle.append((left[i], right[j]))
    same = [(word, word) for word in reference[:start]]
    return (*same, *reversed(middle), *((word, word) for word in reference[n:]))
