"""Texts that the caller of ask and tell translates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np

from formats.nbest.block import NBestList
from formats.nbest.files import format_list
from formats.text import read_bytes, write_atomic
from mosesplug.decoders.batch import BatchDecoder, ModelWeights, parse_lists, split_lists
from mosesplug.errors import UsageError

_FIRST = np.array([0])
_DIGITS = 9
"""These tell every float32 from its neighbors."""


@dataclass(frozen=True)
class TextRequest:
    """A held-out set or a monitor is to be translated.

    Attributes:
        sentences: the source sentences.
        weights: to decode with.
        stem: path of its files, without their endings.
    """

    sentences: tuple[bytes, ...]
    weights: ModelWeights
    stem: Path

    def path(self, ending: str) -> Path:
        """Return the path of one of its files."""
        return self.stem.with_name(f"{self.stem.name}.{ending}")

    def tell(self, lists: Iterable[NBestList]) -> None:
        """Keep the first hypothesis of each sentence, also for another process."""
        single = chain.from_iterable(map(split_lists, lists))
        lines = (format_list(nbest.take(_FIRST), digits=_DIGITS) for nbest in single)
        write_atomic(self.path("nbest"), b"".join(chain.from_iterable(lines)))


def _refuse(request: TextRequest) -> NoReturn:
    del request
    raise UsageError(
        "this run has no decoder of its own. Get its requests with `mosesplug ask`, and give the"
        " translations to `mosesplug tell` (in Python: mosesplug.Tuner)"
    )


@dataclass(frozen=True)
class AskedTexts(BatchDecoder):
    """A ``BatchDecoder`` of whole texts: the translations that were told, from files.

    Attributes:
        directory: of the files.
        wait: called if a text is not translated; returns when its lists are told, or raises.
    """

    directory: Path
    wait: Callable[[TextRequest], None] = _refuse

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Return the lists of a text that were told; see ``BatchDecoder.decode``."""
        texts = tuple(text for _, text in sentences)
        # A run that is killed and continued asks for the same translations.
        key = hashlib.sha256(repr((texts, weights.groups, sorted(weights.sparse.items()))).encode())
        request = TextRequest(texts, weights, self.directory / f"text.{key.hexdigest()[:16]}")
        told = request.path("nbest")
        if not told.is_file():
            self.wait(request)
        numbers = [number for number, _ in sentences]
        return parse_lists(read_bytes(told), numbers, weights.columns, str(told))

    def close(self) -> None:
        """Do nothing."""
