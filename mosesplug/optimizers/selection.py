"""Which features are learned: by their names, and by the sentences that have them.

Weights of other features keep the values that the learning starts from: 0, or those of the
starting weights.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import Message, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import TuningSet

__all__ = ["FeatureSelection", "NamePatterns", "count_sentences"]


@dataclass(frozen=True)
class NamePatterns:
    """Names of features; ``*`` in a name stands for any characters, also for itself."""

    names: tuple[str, ...]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{_as_regex(name)})" for name in self.names), re.DOTALL)

    def matches(self, name: str) -> bool:
        """Return whether a name is one of these."""
        return bool(self.names) and self._pattern.fullmatch(name) is not None

    def mark(self, space: FeatureSpace) -> NDArray[np.bool_]:
        """Return which columns or their groups are named, bool ``[len(space)]``."""
        groups = {name: self.matches(name) for name in dict.fromkeys(space.group_names)}
        marks = [self.matches(name) for name in space.names]
        marks[: space.n_dense] = [
            mark or groups[group] for mark, group in zip(marks, space.group_names, strict=False)
        ]
        return np.array(marks, dtype=np.bool_)

    def find_unmatched(self, space: FeatureSpace) -> list[str]:
        """Return the names that name no feature of a space."""
        known = {*space.names, *space.group_names}
        missing = [name for name in self.names if name not in known]
        return [
            name
            for name in missing
            if "*" not in name or not NamePatterns((name,)).mark(space).any()
        ]


def _as_regex(name: str) -> str:
    return ".*".join(map(re.escape, name.split("*")))


@dataclass(frozen=True)
class FeatureSelection:
    """Which features are learned.

    Attributes:
        active: names of features or groups to learn; None: all that the algorithm tunes.
        dropped: names of features or groups that are not learned.
        least_sentences: sentences that must have a sparse feature; 0 or 1: every feature counts.
        most_frequent: number of sparse features that are learned, those that most sentences have,
            and the first of equally frequent ones; 0: all.
    """

    active: tuple[str, ...] | None = None
    dropped: tuple[str, ...] = ()
    least_sentences: int = 0
    most_frequent: int = 0

    @property
    def counts(self) -> bool:
        """Whether it depends on the sentences that have a feature."""
        return self.least_sentences > 1 or self.most_frequent > 0

    def __post_init__(self) -> None:
        if self.active == ():
            raise UsageError("no feature is active: name at least one, or leave {--active} out")

    @property
    def leaves_choice(self) -> bool:
        """Whether the algorithm alone decides what it tunes."""
        return self.active is None and not self.dropped and not self.counts

    @property
    def count_options(self) -> str:
        """The options that count sentences, for messages."""
        options = {"sparse-min-count": self.least_sentences > 1, "sparse-max": self.most_frequent}
        return " and ".join(f"{{--{name}}}" for name, is_used in options.items() if is_used)

    def describe_counts(self, mask: NDArray[np.bool_] | None, space: FeatureSpace) -> list[str]:
        """Return a note of what counts of sentences leave to tune; none without counts.

        Args:
            mask: from ``select``.
            space: the features of its lists.
        """
        if mask is None or not self.counts:
            return []
        number = f"{np.count_nonzero(mask[space.n_dense :])} of the {space.n_sparse}"
        number = f"{number} sparse features are tuned"
        lacking = "no hypothesis has a sparse feature"
        return [Message(f"{self.count_options}: {number if space.n_sparse else lacking}")]

    def reject_counts(self) -> None:
        """Raise ``UsageError`` if it counts sentences of lists: graphs have none."""
        if self.counts:
            raise UsageError(
                "{--sparse-min-count} and {--sparse-max} count sentences of n-best lists, not of "
                "search graphs: use {--active} 'NAME*'"
            )

    def select_names(self, space: FeatureSpace, *, tunes_sparse: bool = True) -> NDArray[np.bool_]:
        """Return the columns that may be learned by their names, bool ``[len(space)]``.

        Args:
            space: the features.
            tunes_sparse: whether sparse features are learned if ``active`` is None.
        """
        if self.active is None:
            mask = np.ones(len(space), dtype=np.bool_)
            mask[space.n_dense :] = tunes_sparse
        else:
            mask = NamePatterns(self.active).mark(space)
        return mask & ~NamePatterns(self.dropped).mark(space) if self.dropped else mask

    def count_sparse(self, space: FeatureSpace, fixed: Collection[str] = ()) -> int:
        """Return how many sparse features are tuned by algorithms that can.

        Args:
            fixed: features that keep their weights.
        """
        if self.active is not None:
            return 0
        chosen = self.select_names(space)[space.n_dense :]
        return sum(name not in fixed for name in compress(space.sparse, chosen))

    def select(self, lists: TuningSet, *, tunes_sparse: bool) -> NDArray[np.bool_] | None:
        """Return the columns that are learned; None leaves the choice to the algorithm.

        Args:
            lists: the hypotheses, in which sentences with a feature are counted.
            tunes_sparse: as for ``select_names``.
        """
        if self.leaves_choice:
            return None
        space = lists.space
        mask = self.select_names(space, tunes_sparse=tunes_sparse)
        if self.counts:
            named = mask[space.n_dense :]
            mask[space.n_dense :] = self.select_by_count(named, count_sentences(lists))
        return mask

    def select_by_count(
        self, named: NDArray[np.bool_], counts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return the sparse features that enough sentences have, bool ``[n_sparse]``.

        Args:
            named: bool ``[n_sparse]``, those that may be learned by their names.
            counts: int64 ``[n_sparse]``, the number of sentences that have each feature.
        """
        counts = np.where(named, counts, 0)
        kept = counts >= max(1, self.least_sentences)
        if 0 < self.most_frequent < np.count_nonzero(kept):
            order = np.argsort(-counts, kind="stable")
            kept[order[self.most_frequent :]] = False
        return kept

    def find_unmatched(self, space: FeatureSpace) -> Iterable[tuple[str, str]]:
        """Yield ``(option, name)`` of each name that names no feature of a space."""
        options: tuple[tuple[str, Sequence[str]], ...] = (
            ("active", self.active or ()),
            ("drop-feature", self.dropped),
        )
        for option, names in options:
            for name in NamePatterns(tuple(names)).find_unmatched(space):
                yield option, name


def count_sentences(lists: TuningSet) -> NDArray[np.int64]:
    """Count the sentences in which some hypothesis has each sparse feature.

    Returns int64 ``[n_sparse]``. A value of 0 counts as none.
    """
    counts = np.zeros(lists.space.n_sparse, dtype=np.int64)
    if lists.sparse is None:
        return counts
    ends = lists.sparse.indptr[lists.offsets].tolist()
    for start, end in pairwise(ends):
        own = lists.sparse.indices[start:end][lists.sparse.data[start:end] != 0.0]
        counts[np.unique(own)] += 1
    return counts
