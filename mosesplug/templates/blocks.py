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
from mosesplug.templates.declaration import Templates
from mosesplug.templates.derivation import Derivation, Phrase, PhrasePair, Words
from mosesplug.templates.functions import PhraseTemplate, Template
from mosesplug.templates.kernels import ScannedPhrases, scan_phrases, sum_features
from mosesplug.templates.reading import has_marks, read_derivation, split_words

__all__ = ["TemplateFeatures"]


class TemplateFeatures:
    """Computes the features of templates for lists of one source text."""

    def __init__(self, templates: Templates, sources: Sequence[bytes], place: str) -> None:
        """Take the templates and the source text.

        Args:
            sources: the source sentences, by sentence id.
            place: the source text, for messages.
        """
        self._templates, self._sources, self._place = templates, sources, place
        by_phrase = [each for each in templates.templates if isinstance(each, PhraseTemplate)]
        self._in_source = [each for each in by_phrase if each.scope == "source"]
        self._others = [each for each in templates.templates if each.scope == "target"]
        self._names: dict[str, int] = {}
        self._pairs: dict[PhrasePair, Mapping[int, float]] = {}
        self._has_points = "alignment" not in templates.needs

    @classmethod
    def of_file(cls, templates: Templates, source: StrPath) -> TemplateFeatures:
        """Take the templates and a file of source sentences, one a line."""
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
        sentences = self._read_sentences(block)
        phrases = _scan(block, np.array([len(words) for words in sentences], dtype=np.int64))
        derivations = {
            row: self._read_derivation(block, row, sentences[row])
            for row in range(len(block))
            if self._others or not phrases.usable[row]
        }
        self._check_points(block, phrases, derivations.values())
        units = _Units()
        for number, row in enumerate(phrases.rows.tolist()):
            phrase = _read_phrase(block, phrases, number, sentences[row])
            units.append(self._count_phrase(phrase, sentences[row]))
        whole: list[int] = []
        for row, derivation in derivations.items():
            counts = dict(self._count(self._others, derivation))
            if not phrases.usable[row]:
                for phrase in derivation.phrases:
                    for feature, value in self._count_phrase(phrase, derivation.source).items():
                        counts[feature] = counts.get(feature, 0.0) + value
            whole.append(units.append(counts))
        rows = np.array([*derivations], dtype=np.int64)
        added = np.zeros(len(block) + 1, dtype=np.int64)
        added[rows + 1] = 1
        numbers = np.insert(phrases.numbers, phrases.indptr[rows + 1], np.array(whole, np.int32))
        block = _remove_marks(block, derivations)
        return self._join(block, phrases.indptr + np.cumsum(added), numbers, units)

    def _check_names(self, block: NBestList) -> None:
        names = {template.name for template in self._templates.templates}
        for name in (*(group for group, _ in block.groups), *block.sparse_names):
            if (template := name.partition("_")[0]) in names:
                raise UsageError(
                    f"{self._templates.path}: [{template}] computes features that {block.path} has "
                    f"already, such as {name}. Leave one of the two out, or choose another name"
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
                        "Give the source sentences that were decoded, one a line",
                    )
                sentences[sentence] = split_words(self._sources[sentence])
        return [sentences[sentence] for sentence in block.sentence_ids.tolist()]

    def _read_derivation(self, block: NBestList, row: int, source: Words) -> Derivation:
        place = Place(block.path, int(block.lines[row]))
        needs = self._templates.needs
        return read_derivation(source, block.text(row), block.extra(row), place, needs=needs)

    def _check_points(
        self, block: NBestList, phrases: ScannedPhrases, derivations: Iterable[Derivation]
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
            counts = self._pairs[phrase.pair] = {
                self._names.setdefault(name, len(self._names)): value
                for template in self._templates.local
                for name, value in template.count_pair(phrase.pair).items()
            }
        if self._in_source:
            own = Derivation(source, (phrase,))
            return {**counts, **self._count(self._in_source, own)}
        return counts

    def _count(self, templates: Sequence[Template], derivation: Derivation) -> dict[int, float]:
        return {
            self._names.setdefault(name, len(self._names)): value
            for template in templates
            for name, value in template.count(derivation).items()
        }

    def _join(
        self, block: NBestList, indptr: Positions, numbers: Ints32, units: _Units
    ) -> NBestList:
        """Return the block with the sums of its units behind its sparse features."""
        unit_indptr, unit_indices, unit_data = units.arrays()
        n_features = len(self._names)
        own_indptr, own_indices, own_data = sum_features(
            indptr, numbers, unit_indptr, unit_indices, unit_data, n_features
        )
        used, columns = np.unique(own_indices, return_inverse=True)
        names = list(self._names)
        old = block.sparse_indptr
        places = np.repeat(old[1:], np.diff(own_indptr))
        first = len(block.sparse_names)
        return replace(
            block,
            sparse_names=(*block.sparse_names, *(names[number] for number in used.tolist())),
            sparse_indptr=old + own_indptr,
            sparse_indices=np.insert(
                block.sparse_indices, places, (first + columns).astype(np.int32)
            ),
            sparse_data=np.insert(block.sparse_data, places, own_data),
        )


class _Units:
    """Sparse vectors that rows are sums of."""

    def __init__(self) -> None:
        self._indptr, self._indices, self._data = [0], list[int](), list[float]()

    def append(self, counts: Mapping[int, float]) -> int:
        """Add a vector; return its number."""
        self._indices += counts.keys()
        self._data += counts.values()
        self._indptr.append(len(self._indices))
        return len(self._indptr) - 2

    def arrays(self) -> tuple[Positions, Ints32, Floats32]:
        """Return all vectors as compressed rows."""
        return (
            np.array(self._indptr, dtype=np.int64),
            np.array(self._indices, dtype=np.int32),
            np.array(self._data, dtype=np.float32),
        )


def _scan(block: NBestList, sizes: NDArray[np.int64]) -> ScannedPhrases:
    """Find the phrases of a block.

    Each phrase has an equals sign in its field, and each point a hyphen.
    """
    extras = np.stack((block.extra_starts, block.extra_ends), axis=1)
    marks = [np.concatenate([[0], np.cumsum(block.buffer == mark)]) for mark in (_EQUALS, _HYPHEN)]
    phrases, points = (int((mark[extras[:, 1]] - mark[extras[:, 0]]).sum()) for mark in marks)
    return scan_phrases(
        np.ascontiguousarray(block.buffer),
        np.stack((block.text_starts, block.text_ends), axis=1),
        extras,
        np.ascontiguousarray(block.sentence_ids),
        sizes,
        phrases,
        points,
    )


_EQUALS, _HYPHEN = b"=-"


def _read_phrase(block: NBestList, phrases: ScannedPhrases, number: int, source: Words) -> Phrase:
    first, last, begin, end = phrases.spans[number].tolist()
    points = phrases.points[phrases.point_indptr[number] : phrases.point_indptr[number + 1]]
    target = split_words(block.buffer[begin:end].tobytes())
    alignment = tuple(sorted({(i, j) for i, j in points.tolist()}))
    return Phrase(first, PhrasePair(source[first:last], target, alignment))


def _remove_marks(block: NBestList, derivations: Mapping[int, Derivation]) -> NBestList:
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
