"""Toy lists, a toy metric and a model of the store, as expected values for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.metrics.protocol import (
    PreparedReferences,
    UnsmoothedMetric,
    check_references,
    reference_fingerprint,
)

__all__ = ["GROUPS", "Hypothesis", "StoreModel", "ToyMetric", "make_list"]

GROUPS = (("LM0", 1), ("TM0", 2))
"""The default dense groups of ``make_list``."""


class Hypothesis(NamedTuple):
    """One line of an n-best list."""

    sentence: int
    text: bytes
    dense: tuple[float, ...] = (0.0, 0.0, 0.0)
    sparse: tuple[tuple[str, float], ...] = ()
    score: float = 0.0
    extra: bytes = b""

    @property
    def key(self) -> tuple[object, ...]:
        """The key of duplicates within a sentence."""
        return (
            self.text,
            tuple(float(np.float32(value)) for value in self.dense),
            frozenset((name, float(np.float32(value))) for name, value in self.sparse),
        )


def make_list(
    hypotheses: Iterable[Hypothesis],
    groups: tuple[tuple[str, int], ...] = GROUPS,
    path: str = "list",
) -> NBestList:
    """Return an n-best list like the reader in ``formats``."""
    lines = list(hypotheses)
    names = list(dict.fromkeys(name for line in lines for name, _ in line.sparse))
    pieces = [piece for line in lines for piece in (line.text, line.extra)]
    bounds = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces], dtype=np.int64)])
    n_dense = sum(width for _, width in groups)
    return NBestList(
        path=path,
        sentence_ids=np.array([line.sentence for line in lines], dtype=np.int64),
        buffer=np.frombuffer(b"".join(pieces), dtype=np.uint8),
        text_starts=bounds[:-1:2],
        text_ends=bounds[1::2],
        groups=groups,
        dense=np.array([line.dense for line in lines], dtype=np.float32).reshape(
            len(lines), n_dense
        ),
        sparse_names=tuple(names),
        sparse_indptr=np.cumsum([0, *(len(line.sparse) for line in lines)], dtype=np.int64),
        sparse_indices=np.array(
            [names.index(name) for line in lines for name, _ in line.sparse], dtype=np.int32
        ),
        sparse_data=np.array(
            [value for line in lines for _, value in line.sparse], dtype=np.float32
        ),
        scores=np.array([line.score for line in lines], dtype=np.float64),
        extra_starts=bounds[1::2],
        extra_ends=bounds[2::2],
        lines=np.arange(1, len(lines) + 1),
    )


@dataclass
class ToyMetric(UnsmoothedMetric):
    """A toy metric: ``weight`` times the number of words in a reference, and the number of words.

    Attributes:
        weight: a setting, part of the signature.
        scored: number of hypotheses scored so far.
    """

    weight: int = 1
    scored: int = 0
    name: str = "WORDS"
    n_statistics: int = 2
    statistics_names: tuple[str, ...] = ("match", "total")
    _known: dict[str, list[set[bytes]]] = field(default_factory=dict)

    def signature(self) -> str:
        """Return name and setting."""
        return f"WORDS|weight:{self.weight}"

    def prepare(self, references: Sequence[Sequence[bytes]]) -> PreparedReferences:
        """Compile references to sets of words."""
        n_sentences = check_references(references)
        fingerprint = reference_fingerprint(references)
        self._known[fingerprint] = [
            {word for lines in references for word in lines[i].split()} for i in range(n_sentences)
        ]
        return PreparedReferences(
            n_sentences=n_sentences,
            n_references=len(references),
            signature=self.signature(),
            fingerprint=fingerprint,
        )

    def statistics(
        self,
        prepared: PreparedReferences,
        sentence_ids: NDArray[np.int64],
        buffer: NDArray[np.uint8],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        threads: int = 1,
    ) -> NDArray[np.int32]:
        """Return the numbers of words in a reference and of all words."""
        self.scored += len(starts)
        data = buffer.tobytes()
        rows = []
        for sentence, start, end in zip(sentence_ids, starts, ends, strict=True):
            words = data[start:end].split()
            known = self._known[prepared.fingerprint][sentence]
            rows.append((self.weight * sum(word in known for word in words), len(words)))
        return np.array(rows, dtype=np.int32).reshape(-1, 2)

    def score(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        """Return the fraction of words that are in a reference."""
        totals = np.asarray(totals, dtype=np.float64)
        return np.asarray(totals[..., 0] / np.maximum(totals[..., 1], 1.0))


@dataclass
class StoreModel:
    """A naive store: the expected results of ``NBestStore``.

    Attributes:
        n_sentences: number of sentences of the input.
        lists: the lists of each iteration by sentence.
        keys: of the hypotheses in the lists.
    """

    n_sentences: int
    lists: list[dict[int, list[Hypothesis]]] = field(default_factory=list)
    keys: list[dict[int, list[object]]] = field(default_factory=list)

    def add(self, hypotheses: Iterable[Hypothesis]) -> None:
        """Add an iteration."""
        added: dict[int, list[Hypothesis]] = {}
        for hypothesis in hypotheses:
            added.setdefault(hypothesis.sentence, []).append(hypothesis)
        self.lists.append(added)
        self.keys.append({i: [each.key for each in lines] for i, lines in added.items()})

    def merged(self, sentence: int, iterations: Iterable[int]) -> list[Hypothesis]:
        """Return distinct hypotheses of some iterations, in the order of their first appearance."""
        found: dict[object, Hypothesis] = {}
        for iteration in sorted(iterations):
            lines = self.lists[iteration - 1].get(sentence, [])
            for key, hypothesis in zip(
                self.keys[iteration - 1].get(sentence, []), lines, strict=True
            ):
                found.setdefault(key, hypothesis)
        return list(found.values())

    def sparse_names(self) -> tuple[str, ...]:
        """Return the sparse features in the order of their first appearance."""
        return tuple(
            dict.fromkeys(
                name
                for lists in self.lists
                for hypotheses in lists.values()
                for hypothesis in hypotheses
                for name, _ in hypothesis.sparse
            )
        )
