"""Find texts whose words do not match: case, tokenization or language differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mosesplug.tuning.text_signs.side import Side, measure_overlap
from mosesplug.tuning.warning_signs import WarningSign

_FEW_LINES = 5
_UNSEGMENTED = "tokenize:zh, ja-mecab, ko-mecab or char"
_MARKS = frozenset((b".", b",", b"?", b"!", b";", b":"))


def compare_case(ours: Side, theirs: Side) -> Iterator[WarningSign]:
    """Yield the sign that texts differ in their case.

    Either many words do, or one text has capital letters and the other has (next to) none.
    """
    total, total_there = ours.bag.total(), theirs.bag.total()
    if not ours.view.is_cased or ours.is_short or theirs.is_short:
        return
    remedy = (
        "Give both in one case (Moses' lowercase.perl or truecase.perl), or set case:false for the"
        " metric"
    )
    lower = {token.decode("utf-8", "replace").lower() for token in theirs.bag}
    other = sum(
        n
        for token, n in ours.bag.items()
        if token not in theirs.bag and token.decode("utf-8", "replace").lower() in lower
    )
    if other > 0.25 * total:
        yield WarningSign(
            "case", f"{other / total:.0%} of words differ in their case alone. {remedy}"
        )
        return
    capital, capital_there = (_count(_has_capital, side.bag) for side in (ours, theirs))
    for one, count, n, two, count_there, n_there in (
        (ours, capital, total, theirs, capital_there, total_there),
        (theirs, capital_there, total_there, ours, capital, total),
    ):
        if count >= max(_FEW_LINES, 0.02 * n) and count_there * 50 * n < count * n_there:
            yield WarningSign(
                "case",
                f"{count / n:.0%} of the words of {one.name} have capital letters, and"
                f" {count_there / n_there:.0%} of those of {two.name}: words do not match."
                f" {remedy}",
            )


def _has_capital(token: bytes) -> bool:
    text = token.decode("utf-8", "replace")
    return text != text.lower()


_TOKENIZE = (
    "Tokenize both as the training text was, or give both untokenized and set tokenize:13a for the"
    " metric"
)


def compare_tokens(ours: Side, theirs: Side) -> Iterator[WarningSign]:
    """Yield the sign that texts of the same sentences are tokenized differently."""
    if ours.is_short or theirs.is_short:
        return
    if (sign := _find_splitting(ours, theirs)) is not None:
        yield sign
    else:
        yield from compare_punctuation(ours, theirs)


def compare_punctuation(ours: Side, theirs: Side) -> Iterator[WarningSign]:
    """Yield the sign that punctuation is attached or missing in one text."""
    if ours.is_short or theirs.is_short:
        return
    detached, detached_there = (sum(side.bag[mark] for mark in _MARKS) for side in (ours, theirs))
    attached, attached_there = (_count_attached(side.words) for side in (ours, theirs))
    for one, own, attached_own, two, other, attached_other in (
        (ours, detached, attached, theirs, detached_there, attached_there),
        (theirs, detached_there, attached_there, ours, detached, attached),
    ):
        if own > attached_own and attached_other > max(4 * other, _FEW_LINES):
            yield WarningSign(
                "punctuation",
                f"punctuation is detached in {one.name} and attached in {two.name}: words do not"
                f" match. {_TOKENIZE}",
            )
            return
    marked, marked_there = (_count(_has_mark, side.bag) for side in (ours, theirs))
    for one, count, two, count_there in (
        (ours, marked, theirs, marked_there),
        (theirs, marked_there, ours, marked),
    ):
        n, n_there = one.bag.total(), two.bag.total()
        if count >= max(10, 0.04 * n) and count_there * 50 * n < count * n_there:
            yield WarningSign(
                "no punctuation",
                f"{one.name} have punctuation and {two.name} have none: each mark is an error."
                " Remove it from both, for error rates by normalize:punct, or from neither",
            )


def _find_splitting(ours: Side, theirs: Side) -> WarningSign | None:
    """Return the sign that the same characters are split into other words."""
    total = total_there = same = letters = letters_there = same_letters = 0
    for mine, other in zip(ours.words, theirs.words, strict=True):
        if not mine or not other:
            continue
        words, words_there = Counter(mine.split()), Counter(other.split())
        total, total_there = total + words.total(), total_there + words_there.total()
        same += (words & words_there).total()
        trigrams, trigrams_there = _count_trigrams(mine), _count_trigrams(other)
        letters, letters_there = letters + trigrams.total(), letters_there + trigrams_there.total()
        same_letters += (trigrams & trigrams_there).total()
    if not (total and letters and total_there and letters_there):
        return None
    lengths = sorted([letters / total, letters_there / total_there])
    if same_letters <= 0.6 * letters or same >= 0.4 * total or lengths[1] <= 1.15 * lengths[0]:
        return None
    return WarningSign(
        "splitting",
        f"{same_letters / letters:.0%} of the sequences of three characters of {ours.name} stand in"
        f" {theirs.name}, but only {same / total:.0%} of the words: words are split differently."
        f" {_TOKENIZE}. For a language without blanks, set {_UNSEGMENTED}",
    )


def _count_trigrams(line: bytes) -> Counter[str]:
    text = "".join(line.decode("utf-8", "replace").split())
    return Counter(text[start : start + 3] for start in range(len(text) - 2))


def find_input(
    ours: Side, references: Sequence[Side], source: Sequence[bytes] | None
) -> Iterator[WarningSign]:
    """Yield the sign that translations resemble the input, not the references."""
    if source is None or ours.is_short:
        return
    of_source = measure_overlap(ours.words, [source])
    of_references = measure_overlap(ours.words, [reference.words for reference in references])
    if of_source > 0.5 and of_source > of_references + 0.2:
        yield WarningSign(
            "resembles input",
            f"{of_source:.0%} of the words of translations stand in the input, and"
            f" {of_references:.0%} in the references: are input and reference swapped?",
        )


def find_unknown_words(ours: Side, references: Sequence[Side]) -> Iterator[WarningSign]:
    """Yield the sign that references are in another language than the translations."""
    total = ours.bag.total()
    if ours.is_short or not total:
        return
    known = set[bytes]().union(*(reference.bag for reference in references))
    strange = sum(n for token, n in ours.bag.items() if token not in known)
    if strange > 0.8 * total:
        is_unsegmented = (
            sum(len(line.decode("utf-8", "replace")) for line in ours.words) > 10 * total
        )
        yield WarningSign(
            "unknown words",
            f"{strange / total:.0%} of the words of translations stand in no reference: are these"
            " references of the input, in the language translated into?"
            + (f" If its words have no blanks between them, set {_UNSEGMENTED}" * is_unsegmented),
        )


def _has_mark(token: bytes) -> bool:
    return token[-1:] in _MARKS


def _count(is_one: Callable[[bytes], object], bag: Counter[bytes]) -> int:
    return sum(count for token, count in bag.items() if is_one(token))


def _count_attached(lines: Sequence[bytes]) -> int:
    """Number of lines whose last token is a word that ends in a punctuation mark."""
    last = (line.split()[-1:] for line in lines)
    return sum(len(token) > 1 and token[-1:] in _MARKS for tokens in last for token in tokens)
