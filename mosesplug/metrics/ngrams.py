"""Clipped n-gram matches of many hypotheses against their references.

The n-grams of a sentence's references form a trie: an n-gram is the n-gram of its first ``n - 1``
words followed by one more. Nodes are numbered, words first. The n-grams that end at a token are
found from those that end at the previous token by one table look-up each, so a hypothesis is read
only once. Each node stores the highest count of its n-gram in any reference, which clips the count
of the hypothesis (Papineni et al. 2002, section 2.1.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets
from mosesplug.kernels import lean_kernel
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.words import (
    UNKNOWN,
    ReferenceWords,
    find_word,
    scan_word,
    size_tables,
    skip_blanks,
)

NO_NODE = UNKNOWN
"""The node of all n-grams that no reference contains, including unknown words."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


class ReferenceNgrams(NamedTuple):
    """The tries of all sentences, side by side.

    Node ``v`` of sentence ``s`` is row ``node_offsets[s] + v``. Nodes below the sentence's number
    of reference tokens are its words, the others its longer n-grams.

    Attributes:
        limits: int32 ``[n_nodes]``; the highest count of this n-gram in one reference.
        keys: int64 ``[n_nodes]``; of a longer n-gram, the node of all but its last word times
            ``2 ** 32`` plus that word; unused for words.
        slot_offsets: hash tables, powers of two and never full.
        slots: int32; the node in each slot, -1 where free.
    """

    node_offsets: Offsets
    limits: NDArray[np.int32]
    keys: NDArray[np.int64]
    slot_offsets: Offsets
    slots: NDArray[np.int32]


@lean_kernel
def _find_child(
    ngrams: ReferenceNgrams, first_slot: int, mask: int, first_node: int, parent: int, word: int
) -> tuple[int, int]:
    """Return the node of ``parent`` and ``word``, or -1; and the last slot probed."""
    key = (np.int64(parent) << 32) | np.int64(word)
    slot = int(np.int64((np.uint64(key) * GOLDEN) >> HALF) & mask)
    while True:
        node = int(ngrams.slots[first_slot + slot])
        if node < 0:
            return NO_NODE, first_slot + slot
        if ngrams.keys[first_node + node] == key:
            return node, first_slot + slot
        slot = (slot + 1) & mask


@lean_kernel
def _fill(
    ngrams: ReferenceNgrams,
    words: ReferenceWords,
    n_references: int,
    counts: NDArray[np.int32],
    endings: NDArray[np.int64],
) -> None:
    """Build every trie; write ``limits``, ``keys`` and ``slots`` of ``ngrams``.

    ``counts``, 0 for each node of a sentence, and ``endings``, one for each order, are working
    space.
    """
    longest = len(endings)
    for sentence in range(len(ngrams.node_offsets) - 1):
        first_line = sentence * n_references
        first_node = ngrams.node_offsets[sentence]
        first_slot = ngrams.slot_offsets[sentence]
        mask = ngrams.slot_offsets[sentence + 1] - first_slot - 1
        n_nodes = words.token_offsets[first_line + n_references] - words.token_offsets[first_line]
        for line in range(first_line, first_line + n_references):
            endings[:] = NO_NODE
            for token in range(words.token_offsets[line], words.token_offsets[line + 1]):
                word = words.ids[token]
                for order in range(longest - 1, 0, -1):
                    parent = endings[order - 1]
                    if parent == NO_NODE:
                        continue
                    node, slot = _find_child(ngrams, first_slot, mask, first_node, parent, word)
                    if node == NO_NODE:
                        node = n_nodes
                        n_nodes += 1
                        ngrams.slots[slot] = node
                        ngrams.keys[first_node + node] = (parent << 32) | word
                    endings[order] = node
                    counts[node] += 1
                endings[0] = word
                counts[word] += 1
            for node in range(n_nodes):
                row = first_node + node
                ngrams.limits[row] = max(ngrams.limits[row], counts[node])
                counts[node] = 0


def compile_ngrams(words: ReferenceWords, n_references: int, longest: int) -> ReferenceNgrams:
    """Build the tries of the references, with n-grams of up to ``longest`` words."""
    lengths = np.diff(words.token_offsets)
    longer = sum(np.maximum(lengths - order, 0) for order in range(1, longest))
    per_sentence = np.asarray(longer, dtype=np.int64).reshape(-1, n_references).sum(axis=1)
    n_words = lengths.reshape(-1, n_references).sum(axis=1)
    node_offsets = np.zeros(len(n_words) + 1, dtype=np.int64)
    np.cumsum(n_words + per_sentence, out=node_offsets[1:])
    slot_offsets = size_tables(per_sentence)
    ngrams = ReferenceNgrams(
        node_offsets=node_offsets,
        limits=np.zeros(node_offsets[-1], dtype=np.int32),
        keys=np.zeros(node_offsets[-1], dtype=np.int64),
        slot_offsets=slot_offsets,
        slots=np.full(slot_offsets[-1], NO_NODE, dtype=np.int32),
    )
    counts = np.zeros(_most_nodes(ngrams), dtype=np.int32)
    _fill(ngrams, words, n_references, counts, np.empty(longest, dtype=np.int64))
    return ngrams


def _most_nodes(ngrams: ReferenceNgrams) -> int:
    """Return the number of nodes of the largest trie."""
    return int(np.diff(ngrams.node_offsets).max(initial=0))


def count_matches(
    words: ReferenceWords,
    ngrams: ReferenceNgrams,
    n_references: int,
    longest: int,
    fold: bool,
    hypotheses: HypothesisRanges,
    counts: NDArray[np.int32],
) -> None:
    """Count the clipped matches and the n-grams of each order, by a kernel.

    Args:
        longest: words in the longest n-gram, as in ``ngrams``.
        fold: fold ``A`` to ``Z`` to ``a`` to ``z`` in hypotheses, as in ``words``.
        hypotheses: ``n`` hypotheses, whose ranges the caller has checked.
        counts: int32 ``[n, at least 2 * longest]``, the output: match1, total1, match2, total2, ...
    """
    most_nodes = _most_nodes(ngrams)
    seen = np.zeros(most_nodes, dtype=np.int32)
    stamps = np.full(most_nodes, -1, dtype=np.int64)
    endings = np.empty(longest, dtype=np.int64)
    _count_matches(words, ngrams, n_references, fold, hypotheses, counts, seen, stamps, endings)


@lean_kernel
def _count_matches(
    words: ReferenceWords,
    ngrams: ReferenceNgrams,
    n_references: int,
    fold: bool,
    hypotheses: HypothesisRanges,
    counts: NDArray[np.int32],
    seen: NDArray[np.int32],
    stamps: NDArray[np.int64],
    endings: NDArray[np.int64],
) -> None:
    """Write the ``counts`` of its caller.

    ``seen`` has the occurrences of each node in a hypothesis, valid only if the node's entry of
    ``stamps`` is this hypothesis: cheaper than clearing a table between hypotheses.
    """
    longest = len(endings)
    buffer = hypotheses.buffer
    for row in range(len(hypotheses.sentence_ids)):
        sentence = hypotheses.sentence_ids[row]
        first_token = words.token_offsets[sentence * n_references]
        first_word_slot = words.slot_offsets[sentence]
        word_mask = words.slot_offsets[sentence + 1] - first_word_slot - 1
        first_node = ngrams.node_offsets[sentence]
        first_slot = ngrams.slot_offsets[sentence]
        mask = ngrams.slot_offsets[sentence + 1] - first_slot - 1
        counts[row, : 2 * longest] = 0
        endings[:] = NO_NODE
        length = 0
        end = hypotheses.ends[row]
        start = skip_blanks(buffer, hypotheses.starts[row], end)
        while start < end:
            stop, code = scan_word(buffer, start, end, fold)
            node, _ = find_word(
                words, first_word_slot, word_mask, first_token, buffer, start, stop, code, fold
            )
            word = node
            # ``node`` is each n-gram that ends at this word, shortest first; once one is not in
            # the trie, no longer one is.
            for order in range(longest):
                before = endings[order]
                endings[order] = node
                if node == NO_NODE:
                    continue
                limit = ngrams.limits[first_node + node]
                counts[row, 2 * order] += _occurrence(seen, stamps, row, node, limit)
                if before == NO_NODE or order == longest - 1:
                    node = NO_NODE
                else:
                    node, _ = _find_child(ngrams, first_slot, mask, first_node, before, word)
            length += 1
            start = skip_blanks(buffer, stop, end)
        for order in range(longest):
            counts[row, 2 * order + 1] = max(length - order, 0)


@lean_kernel
def _occurrence(
    seen: NDArray[np.int32], stamps: NDArray[np.int64], row: int, node: int, limit: int
) -> int:
    """Return 1 if this occurrence of ``node`` in ``row`` still counts, else 0."""
    if stamps[node] != row:
        stamps[node] = row
        seen[node] = 0
    seen[node] += 1
    return 1 if seen[node] <= limit else 0
