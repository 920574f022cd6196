"""Data to learn from that a caller has in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from formats.nbest.block import NBestList
from formats.weights.any_format import WeightFile
from mosesplug.features import FeatureSpace
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import Metric

if TYPE_CHECKING:
    from mosesplug.learning.data import LearningData

__all__ = ["NOTHING_GIVEN", "GivenData"]


@dataclass(frozen=True)
class GivenData:
    """Data that a caller has in memory. Each part outweighs what settings name.

    Attributes:
        lists: n-best lists to merge: lists that have been read, or files.
        scored: lists with their statistics, and their starting weights; nothing else is read then.
        references: their lines, ``[reference][line]``.
        metric: scores the hypotheses.
        start: returns the starting weights of the features; of search graphs, ``graph_start``.
        graph_start: starting weights of search graphs.
        names, dense: as for ``load_lists``.
        heldout_lists, heldout_references: held-out lists, and the lines of their references.
    """

    lists: tuple[Path | NBestList, ...] = ()
    scored: LearningData | None = None
    references: Sequence[Sequence[bytes]] | None = None
    metric: Metric | None = None
    start: Callable[[FeatureSpace], StartingWeights] | None = None
    graph_start: WeightFile | None = None
    names: Sequence[str] | None = None
    dense: Sequence[str] | None = None
    heldout_lists: tuple[Path | NBestList, ...] = ()
    heldout_references: Sequence[Sequence[bytes]] | None = None


NOTHING_GIVEN = GivenData()
