"""The checks of metrics: shapes, sums, odd arrays, signatures, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.metrics import Metric, PreparedReferences, metric
from mosesplug.metrics.protocol import find_limits
from mosesplug.testing.checks import (
    require,
    require_equal,
    require_error,
    run_checks,
    unaligned,
)

__all__ = [
    "HYPOTHESES",
    "METRIC_CHECKS",
    "REFERENCES",
    "HypothesisTexts",
    "as_text",
    "check_metric",
]

REFERENCES = (
    (b"the cat sat on the mat .", b"a b c d e", b"", b"one two three four five six"),
    (b"there is a cat on the mat", b"a b b c", b"nothing at all is here", b"1 2 3 4 5 6"),
)
"""Two references of four sentences, one of them empty."""
HYPOTHESES = (
    (0, b"the cat sat on the mat ."),
    (0, b"a cat is on the the mat"),
    (0, b""),
    (1, b"  a  b  c d e f g h "),
    (1, b"x y z"),
    (2, b"nothing here"),
    (2, b" "),
    (3, b"one two three four 5 6"),
    (3, b"\xff\xfe \x00 one"),
)
"""Hypotheses with their sentences: equal ones, empty ones, and bytes that are not UTF-8."""


@dataclass(frozen=True)
class HypothesisTexts:
    """Hypotheses as ``Metric.statistics`` takes them."""

    sentence_ids: NDArray[np.int64]
    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def statistics(
        self, scorer: Metric, prepared: PreparedReferences, threads: int = 1
    ) -> NDArray[np.int32]:
        """Return their statistics."""
        return scorer.statistics(
            prepared, self.sentence_ids, self.buffer, self.starts, self.ends, threads=threads
        )


def as_text(hypotheses: Sequence[tuple[int, bytes]]) -> HypothesisTexts:
    """Return hypotheses, each with its sentence, as arrays."""
    ends = np.cumsum([len(text) for _, text in hypotheses], dtype=np.int64)
    return HypothesisTexts(
        sentence_ids=np.array([sentence for sentence, _ in hypotheses], dtype=np.int64),
        buffer=np.frombuffer(bytearray(b"".join(text for _, text in hypotheses)), dtype=np.uint8),
        starts=np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1],
        ends=ends,
    )


def usable_references(scorer: Metric) -> tuple[tuple[bytes, ...], ...]:
    """Return both references, or one for a metric that takes one only."""
    try:
        scorer.prepare(REFERENCES)
    except DataError:
        return REFERENCES[:1]
    return REFERENCES


def check_metric(scorer: Metric) -> None:
    """Check that a metric behaves as ``mosesplug.metrics.Metric`` says.

    Raises:
        AssertionError: a check fails.

    Example:
        >>> from mosesplug.metrics import metric
        >>> from mosesplug.testing import check_metric
        >>> check_metric(metric("WER"))
    """
    run_checks(METRIC_CHECKS, scorer, f"metric {scorer.name}")


def _shapes_and_names(scorer: Metric) -> None:
    references = usable_references(scorer)
    prepared = scorer.prepare(references)
    require(
        (prepared.n_sentences, prepared.n_references) == (4, len(references)),
        "prepare() must count sentences and references",
    )
    names = scorer.statistics_names
    require(
        len(names) == len(set(names)) == scorer.n_statistics,
        "each statistic must have a name of its own",
    )
    rows = as_text(HYPOTHESES).statistics(scorer, prepared)
    require(rows.dtype == np.int32, f"statistics must be int32, not {rows.dtype}")
    require(rows.shape == (len(HYPOTHESES), scorer.n_statistics), f"wrong shape {rows.shape}")
    columns = dict(zip(names, rows.T, strict=True))
    for smaller, larger in find_limits(scorer):
        limited = (columns[smaller] <= columns[larger]).all()
        require(bool(limited), f"statistics_limits: {smaller} is above {larger}")
    scores = scorer.score(rows)
    require(scores.shape == (len(HYPOTHESES),), f"score() has the wrong shape {scores.shape}")
    require(scores.dtype == np.float64, f"scores must be float64, not {scores.dtype}")
    require(bool(np.isfinite(scores).all()), "scores must be finite")
    sentences = scorer.sentence_scores(rows.astype(np.float64))
    require(sentences.shape == scores.shape, "sentence_scores() has the wrong shape")
    floored = scorer.floor_matches(rows.astype(np.float64))
    require(floored.shape == rows.shape, "floor_matches() must keep the shape")


def _no_hypotheses(scorer: Metric) -> None:
    rows = as_text([]).statistics(scorer, scorer.prepare(usable_references(scorer)), threads=2)
    require(rows.shape == (0, scorer.n_statistics), f"wrong shape {rows.shape} of no hypotheses")
    require(scorer.score(rows).shape == (0,), "score() of no rows must be empty")
    require(bool(np.isfinite(scorer.score(rows.sum(axis=0)))), "the score of zeros must be finite")


def _signatures(scorer: Metric) -> None:
    references = usable_references(scorer)
    fields = scorer.signature().split("|")
    require(fields[0] == scorer.name, f"the signature must begin with {scorer.name}|")
    require(
        any(field.startswith("version:") and field != "version:" for field in fields),
        "the signature must have a field version:VERSION",
    )
    signatures = {scorer.prepare(references[:n]).signature for n in range(1, len(references) + 1)}
    require(
        len(signatures) == len(references),
        "signatures must differ by the number of references",
    )
    require(
        f"nrefs:{len(references)}" in scorer.prepare(references).signature,
        "the signature of references must have a field nrefs:NUMBER",
    )


def _fingerprints(scorer: Metric) -> None:
    references = usable_references(scorer)
    copies = [[bytes(bytearray(line)) for line in lines] for lines in references]
    others = [lines[::-1] for lines in references]
    first = scorer.prepare(references).fingerprint
    require(scorer.prepare(copies).fingerprint == first, "equal references, other fingerprint")
    require(scorer.prepare(others).fingerprint != first, "other references, equal fingerprint")


def _foreign_references(scorer: Metric) -> None:
    text = as_text(HYPOTHESES)
    for other in (metric("BLEU"), metric("WER")):
        if other.signature() != scorer.signature():
            prepared = other.prepare(REFERENCES[:1])
            require_error(
                ValueError,
                lambda prepared=prepared: text.statistics(scorer, prepared),  # type: ignore[misc]
                f"statistics() with references of {other.name}",
            )


def _alone(scorer: Metric) -> None:
    prepared = scorer.prepare(usable_references(scorer))
    together = as_text(HYPOTHESES).statistics(scorer, prepared)
    alone = [as_text([pair]).statistics(scorer, prepared)[0] for pair in HYPOTHESES]
    backwards = as_text(HYPOTHESES[::-1]).statistics(scorer, prepared)[::-1]
    require_equal(together, alone, "statistics depend on the other hypotheses")
    require_equal(together, backwards, "statistics depend on the order of the hypotheses")


def _threads(scorer: Metric) -> None:
    rng = np.random.default_rng(7)
    words = [b"the", b"cat", b"a", b"b", b"c", b"d", b"one", b"mat", b"x"]
    pairs = [
        (int(rng.integers(4)), b" ".join(rng.choice(words, size=rng.integers(12))))
        for _ in range(5000)
    ]
    prepared = scorer.prepare(usable_references(scorer))
    one = as_text(pairs).statistics(scorer, prepared)
    for threads in (2, 3, 1000):
        found = as_text(pairs).statistics(scorer, prepared, threads)
        require_equal(found, one, f"{threads} threads change statistics")


def _odd_arrays(scorer: Metric) -> None:
    prepared = scorer.prepare(usable_references(scorer))
    text = as_text(HYPOTHESES)
    expected = text.statistics(scorer, prepared)
    buffer = text.buffer.copy()
    buffer.flags.writeable = False
    odd = HypothesisTexts(
        unaligned(text.sentence_ids), buffer, unaligned(text.starts), unaligned(text.ends)
    )
    require_equal(odd.statistics(scorer, prepared), expected, "unaligned read-only arrays")
    strided = HypothesisTexts(
        np.repeat(text.sentence_ids, 2)[::2],
        np.repeat(text.buffer, 2)[::2],
        np.repeat(text.starts, 2)[::2],
        np.repeat(text.ends, 2)[::2],
    )
    require_equal(strided.statistics(scorer, prepared), expected, "strided arrays")


def _inputs_unchanged(scorer: Metric) -> None:
    prepared = scorer.prepare(usable_references(scorer))
    text, untouched = as_text(HYPOTHESES), as_text(HYPOTHESES)
    rows = text.statistics(scorer, prepared)
    before = rows.copy()
    scorer.score(rows)
    require_equal(rows, before, "score() changes its argument")
    for name in ("buffer", "sentence_ids", "starts", "ends"):
        require_equal(getattr(text, name), getattr(untouched, name), f"statistics() changes {name}")


def _number_types(scorer: Metric) -> None:
    rows = as_text(HYPOTHESES).statistics(scorer, scorer.prepare(usable_references(scorer)))
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        converted = rows.astype(dtype)
        converted.flags.writeable = False
        expected = scorer.score(rows)
        require_equal(scorer.score(converted), expected, f"score() of {dtype.__name__}")
        require_equal(scorer.score(unaligned(converted)), expected, "score() of unaligned rows")


def _sums(scorer: Metric) -> None:
    prepared = scorer.prepare(usable_references(scorer))
    whole = as_text(HYPOTHESES).statistics(scorer, prepared).sum(axis=0)
    first, second = (
        as_text(part).statistics(scorer, prepared).sum(axis=0)
        for part in (HYPOTHESES[:4], HYPOTHESES[4:])
    )
    require_equal(whole, first + second, "statistics are not additive")
    require(scorer.score(whole) == scorer.score(first + second), "score() is not a function")


def _perfect(scorer: Metric) -> None:
    for lines in REFERENCES:
        rows = as_text(list(enumerate(lines))).statistics(scorer, scorer.prepare([lines]))
        score = float(scorer.score(rows.sum(axis=0)))
        require(abs(score - 1) <= 1e-12, f"references score {score} against themselves, not 1")


def _larger_is_better(scorer: Metric) -> None:
    reference = [b"a b c d e f g h", b"the cat sat on the mat ."]
    prepared = scorer.prepare([reference])
    outputs = [
        reference,
        [b"a b c d e f g x", b"the cat sat on the mat ."],
        [b"a b c d x f g y", b"the cat sat on a mat ."],
        [b"a b c d", b"the x"],
        [b"q r s", b"t"],
    ]
    scores = [
        float(
            scorer.score(as_text(list(enumerate(lines))).statistics(scorer, prepared).sum(axis=0))
        )
        for lines in outputs
    ]
    require(
        scores == sorted(scores, reverse=True) and scores[0] > scores[-1],
        f"worse and worse outputs score {scores}: larger must be better",
    )
    require(max(scores) <= 1, f"scores exceed 1: {scores}")
    empty = as_text([(0, b""), (1, b"")]).statistics(scorer, prepared).sum(axis=0)
    require(float(scorer.score(empty)) <= scores[-2], "empty output scores better than words")


def _wrong_width(scorer: Metric) -> None:
    wrong = np.zeros((2, scorer.n_statistics + 1))
    require_error(ValueError, lambda: scorer.score(wrong), "score() of too many statistics")


def _leading_axes(scorer: Metric) -> None:
    text, references = as_text(HYPOTHESES[:6]), usable_references(scorer)
    rows = text.statistics(scorer, scorer.prepare(references))
    cube = scorer.score(rows.reshape(2, 3, -1))
    require_equal(cube, scorer.score(rows).reshape(2, 3), "score() must keep leading axes")


def _missing_references(scorer: Metric) -> None:
    prepared = scorer.prepare(usable_references(scorer))
    for sentence in (-1, 4, 2**40):
        text = as_text([(0, b"a"), (sentence, b"a")])
        error = require_error(
            DataError,
            lambda text=text: text.statistics(scorer, prepared),  # type: ignore[misc]
            f"statistics() of sentence {sentence} of 4",
        )
        require(str(sentence) in str(error), f"the error must name sentence {sentence}: {error}")


def _invalid_ranges(scorer: Metric) -> None:
    prepared = scorer.prepare(usable_references(scorer))
    zeros, four = np.zeros(1, dtype=np.int64), np.zeros(4, np.uint8)
    for start, end in ((-1, 2), (0, 5), (3, 2)):
        text = HypothesisTexts(zeros, four, np.array([start]), np.array([end]))
        require_error(
            ValueError,
            lambda text=text: text.statistics(scorer, prepared),  # type: ignore[misc]
            f"statistics() of bytes {start} to {end} of 4",
        )
    text = as_text(HYPOTHESES)
    short = HypothesisTexts(text.sentence_ids[1:], text.buffer, text.starts, text.starts)
    require_error(
        ValueError, lambda: short.statistics(scorer, prepared), "arrays of different length"
    )


def _invalid_references(scorer: Metric) -> None:
    require_error(DataError, lambda: scorer.prepare([]), "prepare() without references")
    differing = [REFERENCES[0], [b"a"]]
    require_error(DataError, lambda: scorer.prepare(differing), "references of different length")


METRIC_CHECKS: Mapping[str, Callable[[Metric], None]] = MappingProxyType(
    {
        "shapes and names": _shapes_and_names,
        "no hypotheses": _no_hypotheses,
        "signatures": _signatures,
        "fingerprints": _fingerprints,
        "references of another metric": _foreign_references,
        "hypotheses alone": _alone,
        "threads": _threads,
        "read-only, unaligned and strided arrays": _odd_arrays,
        "inputs unchanged": _inputs_unchanged,
        "number types": _number_types,
        "sums": _sums,
        "perfect output": _perfect,
        "larger is better": _larger_is_better,
        "wrong number of statistics": _wrong_width,
        "leading axes": _leading_axes,
        "sentences without reference": _missing_references,
        "invalid ranges": _invalid_ranges,
        "invalid references": _invalid_references,
    }
)
"""The checks of ``check_metric`` by name."""
