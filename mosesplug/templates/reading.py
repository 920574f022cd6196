"""Read derivations from the lines of n-best lists.

Moses writes up to two fields behind the score. ``-include-segmentation-in-n-best`` gives ``0-1=0
2=1-2``, source and target positions of each phrase in target order, a single position without its
end. ``-print-alignment-info-in-n-best`` gives ``0-0 1-2``, positions of aligned words. Instead,
``-report-segmentation`` (``-t``) writes ``|0-1|`` behind each phrase of the text, and
``-report-segmentation-enriched`` (``-tt``) ``|0-1,wa=0-0 ,total=...|`` with positions inside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from formats.errors import quote
from formats.nbest.entry import Place
from mosesplug.templates.derivation import AlignedDerivation, Phrase, PhrasePair, Words

__all__ = ["has_marks", "read_derivation", "split_words"]

_MARK = re.compile(rb"(?:^|(?<=[\x00-\x20]))\|([0-9]+)-([0-9]+)(,[^|]*)?\|(?=[\x00-\x20]|$)")
_MARK_ALIGNMENT = re.compile(rb",wa=([0-9 -]*),")
_SPAN = re.compile(rb"([0-9]+)(?:-([0-9]+))?=([0-9]+)(?:-([0-9]+))?")
_POINT = re.compile(rb"([0-9]+)-([0-9]+)")
_ASK_MOSES = (
    "Decode with -include-segmentation-in-n-best and -print-alignment-info-in-n-best (Moses), or "
    "give lists that have both"
)
_SAME_INPUT = (
    "Give the source sentences that were decoded, one per line, tokenized as for the decoder"
)


@dataclass(frozen=True)
class _Span:
    """Source and target positions of a phrase, without ends, and its points if known."""

    source: tuple[int, int]
    target: tuple[int, int]
    points: tuple[tuple[int, int], ...] | None = None


def split_words(text: bytes) -> Words:
    """Return the words of a text, separated by ASCII blanks."""
    return tuple(word.decode("utf-8", "surrogateescape") for word in text.split())


def has_marks(text: bytes) -> bool:
    """Return whether a text has phrase boundaries of ``-report-segmentation``."""
    return _MARK.search(text) is not None


def read_derivation(
    source: Words,
    text: bytes,
    extra: bytes,
    place: Place,
    *,
    needs: frozenset[str] = frozenset({"segmentation", "alignment"}),
) -> AlignedDerivation:
    """Read the derivation of a hypothesis.

    Args:
        source: the words of the source sentence.
        text: the hypothesis, maybe with phrase boundaries.
        extra: the fields behind its score.
        needs: ``segmentation``, ``alignment``: what must be there. A hypothesis without
            segmentation is read as one phrase.

    Raises:
        FormatError: the line lacks what is needed, its phrases do not cover source and text, or an
            alignment point is outside both.
    """
    segmentation, alignment = _split_extra(extra)
    if has_marks(text):
        words, spans = _read_marks(text, place)
    else:
        words = split_words(text)
        spans = [] if segmentation is None else _read_spans(segmentation, len(words), place)
    if not source and not words:
        return AlignedDerivation((), ())
    if not spans:
        if "segmentation" in needs:
            raise place.error("the hypothesis has no segmentation into phrases", _ASK_MOSES)
        spans = [_Span((0, len(source)), (0, len(words)))]
    _check_cover(spans, source, place)
    if alignment is None and "alignment" in needs and any(span.points is None for span in spans):
        raise place.error("the hypothesis has no word alignment", _ASK_MOSES)
    points = _distribute(_read_points(alignment or b"", place), spans, len(words), place)
    return AlignedDerivation(
        source,
        tuple(
            Phrase(
                span.source[0],
                PhrasePair(
                    source[slice(*span.source)],
                    words[slice(*span.target)],
                    tuple(sorted(set(own if span.points is None else span.points))),
                ),
            )
            for span, own in zip(spans, points, strict=True)
        ),
    )


def _split_extra(extra: bytes) -> tuple[bytes | None, bytes | None]:
    """Return the segmentation and the alignment among the fields behind the score."""
    segmentation = alignment = None
    for field in extra.split(b"|||")[:2] if extra else ():
        tokens = field.split()
        if segmentation is None and alignment is None and tokens and b"=" in tokens[0]:
            segmentation = field
        elif alignment is None and all(map(_POINT.fullmatch, tokens)):
            alignment = field
    return segmentation, alignment


def _read_marks(text: bytes, place: Place) -> tuple[Words, list[_Span]]:
    """Return the words between the marks, and the phrases."""
    words: list[str] = []
    spans: list[_Span] = []
    end = 0
    for mark in _MARK.finditer(text):
        own = split_words(text[end : mark.start()].strip())
        points = None
        if mark[3] is not None and (written := _MARK_ALIGNMENT.match(mark[3])) is not None:
            points = tuple(_read_points(written[1], place))
        span = _Span((int(mark[1]), int(mark[2]) + 1), (len(words), len(words) + len(own)), points)
        for source, target in points or ():
            if source >= span.source[1] - span.source[0] or target >= len(own):
                raise place.error(
                    f"the alignment point {source}-{target} is outside the phrase {quote(mark[0])}",
                    "Give the list as the decoder wrote it",
                )
        spans.append(span)
        words += own
        end = mark.end()
    if tail := text[end:].strip():
        raise place.error(
            f"no phrase boundary follows {quote(tail)}", "Give the list as the decoder wrote it"
        )
    return tuple(words), spans


def _read_spans(field: bytes, n_words: int, place: Place) -> list[_Span]:
    """Return the phrases of a segmentation field.

    Moses writes a phrase without target words as if it had one; the start of the next one tells.
    """
    sources: list[tuple[int, int]] = []
    starts: list[int] = []
    ends: list[int] = []
    for token in field.split():
        match = _SPAN.fullmatch(token)
        if match is None:
            raise place.error(
                f"{quote(token)} in the segmentation is not of the form 0-1=0-1", _ASK_MOSES
            )
        sources.append((int(match[1]), int(match[2] or match[1]) + 1))
        starts.append(int(match[3]))
        ends.append(int(match[4] or match[3]) + 1)
    spans = []
    for i, source in enumerate(sources):
        following = starts[i + 1] if i + 1 < len(starts) else n_words
        is_right = ends[i] == following or (ends[i] == starts[i] + 1 and following == starts[i])
        if not is_right or (i == 0 and starts[0]):
            raise place.error(
                f"the phrases of the segmentation {quote(field.strip())} do not cover the "
                f"{n_words} words of the hypothesis",
                "Give the list as the decoder wrote it, with its texts unchanged",
            )
        spans.append(_Span(source, (starts[i], following)))
    return spans


def _check_cover(spans: Sequence[_Span], source: Words, place: Place) -> None:
    """Check that each source word is in one phrase."""
    end = 0
    for first, last in sorted(span.source for span in spans):
        if first > end:
            raise place.error(f"source word {end} is in no phrase", _SAME_INPUT)
        if first < end or last <= first:
            raise place.error(f"source word {first} is in two phrases", _SAME_INPUT)
        end = last
    if end != len(source):
        raise place.error(
            f"the phrases cover {end} source words, but the source sentence has {len(source)}",
            _SAME_INPUT,
        )


def _read_points(field: bytes, place: Place) -> list[tuple[int, int]]:
    points = []
    for token in field.split():
        match = _POINT.fullmatch(token)
        if match is None:
            raise place.error(f"{quote(token)} is not an alignment point such as 0-1", _ASK_MOSES)
        points.append((int(match[1]), int(match[2])))
    return points


def _distribute(
    points: Sequence[tuple[int, int]], spans: Sequence[_Span], n_words: int, place: Place
) -> list[list[tuple[int, int]]]:
    """Return the alignment points of each phrase, relative to its beginning."""
    owners = [i for i, span in enumerate(spans) for _ in range(*span.target)]
    relative: list[list[tuple[int, int]]] = [[] for _ in spans]
    for source, target in points:
        if target >= n_words:
            raise place.error(
                f"the alignment point {source}-{target} is outside the sentence: the hypothesis "
                f"has {n_words} words, counted from 0",
                "Give the list as the decoder wrote it, with its texts unchanged",
            )
        span = spans[owners[target]]
        if not span.source[0] <= source < span.source[1]:
            first, last = span.source[0], span.source[1] - 1
            raise place.error(
                f"the alignment point {source}-{target} is outside its phrase: target word "
                f"{target} translates the source words {first} to {last}",
                "Give the list as the decoder wrote it, and its own source sentences",
            )
        relative[owners[target]].append((source - span.source[0], target - span.target[0]))
    return relative
