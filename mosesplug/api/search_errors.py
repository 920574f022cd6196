"""Tell search errors from model errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from formats.text import StrPath
from mosesplug.api.keywords import LEARNING
from mosesplug.api.numbers import check_integer
from mosesplug.api.tables.records import ShownRecord, tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.errors import UsageError
from mosesplug.results.analysis.error_counts import SearchErrors, SentenceErrors
from mosesplug.results.analysis.search_errors import find_search_errors
from mosesplug.settings.paths import require_path

Places = StrPath | Sequence[StrPath]


@dataclass(frozen=True, repr=False)
class ErrorReport(ShownRecord, SearchErrors):
    """Errors of search and model; it prints as a table of counts and advice.

    ``search_errors`` returns it.
    """

    @property
    def table(self) -> Table:
        """The sentences: one row for each."""
        return tabulate_records(SentenceErrors, self.rows)


@LEARNING.in_messages()
def search_errors(
    run: Places,
    references: StrPath,
    *,
    wider: Places = (),
    iteration: int | None = None,
    weights: StrPath | None = None,
    sparse_weights: StrPath | None = None,
    ids: bool | None = None,
    top: int | None = None,
) -> ErrorReport:
    """Tell search errors from model errors by derivations of the references.

    A sentence has a search error if a derivation of a reference scores higher than the 1-best, and
    a model error if it scores lower. Scores that differ by less than 1e-5 of their size are equal,
    since decoders round them.

    Args:
        run: a run that was tuned with forced decoding or with search graphs; or directories or
            files of search graphs.
        references: the references: a file, or the prefix of several.
        wider: search graphs of the same text from a search that keeps more, with the same weights.
        iteration: an iteration of the run; None for the last.
        weights, sparse_weights: weights of the graphs; None for those that they were made with.
        ids: whether lines of the references begin with sentence ids; None: if they look so.
        top: rank the references among this many best translations of a graph; None: 100.

    Returns:
        ``counts``, the number of sentences of each kind; ``rows``, the kind, scores and rank of
        each sentence, which are also the rows of ``table`` and of data frames; ``reachable``, the
        number of sentences with a derivation of a reference; ``advice``, what to do, as text.

    Raises:
        UsageError: an argument does not apply, or weights are missing or differ.
        FormatError, StoreError, DataError: a file or a store cannot be read or does not fit.

    Example:
        >>> import mosesplug
        >>> report = mosesplug.search_errors("search-graphs", "dev.en", wider="wider-graphs")
        >>> {count.kind: count.sentences for count in report.counts}
        {'no error': 2, 'search error': 1, 'ranked low': 1}
        >>> report.rows[2].reference_score, report.rows[2].best_score
        (-1.0, -2.0)
    """
    places = _list_places(run, "run")
    if not places:
        raise UsageError("run is empty: give a run, or directories or files of search graphs")
    errors = find_search_errors(
        places,
        Path(references),
        ids=ids,
        iteration=iteration,
        wider=_list_places(wider, "wider"),
        weights=None if weights is None else fspath(weights),
        sparse_weights=None if sparse_weights is None else Path(sparse_weights),
        top=None if top is None else check_integer(top, "top", 1),
    )
    return ErrorReport(errors.rows, errors.tells_reach)


def _list_places(places: Places, argument: str) -> list[Path]:
    """Return the paths of an argument, which must exist."""
    listed = [places] if isinstance(places, str | PathLike) else places
    for place in listed:
        require_path(place, argument)
    return [Path(place) for place in listed]
