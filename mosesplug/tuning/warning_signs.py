"""Signs that a tuning run goes wrong although nothing failed.

The functions are pure. Each sign has a name and a message with observation and remedy. They come
from public reports: weights of 1 and 1e-39 (a component that nothing depends on takes all of the
norm), or zeros with a score of 0 (lists of empty hypotheses), which other tools write into
``moses.ini`` without a warning. The thresholds are far from the values of sound systems.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.tuning_set import TuningSet

__all__ = [
    "WarningSign",
    "find_list_signs",
    "find_score_signs",
    "find_source_signs",
    "find_text_signs",
    "find_weight_signs",
]

NOTHING = 1e-30
"""Smaller weights count as 0: decoders compute in float32, where their products vanish."""

ALMOST_ALL = 0.999
"""Share of the L1 norm that no single weight of a sound system has."""

_ENTITY = re.compile(rb"&(?:apos|quot|amp|lt|gt|#91|#93|#124);")
_RAW = re.compile(rb"['\"&<>\[\]|]")
_MARKS = frozenset((b".", b",", b"?", b"!", b";", b":"))
_FEW_TOKENS = 100
_FEW_LINES = 5
_LONG_LINE = 4


@dataclass(frozen=True)
class WarningSign:
    """A sign that something is wrong.

    Attributes:
        name: the name of the sign.
        message: observation and remedy, on one line.
        is_fatal: whether the weights cannot be used at all.
    """

    name: str
    message: str
    is_fatal: bool = False


def find_weight_signs(
    weights: NDArray[np.float64], names: Sequence[str], n_dense: int | None = None
) -> list[WarningSign]:
    """Find weights that cannot be a result.

    Args:
        weights: float64 ``[n_features]``, of any scale.
        names: the names of the features.
        n_dense: how many of them, the first, are dense; None for all.
    """
    finite = np.isfinite(weights)
    if not finite.all():
        name = names[int(np.flatnonzero(~finite)[0])]
        return [
            WarningSign("not finite", f"the weight of {name} is not a finite number", is_fatal=True)
        ]
    sizes = np.abs(weights)
    if not len(sizes) or sizes[:n_dense].max(initial=0.0) < NOTHING:
        return [
            WarningSign("no weights", "all weights of dense features are 0 or next to it", True)
        ]
    largest = int(sizes.argmax())
    if len(sizes) > 1 and sizes[largest] > ALMOST_ALL * sizes.sum():
        return [
            WarningSign(
                "one weight",
                f"the weight of {names[largest]} is more than {ALMOST_ALL:.1%} of all: other"
                " features hardly count. See whether that feature varies in the lists, or tune"
                " again with other starting weights",
            )
        ]
    return []


def find_score_signs(scores: Sequence[float], max_drop: float) -> list[WarningSign]:
    """Find scores of the decoder's 1-best that are 0, or have become worse.

    Args:
        scores: the scores of all iterations so far.
        max_drop: how far the newest may be below the first.
    """
    found = []
    if scores and scores[0] == 0:
        found.append(
            WarningSign(
                "no score",
                "the score of the first translations is 0: they share next to nothing with the"
                " references. See whether the decoder wrote any, and the references are of the"
                " input",
            )
        )
    if len(scores) > 1 and scores[0] - scores[-1] > max_drop:
        found.append(
            WarningSign(
                "worse",
                f"iteration {len(scores)} scores {scores[-1]:.4f}, which is more than {max_drop:g}"
                f" below the {scores[0]:.4f} of the first. The weights have become worse: a lower"
                " learning rate, longer lists or another algorithm may help",
            )
        )
    return found


def find_list_signs(*parts: TuningSet) -> list[WarningSign]:
    """Find n-best lists from which little or nothing can be learned.

    Args:
        parts: distinct hypotheses of each sentence; with shards, one part per shard.
    """
    widths = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offsets) for part in parts)])
    widths = widths[widths > 0]
    if not len(widths):
        return []
    found = []
    single = int((widths == 1).sum())
    if 2 * single >= len(widths):
        found.append(
            WarningSign(
                "no diversity",
                f"{single} of {len(widths)} sentences have one distinct hypothesis, from which"
                " nothing can be learned. Ask for longer lists, and see whether the decoder has"
                " more than one translation for a phrase",
            )
        )
    every = zip(*map(_find_varying, parts), strict=True)
    names = [
        name for name, varies in zip(parts[0].space.labels, every, strict=False) if not any(varies)
    ]
    if names and single < len(widths):
        several = len(names) > 1
        found.append(
            WarningSign(
                "constant feature",
                f"{', '.join(names)} {'have' if several else 'has'} the same value in all"
                " hypotheses of each sentence and cannot be tuned. Remove the"
                f" {'features' if several else 'feature'}, or set tuneable=false in moses.ini",
            )
        )
    return found


def _find_varying(lists: TuningSet) -> Iterator[bool]:
    """Yield whether each dense feature has two values in any sentence."""
    inner = np.ones(max(lists.n_hyps - 1, 0), dtype=np.bool_)
    bounds = lists.offsets[1:-1]
    inner[bounds[(bounds > 0) & (bounds < lists.n_hyps)] - 1] = False
    for column in lists.dense.T:
        yield bool((np.diff(column) != 0)[inner].any())


def find_source_signs(
    source: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    outputs: Sequence[bytes] | None = None,
) -> list[WarningSign]:
    """Find a reference that is the input: nine of ten longer lines are the same.

    Args:
        source: lines of the input.
        references: ``[reference][line]``.
        outputs: the decoder's translations, if known. If they resemble the input, too, source and
            target language are the same.
    """
    if outputs is not None and _measure_overlap(outputs, [source]) > 0.5:
        return []
    long = [i for i, line in enumerate(source) if len(line.split()) >= _LONG_LINE]
    if len(long) < _FEW_LINES:
        return []
    for number, lines in enumerate(references):
        same = sum(source[i].split() == lines[i].split() for i in long if i < len(lines))
        if same >= 0.9 * len(long):
            return [
                WarningSign(
                    "reference is input",
                    f"{same} of {len(long)} longer lines of reference {number} are those of the"
                    " input: is it the translation?",
                )
            ]
    return []


def find_text_signs(
    source: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    outputs: Sequence[bytes],
    *,
    cased: bool = True,
) -> list[WarningSign]:
    """Find references in another language or tokenization than the translations.

    Args:
        source: lines of the input.
        references: ``[reference][line]``.
        outputs: the decoder's translations, line by line.
        cased: whether the metric distinguishes capital letters.
    """
    tokens = Counter(token for line in outputs for token in line.split())
    if tokens.total() < _FEW_TOKENS:
        return []
    every = [line for lines in references for line in lines]
    known = Counter(token for line in every for token in line.split())
    found = []
    of_source = _measure_overlap(outputs, [source])
    of_references = _measure_overlap(outputs, references)
    if of_source > 0.5 and of_source > of_references + 0.2:
        found.append(
            WarningSign(
                "resembles input",
                f"{of_source:.0%} of the words of translations stand in the input, and"
                f" {of_references:.0%} in the references: are input and reference swapped?",
            )
        )
    for name, seen in _compare_spellings(tokens, known, every, outputs, cased):
        found.append(
            WarningSign(
                name,
                f"{seen}: tokenize the references as the training text was, or the scores mean"
                " little",
            )
        )
    strange = sum(n for token, n in tokens.items() if token not in known) / tokens.total()
    if strange > 0.8 and not found:
        found.append(
            WarningSign(
                "unknown words",
                f"{strange:.0%} of the words of translations stand in no reference: are these"
                " references of the input, in the language translated into?",
            )
        )
    return found


def _measure_overlap(outputs: Sequence[bytes], others: Sequence[Sequence[bytes]]) -> float:
    """Share of output tokens that the closest other text has in the same line."""
    total = same = 0
    for number, line in enumerate(outputs):
        tokens = Counter(line.split())
        total += tokens.total()
        lines = (lines[number] for lines in others if number < len(lines))
        same += max(((tokens & Counter(other.split())).total() for other in lines), default=0)
    return same / max(total, 1)


def _compare_spellings(
    tokens: Counter[bytes],
    known: Counter[bytes],
    references: Sequence[bytes],
    outputs: Sequence[bytes],
    cased: bool,
) -> Iterator[tuple[str, str]]:
    """Differences in spelling between references and translations."""
    escaped, escaped_there = _count(_ENTITY.search, tokens), _count(_ENTITY.search, known)
    raw, raw_there = _count(_RAW.search, tokens), _count(_RAW.search, known)
    if escaped >= _FEW_LINES and not escaped_there and raw_there:
        yield "escapes", "translations have escaped characters (&apos; &quot;), references have not"
    elif escaped_there >= _FEW_LINES and not escaped and raw - escaped > 0:
        yield "escapes", "references have escaped characters (&apos; &quot;), translations have not"
    detached, detached_there = (sum(bag[mark] for mark in _MARKS) for bag in (tokens, known))
    attached, attached_there = (_count_attached(lines) for lines in (outputs, references))
    if detached > attached and attached_there > 4 * detached_there and attached_there > _FEW_LINES:
        yield "punctuation", "punctuation is detached in translations and attached in references"
    elif detached_there > attached_there and attached > 4 * detached and attached > _FEW_LINES:
        yield "punctuation", "punctuation is attached in translations and detached in references"
    if cased:
        lower = {token.lower() for token in known}
        other = sum(n for t, n in tokens.items() if t not in known and t.lower() in lower)
        if other > 0.25 * tokens.total():
            yield "case", f"{other / tokens.total():.0%} of words differ in their case alone"


def _count(is_one: Callable[[bytes], object], bag: Counter[bytes]) -> int:
    return sum(count for token, count in bag.items() if is_one(token))


def _count_attached(lines: Sequence[bytes]) -> int:
    """Number of lines whose last token is a word that ends in a punctuation mark."""
    last = (line.split()[-1:] for line in lines)
    return sum(len(token) > 1 and token[-1:] in _MARKS for each in last for token in each)
