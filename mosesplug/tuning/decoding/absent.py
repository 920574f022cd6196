"""The decoder of a run by ask and tell: it has features, but cannot decode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NoReturn

from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.protocol import DecodedInput, DecoderRecipe
from mosesplug.errors import UsageError

__all__ = ["AbsentDecoder"]


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
