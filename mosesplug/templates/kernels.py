"""Kernels: find the distinct phrases of an n-best list, and sum their features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.words import Bytes, Floats32, Ints32, Positions
from mosesplug.kernels import inlined_kernel, kernel, lean_kernel

__all__ = ["ScannedPhrases", "scan_phrases", "scan_windows", "sum_features"]

_BLANK, _TAB, _RETURN, _BAR, _DASH, _EQUALS, _ZERO = b" \t\r|-=0"
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class ScannedPhrases(NamedTuple):
    """The phrases of hypotheses; equal ones of a sentence are found once.

    Attributes:
        usable: bool ``[n]``; whether the line has the usual form and is correct.
        indptr: int64 ``[n + 1]``; phrases of row ``i`` are ``numbers[indptr[i]:indptr[i + 1]]``.
        numbers: int32; which of the distinct phrases.
        rows: int64 ``[k]``; the hypothesis that has a distinct phrase first.
        spans: int64 ``[k, 4]``; its source positions and the bytes of its target words.
        point_indptr: int64 ``[k + 1]``.
        points: int32 ``[p, 2]``; aligned positions inside it.
    """

    usable: NDArray[np.bool_]
    indptr: Positions
    numbers: Ints32
    rows: Positions
    spans: Positions
    point_indptr: Positions
    points: Ints32


@lean_kernel
def _is_blank(byte: int) -> bool:
    """Return whether ``bytes.split`` splits at a byte.

    Other control characters are parts of words.
    """
    return byte == _BLANK or _TAB <= byte <= _RETURN


@lean_kernel
def _parse(buffer: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return an integer of up to six digits, or -1, and the position behind it."""
    value, first = 0, at
    while at < end and _ZERO <= buffer[at] < _ZERO + 10 and at - first < 6:
        value = 10 * value + (int(buffer[at]) - _ZERO)
        at += 1
    return (value if at > first else -1), at


@lean_kernel
def _mix(code: np.uint64, value: int | np.int64) -> np.uint64:
    code = (code ^ np.uint64(value)) * _PRIME
    return code ^ (code >> _SHIFT)


@inlined_kernel
def _hash_bytes(code: np.uint64, buffer: Bytes, begin: int, end: int) -> np.uint64:
    code = _mix(code, end - begin)
    for at in range(begin, end):
        code = _mix(code, np.int64(buffer[at]))
    return code


@inlined_kernel
def _are_equal(buffer: Bytes, first: int, second: int, size: int) -> bool:
    """Return whether the same bytes stand at two positions."""
    at = 0
    while at < size and buffer[first + at] == buffer[second + at]:
        at += 1
    return at == size


@inlined_kernel
def _make_slots(most: int) -> Ints32:
    """Return the empty slots of a hash table for up to ``most`` entries."""
    size = 16
    while size < 2 * most:
        size *= 2
    return np.full(size, -1, np.int32)


@inlined_kernel
def _split_words(buffer: Bytes, at: int, end: int, words: Positions) -> int:
    """Write the first and last positions of the words of a range; return their number."""
    n_words = 0
    while at < end:
        while at < end and _is_blank(buffer[at]):
            at += 1
        if at < end:
            words[n_words, 0] = at
            while at < end and not _is_blank(buffer[at]):
                at += 1
            words[n_words, 1] = at
            n_words += 1
    return n_words


@kernel
def scan_phrases(
    buffer: Bytes,
    texts: Positions,
    extras: Positions,
    sentences: Positions,
    sizes: Positions,
) -> ScannedPhrases:
    """Find the phrases of hypotheses whose lines have segmentation and alignment.

    Args:
        buffer: uint8, the text of the list.
        texts: int64 ``[n, 2]``; first byte of each hypothesis, and one past its last.
        extras: int64 ``[n, 2]``; the same of the fields behind the score.
        sentences: int64 ``[n]``; the sentence of each hypothesis.
        sizes: int64 ``[n]``; number of words of its source sentence.
    """
    n = len(sentences)
    longest, most = 2, 0
    for row in range(n):
        most += (extras[row, 1] - extras[row, 0]) // 4 + 1  # phrases and points have 4 bytes each
        longest = max(longest, texts[row, 1] - texts[row, 0], extras[row, 1] - extras[row, 0])
    longest = longest // 2 + 2
    words = np.empty((longest, 2), np.int64)
    phrases = np.empty((longest, 4), np.int64)
    owners = np.empty(longest, np.int64)
    covered = np.full(int(sizes.max()) + 1 if n else 1, -1, np.int64)
    raw = np.empty((longest, 3), np.int64)
    begins = np.empty(longest + 1, np.int64)
    ordered = np.empty((longest, 2), np.int64)

    usable = np.ones(n, np.bool_)
    indptr = np.zeros(n + 1, np.int64)
    numbers = np.empty(most, np.int32)
    rows = np.empty(most, np.int64)
    spans = np.empty((most, 4), np.int64)
    point_indptr = np.zeros(most + 1, np.int64)
    points = np.empty((most, 2), np.int32)
    slots = _make_slots(most)
    total, distinct, n_points = 0, 0, 0

    for row in range(n):
        indptr[row + 1] = total
        usable[row] = False
        n_words = _split_words(buffer, texts[row, 0], texts[row, 1], words)
        # Phrases, of which each has words.
        at, end = extras[row, 0], extras[row, 1]
        n_phrases, n_covered, target, is_right = 0, 0, 0, True
        while is_right:
            while at < end and _is_blank(buffer[at]):
                at += 1
            if at == end or buffer[at] == _BAR:
                break
            first, at = _parse(buffer, at, end)
            last = first
            if at < end and buffer[at] == _DASH:
                last, at = _parse(buffer, at + 1, end)
            is_right = at < end and buffer[at] == _EQUALS and 0 <= first <= last < sizes[row]
            if not is_right:
                break
            begin, at = _parse(buffer, at + 1, end)
            stop = begin
            if at < end and buffer[at] == _DASH:
                stop, at = _parse(buffer, at + 1, end)
            is_right = begin == target and begin <= stop < n_words
            if not is_right or (at < end and not _is_blank(buffer[at])):
                is_right = False
                break
            for source in range(first, last + 1):
                is_right = is_right and covered[source] != row
                covered[source] = row
            n_covered += last - first + 1
            target = stop + 1
            for word in range(begin, target):
                owners[word] = n_phrases
            phrases[n_phrases, 0] = first
            phrases[n_phrases, 1] = last + 1
            phrases[n_phrases, 2] = begin
            phrases[n_phrases, 3] = target
            n_phrases += 1
        if not is_right or target != n_words or n_covered != sizes[row] or n_phrases == 0:
            continue
        # Alignment points, which must be inside phrases.
        if end - at < 3 or buffer[at + 1] != _BAR or buffer[at + 2] != _BAR:
            continue
        at += 3
        count = 0
        begins[: n_phrases + 1] = 0
        while is_right:
            while at < end and _is_blank(buffer[at]):
                at += 1
            if at == end or buffer[at] == _BAR:
                break
            source, at = _parse(buffer, at, end)
            is_right = source >= 0 and at < end and buffer[at] == _DASH
            if not is_right:
                break
            word, at = _parse(buffer, at + 1, end)
            is_right = 0 <= word < n_words and (at == end or _is_blank(buffer[at]))
            if not is_right:
                break
            owner = owners[word]
            is_right = phrases[owner, 0] <= source < phrases[owner, 1]
            raw[count, 0] = owner
            raw[count, 1] = source - phrases[owner, 0]
            raw[count, 2] = word - phrases[owner, 2]
            begins[owner + 1] += 1
            count += 1
        if not is_right:
            continue
        usable[row] = True
        for phrase in range(n_phrases):
            begins[phrase + 1] += begins[phrase]
        for point in range(count):
            owner = raw[point, 0]
            ordered[begins[owner], 0] = raw[point, 1]
            ordered[begins[owner], 1] = raw[point, 2]
            begins[owner] += 1
        # Look each phrase up among those of the sentence.
        first_point = 0
        for phrase in range(n_phrases):
            last_point = begins[phrase]
            text, text_end = words[phrases[phrase, 2], 0], words[phrases[phrase, 3] - 1, 1]
            code = _mix(_mix(_PRIME, sentences[row]), phrases[phrase, 0])
            code = _hash_bytes(_mix(code, phrases[phrase, 1]), buffer, text, text_end)
            for point in range(first_point, last_point):
                code = _mix(_mix(code, ordered[point, 0]), ordered[point, 1])
            slot = int(code >> np.uint64(8)) % len(slots)
            while slots[slot] >= 0:
                other = slots[slot]
                is_same = (
                    sentences[rows[other]] == sentences[row]
                    and spans[other, 0] == phrases[phrase, 0]
                    and spans[other, 1] == phrases[phrase, 1]
                    and spans[other, 3] - spans[other, 2] == text_end - text
                    and point_indptr[other + 1] - point_indptr[other] == last_point - first_point
                    and _are_equal(buffer, spans[other, 2], text, text_end - text)
                )
                if is_same:
                    for point in range(last_point - first_point):
                        place = point_indptr[other] + point
                        if (
                            points[place, 0] != ordered[first_point + point, 0]
                            or points[place, 1] != ordered[first_point + point, 1]
                        ):
                            is_same = False
                            break
                if is_same:
                    break
                slot = (slot + 1) % len(slots)
            if slots[slot] < 0:
                slots[slot] = distinct
                rows[distinct] = row
                spans[distinct, 0] = phrases[phrase, 0]
                spans[distinct, 1] = phrases[phrase, 1]
                spans[distinct, 2] = text
                spans[distinct, 3] = text_end
                for point in range(first_point, last_point):
                    points[n_points, 0] = ordered[point, 0]
                    points[n_points, 1] = ordered[point, 1]
                    n_points += 1
                distinct += 1
                point_indptr[distinct] = n_points
            numbers[total] = slots[slot]
            total += 1
            first_point = last_point
        indptr[row + 1] = total
    return ScannedPhrases(
        usable,
        indptr,
        numbers[:total],
        rows[:distinct],
        spans[:distinct],
        point_indptr[: distinct + 1],
        points[:n_points],
    )


class ScannedWindows(NamedTuple):
    """The windows of hypotheses; equal ones are found once.

    Attributes:
        indptr: int64 ``[n + 1]``; windows of row ``i`` are ``numbers[indptr[i]:indptr[i + 1]]``.
        numbers: int32; which of the distinct windows.
        spans: int64 ``[k, 2]``; the bytes of the words of a distinct window.
        edges: bool ``[k, 2]``; whether the beginning of the sentence is in it, and the end.
    """

    indptr: Positions
    numbers: Ints32
    spans: Positions
    edges: NDArray[np.bool_]


@kernel
def scan_windows(buffer: Bytes, texts: Positions, order: int) -> ScannedWindows:
    """Find the windows that n-grams end with, as ``NgramTemplate`` has them.

    Args:
        buffer: uint8, the text of the list.
        texts: int64 ``[n, 2]``; first byte of each hypothesis, and one past its last.
        order: words of a window.
    """
    n = len(texts)
    longest, most = 2, 0
    for row in range(n):
        size = (texts[row, 1] - texts[row, 0]) // 2 + 2
        most += size
        longest = max(longest, size)
    words = np.empty((longest, 2), np.int64)
    indptr = np.zeros(n + 1, np.int64)
    numbers = np.empty(most, np.int32)
    spans = np.empty((most, 2), np.int64)
    edges = np.empty((most, 2), np.bool_)
    slots = _make_slots(most)
    total, distinct = 0, 0
    for row in range(n):
        n_words = _split_words(buffer, texts[row, 0], texts[row, 1], words)
        for last in range(n_words + 1):
            is_end = last == n_words
            # The beginning of the sentence has position -1, its end that behind the words.
            first = last - order + 1
            is_begin = first < 0
            first = max(first, 0)
            stop = last if is_end else last + 1
            text, text_end = 0, 0
            if first < stop:
                text, text_end = words[first, 0], words[stop - 1, 1]
            code = _hash_bytes(_mix(_PRIME, 2 * is_begin + is_end), buffer, text, text_end)
            slot = int(code >> np.uint64(8)) % len(slots)
            while slots[slot] >= 0:
                other = slots[slot]
                is_same = (
                    spans[other, 1] - spans[other, 0] == text_end - text
                    and edges[other, 0] == is_begin
                    and edges[other, 1] == is_end
                    and _are_equal(buffer, spans[other, 0], text, text_end - text)
                )
                if is_same:
                    break
                slot = (slot + 1) % len(slots)
            if slots[slot] < 0:
                slots[slot] = distinct
                spans[distinct, 0] = text
                spans[distinct, 1] = text_end
                edges[distinct, 0] = is_begin
                edges[distinct, 1] = is_end
                distinct += 1
            numbers[total] = slots[slot]
            total += 1
        indptr[row + 1] = total
    return ScannedWindows(indptr, numbers[:total], spans[:distinct], edges[:distinct])


@kernel
def sum_features(
    indptr: Positions,
    numbers: Positions,
    unit_indptr: Positions,
    unit_indices: Ints32,
    unit_data: Floats32,
    n_features: int,
) -> tuple[Positions, Ints32, Floats32]:
    """Sum the features of the units of each row.

    Args:
        indptr: int64 ``[n + 1]``; units of row ``i`` are ``numbers[indptr[i]:indptr[i + 1]]``.
        numbers: int64; which unit.
        unit_indptr: int64 ``[k + 1]``; with the next two, the features of each unit.
        unit_indices: int32.
        unit_data: float32.
        n_features: number of features; all indices are less.

    Returns:
        Row pointers, indices and values; the features of a row in order of appearance.
    """
    n, most = len(indptr) - 1, 0
    for number in numbers:
        most += unit_indptr[number + 1] - unit_indptr[number]
    places = np.full(n_features, -1, np.int64)
    row_indptr = np.zeros(n + 1, np.int64)
    indices = np.empty(most, np.int32)
    data = np.empty(most, np.float32)
    total = 0
    for row in range(n):
        first = total
        for unit in range(indptr[row], indptr[row + 1]):
            number = numbers[unit]
            for place in range(unit_indptr[number], unit_indptr[number + 1]):
                feature = unit_indices[place]
                if places[feature] < first:
                    places[feature] = total
                    indices[total] = feature
                    data[total] = 0.0
                    total += 1
                data[places[feature]] += unit_data[place]
        row_indptr[row + 1] = total
    return row_indptr, indices[:total].copy(), data[:total].copy()
