"""Requests for n-best lists, and the files that they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.text import write_atomic
from mosesplug.api.weights import WeightTable
from mosesplug.decoders.asked import TextRequest
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import write_weights
from mosesplug.decoders.protocol import WEIGHT_FILES
from mosesplug.errors import count_noun
from mosesplug.features import FeatureSpace
from mosesplug.tuning.asking import BatchRequest
from mosesplug.tuning.context import Context
from mosesplug.tuning.loop import DecodingRequest
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.iteration_files import weights_path


@dataclass(frozen=True, repr=False)
class Request:
    """A request for lists of all sentences, a mini-batch, or a held-out text.

    Attributes:
        iteration: from 1; in an online run, the epoch. For a held-out text, the newest iteration.
        weights: to decode with.
        nbest_size: most hypotheses that a sentence should have; fewer and more are accepted.
        weights_path: a file with the weights, in the format ``weights_format``.
        batch: with ``online=True``, the number of the mini-batch in its epoch, from 1; else None.
        sentences: the ids of its sentences, int64, ascending; None for all sentences.
        sentences_path: a file with these ids, one on each line; else None.
        source_path: a file with the source sentences, if they are those of a held-out set or of a
            monitor: of its lists, only the first hypothesis of each sentence counts. Else None.

    Example:
        >>> import mosesplug
        >>> with mosesplug.Tuner.open(
        ...     "asked", references="dev.en", initial={"LM0": 0.5, "WordPenalty0": 0.5}
        ... ) as tuner:
        ...     request = tuner.ask()
        >>> request.iteration, request.nbest_size, request.weights["LM0"], request.vector
        (1, 100, 0.5, array([0.5, 0.5]))
    """

    iteration: int
    weights: WeightTable
    nbest_size: int
    weights_path: Path
    batch: int | None = None
    sentences: NDArray[np.int64] | None = None
    sentences_path: Path | None = None
    source_path: Path | None = None

    @property
    def vector(self) -> NDArray[np.float64]:
        """The weights in the features' order, sparse ones last; float64 ``[n_features]``."""
        return self.weights.vector

    def __repr__(self) -> str:
        head = f"Request of {self.nbest_size}-best lists in iteration {self.iteration}"
        if self.source_path is not None:
            head += f" for {self.source_path}"
        elif self.sentences is not None:
            head += f" for mini-batch {self.batch}, {count_noun(len(self.sentences), 'sentence')}"
        return f"{head}, weights in {self.weights_path}\n{self.weights!r}"


def make_request(
    context: Context, request: DecodingRequest | BatchRequest | TextRequest
) -> Request:
    """Return a request with its files; those of a mini-batch or a text are written."""
    configuration, workspace = context.configuration, context.workspace
    size = configuration.decoding.nbest
    if isinstance(request, DecodingRequest):
        weights = context.decoded_weights(request.iteration, request.weights)
        path = weights_path(configuration, workspace, request.iteration)
        return Request(request.iteration, _make_table(context.space, weights), size, path)
    ids = sentences_path(context, request)
    kind = configuration.decoding.decoder.weights_format
    path = ids.with_name(f"{ids.stem}.{WEIGHT_FILES[kind]}")
    write_weights(path, request.weights, kind, context.config)
    table = _make_table(context.space, _read_weights(request.weights))
    if isinstance(request, TextRequest):
        sentences, batch, source = np.arange(len(request.sentences)), None, request.path("in")
        write_atomic(source, b"".join(text + b"\n" for text in request.sentences))
        store, size = context.store, 1
        iteration = max(1, len(store.iterations()) + (store.open_iteration() is not None))
    else:
        sentences, batch, source = request.sentences, request.batch, None
        iteration = request.iteration
    write_atomic(ids, "".join(f"{number}\n" for number in sentences).encode())
    return Request(iteration, table, size, path, batch, sentences, ids, source)


def sentences_path(context: Context, request: BatchRequest | TextRequest) -> Path:
    """Return the file with the sentence ids of a mini-batch or a text."""
    if isinstance(request, TextRequest):
        return request.path("ids")
    return context.workspace.run(request.iteration, f"batch{request.batch}.ids")


def remove_request(request: Request) -> None:
    """Remove the files of a mini-batch or a text."""
    for path in (request.weights_path, request.sentences_path, request.source_path):
        if path is not None:
            path.unlink(missing_ok=True)


def name_request(request: Request) -> str:
    """Return the iteration and the mini-batch or text of a request, for messages."""
    batch = "" if request.batch is None else f", mini-batch {request.batch}"
    text = "" if request.source_path is None else f", text {request.source_path}"
    return f"iteration {request.iteration}{batch}{text}"


def _read_weights(weights: ModelWeights) -> Weights:
    values = [value for group in weights.groups for value in group.values if value is not None]
    return Weights(tuple(values), dict(weights.sparse))


def _make_table(space: FeatureSpace, weights: Weights) -> WeightTable:
    whole = FeatureSpace(space.groups, tuple(weights.sparse))
    return WeightTable(whole, weights.vector(whole))
