"""Travatar's measures ``interp`` and ``ainterp``, which combine measures.

``interp:0.4|bleu|0.6|ribes`` is a weighted mean; ``ainterp:A|bleu|B|ribes|2*A*B/(A+B)`` a formula.
In a file of statistics, those of the measures are separated by tabs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_number
from formats.errors import FormatError
from mosesplug.arrays import Floats
from mosesplug.errors import UsageError
from mosesplug.extras.travatar.measure import Measure, Texts
from mosesplug.metrics.interpolated import slice_columns

Formula = Callable[[Mapping[str, Floats]], Any]
"""Takes the scores of the variables, and returns those of the formula."""


@dataclass(frozen=True)
class CombinedMeasure(Measure):
    """A function of the scores of several measures.

    Attributes:
        kind: ``interp`` or ``ainterp``.
        settings: as in ``-eval``, after the colon.
        combine: takes the score of each, float64 ``[n_measures, ...]``, and returns ``[...]``.
        raises_score: whether each measure surely raises the score; empty: unknown.
    """

    kind: str
    settings: str
    measures: tuple[Measure, ...]
    combine: Callable[[Floats], Floats]
    raises_score: tuple[bool, ...] = ()

    @property
    def name(self) -> str:
        """The measure's name."""
        return self.kind

    @property
    def spelling(self) -> str:
        """The measure with its settings as in ``-eval``."""
        return f"{self.name}:{self.settings}"

    @property
    def statistics_names(self) -> tuple[str, ...]:
        """Names of all statistics with the measure's name."""
        return tuple(f"{each.name}.{name}" for each in self.measures for name in _names(each))

    @property
    def minimizing_spelling(self) -> str | None:
        """The reversed measure of the first error rate that would be maximized, or None."""
        return next(
            (
                each.minimizing_spelling
                for each, wanted in zip(self.measures, self.raises_score, strict=False)
                if wanted and each.minimizing_spelling
            ),
            None,
        )

    def count(self, texts: Texts, threads: int = 1) -> Floats:
        """Return the statistics of each hypothesis, those of the first measure first."""
        return np.concatenate([measure.count(texts, threads) for measure in self.measures], axis=1)

    def score(self, totals: NDArray[Any]) -> Floats:
        """Return the score of summed statistics; where it is not defined, it is 0."""
        totals = np.asarray(totals, dtype=np.float64)
        parts = zip(self.measures, slice_columns(self.measures), strict=True)
        scores = np.array([measure.score(totals[..., columns]) for measure, columns in parts])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.broadcast_to(self.combine(scores), totals.shape[:-1])
        return np.where(np.isfinite(found), found, 0.0)

    def parse(self, line: bytes, path: str, number: int) -> list[float]:
        """Parse one line: the statistics of each measure, separated by tabs."""
        columns = line.rstrip(b"\r\n").split(b"\t")
        if len(columns) != len(self.measures):
            raise FormatError(
                f"{len(columns)} columns for {len(self.measures)} measures",
                path=path,
                line=number,
                remedy=f"Separate the statistics of each measure of -eval {self.spelling} by tabs",
            )
        parts = zip(self.measures, columns, strict=True)
        return [value for each, column in parts for value in each.parse(column, path, number)]

    def format(self, row: Sequence[float]) -> str:
        """Format the statistics of one hypothesis; those of a measure end at a tab."""
        parts = zip(self.measures, slice_columns(self.measures), strict=True)
        return "\t".join(measure.format(row[columns]) for measure, columns in parts)


def _names(measure: Measure) -> tuple[str, ...]:
    return measure.statistics_names


def interp(settings: str, find: Callable[[str], Measure]) -> Measure:
    """Return a weighted mean of measures.

    Args:
        settings: ``weight|measure|weight|measure``.

    Raises:
        UsageError: another form, or weights that add up to 0.
    """
    pieces = settings.split("|")
    if len(pieces) % 2:
        raise UsageError(
            f"-eval interp:{settings}: give weights and measures in turn, as in "
            "interp:0.4|bleu|0.6|ribes"
        )
    weights = np.array([parse_number(piece.encode()) for piece in pieces[::2]])
    if not np.isfinite(weights).all() or weights.sum() == 0.0:
        raise UsageError(
            f"-eval interp:{settings}: weights must be numbers whose sum is not 0, as in "
            "interp:0.4|bleu|0.6|ribes"
        )
    shares = weights / weights.sum()
    return CombinedMeasure(
        "interp",
        settings,
        tuple(map(find, pieces[1::2])),
        lambda scores: np.tensordot(shares, scores, axes=1),
        tuple((shares > 0.0).tolist()),
    )


def ainterp(settings: str, find: Callable[[str], Measure]) -> Measure:
    """Return a formula of measures.

    Args:
        settings: ``A|measure|B|measure|formula``.
    """
    *pieces, formula = settings.split("|")
    variables = pieces[::2]
    if not pieces or len(pieces) % 2 or not all(re.fullmatch("[A-Z]", v) for v in variables):
        raise UsageError(
            f"-eval ainterp:{settings}: give letters and measures in turn, then a formula, as in "
            "ainterp:A|bleu|B|ribes|2*A*B/(A+B)"
        )
    evaluate = parse_formula(formula, variables)
    return CombinedMeasure(
        "ainterp",
        settings,
        tuple(map(find, pieces[1::2])),
        lambda scores: evaluate(dict(zip(variables, scores, strict=True))),
    )


_TOKENS = re.compile(r" *([0-9][0-9.]*|[A-Z]|[-+*/()])| +")


def parse_formula(text: str, variables: Sequence[str]) -> Formula:
    """Parse a formula of variables, numbers, parentheses and the four operations.

    Args:
        text: such as ``2*A*B/(A+B)``.
    """
    tokens: list[str] = []
    place = 0
    while place < len(text):
        found = _TOKENS.match(text, place)
        if found is None:
            raise _formula_error(text, f"{text[place]!r} is not part of a formula")
        tokens += [found[1]] if found[1] else []
        place = found.end()
    return _Parser(text, tokens, variables).formula()


def _formula_error(text: str, problem: str) -> UsageError:
    return UsageError(f"-eval: the formula {text!r} is invalid: {problem}")


class _Parser:
    """Parses the tokens of a formula from left to right."""

    def __init__(self, text: str, tokens: list[str], variables: Sequence[str]) -> None:
        self._text = text
        self._waiting = tokens
        self._variables = variables

    def formula(self) -> Formula:
        """Parse all tokens."""
        parsed = self._operations(("+", "-"), self._product)
        if self._waiting:
            raise _formula_error(self._text, f"{self._waiting[0]!r} follows a complete formula")
        return parsed

    def _product(self) -> Formula:
        return self._operations(("*", "/"), self._operand)

    def _operations(self, operators: Sequence[str], operand: Callable[[], Formula]) -> Formula:
        """Parse operands that are separated by operators of one precedence."""
        parsed = operand()
        while self._waiting and self._waiting[0] in operators:
            parsed = _apply(self._waiting.pop(0), parsed, operand())
        return parsed

    def _operand(self) -> Formula:
        token = self._waiting.pop(0) if self._waiting else ""
        if token == "(":
            parsed = self._operations(("+", "-"), self._product)
            if not self._waiting or self._waiting.pop(0) != ")":
                raise _formula_error(self._text, "a parenthesis is not closed")
            return parsed
        if token.isalpha():
            if token not in self._variables:
                raise _formula_error(self._text, f"{token} is not a measure")
            return lambda scores: scores[token]
        value = parse_number(token.encode())
        if np.isnan(value):
            what = f"{token!r} is there" if token else "it ends"
            raise _formula_error(self._text, f"{what} where a letter or a number must be")
        return lambda scores: value


def _apply(operator: str, left: Formula, right: Formula) -> Formula:
    operations: Mapping[str, Callable[[Any, Any], Any]] = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
    }
    operation = operations[operator]
    return lambda scores: operation(left(scores), right(scores))
