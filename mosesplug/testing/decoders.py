"""Checks of decoders: the right sentences, features and order, for any weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.description import NamedDecoder
from mosesplug.decoders.plugin import DecoderPlugin, PluginBatches
from mosesplug.testing.checks import require, require_equal, run_checks

__all__ = ["DECODER_CHECKS", "DecoderCase", "check_batch_decoder", "check_decoder"]


@dataclass(frozen=True)
class DecoderCase:
    """A decoder, and what it is to decode.

    Attributes:
        decoder: the open decoder; the caller closes it.
        sentences: some different sentences that it can translate, at least two.
        weights: weights of its features, not all 0.
        nbest: most hypotheses of a sentence, as the decoder was opened with.
        constant: whether a part of the model score has no tuned weight.
    """

    decoder: BatchDecoder
    sentences: tuple[bytes, ...]
    weights: ModelWeights
    nbest: int
    constant: bool = False

    def decode(self, numbers: Sequence[int], weights: ModelWeights) -> list[NBestList]:
        """Return the lists of some sentences, by their places."""
        return self.decoder.decode([(n, self.sentences[n]) for n in numbers], weights)


def check_decoder(
    plugin: DecoderPlugin,
    argument: str,
    sentences: Sequence[bytes],
    weights: Mapping[str, float | Sequence[float]],
    *,
    nbest: int = 10,
) -> None:
    """Check that the decoder of a plug-in behaves as ``PluginDecoder`` says.

    Args:
        plugin: what the package registers.
        argument: what the decoder is opened with.
        sentences: some different source sentences that it can translate, at least two.
        weights: a weight, or weights, of each dense feature by name.
        nbest: most hypotheses of a sentence.

    Raises:
        AssertionError: a check fails.
    """
    groups = tuple(
        WeightGroup(
            name, (float(value),) if isinstance(value, int | float) else tuple(map(float, value))
        )
        for name, value in weights.items()
    )
    [label] = NamedDecoder(plugin.name, argument).words
    model = ModelWeights(groups)
    shorter = PluginBatches(label, plugin.open(argument), 1)
    with PluginBatches(label, plugin.open(argument), nbest) as decoder, shorter:
        case = DecoderCase(decoder, tuple(sentences), model, nbest)
        check_batch_decoder(case, f"decoder {plugin.name}")
        best = [found.text(0) for found in case.decode(range(len(sentences)), model)]
        only = replace(case, decoder=shorter, nbest=1).decode(range(len(sentences)), model)
        require(
            [len(found) for found in only] == [1] * len(only)
            and [found.text(0) for found in only] == best,
            f"decoder {plugin.name}: lists of one hypothesis must have the first of longer lists",
        )


def check_batch_decoder(case: DecoderCase, name: str = "decoder") -> None:
    """Check that an open decoder behaves as ``decoders.batch.BatchDecoder`` says.

    Raises:
        AssertionError: a check fails.
    """
    run_checks(DECODER_CHECKS, case, name)


def _lists(case: DecoderCase) -> None:
    numbers = range(len(case.sentences))
    lists = case.decode(numbers, case.weights)
    require(len(lists) == len(numbers), f"{len(lists)} lists of {len(numbers)} sentences")
    for number, found in zip(numbers, lists, strict=True):
        require(set(found.sentence_ids.tolist()) == {number}, "a list has another sentence id")
        require(1 <= len(found) <= case.nbest, f"a list of {len(found)} hypotheses")
        require(found.groups == case.weights.columns, f"other features: {found.groups}")
        require(bool(np.isfinite(found.dense).all()), "feature values must be finite")
    require(case.decoder.decode([], case.weights) == [], "no sentences must give no lists")


def _scores(case: DecoderCase) -> None:
    for found in case.decode(range(len(case.sentences)), case.weights):
        expected = _model_scores(found, case.weights)
        require(bool((np.diff(found.scores) <= 1e-6).all()), "the best hypothesis must be first")
        difference = found.scores - expected
        if case.constant:
            difference = difference - difference[0]
        require(
            bool(np.allclose(difference, 0, atol=1e-3 + 1e-4 * np.abs(expected).max())),
            f"model scores {found.scores[:3]} are not the sums {expected[:3]} of weighted features",
        )


def _repeatable(case: DecoderCase) -> None:
    numbers = list(range(len(case.sentences)))
    first = case.decode(numbers, case.weights)
    _require_same(first, case.decode(numbers, case.weights), "a second call gives other lists")
    backwards = case.decode(numbers[::-1], case.weights)
    _require_same(first, backwards[::-1], "the order of sentences changes their lists")
    alone = [case.decode([number], case.weights)[0] for number in numbers]
    _require_same(first, alone, "lists depend on the other sentences")


def _weights_matter(case: DecoderCase) -> None:
    numbers = range(len(case.sentences))
    first = case.decode(numbers, case.weights)
    negative = replace(
        case.weights,
        groups=tuple(
            WeightGroup(group.name, tuple(None if v is None else -v for v in group.values))
            for group in case.weights.groups
        ),
    )
    other = case.decode(numbers, negative)
    require(
        any(
            one.scores.tobytes() != two.scores.tobytes()
            for one, two in zip(first, other, strict=True)
        ),
        "negative weights give the same scores: the decoder ignores its weights",
    )
    again = case.decode(numbers, case.weights)
    _require_same(first, again, "lists depend on the weights of the call before")


def _model_scores(found: NBestList, weights: ModelWeights) -> NDArray[np.float64]:
    """Return the weighted sum of the features of each hypothesis."""
    dense = [value for group in weights.groups for value in group.values if value is not None]
    scores: NDArray[np.float64] = found.dense.astype(np.float64) @ np.array(dense)
    for row in range(len(found)):
        for at in range(found.sparse_indptr[row], found.sparse_indptr[row + 1]):
            name = found.sparse_names[found.sparse_indices[at]]
            scores[row] += weights.sparse.get(name, 0.0) * float(found.sparse_data[at])
    return scores


def _texts(found: NBestList) -> list[bytes]:
    return [found.text(row) for row in range(len(found))]


def _require_same(first: Sequence[NBestList], second: Sequence[NBestList], what: str) -> None:
    require(len(first) == len(second), what)
    for one, other in zip(first, second, strict=True):
        require(_texts(one) == _texts(other), what)
        require_equal(one.dense, other.dense, what)
        require_equal(one.scores, other.scores, what)
        require(one.sentence_ids[0] == other.sentence_ids[0], what)


DECODER_CHECKS: Mapping[str, Callable[[DecoderCase], None]] = MappingProxyType(
    {
        "lists": _lists,
        "scores": _scores,
        "repeatable": _repeatable,
        "weights matter": _weights_matter,
    }
)
"""The checks of ``check_batch_decoder`` by name."""
