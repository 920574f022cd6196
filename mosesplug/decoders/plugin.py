"""Decoders of other packages: entry points of the group ``mosesplug.decoders``.

A plug-in decodes in this process: it gets sentences and weights, and returns hypotheses with their
feature values. Nothing passes through files or a command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import NBestEntry, format_entry
from formats.text import atomic_write, read_lines, write_atomic
from mosesplug.decoders.batch import BatchDecoder, ModelWeights, parse_lists
from mosesplug.decoders.lists.files import finish_list
from mosesplug.decoders.protocol import (
    BatchRecipe,
    BatchTask,
    DecodedInput,
    Decoder,
    DecodingTask,
)
from mosesplug.errors import DecoderError, MosesplugError, UsageError
from mosesplug.events import Clock, DecodingProgress
from mosesplug.plugins import DECODERS, load_plugin, plugin_names

EXACT_DIGITS = 9
"""Digits that preserve a float32."""


class Hypothesis(NamedTuple):
    """A hypothesis of a plug-in.

    Attributes:
        text: the translation, tokens separated by blanks.
        features: value, or values, of each feature by name. It must have every dense feature that
            the starting weights name; the others are sparse.
        score: the model score; None: computed from the weights.
    """

    text: str
    features: Mapping[str, float | Sequence[float]]
    score: float | None = None


class PluginDecoder(Protocol):
    """An open decoder of a plug-in, which one thread calls at a time."""

    def decode(
        self, sentences: Sequence[bytes], weights: ModelWeights, nbest: int
    ) -> Iterable[Sequence[Hypothesis]]:
        """Yield the hypotheses of each sentence in order, best first.

        The same sentence and weights give the same hypotheses in every call.

        Args:
            sentences: source sentences, without line ends.
            nbest: most hypotheses of a sentence.
        """

    def close(self) -> None:
        """Release what the decoder holds."""


@dataclass(frozen=True)
class DecoderPlugin:
    """What a package registers: how to open a decoder.

    Attributes:
        name: NAME of the decoder ``plugin:NAME:ARGUMENT``.
        summary: one sentence of at most 60 characters.
        open: returns the decoder for ARGUMENT, which is empty without one. It raises
            ``UsageError`` if it cannot use it.
    """

    name: str
    summary: str
    open: Callable[[str], PluginDecoder]


def find_decoder_plugin(name: str) -> DecoderPlugin:
    """Return the decoder that a package registers under this name.

    Raises:
        UsageError: there is none, or it cannot be used.
    """
    plugin = load_plugin(DECODERS, name, DecoderPlugin)
    if plugin is None:
        known = ", ".join(plugin_names(DECODERS)) or "none is installed"
        raise UsageError(
            f"unknown decoder plug-in {name!r}; known: {known}. Install the package that has it"
        )
    return plugin


def open_plugin(name: str, argument: str, label: str) -> PluginDecoder:
    """Return the open decoder of a plug-in. The caller closes it.

    Args:
        name: the name that it is registered under.
        argument: what it is opened with.
        label: what messages call it.

    Raises:
        UsageError: there is no such plug-in, or it cannot use its argument.
        DecoderError: it failed.
    """
    plugin = find_decoder_plugin(name)
    try:
        return plugin.open(argument)
    except MosesplugError:
        raise
    except Exception as error:
        raise _failure(label, error) from error


def decode_entries(
    decoder: PluginDecoder,
    label: str,
    sentences: Sequence[bytes],
    weights: ModelWeights,
    nbest: int,
) -> Iterator[list[NBestEntry]]:
    """Yield the n-best list of each sentence, numbered from 0; it may be empty.

    Raises:
        DecoderError: the decoder failed, or its lists have other sentences or features.
    """
    done = 0
    try:
        lists = decoder.decode(sentences, weights, nbest)
        for done, hypotheses in enumerate(lists, start=1):
            if done <= len(sentences):
                yield [
                    _entry(done - 1, hypothesis, weights) for hypothesis in list(hypotheses)[:nbest]
                ]
    except MosesplugError:
        raise
    except Exception as error:
        raise _failure(label, error) from error
    if done != len(sentences):
        raise DecoderError(
            f"the decoder {label} returned {done} n-best lists for {len(sentences)}"
            " sentences. Report it to the author of the plug-in"
        )


def _failure(label: str, error: Exception) -> DecoderError:
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return DecoderError(f"the decoder {label} failed: {why}")


def _entry(sentence: int, hypothesis: Hypothesis, weights: ModelWeights) -> NBestEntry:
    """Return a hypothesis as a list's entry, with dense features in the usual order."""
    text, features, score = hypothesis
    values = {
        name: (float(value),) if isinstance(value, int | float) else tuple(map(float, value))
        for name, value in features.items()
    }
    dense = []
    for name, width in weights.columns:
        if len(values.get(name, ())) != width:
            raise ValueError(
                f"hypothesis {text!r} has {len(values.get(name, ()))} values of {name}, and the"
                f" weights have {width}"
            )
        dense.append((name, values.pop(name)))
    sparse = []
    for name, numbers in values.items():
        if len(numbers) != 1:
            raise ValueError(f"the sparse feature {name} must have one value, not {len(numbers)}")
        sparse.append((name, numbers[0]))
    if score is None:
        score = math.fsum(
            value * weight
            for (_, numbers), group in zip(dense, _tuned_groups(weights), strict=True)
            for value, weight in zip(numbers, group, strict=True)
        ) + math.fsum(value * weights.sparse.get(name, 0.0) for name, value in sparse)
    return NBestEntry(sentence, text.encode(), tuple(dense), tuple(sparse), score)


def _tuned_groups(weights: ModelWeights) -> list[list[float]]:
    """Return the tuned values of each dense group, as ``weights.columns`` counts them."""
    values = ([value for value in group.values if value is not None] for group in weights.groups)
    return [group for group in values if group]


@dataclass(frozen=True)
class PluginBatches(BatchDecoder):
    """A ``BatchDecoder`` of a plug-in.

    Attributes:
        label: what messages call it.
        decoder: the open decoder, which ``close`` closes.
        nbest: length of the n-best lists.
    """

    label: str
    decoder: PluginDecoder
    nbest: int

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Decode sentences, as ``BatchDecoder.decode``."""
        texts = [text for _, text in sentences]
        lists = decode_entries(self.decoder, self.label, texts, weights, self.nbest)
        entries = (entry for entries in lists for entry in entries)
        lines = b"".join(_format_entries(self.label, entries))
        numbers = [number for number, _ in sentences]
        return parse_lists(lines, numbers, weights.columns, self.label, any_layout=True)

    def close(self) -> None:
        """Close the decoder."""
        self.decoder.close()


@dataclass(frozen=True)
class PluginRunDecoder(Decoder):
    """A ``Decoder`` that calls a plug-in.

    Attributes:
        task: what it decodes.
        label: how the settings name it: name and argument of the plug-in.
        plugin: the open decoder.
        open_batches: opens the plug-in once more, for mini-batches.
    """

    task: DecodingTask
    label: str
    plugin: PluginDecoder
    open_batches: Callable[[BatchTask], BatchDecoder]

    @property
    def version(self) -> str:
        """Name and argument of the plug-in, which determine the hypotheses."""
        return self.label

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

        Raises:
            DecoderError: the plug-in failed, or its lists cannot be used.
        """
        files, clock = self.task.files, Clock()
        nbest, out = files.nbest(iteration), files.run(iteration, "out")
        for leftover in (nbest, files.packed_nbest(iteration)):
            leftover.unlink(missing_ok=True)
        translations: list[bytes] = []
        with atomic_write(nbest) as file:
            file.writelines(self._lines(iteration, weights, translations))
        write_atomic(out, b"".join(text + b"\n" for text in translations))
        err = files.run(iteration, "decoder.err")
        write_atomic(err, b"")
        packed = finish_list(self.task, iteration)
        return DecodedInput(packed, (self.label,), out, err, clock.seconds())

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Raise ``UsageError``: a plug-in returns n-best lists only."""
        raise UsageError(f"{self.label} returns n-best lists, no search graphs")

    @property
    def batches(self) -> BatchRecipe:
        """Each shard or worker opens its own decoder."""
        return BatchRecipe(self.open_batches, self.task.batches)

    def close(self) -> None:
        """Close the plug-in."""
        self.plugin.close()

    def _lines(
        self, iteration: int, weights: ModelWeights, translations: list[bytes]
    ) -> Iterator[bytes]:
        """Yield the lines of the n-best list; add each 1-best to ``translations``."""
        task, clock = self.task, Clock()
        lists = decode_entries(
            self.plugin, self.label, read_lines(task.source), weights, task.nbest
        )
        for done, entries in enumerate(lists, start=1):
            translations.append(entries[0].text if entries else b"")
            yield from _format_entries(self.label, entries)
            task.watch(DecodingProgress(iteration, done, task.n_sentences, clock.seconds()))


def _format_entries(label: str, entries: Iterable[NBestEntry]) -> list[bytes]:
    try:
        return [format_entry(entry, digits=EXACT_DIGITS) for entry in entries]
    except FormatError as error:
        raise DecoderError(f"the decoder {label} failed: {error}") from error
