"""Feature names and columns: a dense block of named groups, and a sparse tail.

A decoder writes ``TranslationModel0= v v v v``: a *group* of four dense values. As in
Moses' tools, its columns are ``TranslationModel0_0`` ... ``TranslationModel0_3``. A label with an
underscore (``WT_auf~on= 1``) is one sparse feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["FeatureSpace", "spelled_groups"]


@dataclass(frozen=True)
class FeatureSpace:
    """Maps feature names to columns.

    Dense columns come first, in the order in which the decoder writes them; sparse features
    follow in the order of their first appearance.

    Attributes:
        groups: ``(name, number of values)`` of each dense group.
        sparse: names of the sparse features, without the ``=``.
    """

    groups: tuple[tuple[str, int], ...]
    sparse: tuple[str, ...] = field(default=())

    @classmethod
    def of_names(cls, names: Iterable[str], sparse: Iterable[str] = ()) -> FeatureSpace:
        """Group the columns: neighbors with the same name form one group."""
        groups: list[tuple[str, int]] = []
        for name in names:
            if groups and groups[-1][0] == name:
                groups[-1] = (name, groups[-1][1] + 1)
            else:
                groups.append((name, 1))
        return cls(tuple(groups), tuple(sparse))

    @property
    def n_dense(self) -> int:
        """Number of dense columns."""
        return sum(width for _, width in self.groups)

    @property
    def n_sparse(self) -> int:
        """Number of sparse features."""
        return len(self.sparse)

    def __len__(self) -> int:
        return self.n_dense + self.n_sparse

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """The group name of each dense column, as in the rows of ``runN.dense``."""
        return tuple(name for name, width in self.groups for _ in range(width))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all columns: dense as ``LM0_0`` (as in ``features.dat``), then sparse."""
        dense = (f"{name}_{i}" for name, width in self.groups for i in range(width))
        return (*dense, *self.sparse)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of columns for messages: ``LM0`` for a single dense value, else ``TM0_1``."""
        dense = (
            name if width == 1 else f"{name}_{i}"
            for name, width in self.groups
            for i in range(width)
        )
        return (*dense, *self.sparse)

    @cached_property
    def columns(self) -> Mapping[str, int]:
        """The column of each name in ``names``."""
        return {name: column for column, name in enumerate(self.names)}

    def select(self, wanted: Sequence[str]) -> NDArray[np.bool_]:
        """Return the mask of the columns named in ``wanted``, bool ``[len(self)]``.

        A name is a column (``LM0_0``, a sparse feature) or a whole group (``LM0``).

        Raises:
            KeyError: a name is neither; the exception's argument is that name.
        """
        mask = np.zeros(len(self), dtype=np.bool_)
        group_names = np.asarray(self.group_names, dtype=np.str_)
        for name in wanted:
            if name in self.columns:
                mask[self.columns[name]] = True
            elif name in self.group_names:
                mask[: self.n_dense] |= group_names == name
            else:
                raise KeyError(name)
        return mask


def spelled_groups(groups: Iterable[tuple[str, int]] | None) -> str:
    """Format dense groups for a message: ``LM0 TranslationModel0*4``, or ``none``."""
    spelled = (name if width == 1 else f"{name}*{width}" for name, width in groups or ())
    return " ".join(spelled) or "none"
