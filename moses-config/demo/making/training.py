"""Phrase table, reordering table and language model of a small corpus, as Moses trains them.

Phrase pairs consistent with the word alignment (Och & Ney 2004), relative frequencies and lexical
weights in both directions (Koehn, Och & Marcu 2003), orientations of words before and after a
phrase (Koehn et al. 2005), and an n-gram model with interpolated absolute discounting.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from language import Sentence

__all__ = ["arpa_lines", "phrase_tables"]

LONGEST_PHRASE = 5
Pair = tuple[str, str]
Span = tuple[int, int, int, int]


def phrase_spans(sentence: Sentence) -> Iterator[Span]:
    """Spans ``(i, j, k, l)`` of phrase pairs: words ``i .. j`` and ``k .. l``, ends included."""
    english_linked = {k for _, k in sentence.links}
    for i in range(len(sentence.tarvian)):
        for j in range(i, min(i + LONGEST_PHRASE, len(sentence.tarvian))):
            inside = [k for s, k in sentence.links if i <= s <= j]
            if not inside:
                continue
            low, high = min(inside), max(inside)
            if any(low <= k <= high and not i <= s <= j for s, k in sentence.links):
                continue
            k = low
            while True:
                end = high
                while end - k < LONGEST_PHRASE:
                    yield i, j, k, end
                    end += 1
                    if end == len(sentence.english) or end in english_linked:
                        break
                k -= 1
                if k < 0 or k in english_linked:
                    break


def orientations(sentence: Sentence, span: Span) -> tuple[int, int]:
    """Backward and forward orientation: 0 monotone, 1 swap, 2 discontinuous."""
    i, j, k, end = span
    links = {(-1, -1), (len(sentence.tarvian), len(sentence.english)), *sentence.links}
    backward = 0 if (i - 1, k - 1) in links else 1 if (j + 1, k - 1) in links else 2
    forward = 0 if (j + 1, end + 1) in links else 1 if (i - 1, end + 1) in links else 2
    return backward, forward


def word_probabilities(corpus: Iterable[Sentence]) -> tuple[dict[Pair, float], dict[Pair, float]]:
    """p(Tarvian | English) and p(English | Tarvian) of linked words, with "" for no word."""
    counts: Counter[Pair] = Counter()
    for sentence in corpus:
        counts.update((sentence.tarvian[s], sentence.english[k]) for s, k in sentence.links)
        linked_s, linked_k = {s for s, _ in sentence.links}, {k for _, k in sentence.links}
        counts.update((t, "") for s, t in enumerate(sentence.tarvian) if s not in linked_s)
        counts.update(("", e) for k, e in enumerate(sentence.english) if k not in linked_k)
    tarvian, english = Counter[str](), Counter[str]()
    for (t, e), count in counts.items():
        tarvian[t] += count
        english[e] += count
    given_english = {pair: count / english[pair[1]] for pair, count in counts.items()}
    given_tarvian = {pair: count / tarvian[pair[0]] for pair, count in counts.items()}
    return given_english, given_tarvian


def lexical_weight(
    words: Sequence[str], others: Sequence[str], links: set[Pair], table: dict[Pair, float]
) -> float:
    """Product over words of the mean probability given the words they are linked to.

    ``links`` and ``table`` hold (word, other).
    """
    weight = 1.0
    for word in words:
        partners = [other for other in others if (word, other) in links] or [""]
        weight *= sum(table.get((word, other), 1e-6) for other in partners) / len(partners)
    return weight


def phrase_tables(corpus: Sequence[Sentence], wanted: set[str]) -> tuple[list[str], list[str]]:
    """Lines of the phrase table and of the reordering table, for wanted Tarvian phrases only."""
    given_english, given_tarvian = word_probabilities(corpus)
    reversed_given = {(e, t): value for (t, e), value in given_tarvian.items()}
    pairs: Counter[Pair] = Counter()
    tarvian, english = Counter[str](), Counter[str]()
    weights: dict[Pair, tuple[float, float]] = {}
    turns: dict[Pair, list[int]] = defaultdict(lambda: [0] * 6)
    alignments: dict[Pair, Counter[str]] = defaultdict(Counter)
    for sentence in corpus:
        for i, j, k, end in phrase_spans(sentence):
            left, right = sentence.tarvian[i : j + 1], sentence.english[k : end + 1]
            pair = (" ".join(left), " ".join(right))
            pairs[pair] += 1
            tarvian[pair[0]] += 1
            english[pair[1]] += 1
            if pair[0] not in wanted:
                continue
            backward, forward = orientations(sentence, (i, j, k, end))
            turns[pair][backward] += 1
            turns[pair][3 + forward] += 1
            points = [(s - i, e - k) for s, e in sentence.links if i <= s <= j]
            alignments[pair][" ".join(f"{s}-{e}" for s, e in points)] += 1
            linked = {
                (sentence.tarvian[s], sentence.english[e]) for s, e in sentence.links if i <= s <= j
            }
            mirrored = {(e, s) for s, e in linked}
            found = (
                lexical_weight(left, right, linked, given_english),
                lexical_weight(right, left, mirrored, reversed_given),
            )
            weights[pair] = max(found, weights.get(pair, found))
    table, reordering = [], []
    for pair in sorted(turns):
        count, (lexical, mirrored_lexical) = pairs[pair], weights[pair]
        scores = (count / english[pair[1]], lexical, count / tarvian[pair[0]], mirrored_lexical)
        turned = [(turn + 0.5) / (count + 1.5) for turn in turns[pair]]
        head = f"{pair[0]} ||| {pair[1]} |||"
        written = " ".join(f"{score:.4g}" for score in scores)
        ((alignment, _),) = alignments[pair].most_common(1)
        table.append(f"{head} {written} ||| {alignment}\n")
        reordering.append(f"{head} {' '.join(f'{turn:.4g}' for turn in turned)}\n")
    return table, reordering


def arpa_lines(text: Iterable[Sequence[str]], order: int, discount: float = 0.7) -> list[str]:
    """An n-gram model in ARPA format, with interpolated absolute discounting.

    N-grams of the highest order that occur once are left out.
    """
    counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order)]
    for words in text:
        padded = ("<s>", *words, "</s>")
        for n in range(1, order + 1):
            counts[n - 1].update(padded[i : i + n] for i in range(len(padded) - n + 1))
    del counts[0][("<s>",)]
    if order > 1:
        once = [gram for gram, count in counts[-1].items() if count == 1]
        for gram in once:
            del counts[-1][gram]
    probability: dict[tuple[str, ...], float] = {(): 1.0 / (len(counts[0]) + 1)}
    backoff: dict[tuple[str, ...], float] = {}
    for level in counts:
        totals, kinds = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for gram, count in level.items():
            totals[gram[:-1]] += count
            kinds[gram[:-1]] += 1
        for context, total in totals.items():
            backoff[context] = discount * kinds[context] / total
        for gram, count in level.items():
            share = (count - discount) / totals[gram[:-1]]
            probability[gram] = share + backoff[gram[:-1]] * probability[gram[1:]]
    probability[("<unk>",)] = backoff[()] * probability.pop(())
    probability[("<s>",)] = 0.0
    return _arpa(probability, backoff, order)


def _arpa(
    probability: dict[tuple[str, ...], float], backoff: dict[tuple[str, ...], float], order: int
) -> list[str]:
    by_order = [sorted(gram for gram in probability if len(gram) == n + 1) for n in range(order)]
    lines = ["\\data\\\n", *(f"ngram {n + 1}={len(grams)}\n" for n, grams in enumerate(by_order))]
    for n, grams in enumerate(by_order, start=1):
        lines.append(f"\n\\{n}-grams:\n")
        for gram in grams:
            value = math.log10(probability[gram]) if probability[gram] else -99.0
            line = f"{value:.5g}\t{' '.join(gram)}"
            if gram in backoff:
                line += f"\t{math.log10(backoff[gram]):.5g}"
            lines.append(line + "\n")
    return [*lines, "\n\\end\\\n"]
