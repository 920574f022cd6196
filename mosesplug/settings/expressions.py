"""Parse the expressions of derived features.

Examples are ``lm/words``, ``log(len)`` and ``"lm-score" * 0.5``.

::

    sum      = product (("+" | "-") product)*
    product  = sign (("*" | "/") sign)*
    sign     = ("-" | "+") sign | power
    power    = atom ("**" sign)?
    atom     = number | "(" sum ")" | FUNCTION "(" sum ")" | words | chars | feature

A feature is a name of letters, digits, points and underscores that begins with no digit; any other
name stands in quotation marks, as does a feature called ``words`` or ``chars``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FUNCTIONS = ("log", "exp", "sqrt", "abs")

BUILT_IN = ("words", "chars")
"""The numbers of words and of characters of the hypothesis."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"""
    r"""|(?P<name>[^\W\d][\w.]*)|"(?P<double>[^"]+)"|'(?P<single>[^']+)'"""
    r"""|(?P<symbol>\*\*|[-+*/()])|(?P<end>$))"""
)
_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
"""How tightly operators bind; a sign is weaker than a power."""
_SIGN = 3
_DEEPEST = 50
_LONGEST = 1000


class ExpressionError(ValueError):
    """An expression cannot be parsed; the message says where."""


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class FeatureName:
    """A feature's name, and the character of the expression where it begins, from 1."""

    name: str
    position: int = field(compare=False)


@dataclass(frozen=True)
class TextSize:
    """The number of ``words`` or ``chars`` of the hypothesis."""

    unit: str


@dataclass(frozen=True)
class Call:
    """A function of ``FUNCTIONS``, or ``-`` for a change of sign, of one argument."""

    function: str
    argument: Expression


@dataclass(frozen=True)
class Operation:
    """Two expressions joined by ``+``, ``-``, ``*``, ``/`` or ``**``."""

    operator: str
    left: Expression
    right: Expression


Expression = Number | FeatureName | TextSize | Call | Operation


def parse_expression(text: str) -> Expression:
    """Parse an expression; blanks do not count.

    Raises:
        ExpressionError: the text is no expression, or too long.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(f"{len(text)} characters, but an expression has at most {_LONGEST}")
    return _Parser(text).parse()


def list_features(expression: Expression) -> Iterator[FeatureName | TextSize]:
    """Yield features, ``words`` and ``chars`` of an expression from left to right."""
    match expression:
        case FeatureName() | TextSize():
            yield expression
        case Call():
            yield from list_features(expression.argument)
        case Operation():
            yield from list_features(expression.left)
            yield from list_features(expression.right)


class _Parser:
    """Parses one expression by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin = self._end = 0
        self._depth = 0
        self._advance()

    def parse(self) -> Expression:
        """Return the whole expression."""
        expression = self._parse(1)
        if self._kind != "end":
            raise self._error("an operator is missing")
        return expression

    def _advance(self) -> None:
        """Read the next token."""
        token = _TOKEN.match(self._text, self._end)
        if token is None:
            self._begin = len(self._text) - len(self._text[self._end :].lstrip())
            character = self._text[self._begin]
            if character in "\"'":
                raise self._error("a quotation mark is not closed, or the name is empty")
            raise self._error(f"{character!r} has no meaning: quote names that contain it")
        self._kind = str(token.lastgroup)
        self._value = token[self._kind]
        self._begin, self._end = token.start(self._kind), token.end()

    def _take(self, *symbols: str) -> str | None:
        """Return the next token and pass it if it is one of some symbols; else None."""
        if self._kind != "symbol" or self._value not in symbols:
            return None
        symbol = self._value
        self._advance()
        return symbol

    def _parse(self, level: int) -> Expression:
        """Parse operators that bind at least as tightly as a level of ``_LEVELS``."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("the expression is nested too deeply")
        sign = self._take("-", "+")
        left = self._parse_atom() if sign is None else self._parse(_SIGN)
        left = Call("-", left) if sign == "-" else left
        while self._kind == "symbol" and _LEVELS.get(self._value, 0) >= level:
            operator = self._value
            self._advance()
            # The exponent is the one operand on the right that may be a power, or have a sign.
            right = _SIGN if operator == "**" else _LEVELS[operator] + 1
            left = Operation(operator, left, self._parse(right))
        self._depth -= 1
        return left

    def _parse_atom(self) -> Expression:
        kind, value, position = self._kind, self._value, self._begin + 1
        if self._take("("):
            return self._parse_rest("(")
        if kind == "number":
            if not math.isfinite(float(value)):
                raise self._error(f"the number {value} is too large")
            self._advance()
            return Number(float(value))
        if kind in ("double", "single"):
            self._advance()
            return FeatureName(value, position - 1)
        if kind != "name":
            raise self._error("a number, a feature or ( is missing")
        self._advance()
        if (self._kind, self._value) != ("symbol", "("):
            return TextSize(value) if value in BUILT_IN else FeatureName(value, position)
        if value not in FUNCTIONS:
            self._begin = position - 1
            raise self._error(f"{value} is not a function; known: {', '.join(FUNCTIONS)}")
        self._advance()
        return Call(value, self._parse_rest(f"{value}("))

    def _parse_rest(self, opened: str) -> Expression:
        expression = self._parse(1)
        if not self._take(")"):
            raise self._error(f"the ) of {opened} is missing")
        return expression

    def _error(self, message: str) -> ExpressionError:
        place = f"character {self._begin + 1}" if self._begin < len(self._text) else "end"
        return ExpressionError(f"{place} of the expression: {message}")
