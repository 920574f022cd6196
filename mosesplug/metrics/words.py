"""The words of each sentence's references as integer ids.

Each sentence has its own small vocabulary: the distinct words of its references, numbered from 0 in
order of appearance. Other words cannot match. The small hash table of a sentence stays in the
processor's first cache while its hypotheses are read. Look-ups are exact: they compare the 64-bit
hash and then the bytes.

Only blanks (byte 32) separate tokens. Case folding changes only the bytes ``A`` to ``Z``. Moses'
scorers, which run in the C locale, do the same: to ignore the case of other letters, lower-case the
text before tuning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets
from mosesplug.kernels import kernel, lean_kernel, read_only
from mosesplug.metrics.hypotheses import HypothesisRanges

UNKNOWN = -1
"""The id of words that no reference of the sentence contains."""

BLANK = 32
FNV_OFFSET = np.uint64(14695981039346656037)
FNV_PRIME = np.uint64(1099511628211)
HALF = np.uint64(32)


class ReferenceWords(NamedTuple):
    """The vocabulary of each sentence, and its references as word ids.

    Line ``s * n_references + k`` is reference ``k`` of sentence ``s``. The words of sentence ``s``
    are numbered from 0 within it; word ``w`` is row ``first_token(s) + w`` of ``hashes``,
    ``starts`` and ``ends``, where ``first_token(s) = token_offsets[s * n_references]``.

    Attributes:
        text: uint8; every reference, with case folded if requested.
        token_offsets: int64 ``[n_sentences * n_references + 1]``; tokens of line ``i`` are
            ``ids[token_offsets[i]:token_offsets[i + 1]]``.
        ids: int32 ``[n_tokens]``; the word of each reference token.
        hashes: uint64 ``[n_tokens]``; by word (rows beyond a sentence's words are unused).
        starts: int64 ``[n_tokens]``; first byte in ``text``, by word.
        ends: int64 ``[n_tokens]``; one past the last byte, by word.
        slot_offsets: the hash table of sentence ``s`` is
            ``slots[slot_offsets[s]:slot_offsets[s + 1]]``, a power of two and never full.
        slots: int32; the word in each slot, -1 where free.
    """

    text: NDArray[np.uint8]
    token_offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    slot_offsets: Offsets
    slots: NDArray[np.int32]


@lean_kernel
def skip_blanks(buffer: NDArray[np.uint8], position: int, end: int) -> int:
    """Return the first position from ``position`` on that is not a blank, or ``end``."""
    while position < end and buffer[position] == BLANK:
        position += 1
    return position


@lean_kernel
def scan_word(
    buffer: NDArray[np.uint8], position: int, end: int, fold: bool
) -> tuple[int, np.uint64]:
    """Return end and 64-bit hash (FNV-1a) of the word that starts at ``position``."""
    code = FNV_OFFSET
    while position < end:
        byte = buffer[position]
        if byte == BLANK:
            break
        if fold and 65 <= byte <= 90:
            byte += 32
        code = (code ^ np.uint64(byte)) * FNV_PRIME
        position += 1
    # The table uses the low bits, but FNV mixes the high bits best.
    return position, code ^ (code >> HALF)


@lean_kernel
def find_word(
    words: ReferenceWords,
    first_slot: int,
    mask: int,
    first_token: int,
    buffer: NDArray[np.uint8],
    start: int,
    end: int,
    code: np.uint64,
    fold: bool,
) -> tuple[int, int]:
    """Return the id of ``buffer[start:end]`` or ``UNKNOWN``, and the last slot probed."""
    slot = int(np.int64(code) & mask)
    while True:
        word = int(words.slots[first_slot + slot])
        if word < 0:
            return UNKNOWN, first_slot + slot
        row = first_token + word
        if words.hashes[row] == code and words.ends[row] - words.starts[row] == end - start:
            known = words.starts[row]
            position = start
            while position < end:
                byte = buffer[position]
                if fold and 65 <= byte <= 90:
                    byte += 32
                if byte != words.text[known]:
                    break
                position += 1
                known += 1
            if position == end:
                return word, first_slot + slot
        slot = (slot + 1) & mask


def count_tokens(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Count the tokens of each range ``buffer[starts[i]:ends[i]]``, int32 ``[n]``."""
    return _count_tokens(
        read_only(buffer, np.uint8), read_only(starts, np.int64), read_only(ends, np.int64)
    )


@kernel
def _count_tokens(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int32]:
    counts = np.zeros(len(starts), dtype=np.int32)
    for line in range(len(starts)):
        inside = False
        for position in range(starts[line], ends[line]):
            blank = buffer[position] == BLANK
            if not blank and not inside:
                counts[line] += 1
            inside = not blank
    return counts


@lean_kernel
def _fill(
    words: ReferenceWords,
    line_starts: NDArray[np.int64],
    line_ends: NDArray[np.int64],
    n_references: int,
) -> None:
    """Number the words of sentences; fill ids, hashes, bounds and slots of ``words``."""
    for line in range(len(line_starts)):
        sentence = line // n_references
        first_token = words.token_offsets[sentence * n_references]
        if line % n_references == 0:
            n_words = 0
        first_slot = words.slot_offsets[sentence]
        mask = words.slot_offsets[sentence + 1] - first_slot - 1
        token = words.token_offsets[line]
        end = line_ends[line]
        start = skip_blanks(words.text, line_starts[line], end)
        while start < end:
            stop, code = scan_word(words.text, start, end, False)
            word, slot = find_word(
                words, first_slot, mask, first_token, words.text, start, stop, code, False
            )
            if word == UNKNOWN:
                word = n_words
                n_words += 1
                words.slots[slot] = word
                words.hashes[first_token + word] = code
                words.starts[first_token + word] = start
                words.ends[first_token + word] = stop
            words.ids[token] = word
            token += 1
            start = skip_blanks(words.text, stop, end)


def size_tables(capacities: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return offsets of hash tables, int64 ``[n + 1]``; their sizes are powers of two."""
    # At most 2/3 full.
    sizes = np.int64(1) << np.ceil(np.log2(capacities * 1.5 + 1)).astype(np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


def compile_words(references: Sequence[Sequence[bytes]], *, fold: bool) -> ReferenceWords:
    """Number the words of ``references[k][line]``.

    All references have the same number of lines.

    Args:
        fold: fold ``A`` to ``Z`` to ``a`` to ``z``.
    """
    n_references = len(references)
    lines = [line for sentence in zip(*references, strict=True) for line in sentence]
    # bytes.lower() changes ASCII letters only.
    text = b"".join(lines).lower() if fold else b"".join(lines)
    line_ends = np.cumsum(np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)))
    line_starts = np.concatenate([np.zeros(1, dtype=np.int64), line_ends])[:-1]
    buffer = np.frombuffer(text, dtype=np.uint8)
    token_offsets = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum(count_tokens(buffer, line_starts, line_ends), out=token_offsets[1:])
    n_tokens = int(token_offsets[-1])
    slot_offsets = size_tables(np.diff(token_offsets[::n_references]))
    words = ReferenceWords(
        text=buffer,
        token_offsets=token_offsets,
        ids=np.zeros(n_tokens, dtype=np.int32),
        hashes=np.zeros(n_tokens, dtype=np.uint64),
        starts=np.zeros(n_tokens, dtype=np.int64),
        ends=np.zeros(n_tokens, dtype=np.int64),
        slot_offsets=slot_offsets,
        slots=np.full(slot_offsets[-1], UNKNOWN, dtype=np.int32),
    )
    _fill(words, line_starts, line_ends, n_references)
    return words


class EncodedHypotheses(NamedTuple):
    """The words of ``n`` hypotheses; arrays are read-only.

    Attributes:
        sentence_ids: int64 ``[n]``; valid lines of the references.
        offsets: int64 ``[n + 1]``; the words of hypothesis ``i`` are
            ``ids[offsets[i]:offsets[i + 1]]``.
        ids: int32; words in the vocabulary of the hypothesis' own sentence, ``UNKNOWN`` for words
            that occur in none of its references.
    """

    sentence_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]


@lean_kernel
def _look_up(
    words: ReferenceWords,
    n_references: int,
    fold: bool,
    hypotheses: HypothesisRanges,
    offsets: NDArray[np.int64],
    ids: NDArray[np.int32],
) -> None:
    """Write the word of every token to ``ids``."""
    buffer = hypotheses.buffer
    for row in range(len(hypotheses.sentence_ids)):
        sentence = hypotheses.sentence_ids[row]
        first_token = words.token_offsets[sentence * n_references]
        first_slot = words.slot_offsets[sentence]
        mask = words.slot_offsets[sentence + 1] - first_slot - 1
        token = offsets[row]
        end = hypotheses.ends[row]
        start = skip_blanks(buffer, hypotheses.starts[row], end)
        while start < end:
            stop, code = scan_word(buffer, start, end, fold)
            ids[token], _ = find_word(
                words, first_slot, mask, first_token, buffer, start, stop, code, fold
            )
            token += 1
            start = skip_blanks(buffer, stop, end)


def encode(
    words: ReferenceWords, n_references: int, fold: bool, hypotheses: HypothesisRanges
) -> EncodedHypotheses:
    """Look up the words of hypotheses; the caller has checked their ranges.

    Metrics that compare whole sentences read each word many times; here each is looked up once.

    Args:
        fold: fold ``A`` to ``Z`` to ``a`` to ``z`` in hypotheses, as in ``words``.
        hypotheses: ``n`` of them.
    """
    lengths = count_tokens(hypotheses.buffer, hypotheses.starts, hypotheses.ends)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    ids = np.empty(offsets[-1], dtype=np.int32)
    _look_up(words, n_references, fold, hypotheses, offsets, ids)
    return EncodedHypotheses(
        hypotheses.sentence_ids, read_only(offsets, np.int64), read_only(ids, np.int32)
    )
