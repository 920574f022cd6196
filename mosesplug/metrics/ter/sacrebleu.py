"""TER as sacrebleu 2 and Tercom compute it: ``TER-SACREBLEU``.

Blocks of up to 10 words of the *hypothesis* move over up to 50 words. A round tries all such
shifts, up to 1,000 per sentence, and applies the one that saves most errors, as long as it saves
any. Statistics and scores equal those of sacrebleu's ``TER`` with ``normalized=False,
no_punct=False`` and ``case_sensitive=True``; words are separated by all whitespace of Unicode.
``moses.py`` lists the differences to Moses' TER.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import inlined_kernel, kernel
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.plain import split_hypotheses, split_words
from mosesplug.metrics.reference_metric import divide
from mosesplug.metrics.ter.shifts import FAR, longest_sentence, move_block
from mosesplug.metrics.tokenizers import Tokenization, separate_words
from mosesplug.metrics.word_metric import WordMetric, WordReferences
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords

# In kernels, sentences are arrays of word ids; words in no reference are negative, and match
# nothing.
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
def _count_edits(
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


@dataclass(frozen=True)
class TerSacrebleu(WordMetric):
    """1 - TER as sacrebleu computes it.

    Statistics: the edits to the closest reference times the number of references, and the number of
    words in all references. Their quotient equals edits divided by average reference length, which
    is not an integer. If all references are empty, the score is 1 for empty output and 0 otherwise.
    """

    name: ClassVar[str] = "TER-SACREBLEU"
    statistics_names: ClassVar[tuple[str, ...]] = ("edits_x_references", "reference_words")

    def _splitting(self) -> Tokenization:
        return Tokenization(self.tokenizer, self.lowercase, separate_words)

    def _fill(
        self, references: WordReferences, hypotheses: EncodedHypotheses, counts: NDArray[np.int32]
    ) -> None:
        n_references = references.n_references
        edits = np.empty(len(counts), dtype=np.int32)
        _count_edits(references.words, n_references, hypotheses, edits)
        lengths = np.diff(references.words.token_offsets[::n_references])
        words = lengths[hypotheses.sentence_ids]
        counts[:, 0], counts[:, 1] = edits * n_references, words

    _plain_allowance: ClassVar[float] = 800_000
    """Pairs of a word of the hypothesis and one of the reference, since that is what takes time."""

    def _count_few(
        self, references: WordReferences, hypotheses: HypothesisRanges
    ) -> NDArray[np.int32] | None:
        """Count with sacrebleu itself, unless compiling and running kernels is faster."""
        lines = references.lines
        lengths = np.array([[len(text) for text in reference] for reference in lines.references])
        sizes = lengths.max(axis=0, initial=0)[hypotheses.sentence_ids]
        # Words have some five bytes, with the blank.
        pairs = float(np.sum((hypotheses.ends - hypotheses.starts) * sizes)) / 25
        if not lines.allowance.take(pairs * references.n_references):
            return None
        from sacrebleu.metrics.lib_ter import translation_edit_rate

        rows = []
        for sentence, text in split_hypotheses(hypotheses):
            hypothesis = _letters(split_words(text, lines.fold))
            split = [_letters(words) for words in lines.split(sentence)]
            edits = min(translation_edit_rate(hypothesis, reference)[0] for reference in split)
            rows.append((edits * len(split), sum(map(len, split))))
        return np.reshape(rows, (len(rows), self.n_statistics)).astype(np.int32)

    def _score(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1.0 - divide(totals[..., 0], totals[..., 1], totals[..., 0] > 0))


def _letters(words: list[bytes]) -> list[str]:
    """Return different strings for different words."""
    return [word.decode("latin-1") for word in words]
