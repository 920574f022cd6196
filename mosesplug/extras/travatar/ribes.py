"""Travatar's measure ``ribes`` (Isozaki et al. 2010).

It measures how well the order of words is kept. Words of the hypothesis are aligned with those of
the reference: a word that occurs once in both, else the only occurrence with the same context,
which grows on both sides until there is one. The score is Kendall's tau of the alignment,
normalized, times powers of the share of aligned words and of the brevity penalty. The corpus score
is the mean of the sentences' scores.
"""

from __future__ import annotations

import math

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.extras.travatar.measure import (
    Average,
    Measure,
    Texts,
    parse_integer,
    parse_real,
    parse_settings,
    refuse_settings,
)
from mosesplug.kernels import kernel

Words = Ints32


@kernel
def _positions(words: Words, word: int, found: Ints) -> int:
    """Write the positions of a word to ``found``; return their number."""
    n = 0
    for place in range(len(words)):
        if words[place] == word:
            found[n] = place
            n += 1
    return n


@kernel
def _keep_context(words: Words, step: int, wanted: int, found: Ints, n: int) -> int:
    """Keep the positions with the wanted word at ``step``; return how many are left."""
    kept = 0
    for place in found[:n]:
        if 0 <= place + step < len(words) and words[place + step] == wanted:
            found[kept] = place
            kept += 1
    return kept


@kernel
def _align(reference: Words, hypothesis: Words, aligned: Ints) -> int:
    """Write the aligned words' reference positions, in order; return their number."""
    n_ref, n_hyp, n = len(reference), len(hypothesis), 0
    left_ref, right_ref = np.empty(n_ref, np.int64), np.empty(n_ref, np.int64)
    left_hyp, right_hyp = np.empty(n_hyp, np.int64), np.empty(n_hyp, np.int64)
    for place in range(n_hyp):
        word = hypothesis[place]
        n_left_ref = _positions(reference, word, left_ref)
        if n_left_ref == 0:
            continue
        n_left_hyp = _positions(hypothesis, word, left_hyp)
        if n_left_ref == 1 and n_left_hyp == 1:
            aligned[n] = left_ref[0]
            n += 1
            continue
        right_ref[:n_left_ref], n_right_ref = left_ref[:n_left_ref], n_left_ref
        right_hyp[:n_left_hyp], n_right_hyp = left_hyp[:n_left_hyp], n_left_hyp
        for step in range(1, max(place, n_hyp - place)):
            if step <= place:
                wanted = hypothesis[place - step]
                n_left_ref = _keep_context(reference, -step, wanted, left_ref, n_left_ref)
                n_left_hyp = _keep_context(hypothesis, -step, wanted, left_hyp, n_left_hyp)
                if n_left_ref == 1 and n_left_hyp == 1:
                    aligned[n] = left_ref[0]
                    n += 1
                    break
            if place + step < n_hyp:
                wanted = hypothesis[place + step]
                n_right_ref = _keep_context(reference, step, wanted, right_ref, n_right_ref)
                n_right_hyp = _keep_context(hypothesis, step, wanted, right_hyp, n_right_hyp)
                if n_right_ref == 1 and n_right_hyp == 1:
                    aligned[n] = right_ref[0]
                    n += 1
                    break
    return n


@kernel
def _score(reference: Words, hypothesis: Words, alpha: float, beta: float) -> float:
    """Return the score of one hypothesis."""
    if len(reference) == 0:
        return 1.0 if len(hypothesis) == 0 else 0.0
    if len(hypothesis) == 0:
        return 0.0
    brevity = min(1.0, math.exp(1.0 - len(reference) / len(hypothesis)))
    aligned = np.empty(len(hypothesis), np.int64)
    n = _align(reference, hypothesis, aligned)
    if n == 1 and len(reference) == 1:
        return float((1.0 / len(hypothesis)) ** alpha * brevity**beta)
    if n < 2:
        return 0.0
    ascending = 0
    for i in range(n - 1):
        for j in range(i + 1, n):
            if aligned[i] < aligned[j]:
                ascending += 1
    tau = ascending / (n * (n - 1) // 2)
    return float(tau * (n / len(hypothesis)) ** alpha * brevity**beta)


@kernel
def _ribes_scores(
    references: Words,
    reference_offsets: Ints,
    hypotheses: Words,
    hypothesis_offsets: Ints,
    sentence_ids: Ints,
    alpha: float,
    beta: float,
    scores: Floats,
) -> None:
    """Write the score of each hypothesis.

    Args:
        references: int32; words of all references, equal words with equal numbers.
        reference_offsets: int64 ``[n_references + 1]``.
        hypotheses: int32; words of all hypotheses, with the same numbers.
        hypothesis_offsets: int64 ``[n + 1]``.
        sentence_ids: int64 ``[n]``; the reference of each hypothesis.
        scores: float64 ``[n]``; written.
    """
    for row in range(len(sentence_ids)):
        sentence = sentence_ids[row]
        scores[row] = _score(
            references[reference_offsets[sentence] : reference_offsets[sentence + 1]],
            hypotheses[hypothesis_offsets[row] : hypothesis_offsets[row + 1]],
            alpha,
            beta,
        )


def ribes(settings: str) -> Measure:
    """Return RIBES with settings such as ``alpha=0.25,beta=0.1``."""
    parsed = parse_settings("ribes", settings)
    refuse_settings("ribes", parsed, ("alpha", "beta", "factor"))
    alpha = parse_real(parsed, "alpha", 0.25)
    beta = parse_real(parsed, "beta", 0.1)
    factor = parse_integer(parsed, "factor", 0, 0)

    def count(texts: Texts, threads: int) -> Floats:
        texts = texts.factor(factor)
        numbers: dict[bytes, int] = {}
        references, hypotheses = (
            [[numbers.setdefault(word, len(numbers)) for word in text.split()] for text in side]
            for side in (texts.references, texts.hypotheses)
        )
        scores = np.empty(len(hypotheses))
        _ribes_scores(
            *_flatten(references), *_flatten(hypotheses), texts.sentence_ids, alpha, beta, scores
        )
        return np.column_stack([scores, np.ones(len(scores))])

    return Average(f"ribes:{settings}" if settings else "ribes", count)


def _flatten(sentences: list[list[int]]) -> tuple[Words, Ints]:
    """Return the words of all sentences, and where each sentence begins."""
    offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    words = np.fromiter((w for s in sentences for w in s), dtype=np.int32, count=int(offsets[-1]))
    return words, offsets
