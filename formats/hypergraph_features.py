"""Which column is which feature of a search graph.

Graphs spell dense columns otherwise than n-best lists: ``TranslationModel0_1`` ...
``TranslationModel0_4``, and ``LM0`` without a number. Sparse features have the same names in both,
with an underscore.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formats.hypergraph import hypergraph_names

__all__ = ["GraphColumns", "groups_of_graph"]


class GraphColumns:
    """Columns of the features of search graphs, by the names that the graphs have.

    Attributes:
        groups: the dense groups.
        sparse: columns of the sparse features, counted from the first of them; it grows.
    """

    def __init__(self, groups: Iterable[tuple[str, int]], sparse: Iterable[str] = ()) -> None:
        self.groups = tuple(groups)
        self.sparse = {name: column for column, name in enumerate(sparse)}
        self._dense = {name: column for column, name in enumerate(hypergraph_names(self.groups))}
        self._group_names = {name for name, _ in self.groups}

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """The column of each name; sparse features that are new get the next ones.

        Raises:
            KeyError: one is neither a dense column nor can it be sparse; its argument is that name.
        """
        return {name: self._column(name) for name in names}

    def _column(self, name: str) -> int:
        column = self._dense.get(name)
        if column is not None:
            return column
        group, underscore, number = name.partition("_")
        # As in n-best lists. A group has no more columns than it had.
        if not underscore or (group in self._group_names and number.isdecimal()):
            raise KeyError(name)
        return len(self._dense) + self.sparse.setdefault(name, len(self.sparse))


def groups_of_graph(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """The dense groups among the features of a search graph, where nothing else tells them.

    ``LM0`` is one, and so are ``TM0_1``, ``TM0_2``, ... of two and more, which stand together.
    """
    groups: list[tuple[str, int]] = []
    for name in names:
        group, underscore, number = name.partition("_")
        if not underscore:
            groups.append((name, 1))
        elif number == "1" and f"{group}_2" in names:
            groups.append((group, 1))
        elif groups and groups[-1][0] == group and number == str(groups[-1][1] + 1):
            groups[-1] = (group, groups[-1][1] + 1)
    return tuple(groups)
