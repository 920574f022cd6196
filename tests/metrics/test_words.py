"""Words of the references as integer ids."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.metrics.words import (
    UNKNOWN,
    compile_words,
    count_tokens,
    find_word,
    scan_word,
    size_tables,
)


def as_buffer(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8)


@given(st.lists(st.text(alphabet="ab \t\u00a0", max_size=10).map(str.encode)))
def test_blanks_separate_tokens(lines: list[bytes]) -> None:
    ends = np.cumsum([len(line) for line in lines], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    counts = count_tokens(as_buffer(b"".join(lines)), starts, ends)
    assert counts.tolist() == [sum(map(bool, line.split(b" "))) for line in lines]


def test_ids_number_the_words_of_each_sentence() -> None:
    words = compile_words([[b"a b a", b"B b"], [b" c  a ", b""]], fold=False)
    assert words.token_offsets.tolist() == [0, 3, 5, 7, 7]
    assert words.ids.tolist() == [0, 1, 0, 2, 0, 0, 1]
    folded = compile_words([[b"a b a", b"B b"], [b" c  a ", b""]], fold=True)
    assert folded.ids.tolist() == [0, 1, 0, 2, 0, 0, 0]


def test_equal_hashes_do_not_make_equal_words() -> None:
    words = compile_words([[b"abc"]], fold=False)
    mask = int(words.slot_offsets[1]) - 1
    _, code = scan_word(words.text, 0, 3, False)
    for text, expected in ((b"abc", 0), (b"abd", UNKNOWN), (b"ab", UNKNOWN), (b"abcd", UNKNOWN)):
        word, _ = find_word(words, 0, mask, 0, as_buffer(text), 0, len(text), code, False)
        assert word == expected


@given(st.lists(st.integers(0, 10**6), max_size=20))
def test_tables_are_powers_of_two_with_room(capacities: list[int]) -> None:
    sizes = np.diff(size_tables(np.array(capacities, dtype=np.int64))).tolist()
    for size, capacity in zip(sizes, capacities, strict=True):
        assert size & (size - 1) == 0
        assert capacity * 1.5 <= size <= max(4 * capacity, 1)
