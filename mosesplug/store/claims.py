"""Validate the sizes that a store records before any memory is allocated for them.

Arrays of a record cannot be longer than its bytes. The number of sentences or of feature columns,
however, is only a number: trusting a damaged one could exhaust memory or loop without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_SENTENCES = 10_000_000
"""Largest number of sentences of an input. Real inputs have thousands."""

_MOST_COLUMNS = 1_000_000
_DTYPES = ("<i4", "<f4", "<f8")


def read_kinds(stored: Any) -> list[tuple[int, str, str, int, str]]:
    """Return the kinds of statistics that are stored.

    Each has a number, signature, references, width and type of numbers.

    Raises:
        ValueError, TypeError: something else is stored.
    """
    kinds = []
    for place, (number, signature, references, width, dtype) in enumerate(stored):
        _need(number == place, "its number")
        _need(isinstance(signature, str) and isinstance(references, str), "its signature")
        _check_count(width, _MOST_COLUMNS, "statistics", least=1)
        _need(dtype in _DTYPES, "its type of numbers")
        kinds.append((place, signature, references, width, dtype))
    return kinds


def read_groups(stored: Any) -> tuple[tuple[str, int], ...] | None:
    """Return the dense groups, or None if there are none yet.

    Raises:
        ValueError, TypeError: something else is stored.
    """
    if stored is None:
        return None
    groups = tuple((name, width) for name, width in stored)
    for name, width in groups:
        _need(isinstance(name, str), "the name of a feature")
        _check_count(width, _MOST_COLUMNS, "values of a feature")
    _check_count(sum(width for _, width in groups), _MOST_COLUMNS, "features")
    return groups


def check_names(stored: Any) -> None:
    """Check the names of sparse features, or sentence ids.

    Raises:
        ValueError: they are not a list of strings.
    """
    _need(isinstance(stored, list) and all(isinstance(n, str) for n in stored), "names")


def check_graphs(n_graphs: Any, last_sentence: Any) -> None:
    """Check the number of search graphs.

    Raises:
        ValueError: the number is impossible.
    """
    _check_count(last_sentence, MOST_SENTENCES - 1, "sentences", least=-1)
    _check_count(n_graphs, last_sentence + 1, "search graphs")


def check_sums(sums: Mapping[str, Any], n_kinds: int) -> None:
    """Check the sums that an iteration records.

    Args:
        sums: the commit record, or the record of the last part.
        n_kinds: number of kinds of statistics in the store.

    Raises:
        ValueError, KeyError: a number is impossible or missing.
    """
    _check_count(sums["kind"], n_kinds - 1, "kinds of statistics")
    _check_count(sums["n_sentences"], MOST_SENTENCES, "sentences")
    _check_count(sums["n_lists"], sums["n_sentences"], "lists")
    _check_count(sums.get("n_graphs", 0), sums["n_sentences"], "search graphs")
    _check_count(sums["hypotheses"], 1 << 62, "hypotheses")
    _check_count(sums["new_hypotheses"], sums["hypotheses"], "new hypotheses")
    _need(isinstance(sums["first_best_score"], float), "the score of the first hypotheses")


def _check_count(value: Any, most: int, what: str, *, least: int = 0) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise ValueError(f"impossible number of {what}: {value!r}")


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} is invalid")
