"""Sort n-best lists by other weights, as Travatar's ``rescorer`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from formats.nbest.block import NBestList
from formats.text import StrPath
from mosesplug.arrays import Floats, Ints
from mosesplug.errors import DataError
from mosesplug.extras.travatar.lists import open_list


@dataclass(frozen=True)
class RescoredList:
    """The hypotheses of one sentence, the best first; the first in the list wins ties.

    Attributes:
        number: how many sentences came before.
        block: the list that the sentence is in.
        rows: int64 ``[n]``; its hypotheses.
        scores: float64 ``[n]``, of each of them.
    """

    number: int
    block: NBestList
    rows: Ints
    scores: Floats

    def lines(self) -> Iterator[bytes]:
        """Yield ``number ||| words ||| score ||| name=value name=value`` lines."""
        block = self.block
        for row, score in zip(self.rows.tolist(), self.scores.tolist(), strict=True):
            entries = slice(block.sparse_indptr[row], block.sparse_indptr[row + 1])
            names = [block.sparse_names[index] for index in block.sparse_indices[entries].tolist()]
            values = map(str, block.sparse_data[entries])  # the fewest digits of a float32
            spelled = (value.removesuffix(".0") for value in values)
            pairs = " ".join(f"{n}={v}" for n, v in zip(names, spelled, strict=True))
            yield b"%d ||| %b ||| %.9g ||| %b\n" % (
                self.number,
                block.text(row),
                score,
                pairs.encode("utf-8", "surrogateescape"),
            )


def rescore(path: StrPath, weights: Mapping[str, float] | None) -> Iterator[RescoredList]:
    """Yield the sentences of a list, sorted.

    Args:
        weights: weight of each feature, 0 if missing; None: keep the scores of the list.
    """
    number = 0
    for block in open_list(path):
        scores = block.scores
        if weights is not None:
            by_name = np.array([weights.get(name, 0.0) for name in block.sparse_names])
            owners = np.repeat(np.arange(len(block)), np.diff(block.sparse_indptr))
            products = block.sparse_data * by_name[block.sparse_indices]
            scores = np.bincount(owners, products, len(block)).astype(np.float64)
        elif np.isnan(scores).any():
            line = int(block.lines[np.argmax(np.isnan(scores))])
            raise DataError(f"{block.path}:{line}: no score: give the weights, -weight_in FILE")
        for first, end in pairwise(block.list_offsets.tolist()):
            rows = first + np.argsort(-scores[first:end], kind="stable")
            yield RescoredList(number, block, rows, scores[rows])
            number += 1
