"""Batches, weights and ways to decode with the stand-in decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formats.nbest.block import NBestList
from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchTask
from mosesplug.decoders.servers.server import ServerDecoder

__all__ = ["BATCH", "OTHERS", "WEIGHTS", "list_contents", "make_process", "make_server"]

WEIGHTS = ModelWeights((WeightGroup("LM0", (0.5,)), WeightGroup("TM0", (-0.25, None))))
OTHERS = ModelWeights((WeightGroup("LM0", (-0.1,)), WeightGroup("TM0", (1e-05, None))))
BATCH = [(41, b"c a"), (7, b"x y z"), (12, "b ß <&".encode()), (3, b"fatal error"), (5, b"")]


def make_server(decoder: MosesDecoder, directory: Path, **options: Any) -> ServerDecoder:
    """Return the decoder as a server that writes lists of two hypotheses."""
    return ServerDecoder(decoder, directory / "moses.ini", directory, 2, **options)


def make_process(decoder: MosesDecoder, directory: Path) -> ProcessDecoder:
    """Return the decoder as a fresh process for each batch, with lists of two hypotheses."""
    return ProcessDecoder(decoder, BatchTask(directory / "moses.ini", directory, 2))


def list_contents(lists: list[NBestList]) -> list[Any]:
    """Return sentence numbers, scores, features and texts of each list."""
    return [
        [part.sentence_ids.tolist(), part.scores.tolist(), part.dense.tolist()]
        + [part.text(row) for row in range(len(part))]
        for part in lists
    ]
