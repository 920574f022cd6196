"""TER, translation edit rate (Snover et al. 2006), as Moses computes it.

TER is the minimum number of insertions, deletions, substitutions and block shifts that turn one
sentence into the other, divided by the average number of reference words. The exact minimum is
too expensive, so programs search greedily for shifts, with different limits and results. Moses'
search (its ``TER`` scorer is tercpp):

- It shifts blocks of the *reference*, not of the hypothesis.
- A block has up to 10 words and moves over up to 25 words. A round tries only the first 10 shifts,
  in the order of the first word of the block.
- A round applies the shift that saves most errors, longer blocks first, even if it saves only its
  own cost. The search ends when no shift saves its cost.
- The edit distance ignores paths with over 10 errors more than the best one.

``TER-SACREBLEU`` (``sacrebleu.py``) shifts blocks of the hypothesis over up to 50 words, and tries
up to 1,000 shifts per sentence. It usually finds fewer errors, so its scores are slightly higher.

Statistics of a hypothesis, in Moses' order and units: 100 times the errors to the closest
reference, 100 times the average length of the references, and 100 times their quotient, which is
for information only. Each is truncated to an integer as in Moses (average lengths lose up to 0.01
words). The score of their sum is 1 minus the first divided by the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import inlined_kernel, kernel
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.ter.shifts import FAR, longest_sentence, move_block
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords

# In kernels, ``moved`` is the sentence whose blocks are shifted (a reference), and ``fixed`` the
# other one (the hypothesis): arrays of word ids. Words in no reference are negative and match
# nothing.
LONGEST_BLOCK = 10
FURTHEST_SHIFT = 25
MOST_SHIFTS = 10
BEAM = 10

MATCH, SUBSTITUTION, ONLY_MOVED, ONLY_FIXED = 0, 1, 2, 3
"""Steps of an alignment: words of both sentences, or of one."""


class MosesScratch(NamedTuple):
    """Working memory for two sentences of limited length.

    Attributes:
        costs: int32 ``[fixed + 1, moved + 1]``; cost of the cheapest path to each cell.
        steps: uint8 of the same shape; last step of the cheapest path to each cell.
        moved_wrong: bool ``[moved]``; words without a match in the alignment.
        fixed_wrong: bool ``[fixed]``; words without a match in the alignment.
        aligned: int32 ``[fixed]``; aligned positions in ``moved``.
        runs: int32 ``[fixed]``; number of matching words from each position on.
        shifts: int32 ``[MOST_SHIFTS, 3]``; first word, length and new position of blocks.
        now: int32 ``[moved]``; the sentence after the shifts so far.
        trial: int32 ``[moved]``; the sentence after one more shift.
        best: int32 ``[moved]``; the best trial of a round.
    """

    costs: NDArray[np.int32]
    steps: NDArray[np.uint8]
    moved_wrong: NDArray[np.bool_]
    fixed_wrong: NDArray[np.bool_]
    aligned: NDArray[np.int32]
    runs: NDArray[np.int32]
    shifts: NDArray[np.int32]
    now: NDArray[np.int32]
    trial: NDArray[np.int32]
    best: NDArray[np.int32]


@kernel
def _scratch(most_moved: int, most_fixed: int) -> MosesScratch:
    """Allocate working memory for sentences of up to that many words."""
    return MosesScratch(
        np.empty((most_fixed + 1, most_moved + 1), dtype=np.int32),
        np.empty((most_fixed + 1, most_moved + 1), dtype=np.uint8),
        np.empty(most_moved, dtype=np.bool_),
        np.empty(most_fixed, dtype=np.bool_),
        np.empty(most_fixed, dtype=np.int32),
        np.empty(most_fixed, dtype=np.int32),
        np.empty((MOST_SHIFTS, 3), dtype=np.int32),
        np.empty(most_moved, dtype=np.int32),
        np.empty(most_moved, dtype=np.int32),
        np.empty(most_moved, dtype=np.int32),
    )


@kernel
def _distance(
    moved: NDArray[np.int32], n_moved: int, fixed: NDArray[np.int32], scratch: MosesScratch
) -> int:
    """Return the edit distance of ``moved[:n_moved]`` and ``fixed`` within a beam.

    Fills ``costs`` and ``steps``. Among equal costs, a step in both sentences is preferred, then
    one in ``moved``, then one in ``fixed``. Before the last word of ``moved``, the beam drops cells
    that cost over ``BEAM`` more than the best cell just reached by a step in both sentences.
    """
    costs, steps = scratch.costs, scratch.steps
    n_fixed = len(fixed)
    limit = FAR - 1
    costs[0, 0] = 0
    for column in range(n_moved + 1):
        if column > 0:
            costs[0, column] = costs[0, column - 1] + 1 if costs[0, column - 1] <= limit else FAR
            steps[0, column] = ONLY_MOVED
            cheapest = FAR
            for row in range(1, n_fixed + 1):
                cost, step = FAR, MATCH
                before = costs[row - 1, column - 1]
                if before <= limit:
                    step = MATCH if fixed[row - 1] == moved[column - 1] else SUBSTITUTION
                    cost = before + step
                    cheapest = min(cheapest, cost)
                before = costs[row, column - 1]
                if before <= limit and before + 1 < cost:
                    cost, step = before + 1, ONLY_MOVED
                costs[row, column] = cost
                steps[row, column] = step
            beaten = cheapest < FAR and column < n_moved
            limit = cheapest + BEAM if beaten else FAR - 1
        for row in range(1, n_fixed + 1):
            before = costs[row - 1, column]
            if before <= limit and (column == 0 or before + 1 < costs[row, column]):
                costs[row, column] = before + 1
                steps[row, column] = ONLY_FIXED
    return int(costs[n_fixed, n_moved])


@kernel
def _align(n_moved: int, n_fixed: int, scratch: MosesScratch) -> None:
    """Follow the steps back; write wrong words and the alignment of ``fixed``.

    An inserted word of ``fixed`` is aligned to the next word of ``moved``.
    """
    row, column = n_fixed, n_moved
    while row > 0 or column > 0:
        step = scratch.steps[row, column]
        if step == ONLY_MOVED:
            column -= 1
            scratch.moved_wrong[column] = True
        elif step == ONLY_FIXED:
            row -= 1
            scratch.fixed_wrong[row] = True
            scratch.aligned[row] = column
        else:
            row -= 1
            column -= 1
            scratch.moved_wrong[column] = step == SUBSTITUTION
            scratch.fixed_wrong[row] = step == SUBSTITUTION
            scratch.aligned[row] = column


@kernel
def _within_reach(start: int, place: int, slack: int) -> bool:
    """Return whether a block may move from ``start`` to ``place``.

    To the left, it may move ``slack`` words further than to the right.
    """
    return place != start and place - start <= FURTHEST_SHIFT >= start - place - slack


@inlined_kernel
def _find_shifts(
    moved: NDArray[np.int32], n_moved: int, fixed: NDArray[np.int32], scratch: MosesScratch
) -> int:
    """Write the first candidate shifts to ``scratch.shifts``; return their number.

    A candidate is a block that contains a wrong word and also occurs in ``fixed``, where some word
    is wrong, too. It moves next to the position to which that occurrence is aligned.
    """
    aligned, runs, shifts = scratch.aligned, scratch.runs, scratch.shifts
    n_fixed = len(fixed)
    n_shifts = 0
    for start in range(n_moved):
        anywhere = False
        for place in range(n_fixed):
            run = 0
            longest = min(LONGEST_BLOCK, n_moved - start, n_fixed - place)
            while run < longest and fixed[place + run] == moved[start + run]:
                run += 1
            runs[place] = run
            if run > 0 and _within_reach(start, aligned[place], 1):
                anywhere = True
        if not anywhere:
            continue
        any_wrong = False
        for length in range(1, min(LONGEST_BLOCK, n_moved - start) + 1):
            end = start + length - 1
            any_wrong = any_wrong or scratch.moved_wrong[end]
            if not any_wrong:
                # A longer matching block may still contain a wrong word.
                if not np.any(runs[:n_fixed] >= length):
                    break
                continue
            useful = False
            for place in range(n_fixed):
                target = aligned[place]
                if runs[place] < length or start <= target <= end:
                    continue
                if not _within_reach(start, target, 0):
                    continue
                useful = True
                if not np.any(scratch.fixed_wrong[place : place + length]):
                    continue
                for offset in range(-1, length):
                    if offset == -1 and place == 0:
                        new_place = -1
                    else:
                        new_place = aligned[place + offset]
                        if new_place == start or (offset != 0 and new_place == target):
                            continue
                    shifts[n_shifts, 0] = start
                    shifts[n_shifts, 1] = length
                    shifts[n_shifts, 2] = new_place
                    n_shifts += 1
                    if n_shifts == MOST_SHIFTS:
                        return n_shifts
            if not useful:
                break
    return n_shifts


@kernel
def _shift(
    moved: NDArray[np.int32],
    n_moved: int,
    start: int,
    length: int,
    new_place: int,
    result: NDArray[np.int32],
) -> None:
    """Copy ``moved`` to ``result`` with one block shifted.

    ``new_place`` is a word of ``moved``: the block moves before that word if it is to the left,
    after it if it is to the right, and to the front for -1. If the word is in the block, the block
    moves right by ``new_place - start`` words.
    """
    place = min(new_place, n_moved - 1)
    if place >= start + length:
        place -= length - 1
    place = max(0, min(place, n_moved - length))
    move_block(moved, n_moved, start, length, place, result)


@inlined_kernel
def _best_shift(
    n_moved: int, fixed: NDArray[np.int32], distance: int, n_shifts: int, scratch: MosesScratch
) -> int:
    """Try shifts of ``scratch.now``; return the smallest distance, or -1.

    Longer blocks are tried first. Writes the sentence after the best shift to ``scratch.best``;
    returns -1 if no shift saves its cost.
    """
    least = -1
    # The distance to beat includes the cost of the shift; the first shift may equal it.
    errors = distance
    for length in range(LONGEST_BLOCK, 0, -1):
        for shift in range(n_shifts):
            if scratch.shifts[shift, 1] != length:
                continue
            # A shift of n words repairs at most 2 n errors.
            saved = distance - errors
            if saved > 2 * length or (least >= 0 and saved == 2 * length):
                return least
            start, new_place = scratch.shifts[shift, 0], scratch.shifts[shift, 2]
            _shift(scratch.now, n_moved, start, length, new_place, scratch.trial)
            trial = _distance(scratch.trial, n_moved, fixed, scratch)
            if trial + 1 < errors or (least < 0 and trial + 1 == errors):
                least = trial
                errors = trial + 1
                scratch.best[:n_moved] = scratch.trial[:n_moved]
    return least


@inlined_kernel
def _edits(moved: NDArray[np.int32], fixed: NDArray[np.int32], scratch: MosesScratch) -> int:
    """Return the number of shifts and other edits between two sentences."""
    n_moved, n_fixed = len(moved), len(fixed)
    scratch.now[:n_moved] = moved
    distance = _distance(scratch.now, n_moved, fixed, scratch)
    n_taken = 0
    while distance > 0:
        _align(n_moved, n_fixed, scratch)
        n_shifts = _find_shifts(scratch.now, n_moved, fixed, scratch)
        after = _best_shift(n_moved, fixed, distance, n_shifts, scratch)
        if after < 0:
            break
        n_taken += 1
        scratch.now[:n_moved] = scratch.best[:n_moved]
        distance = _distance(scratch.now, n_moved, fixed, scratch)
    return n_taken + distance


@kernel
def _count_edits(
    words: ReferenceWords,
    n_references: int,
    hypotheses: EncodedHypotheses,
    edits: NDArray[np.int32],
) -> None:
    """Write each hypothesis' edits to its closest reference to ``edits``, ``[n]``."""
    scratch = _scratch(longest_sentence(words.token_offsets), longest_sentence(hypotheses.offsets))
    for row in range(len(edits)):
        hypothesis = hypotheses.ids[hypotheses.offsets[row] : hypotheses.offsets[row + 1]]
        first_line = hypotheses.sentence_ids[row] * n_references
        edits[row] = FAR
        for line in range(first_line, first_line + n_references):
            reference = words.ids[words.token_offsets[line] : words.token_offsets[line + 1]]
            edits[row] = min(edits[row], _edits(reference, hypothesis, scratch))


def _as_moses_writes(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """Round ``values`` to six significant digits, then truncate them to integers."""
    distinct, places = np.unique(values, return_inverse=True)
    cut = np.array([int(float(f"{value:.6g}")) for value in distinct.tolist()], dtype=np.int32)
    return cut[places.reshape(values.shape)]


@dataclass(frozen=True)
class Ter(WordMetric):
    """1 - TER as Moses computes it; the module lists differences to sacrebleu."""

    name: ClassVar[str] = "TER"
    statistics_names: ClassVar[tuple[str, ...]] = (
        "edits_x100",
        "reference_length_x100",
        "rate_x100",
    )

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        n_references = references.n_references
        counted = np.empty(len(counts), dtype=np.int32)
        _count_edits(references.words, n_references, hypotheses, counted)
        edits = counted.astype(np.float64)
        ends = references.words.token_offsets[::n_references]
        average = np.diff(ends)[hypotheses.sentence_ids] / n_references
        rates = divide(edits, average, edits > 0)
        counts[:] = _as_moses_writes(np.stack([edits, average, rates], axis=1) * 100.0)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        # Without words in the references, the rate is that of one hypothesis: 1 for any edits.
        return np.asarray(1.0 - divide(totals[..., 0], totals[..., 1], totals[..., 0] > 0))
