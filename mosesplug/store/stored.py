"""What a store holds beside hypotheses, as types that reading checks.

Arrays of a record cannot be longer than its bytes. The number of sentences or of feature columns,
however, is only a number: trusting a damaged one could exhaust memory or loop without end, so the
types have bounds.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from mosesplug.features import FeatureSpace

MOST_SENTENCES = 10_000_000
"""Largest number of sentences of an input. Real inputs have thousands."""
_MOST_COLUMNS = 1_000_000
_LARGEST_FLOAT = 1.7976931348623157e308

Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Sentences = Annotated[int, Meta(ge=0, le=MOST_SENTENCES)]
Finite = Annotated[float, Meta(ge=-_LARGEST_FLOAT, le=_LARGEST_FLOAT)]
"""A float that is neither infinite nor NaN, which no comparison holds for."""
Groups = tuple[tuple[str, Annotated[int, Meta(ge=0, le=_MOST_COLUMNS)]], ...]
"""Name and width of each dense group."""

NumberType = Literal["<i4", "<f4", "<f8"]

T = TypeVar("T")

_known: set[Any] = set()
"""The types that msgspec has read."""
_learning = threading.RLock()


def convert(stored: Any, kind: type[T]) -> T:
    """Return a stored value as an object of a type; unknown names are ignored.

    Raises:
        ValueError: something else is stored, or a number is out of bounds.
    """
    if kind in _known:
        return msgspec.convert(stored, kind)
    # msgspec reads the fields of a class at its first use. Another thread that uses the class
    # meanwhile crashes: a run and the compiling beside it read the same records.
    with _learning:
        value = msgspec.convert(stored, kind)
        _known.add(kind)
        return value


class StatisticsKind(NamedTuple):
    """A kind of statistics; kinds are never mixed.

    Attributes:
        number: its index in the store.
        signature: the metric's signature, with settings, version and number of references.
        references: fingerprint of the references.
        width: number of statistics per hypothesis.
        dtype: the stored type of numbers.
    """

    number: Count
    signature: str
    references: str
    width: Annotated[int, Meta(ge=1, le=_MOST_COLUMNS)]
    dtype: NumberType


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The commit record of an iteration, or the sums of its lists so far.

    Attributes:
        kind: number of its kind of statistics.
        groups: dense groups of the store, or None before the first hypothesis.
        n_sentences: number of sentences of the input.
        n_lists: number of sentences with a list.
        hypotheses: number of positions of all lists.
        new_hypotheses: number of hypotheses that no earlier iteration had.
        first_best_score: corpus score of the decoder's first hypotheses.
        n_graphs: number of sentences with a search graph.
        date: date of the commit; None in stores of version 0.1, or before the commit.
    """

    kind: Count
    groups: Groups | None
    n_sentences: Sentences
    n_lists: Count
    hypotheses: Count
    new_hypotheses: Count
    first_best_score: float
    n_graphs: Count = 0
    date: str | None = None

    def __post_init__(self) -> None:
        if max(self.n_lists, self.n_graphs) > self.n_sentences:
            raise ValueError("more lists or search graphs than sentences")
        if self.new_hypotheses > self.hypotheses:
            raise ValueError("more new hypotheses than hypotheses")
        if sum(width for _, width in self.groups or ()) > _MOST_COLUMNS:
            raise ValueError("too many features")

    def as_record(self) -> dict[str, Any]:
        """Return the sums in the order of their names in stores, without the date."""
        graphs = {"n_graphs": self.n_graphs} if self.n_graphs else {}
        return graphs | {
            "kind": self.kind,
            "groups": self.groups,
            "n_sentences": self.n_sentences,
            "n_lists": self.n_lists,
            "hypotheses": self.hypotheses,
            "new_hypotheses": self.new_hypotheses,
            "first_best_score": self.first_best_score,
        }


@dataclass(frozen=True, kw_only=True)
class OpenLists(Sums):
    """An open iteration, with the lists stored so far.

    Attributes:
        iteration: its number, from 1.
        sparse: sparse features of the store, then those that this iteration added.
        totals: int64 or float64; summed statistics of the first hypothesis of each list.
    """

    iteration: int
    sparse: tuple[str, ...]
    totals: Any

    @cached_property
    def space(self) -> FeatureSpace:
        """The columns of the store, including those that this iteration added."""
        return FeatureSpace(self.groups or (), self.sparse)


@dataclass(frozen=True)
class OpenGraphs:
    """An iteration that only has its search graphs.

    Attributes:
        iteration: its number, from 1.
        groups: dense groups of the store, or of the graphs if it has none yet.
        sparse: sparse features of the store, then those that the graphs added.
        n_graphs: number of sentences with a graph.
        last_sentence: the highest sentence id with a graph, or -1.
    """

    iteration: int
    groups: Groups | None
    sparse: tuple[str, ...]
    n_graphs: Count
    last_sentence: Annotated[int, Meta(ge=-1, lt=MOST_SENTENCES)]

    def __post_init__(self) -> None:
        if self.n_graphs > self.n_sentences:
            raise ValueError("more search graphs than sentences")

    @property
    def n_sentences(self) -> int:
        """Number of sentences of the input, as far as known."""
        return self.last_sentence + 1


@dataclass(frozen=True)
class IterationRecord:
    """One finished iteration.

    Attributes:
        iteration: its number, from 1.
        record: the caller's record: weights, decoder command, timings.
        result: the optimizer's result, or None before ``record_result``.
        n_sentences, n_lists, hypotheses, new_hypotheses, first_best_score: see ``Sums``.
        signature: signature of the metric of that score.
        n_graphs: number of sentences with a search graph.
        date: date of the commit, UTC, ISO 8601; None in stores of version 0.1. It is ignored in
            comparisons.
    """

    iteration: int
    record: Mapping[str, Any]
    result: Mapping[str, Any] | None
    n_sentences: int
    n_lists: int
    hypotheses: int
    new_hypotheses: int
    first_best_score: float
    signature: str
    n_graphs: int = 0
    date: str | None = field(default=None, compare=False)
