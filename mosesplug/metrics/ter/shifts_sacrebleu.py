"""Kernels of sacrebleu's greedy search for TER shifts; see ``sacrebleu.py``.

Its limits are those of sacrebleu 2, which follows Tercom. Sentences are arrays of word ids; words
in no reference are negative and match nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import inlined_kernel, kernel
from mosesplug.metrics.encoding import EncodedHypotheses
from mosesplug.metrics.ter.shifts import FAR, longest_sentence, move_block
from mosesplug.metrics.words import ReferenceWords

LONGEST_BLOCK = 10
FURTHEST_SHIFT = 50
MOST_SHIFTS = 1000
BEAM = 25

MATCH, SUBSTITUTION, ONLY_HYPOTHESIS, ONLY_REFERENCE = 0, 1, 2, 3
"""Steps of an alignment: words of both sentences, or of one."""


class SacrebleuScratch(NamedTuple):
    """Working memory for two sentences of limited length.

    Attributes:
        costs: int32 ``[hypothesis + 1, reference + 1]``; cost of the cheapest path to each cell.
        steps: uint8 of the same shape; last step of the cheapest path to each cell.
        wrong: bool ``[hypothesis]``; words without a match in the alignment.
        reference_wrong: bool ``[reference]``; words without a match in the alignment.
        aligned: int32 ``[reference]``; aligned positions in the hypothesis, -1 before its start.
        now: int32 ``[hypothesis]``; the hypothesis after the shifts so far.
        trial: int32 ``[hypothesis]``; the hypothesis after one more shift.
        best: int32 ``[hypothesis]``; the best trial of a round.
    """

    costs: NDArray[np.int32]
    steps: NDArray[np.uint8]
    wrong: NDArray[np.bool_]
    reference_wrong: NDArray[np.bool_]
    aligned: NDArray[np.int32]
    now: NDArray[np.int32]
    trial: NDArray[np.int32]
    best: NDArray[np.int32]


@kernel
def _scratch(longest: int, longest_reference: int) -> SacrebleuScratch:
    """Allocate working memory for sentences of up to that many words."""
    return SacrebleuScratch(
        np.empty((longest + 1, longest_reference + 1), dtype=np.int32),
        np.empty((longest + 1, longest_reference + 1), dtype=np.uint8),
        np.empty(longest, dtype=np.bool_),
        np.empty(longest_reference, dtype=np.bool_),
        np.empty(longest_reference, dtype=np.int32),
        np.empty(longest, dtype=np.int32),
        np.empty(longest, dtype=np.int32),
        np.empty(longest, dtype=np.int32),
    )


@kernel
def _distance(
    words: NDArray[np.int32], length: int, reference: NDArray[np.int32], scratch: SacrebleuScratch
) -> int:
    """Return the edit distance of ``words[:length]`` and ``reference``.

    Costs and steps are filled. Only cells near the diagonal are used. Among equal costs, a step in
    both sentences is preferred, then one in the hypothesis, then one in the reference.
    """
    costs, steps = scratch.costs, scratch.steps
    n_reference = len(reference)
    for column in range(n_reference + 1):
        costs[0, column] = column
        steps[0, column] = ONLY_REFERENCE
    ratio = n_reference / length if length > 0 else 1.0
    beam = int(np.ceil(ratio / 2 + BEAM)) if ratio / 2 > BEAM else BEAM
    for row in range(1, length + 1):
        diagonal = int(np.floor(row * ratio))
        first = max(0, diagonal - beam)
        last = n_reference if row == length else min(n_reference, diagonal + beam - 1)
        costs[row, :first] = FAR
        costs[row, last + 1 :] = FAR
        for column in range(first, last + 1):
            cost, step = FAR, MATCH
            if column > 0:
                step = MATCH if words[row - 1] == reference[column - 1] else SUBSTITUTION
                cost = min(FAR, costs[row - 1, column - 1] + step)
            if costs[row - 1, column] + 1 < cost:
                cost, step = costs[row - 1, column] + 1, ONLY_HYPOTHESIS
            if column > first and costs[row, column - 1] + 1 < cost:
                cost, step = costs[row, column - 1] + 1, ONLY_REFERENCE
            costs[row, column] = cost
            steps[row, column] = step
    return int(costs[length, n_reference])


@kernel
def _align(length: int, n_reference: int, scratch: SacrebleuScratch) -> None:
    """Follow the steps back; write wrong words and the alignment of the reference.

    A missing word of the reference is aligned to the previous word of the hypothesis.
    """
    row, column = length, n_reference
    while row > 0 or column > 0:
        step = scratch.steps[row, column]
        if step == ONLY_HYPOTHESIS:
            row -= 1
            scratch.wrong[row] = True
        elif step == ONLY_REFERENCE:
            column -= 1
            scratch.reference_wrong[column] = True
            scratch.aligned[column] = row - 1
        else:
            row -= 1
            column -= 1
            scratch.wrong[row] = step == SUBSTITUTION
            scratch.reference_wrong[column] = step == SUBSTITUTION
            scratch.aligned[column] = row


@kernel
def _shift(
    words: NDArray[np.int32],
    n_words: int,
    start: int,
    length: int,
    target: int,
    result: NDArray[np.int32],
) -> None:
    """Copy ``words`` to ``result`` with a block shifted before word ``target``.

    If ``target`` is in the block or just after it, the block moves right by the distance of
    ``target`` to its start.
    """
    place = target
    if target > start + length:
        place = target - length
    place = min(place, n_words - length)
    move_block(words, n_words, start, length, place, result)


@inlined_kernel
def _best_shift(
    length: int,
    reference: NDArray[np.int32],
    distance: int,
    n_tried: int,
    scratch: SacrebleuScratch,
) -> tuple[int, int]:
    """Try shifts of ``scratch.now``; return errors that the best saves.

    Also returns the number of shifts tried so far. Writes the best to ``scratch.best``. Ties go to
    the longest block, then to the one that starts first, then to the one that moves furthest to the
    left.
    """
    now, aligned = scratch.now, scratch.aligned
    n_reference = len(reference)
    saved, best_block, best_start, best_target = -FAR, 0, 0, 0
    for start in range(length):
        for place in range(
            max(0, start - FURTHEST_SHIFT), min(n_reference, start + FURTHEST_SHIFT + 1)
        ):
            any_wrong = False
            reference_wrong = False
            most = min(LONGEST_BLOCK, length - start, n_reference - place)
            for block in range(1, most + 1):
                if now[start + block - 1] != reference[place + block - 1]:
                    break
                any_wrong = any_wrong or scratch.wrong[start + block - 1]
                reference_wrong = reference_wrong or scratch.reference_wrong[place + block - 1]
                if not (any_wrong and reference_wrong):
                    continue
                if start <= aligned[place] < start + block:
                    continue
                last_target = -1
                for offset in range(-1, block):
                    if place + offset == -1:
                        target = 0
                    else:
                        target = aligned[place + offset] + 1
                    if target == last_target:
                        continue
                    last_target = target
                    _shift(now, length, start, block, target, scratch.trial)
                    n_tried += 1
                    gain = distance - _distance(scratch.trial, length, reference, scratch)
                    if (gain, block, -start, -target) > (
                        saved,
                        best_block,
                        -best_start,
                        -best_target,
                    ):
                        saved, best_block, best_start, best_target = gain, block, start, target
                        scratch.best[:length] = scratch.trial[:length]
                if n_tried >= MOST_SHIFTS:
                    return saved, n_tried
    return saved, n_tried


@inlined_kernel
def _edits(
    hypothesis: NDArray[np.int32], reference: NDArray[np.int32], scratch: SacrebleuScratch
) -> int:
    """Return the number of shifts and other edits between two sentences."""
    length, n_reference = len(hypothesis), len(reference)
    if n_reference == 0:
        return length
    scratch.now[:length] = hypothesis
    distance = _distance(scratch.now, length, reference, scratch)
    n_taken = 0
    n_tried = 0
    while distance > 0:
        _align(length, n_reference, scratch)
        saved, n_tried = _best_shift(length, reference, distance, n_tried, scratch)
        if n_tried >= MOST_SHIFTS or saved <= 0:
            break
        n_taken += 1
        scratch.now[:length] = scratch.best[:length]
        distance = _distance(scratch.now, length, reference, scratch)
    return n_taken + distance


@kernel
def _count(
    words: ReferenceWords,
    n_references: int,
    hypotheses: EncodedHypotheses,
    edits: NDArray[np.int32],
) -> None:
    """Write each hypothesis' edits to its closest reference to ``edits``, ``[n]``."""
    scratch = _scratch(longest_sentence(hypotheses.offsets), longest_sentence(words.token_offsets))
    for row in range(len(edits)):
        hypothesis = hypotheses.ids[hypotheses.offsets[row] : hypotheses.offsets[row + 1]]
        first_line = hypotheses.sentence_ids[row] * n_references
        edits[row] = FAR
        for line in range(first_line, first_line + n_references):
            reference = words.ids[words.token_offsets[line] : words.token_offsets[line + 1]]
            edits[row] = min(edits[row], _edits(hypothesis, reference, scratch))


def count_edits(
    words: ReferenceWords, n_references: int, hypotheses: EncodedHypotheses
) -> NDArray[np.int32]:
    """Return each hypothesis' edits to its closest reference, int32 ``[n]``."""
    edits = np.empty(len(hypotheses.sentence_ids), dtype=np.int32)
    _count(words, n_references, hypotheses, edits)
    return edits
