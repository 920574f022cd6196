"""Translate a sentence into Moses' output lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from formats.nbest.entry import NBestEntry, format_entry
from mosesplug.errors import DataError
from mosesplug.extras.phrase_decoder.model import Model
from mosesplug.extras.phrase_decoder.n_best import PhraseDerivation, find_best_derivations
from mosesplug.extras.phrase_decoder.search import Limits, search
from mosesplug.extras.phrase_decoder.search_graph import PhraseGraph, write_graph
from mosesplug.extras.phrase_decoder.settings import Settings


@dataclass(frozen=True)
class Translation:
    """The output for one sentence.

    Attributes:
        n_best: the lines for the n-best list; empty if none was requested.
    """

    best: bytes
    n_best: bytes


def split_sentences(lines: Sequence[bytes]) -> list[list[bytes]]:
    """Return the words of each line.

    Raises:
        DataError: a word contains ``|||``, which would break the n-best list.
    """
    for number, line in enumerate(lines, start=1):
        if b"|||" in line:
            raise DataError(
                f"input line {number}: '|||' is the field separator and cannot be a word; "
                "write &#124; for a bar"
            )
    return [line.split() for line in lines]


def translate(
    model: Model, settings: Settings, sentence_id: int, words: Sequence[bytes]
) -> Translation:
    """Decode one sentence, and write its search graph if requested."""
    graph = search_sentence(model, settings, words)
    if settings.hypergraph_directory is not None:
        write_graph(settings.hypergraph_directory, settings.hypergraph_suffix, sentence_id, graph)
    derivations = list_derivations(graph, settings)
    entries = derivations if settings.n_best_size else []
    return Translation(
        best=b"".join(word + b" " for word in derivations[0].words) + b"\n",
        n_best=b"".join(
            format_entry(
                replace(
                    make_entry(model, sentence_id, entry), extra=_describe(graph, entry, settings)
                )
            )
            for entry in entries
        ),
    )


def search_sentence(model: Model, settings: Settings, words: Sequence[bytes]) -> PhraseGraph:
    """Search for translations of a sentence and return the search graph."""
    limits = Limits(settings.stack, settings.beam_threshold, settings.distortion_limit)
    return search(model, words, limits)


def list_derivations(graph: PhraseGraph, settings: Settings) -> list[PhraseDerivation]:
    """Return the n-best list of the settings, or else the best derivation."""
    return find_best_derivations(
        graph, max(1, settings.n_best_size), distinct=settings.n_best_distinct
    )


def _describe(graph: PhraseGraph, derivation: PhraseDerivation, settings: Settings) -> bytes:
    """Return the requested fields behind the score: segmentation, alignment."""
    spans: list[str] = []
    points: list[str] = []
    begin = 0
    for edge in derivation.edges:
        pair, start, end = int(graph.pair[edge]), int(graph.start[edge]), int(graph.end[edge])
        stop = begin + len(graph.model.target(pair))
        spans.append(f"{_span(start, end)}={_span(begin, stop - 1)}")
        points += [f"{start + i}-{begin + j}" for i, j in graph.model.alignments[pair]]
        begin = stop
    fields = [f" {' '.join(spans)}"] if settings.n_best_segmentation else []
    fields += [f" {' '.join(points)}"] if settings.n_best_alignment else []
    return " |||".join(fields).encode()


def _span(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else f"{first}"


def make_entry(model: Model, sentence_id: int, derivation: PhraseDerivation) -> NBestEntry:
    """Return a line of the n-best list: tuneable features in Moses' order."""
    dense = []
    for feature in model.features.in_output_order():
        values = tuple(
            # Moses never prints a negative zero.
            float(derivation.values[column]) + 0.0
            for column, tuneable in zip(feature.columns, feature.tuneable, strict=True)
            if tuneable
        )
        if values:
            dense.append((feature.name, values))
    text = b" ".join(derivation.words)
    sparse = tuple(derivation.sparse.items())
    return NBestEntry(sentence_id, text, tuple(dense), sparse, derivation.score)
