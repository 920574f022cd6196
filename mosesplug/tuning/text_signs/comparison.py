"""Find texts that are not what they seem, by comparing them with each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from formats.errors import quote
from mosesplug.tuning.text_signs.side import Side, measure_overlap
from mosesplug.tuning.text_signs.traits import TRAITS, Trait, find_escapes, has_raw_characters
from mosesplug.tuning.text_signs.view import LITERAL, TextView
from mosesplug.tuning.text_signs.words import (
    compare_case,
    compare_punctuation,
    compare_tokens,
    find_input,
    find_unknown_words,
)
from mosesplug.tuning.warning_signs import WarningSign

Rewriting = Literal["lists", "files"]
"""How a user changes translations: ``--transform`` of n-best lists, or another file."""

_MOST_LINES = 2000
"""Lines that are compared, evenly spread over the text."""

_FEW_LINES = 5
_LONG_LINE = 4
_MANY_EMPTY = 0.25
"""Share of empty lines that is no longer silence here and there."""

_OF_FEW_WORDS = frozenset(("no punctuation", "blanks", "invisible characters", "unknown marks"))
"""Signs that do not explain why most words of a text stand in no other."""


def find_source_signs(
    source: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    outputs: Sequence[bytes] | None = None,
) -> list[WarningSign]:
    """Find references that are the input, or empty.

    A reference is the input if nine of ten longer lines are the same.

    Args:
        references: ``[reference][line]``.
        outputs: the decoder's translations, if known. If they resemble the input, too, source and
            target language are the same.
    """
    # With translations, these tell more of empty references.
    signs = _find_empty_lines(references, source) if outputs is None else []
    if outputs is not None and measure_overlap(outputs, [source]) > 0.5:
        return signs
    long = [i for i, line in enumerate(source) if len(line.split()) >= _LONG_LINE]
    if len(long) < _FEW_LINES:
        return signs
    for number, lines in enumerate(references):
        same = sum(source[i].split() == lines[i].split() for i in long if i < len(lines))
        if same >= 0.9 * len(long):
            signs.append(
                WarningSign(
                    "reference is input",
                    f"{same} of {len(long)} longer lines of reference {number} are those of the"
                    " input: is it the translation?",
                )
            )
            break
    return signs


def find_text_signs(
    references: Sequence[Sequence[bytes]],
    outputs: Sequence[bytes],
    views: Iterable[TextView] = (LITERAL,),
    *,
    source: Sequence[bytes] | None = None,
    rewriting: Rewriting = "files",
) -> list[WarningSign]:
    """Find differences of translations and references in how they are written.

    Args:
        references: ``[reference][line]``.
        views: what the metrics see; a sign is found if it changes what one of them sees.
    """
    if not references:
        return []
    places = choose_lines(len(outputs))
    chosen = [[lines[i] for i in places] for lines in references]
    ours = [outputs[i] for i in places]
    signs = _find_empty_lines(references, outputs) + _find_empty_outputs(references, outputs)
    strange: list[WarningSign] = []
    for view in views:
        theirs = [Side(name, lines, view) for name, lines in _name_references(chosen)]
        mine = Side("translations", ours, view)
        if not view.compares_characters:
            inputs = None if source is None else view.tokenize([source[i] for i in places])
            signs += find_input(mine, theirs, inputs)
            strange += find_unknown_words(mine, theirs)
        signs += _compare(mine, theirs, rewriting)
    if all(sign.name in _OF_FEW_WORDS for sign in signs):
        signs += strange
    firsts = {sign.name: sign for sign in reversed(signs)}
    return [sign for sign in signs if firsts[sign.name] is sign]


def choose_lines(n: int) -> list[int]:
    """Return which of ``n`` lines are compared: all, or some that are spread evenly."""
    return sorted({*np.linspace(0, n - 1, min(n, _MOST_LINES)).astype(np.int64).tolist()})


def _name_references(
    references: Sequence[Sequence[bytes]],
) -> Iterator[tuple[str, Sequence[bytes]]]:
    for number, lines in enumerate(references):
        yield ("references" if len(references) == 1 else f"lines of reference {number}"), lines


def compare_styles(
    one: Sequence[bytes],
    one_name: str,
    other: Sequence[bytes],
    other_name: str,
    views: Iterable[TextView] = (LITERAL,),
    *,
    same_language: bool = True,
) -> list[WarningSign]:
    """Find differences in how two texts of other sentences are written.

    Args:
        views: as for ``find_text_signs``.
        same_language: whether case and punctuation can be compared, too.
    """
    signs: list[WarningSign] = []
    for view in views:
        sides = [
            Side(name, [lines[i] for i in choose_lines(len(lines))], view)
            for name, lines in ((one_name, one), (other_name, other))
        ]
        signs += _compare_marks(sides[0], sides[1], "files")
        if same_language:
            signs += compare_case(*sides)
            signs += compare_punctuation(*sides)
    return list({sign.name: sign for sign in reversed(signs)}.values())[::-1]


def _compare_marks(ours: Side, theirs: Side, rewriting: Rewriting) -> Iterator[WarningSign]:
    """Yield what one side has and the other lacks, in any language."""
    for one, other in ((ours, theirs), (theirs, ours)):
        how = rewriting if one is ours else "files"
        for trait in TRAITS:
            if trait.matters(one.view) and (sign := _find_trait(trait, one, other, how)):
                yield sign
        yield from _compare_escapes(one, other)
        yield from _compare_encodings(one, other)


def _compare(ours: Side, references: Sequence[Side], rewriting: Rewriting) -> Iterator[WarningSign]:
    """Yield signs of translations beside each reference."""
    for theirs in references:
        yield from _compare_marks(ours, theirs, rewriting)
        yield from compare_case(ours, theirs)
        if ours.view.blanks != "ignored":
            yield from compare_tokens(ours, theirs)


def _is_one_sided(count: int, n: int, other: int, n_other: int) -> bool:
    """Return whether some lines have what lines of the other text lack."""
    share = count / max(n, 1)
    is_common = (count >= 3 and share >= 0.01) or share >= 0.2
    return is_common and 5 * other / max(n_other, 1) < share


def _find_trait(trait: Trait, one: Side, other: Side, how: Rewriting) -> WarningSign | None:
    examples = [example for line in one.texts if (example := trait.find(line))]
    if not examples:
        return None
    known = sum(bool(trait.find(line)) for line in other.texts)
    filled, filled_there = (sum(map(bool, side.lines)) for side in (one, other))
    if not _is_one_sided(len(examples), filled, known, filled_there):
        return None
    command = f'{{--transform "{trait.command}"}}' if how == "lists" else trait.command
    there = f"{known} of {filled_there}" if known else "none"
    return WarningSign(
        trait.name,
        f"{len(examples)} of {filled} {one.name} have {trait.what}, as {quote(examples[0])}, and"
        f" {other.name} have {there}: {trait.effect}."
        f" {trait.remedy.replace('{command}', command)}",
    )


def _compare_escapes(one: Side, other: Side) -> Iterator[WarningSign]:
    examples = [escapes for line in one.texts if (escapes := find_escapes(line, one.view))]
    known = sum(bool(find_escapes(line, one.view)) for line in other.texts)
    n, n_other = len(one.texts), len(other.texts)
    if not examples or not _is_one_sided(len(examples), n, known, n_other):
        return
    there = f"{known} of {n_other}" if known else "none"
    if any(map(has_raw_characters, other.texts)):
        effect = (
            f"{there}: they do not match. Escape both with Moses' escape-special-chars.perl, or"
            " neither (deescape-special-chars.perl)"
        )
    elif _are_foreign(examples, n):
        effect = (
            f"{there}, nor such characters: they match nothing. Undo them"
            " (deescape-special-chars.perl of Moses), or remove what is no text"
        )
    else:
        return
    yield WarningSign(
        "escapes",
        f"{len(examples)} of {n} {one.name} have escaped characters, as {quote(examples[0])}, and"
        f" {other.name} have {effect}",
    )


def _are_foreign(examples: Sequence[str], n: int) -> bool:
    """Return whether escapes are too many to be words that the other text just lacks."""
    # One side may well write "cannot" where the other has an apostrophe.
    odd = sum(example != "&apos;" for example in examples)
    return odd >= 2 and odd >= 0.2 * n


def _compare_encodings(one: Side, other: Side) -> Iterator[WarningSign]:
    wrong = [place for place, line in enumerate(one.lines) if not _is_utf8(line)]
    if wrong and all(map(_is_utf8, other.lines)):
        yield WarningSign(
            "encoding",
            f"{len(wrong)} of {len(one.lines)} {one.name} are not in UTF-8, and {other.name} are:"
            " other letters than those of ASCII do not match. Convert them:"
            " iconv -f latin1 -t utf-8, or from the encoding that the file has",
        )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _find_empty_lines(
    references: Sequence[Sequence[bytes]], others: Sequence[bytes]
) -> list[WarningSign]:
    """Find references that are empty where the other text is not."""
    filled = [place for place, line in enumerate(others) if line.strip()]
    signs = []
    for number, lines in enumerate(references):
        empty = sum(place < len(lines) and not lines[place].strip() for place in filled)
        if filled and empty == len(filled):
            what = f"all lines of reference {number} are empty"
        elif filled and empty >= _MANY_EMPTY * len(filled):
            what = f"{empty} of {len(filled)} lines of reference {number} are empty"
        else:
            continue
        signs.append(
            WarningSign(
                "empty references",
                f"{what}: translations of these sentences match nothing. Give complete references,"
                " or leave these sentences out",
            )
        )
    return signs


def _find_empty_outputs(
    references: Sequence[Sequence[bytes]], outputs: Sequence[bytes]
) -> list[WarningSign]:
    """Find translations that are empty where a reference is not."""
    filled = [
        place
        for place in range(len(outputs))
        if any(reference[place].strip() for reference in references)
    ]
    empty = sum(not outputs[place].strip() for place in filled)
    if not empty or empty < _MANY_EMPTY * len(filled):
        return []
    return [
        WarningSign(
            "empty translations",
            f"{empty} of {len(filled)} translations are empty. See whether the decoder failed on"
            " these sentences",
        )
    ]
