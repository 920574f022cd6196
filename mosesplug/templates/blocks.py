"""Add the features of templates to the blocks of n-best lists.

Hypotheses of a sentence share most of their phrases: features are computed once for each distinct
phrase, and once for each distinct phrase pair in all sentences if a template sees no more than it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import Place
from formats.text import StrPath, read_lines
from formats.words import Floats32, Ints32, Positions
from mosesplug.errors import UsageError
from mosesplug.kernels import read_only
from mosesplug.templates.declaration import Templates
from mosesplug.templates.derivation import AlignedDerivation, Phrase, PhrasePair, Words
from mosesplug.templates.kernels import ScannedPhrases, scan_phrases, scan_windows, sum_features
from mosesplug.templates.reading import has_marks, read_derivation, split_words
from mosesplug.templates.template import BOS, EOS, Counts, NgramTemplate, PhraseTemplate

__all__ = ["TemplateFeatures"]

_FIRST = 10
"""Hypotheses that tell whether texts have phrase boundaries."""


class TemplateFeatures:
    """Computes the features of templates for lists of one source text."""

    def __init__(self, templates: Templates, sources: Sequence[bytes], place: str) -> None:
        """Take the templates and the source text.

        Args:
            sources: the source sentences, by sentence id.
            place: the source text, for messages.
        """
        self._templates, self._sources, self._place = templates, sources, place
        phrasal = [each for each in templates.templates if isinstance(each, PhraseTemplate)]
        self._local = [each for each in phrasal if each.scope == "phrase"]
        self._in_source = [each for each in phrasal if each.scope == "source"]
        self._in_target = [each for each in phrasal if each.scope == "target"]
        self._ngrams: dict[int, list[NgramTemplate]] = {}
        for template in templates.templates:
            if isinstance(template, NgramTemplate):
                self._ngrams.setdefault(template.order, []).append(template)
        self._names: dict[str, int] = {}
        self._pairs: dict[PhrasePair, Mapping[int, float]] = {}
        self._windows: dict[tuple[int, Words], Mapping[int, float]] = {}
        self._has_points = "alignment" not in templates.needs

    @classmethod
    def of_file(cls, templates: Templates, source: StrPath) -> TemplateFeatures:
        """Take the templates and a file of source sentences, one per line."""
        return cls(templates, read_lines(source), str(source))

    def append(self, block: NBestList) -> NBestList:
        """Return a block with the features of the templates, as sparse ones.

        Phrase boundaries in its texts are removed.

        Raises:
            FormatError: a hypothesis lacks what the templates need, or its phrases or alignment do
                not fit to its sentence; the error names the line.
            UsageError: the list has features whose names begin as those of a template.
        """
        if not len(block):
            return block
        self._check_names(block)
        units = _Units(len(block))
        derivations: Mapping[int, AlignedDerivation] = {}
        if self._local or self._in_source or self._in_target:
            derivations = self._add_phrases(block, units)
        elif any(has_marks(block.text(row)) for row in range(min(len(block), _FIRST))):
            sentences = self._read_sentences(block)
            derivations = self._read_derivations(block, sentences, range(len(block)))
        block = _remove_marks(block, derivations)
        for order, templates in self._ngrams.items():
            self._add_windows(block, order, templates, units)
        return self._join(block, units)

    def _add_phrases(self, block: NBestList, units: _Units) -> dict[int, AlignedDerivation]:
        """Add the features of phrases; return the derivations of unusual lines, at least."""
        sentences = self._read_sentences(block)
        phrases = scan_phrases(
            read_only(block.buffer, np.uint8),
            np.stack((block.text_starts, block.text_ends), axis=1),
            np.stack((block.extra_starts, block.extra_ends), axis=1),
            read_only(block.sentence_ids, np.int64),
            np.array([len(words) for words in sentences], dtype=np.int64),
        )
        rows = range(len(block)) if self._in_target else np.flatnonzero(~phrases.usable).tolist()
        derivations = self._read_derivations(block, sentences, rows)
        self._check_points(block, phrases, derivations.values())
        first = len(units)
        for number, row in enumerate(phrases.rows.tolist()):
            phrase = _read_phrase(block, phrases, number, sentences[row])
            units.append(self._count_phrase(phrase, sentences[row]))
        units.use(
            np.repeat(np.arange(len(block)), np.diff(phrases.indptr)),
            first + phrases.numbers.astype(np.int64),
        )
        first = len(units)
        for row, derivation in derivations.items():
            counts = self._number(template.count(derivation) for template in self._in_target)
            for phrase in () if phrases.usable[row] else derivation.phrases:
                for feature, value in self._count_phrase(phrase, derivation.source).items():
                    counts[feature] = counts.get(feature, 0.0) + value
            units.append(counts)
        units.use(np.array([*derivations], dtype=np.int64), np.arange(first, len(units)))
        return derivations

    def _add_windows(
        self, block: NBestList, order: int, templates: Sequence[NgramTemplate], units: _Units
    ) -> None:
        """Add the features of n-grams."""
        texts = np.stack((block.text_starts, block.text_ends), axis=1)
        windows = scan_windows(read_only(block.buffer, np.uint8), texts, order)
        first = len(units)
        for (begin, end), (is_begin, is_end) in zip(
            windows.spans.tolist(), windows.edges.tolist(), strict=True
        ):
            words = split_words(block.buffer[begin:end].tobytes())
            window = (*((BOS,) if is_begin else ()), *words, *((EOS,) if is_end else ()))
            counts = self._windows.get((order, window))
            if counts is None:
                counts = self._windows[order, window] = self._number(
                    template.count_window(window) for template in templates
                )
            units.append(counts)
        rows = np.repeat(np.arange(len(block)), np.diff(windows.indptr))
        units.use(rows, first + windows.numbers.astype(np.int64))

    def _check_names(self, block: NBestList) -> None:
        names = {template.name for template in self._templates.templates}
        for name in (*(group for group, _ in block.groups), *block.sparse_names):
            if (template := name.partition("_")[0]) in names:
                raise UsageError(
                    f"{self._templates.path}: [{template}] computes features that {block.path} has "
                    f"already, such as {name}. Remove or rename the template"
                )

    def _read_sentences(self, block: NBestList) -> list[Words]:
        """Return the source words of each hypothesis."""
        sentences: dict[int, Words] = {}
        for row, sentence in enumerate(block.sentence_ids.tolist()):
            if sentence not in sentences:
                if sentence >= len(self._sources):
                    raise Place(block.path, int(block.lines[row])).error(
                        f"sentence {sentence} is not in {self._place}, which has "
                        f"{len(self._sources)} sentences, counted from 0",
                        "Give the source sentences that were decoded, one per line",
                    )
                sentences[sentence] = split_words(self._sources[sentence])
        return [sentences[sentence] for sentence in block.sentence_ids.tolist()]

    def _read_derivations(
        self, block: NBestList, sentences: Sequence[Words], rows: Iterable[int]
    ) -> dict[int, AlignedDerivation]:
        needs = self._templates.needs
        return {
            row: read_derivation(
                sentences[row],
                block.text(row),
                block.extra(row),
                Place(block.path, int(block.lines[row])),
                needs=needs,
            )
            for row in rows
        }

    def _check_points(
        self, block: NBestList, phrases: ScannedPhrases, derivations: Iterable[AlignedDerivation]
    ) -> None:
        """Check, in the first block, that there is an alignment at all."""
        self._has_points = (
            self._has_points
            or len(phrases.points) > 0
            or any(phrase.pair.alignment for each in derivations for phrase in each.phrases)
        )
        if not self._has_points:
            needed = [each.name for each in self._templates.templates if "alignment" in each.needs]
            raise FormatError(
                f"no hypothesis has an aligned word, so {' and '.join(needed)} in "
                f"{self._templates.path} cannot have features",
                path=block.path,
                line=int(block.lines[0]),
                remedy="Decode with a phrase table that has word alignments",
            )

    def _count_phrase(self, phrase: Phrase, source: Words) -> Mapping[int, float]:
        """Return the features of templates that see no other target words."""
        counts = self._pairs.get(phrase.pair)
        if counts is None:
            counts = self._pairs[phrase.pair] = self._number(
                template.count_pair(phrase.pair) for template in self._local
            )
        if self._in_source:
            return {
                **counts,
                **self._number(t.count_phrase(phrase, source) for t in self._in_source),
            }
        return counts

    def _number(self, counts: Iterable[Counts]) -> dict[int, float]:
        """Return the counts of several templates by the numbers of the features."""
        return {
            self._names.setdefault(name, len(self._names)): value
            for own in counts
            for name, value in own.items()
        }

    def _join(self, block: NBestList, units: _Units) -> NBestList:
        """Return the block with the sums of its units behind its sparse features."""
        own_indptr, own_indices, own_data = units.sum(len(self._names))
        used, columns = np.unique(own_indices, return_inverse=True)
        names = list(self._names)
        first = len(block.sparse_names)
        places = np.repeat(block.sparse_indptr[1:], np.diff(own_indptr))
        indices = (first + columns).astype(np.int32)
        return replace(
            block,
            sparse_names=(*block.sparse_names, *(names[number] for number in used.tolist())),
            sparse_indptr=block.sparse_indptr + own_indptr,
            sparse_indices=np.insert(block.sparse_indices, places, indices),
            sparse_data=np.insert(block.sparse_data, places, own_data),
        )


class _Units:
    """Sparse vectors, and the rows of which each is a part."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._indptr, self._indices, self._data = [0], list[int](), list[float]()
        self._uses: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def append(self, counts: Mapping[int, float]) -> None:
        """Add a vector."""
        self._indices += counts.keys()
        self._data += counts.values()
        self._indptr.append(len(self._indices))

    def use(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Let rows have vectors, by their numbers."""
        self._uses.append((rows, numbers))

    def sum(self, n_features: int) -> tuple[Positions, Ints32, Floats32]:
        """Return the sum of the vectors of each row, as compressed rows."""
        rows = np.concatenate([rows for rows, _ in self._uses])
        numbers = np.concatenate([numbers for _, numbers in self._uses])
        counts = np.bincount(rows, minlength=self._n_rows)
        return sum_features(
            np.concatenate([[0], np.cumsum(counts)]),
            numbers[np.argsort(rows, kind="stable")],
            np.array(self._indptr, dtype=np.int64),
            np.array(self._indices, dtype=np.int32),
            np.array(self._data, dtype=np.float32),
            n_features,
        )


def _read_phrase(block: NBestList, phrases: ScannedPhrases, number: int, source: Words) -> Phrase:
    first, last, begin, end = phrases.spans[number].tolist()
    points = phrases.points[phrases.point_indptr[number] : phrases.point_indptr[number + 1]]
    target = split_words(block.buffer[begin:end].tobytes())
    alignment = tuple(sorted({(i, j) for i, j in points.tolist()}))
    return Phrase(first, PhrasePair(source[first:last], target, alignment))


def _remove_marks(block: NBestList, derivations: Mapping[int, AlignedDerivation]) -> NBestList:
    """Return the block without phrase boundaries in its texts."""
    rows = [row for row in derivations if has_marks(block.text(row))]
    if not rows:
        return block
    texts = [" ".join(derivations[row].target).encode("utf-8", "surrogateescape") for row in rows]
    ends = len(block.buffer) + np.cumsum([len(text) for text in texts])
    text_starts, text_ends = block.text_starts.copy(), block.text_ends.copy()
    text_starts[rows] = ends - [len(text) for text in texts]
    text_ends[rows] = ends
    buffer = np.concatenate([block.buffer, np.frombuffer(b"".join(texts), dtype=np.uint8)])
    return replace(block, buffer=buffer, text_starts=text_starts, text_ends=text_ends)
