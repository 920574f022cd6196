"""One decoding of the whole input by search graphs: the files that a decoder would leave."""

from __future__ import annotations

from collections.abc import Sequence

from formats.nbest.files import format_list
from formats.text import atomic_write
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.errors import DecoderError
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.clock import Clock
from mosesplug.tuning.decoding.decode import Lists, finished_list
from mosesplug.tuning.events import Decoded, Watcher
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["decode_forest"]

_AT_ONCE = 64
"""Sentences between two signs of life."""
_DIGITS = 9
"""These tell every float32 from its neighbours, so that files lose nothing."""


def decode_forest(
    configuration: Configuration,
    workspace: Workspace,
    decoder: BatchDecoder,
    texts: Sequence[bytes],
    weights: ModelWeights,
    iteration: int,
    watch: Watcher,
) -> Lists:
    """List the best translations of the input, and keep them as ``runN.bestK.out.gz``.

    Args:
        configuration: of the run.
        workspace: its files.
        decoder: that has the graphs.
        texts: the input.
        weights: to decode with.
        iteration: from 1.
        watch: told of progress.

    Raises:
        DecoderError: there are no lists.
    """
    clock = Clock()
    nbest, out = workspace.nbest(iteration), workspace.run(iteration, "out")
    n_hypotheses = 0
    with atomic_write(nbest) as lists, atomic_write(out) as translations:
        for begin in range(0, len(texts), _AT_ONCE):
            sentences = list(enumerate(texts[begin : begin + _AT_ONCE], start=begin))
            found = {int(each.sentence_ids[0]): each for each in decoder.decode(sentences, weights)}
            for number, _ in sentences:
                each = found.get(number)
                translations.write((b"" if each is None else each.text(0)) + b"\n")
                if each is not None:
                    lists.writelines(format_list(each, digits=_DIGITS))
                    n_hypotheses += len(each)
            watch(Decoded(iteration, begin + len(sentences), len(texts), clock.seconds()))
    if not n_hypotheses:
        raise DecoderError("the search graphs hold no hypotheses")
    packed = finished_list(configuration, workspace, iteration, watch)
    return Lists(packed, (), out, workspace.run(iteration, "decoder.err"), clock.seconds())
