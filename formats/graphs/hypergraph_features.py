"""Which column is which feature of a search graph.

Graphs spell dense columns otherwise than n-best lists: ``TranslationModel0_1`` ...
``TranslationModel0_4``, and ``LM0`` without a number. Sparse features have the same names in both,
with an underscore. Graphs also have features that are not tuned, which lists lack: Moses'
``UnknownWordPenalty0`` always.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

from formats.graphs.hypergraph import hypergraph_names

__all__ = ["GraphColumns", "groups_of_graph"]


class GraphColumns:
    """Columns of the features of search graphs, by the names that the graphs have.

    Attributes:
        groups: the dense groups.
        fixed: features that are in no group, whatever their names look like.
        sparse: columns of all that are in no group, counted from the first of them; it grows.
    """

    def __init__(
        self,
        groups: Iterable[tuple[str, int]],
        sparse: Iterable[str] = (),
        fixed: Collection[str] = (),
    ) -> None:
        """Say which columns there are.

        Args:
            groups: the dense groups, as n-best lists have them.
            sparse: features that have the first columns after these.
            fixed: features that are not tuned: they get columns like sparse ones.
        """
        self.groups = tuple(groups)
        self.fixed = frozenset(fixed)
        self.sparse = {name: column for column, name in enumerate(sparse)}
        dense = (name for group, width in self.groups for name in self._names(group, width))
        self._dense = {name: column for column, name in enumerate(dense)}
        self._group_names = {name for name, _ in self.groups}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, as search graphs have them."""
        return (*self._dense, *self.sparse)

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the column of each name; those that are new and in no group get the next ones.

        Raises:
            KeyError: one is neither a dense column nor can it be sparse; its argument is that name.
        """
        return {name: self._column(name) for name in names}

    def _names(self, group: str, width: int) -> Iterable[str]:
        """Return the names of a group's columns; without fixed components."""
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


def groups_of_graph(
    names: Sequence[str], fixed: Collection[str] = ()
) -> tuple[tuple[str, int], ...]:
    """Return the dense groups among the features of a search graph, where nothing else tells them.

    ``LM0`` is one, and so are ``TM0_1``, ``TM0_2``, ... of two and more, which stand together.
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
