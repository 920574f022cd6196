"""Map the features of search graphs to columns.

Graphs and n-best lists have different names for dense columns: ``TranslationModel0_1`` ...
``TranslationModel0_4``, and ``LM0`` without a number. Sparse features have the same names in both,
with an underscore. Graphs also have features that are not tuned and not in n-best
lists; in Moses always ``UnknownWordPenalty0``.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

from formats.graphs.hypergraph import hypergraph_names

__all__ = ["GraphColumns", "infer_groups"]


class GraphColumns:
    """Columns of the features of search graphs, by their names in the graphs.

    Attributes:
        groups: the dense groups.
        fixed: features that belong to no group, whatever their names.
        sparse: columns of all features outside the groups, counted from the first; it grows.
    """

    def __init__(
        self,
        groups: Iterable[tuple[str, int]],
        sparse: Iterable[str] = (),
        fixed: Collection[str] = (),
    ) -> None:
        """Set up the columns.

        Args:
            groups: the dense groups, as in n-best lists.
            sparse: features that get the first columns after the groups.
            fixed: features that are not tuned; they get columns like sparse ones.
        """
        self.groups = tuple(groups)
        self.fixed = frozenset(fixed)
        self.sparse = {name: column for column, name in enumerate(sparse)}
        dense = (name for group, width in self.groups for name in self._names(group, width))
        self._dense = {name: column for column, name in enumerate(dense)}
        self._group_names = {name for name, _ in self.groups}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns in search graphs."""
        return (*self._dense, *self.sparse)

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the column of each name; new names outside the groups get the next columns.

        Raises:
            KeyError: a name is neither dense nor valid for a sparse feature; the exception's
                argument is that name.
        """
        return {name: self._column(name) for name in names}

    def _names(self, group: str, width: int) -> Iterable[str]:
        """Return the names of a group's columns, without fixed components."""
        if not any(name.rpartition("_")[0] == group for name in self.fixed):
            return hypergraph_names([(group, width)])
        numbered = (f"{group}_{k}" for k in itertools.count(1))
        return itertools.islice((name for name in numbered if name not in self.fixed), width)

    def _column(self, name: str) -> int:
        column = self._dense.get(name)
        if column is not None:
            return column
        group, underscore, number = name.partition("_")
        # As in n-best lists. A group has no more columns than it had.
        looks_dense = not underscore or (group in self._group_names and number.isdecimal())
        if looks_dense and name not in self.fixed and name not in self.sparse:
            raise KeyError(name)
        return len(self._dense) + self.sparse.setdefault(name, len(self.sparse))


def infer_groups(names: Sequence[str], fixed: Collection[str] = ()) -> tuple[tuple[str, int], ...]:
    """Infer the dense groups from the feature names of a search graph.

    ``LM0`` is a group, and so are two or more consecutive names ``TM0_1``, ``TM0_2``, ....
    Those in ``fixed`` are omitted.
    """
    groups: list[tuple[str, int]] = []
    for name in names:
        if name in fixed:
            continue
        group, underscore, number = name.partition("_")
        if not underscore:
            groups.append((name, 1))
        elif number == "1" and f"{group}_2" in names:
            groups.append((group, 1))
        elif groups and groups[-1][0] == group and number == str(groups[-1][1] + 1):
            groups[-1] = (group, groups[-1][1] + 1)
    return tuple(groups)
