"""Runs by ask and tell.

``AbsentDecoder`` cannot decode; ``check_answer`` checks the lists that are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from formats.nbest.block import NBestList
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.layout import arrange_groups
from mosesplug.decoders.protocol import DecodedInput, DecoderRecipe
from mosesplug.errors import DataError, UsageError
from mosesplug.features import spelled_groups

__all__ = ["AbsentDecoder", "check_answer"]

_NAMED = 5
"""Missing sentences that a message names."""


@dataclass(frozen=True)
class AbsentDecoder:
    """A ``Decoder`` that cannot decode: the caller of ask and tell does.

    Attributes:
        features: what is tuned.
    """

    features: ShowWeights
    version: str | None = None

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Raise ``UsageError``."""
        _refuse()

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Raise ``UsageError``."""
        _refuse()

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Raise ``UsageError``."""
        _refuse()

    def recipe(self, served: BatchDecoder, workers: int) -> DecoderRecipe:
        """Raise ``UsageError``."""
        _refuse()

    def close(self) -> None:
        """Do nothing."""


def _refuse() -> NoReturn:
    raise UsageError(
        "this run has no decoder of its own: continue it by `mosesplug ask` and `mosesplug tell`,"
        " or by mosesplug.Tuner"
    )


def check_answer(
    blocks: Iterable[NBestList], groups: tuple[tuple[str, int], ...], n_sentences: int, what: str
) -> Iterator[NBestList]:
    """Yield blocks with the features in order; require lists of all sentences.

    Args:
        blocks: the lists, sentences in ascending order.
        groups: the dense features of the run; the lists may have them in another order.
        n_sentences: sentences of the references.
        what: the lists, for messages.

    Raises:
        DataError: they have other features, a sentence that there is not, or lack sentences.
    """
    seen = np.zeros(n_sentences, dtype=np.bool_)
    for block in (arrange_groups(block, groups) for block in blocks):
        if block.groups != groups:
            raise DataError(
                f"{what}: the dense features are {spelled_groups(block.groups)}, but the run tunes"
                f" {spelled_groups(groups)}. Nothing is stored"
            )
        ids = block.sentence_ids
        if len(ids) and (ids[0] < 0 or ids[-1] >= n_sentences):
            wrong = ids[0] if ids[0] < 0 else ids[-1]
            raise DataError(
                f"{what}: there is no sentence {wrong}: the references have {n_sentences},"
                " counted from 0. Nothing is stored"
            )
        seen[ids] = True
        yield block
    missing = np.flatnonzero(~seen)
    if len(missing):
        named = ", ".join(map(str, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
        raise DataError(
            f"{what}: {len(missing)} of {n_sentences} sentences have no hypotheses: {named}"
            " (counted from 0). Tell the lists of all sentences. Nothing is stored"
        )
