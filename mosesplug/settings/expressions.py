"""Parse the expressions of derived features.

Examples are ``lm/words``, ``log(len)`` and ``"lm-score" * 0.5``.

::

    sum      = product (("+" | "-") product)*
    product  = sign (("*" | "/") sign)*
    sign     = ("-" | "+") sign | power
    power    = atom ("**" sign)?
    atom     = number | "(" sum ")" | FUNCTION "(" sum ")" | words | chars | feature

A definition is an expression, or makes an indicator feature for each bin or pair of bins::

    definition = sum | bin | "pair" "(" bin "," bin ")"
    bin        = "bin" "(" sum "," (number | "[" bound ("," bound)* "]") ")"

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
    r"""|(?P<symbol>\*\*|[-+*/(),\[\]])|(?P<end>$))"""
)
_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
"""How tightly operators bind; a sign is weaker than a power."""
_SIGN = 3
_DEEPEST = 50
_LONGEST = 1000
MOST_BINS = 50
_LONGEST_BOUNDS = 60 * MOST_BINS
"""Characters of a definition that has bounds; those of double precision take up to 24 each."""


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


@dataclass(frozen=True)
class Bin:
    """Indicators of intervals of a value.

    Attributes:
        count: number of bins to learn.
        bounds: ascending; bin ``k`` has the values from ``bounds[k - 1]``, included, to
            ``bounds[k]``. None: quantiles of the values in the lists, which are not known yet.
        text: the argument as it was written.
    """

    argument: Expression
    count: int
    bounds: tuple[float, ...] | None
    text: str = field(compare=False)

    @property
    def spelled(self) -> str:
        """The definition; its bounds have all digits, so that it is read back exactly."""
        if self.bounds is None:
            return f"bin({self.text}, {self.count})"
        return f"bin({self.text}, [{', '.join(map(repr, self.bounds))}])"


@dataclass(frozen=True)
class Pair:
    """Indicators of all pairs of bins of two values, by the bins of the left first."""

    left: Bin
    right: Bin

    @property
    def spelled(self) -> str:
        """The definition."""
        return f"pair({self.left.spelled}, {self.right.spelled})"


Definition = Expression | Bin | Pair


def list_bins(definition: Definition) -> tuple[Bin, ...]:
    """Return the bins of a definition, from left to right."""
    match definition:
        case Bin():
            return (definition,)
        case Pair():
            return definition.left, definition.right
    return ()


def parse_definition(text: str) -> Definition:
    """Parse the definition of a feature or of indicators; blanks do not count.

    Raises:
        ExpressionError: the text is no definition, or too long.
    """
    longest = _LONGEST_BOUNDS if "[" in text else _LONGEST
    if len(text) > longest:
        raise ExpressionError(f"{len(text)} characters, but an expression has at most {longest}")
    return _Parser(text).parse_definition()


def list_features(expression: Definition) -> Iterator[FeatureName | TextSize]:
    """Yield features, ``words`` and ``chars`` of a definition from left to right."""
    match expression:
        case Bin():
            yield from list_features(expression.argument)
        case Pair():
            yield from list_features(expression.left)
            yield from list_features(expression.right)
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

    def parse_definition(self) -> Definition:
        """Return the whole definition."""
        definition: Definition
        if self._take_call("pair"):
            left = self._parse_bin()
            self._require(",", "pair takes two bins: the , is missing")
            definition = Pair(left, self._parse_bin())
            self._require(")", "the ) of pair( is missing")
        elif self._begins_call("bin"):
            definition = self._parse_bin()
        else:
            definition = self._parse(1)
        if self._kind != "end":
            raise self._error("an operator is missing")
        return definition

    def _begins_call(self, name: str) -> bool:
        is_name = self._kind == "name" and self._value == name
        return is_name and self._text[self._end :].lstrip().startswith("(")

    def _take_call(self, name: str) -> bool:
        """Pass a name and its parenthesis if they are next."""
        if not self._begins_call(name):
            return False
        self._advance()
        self._advance()
        return True

    def _require(self, symbol: str, message: str) -> None:
        if not self._take(symbol):
            raise self._error(message)

    def _parse_bin(self) -> Bin:
        """Parse ``bin(EXPRESSION, N)`` or ``bin(EXPRESSION, [BOUND, ...])``."""
        if not self._take_call("bin"):
            raise self._error("bin(EXPRESSION, N) is missing")
        begin = self._begin
        argument = self._parse(1)
        text = self._text[begin : self._begin].strip()
        self._require(",", "bin takes an expression and a number of bins: the , is missing")
        if self._take("["):
            bounds = [self._parse_bound()]
            while self._take(","):
                bounds.append(self._parse_bound())
                if not bounds[-2] < bounds[-1]:
                    raise self._error("the bounds of bins do not ascend")
            self._require("]", "the ] of the bounds is missing")
            count = len(bounds) + 1
            known: tuple[float, ...] | None = tuple(bounds)
        else:
            value = self._value if self._kind == "number" else ""
            if not value.isdecimal() or not 2 <= int(value) <= MOST_BINS:
                raise self._error(f"the number of bins must be 2 to {MOST_BINS}")
            self._advance()
            count, known = int(value), None
        if count > MOST_BINS:
            raise self._error(f"the number of bins must be 2 to {MOST_BINS}")
        self._require(")", "the ) of bin( is missing")
        return Bin(argument, count, known, text)

    def _parse_bound(self) -> float:
        is_negative = self._take("-") is not None
        if self._kind != "number" or not math.isfinite(float(self._value)):
            raise self._error("a finite number is missing")
        bound = float(self._value)
        self._advance()
        return -bound if is_negative else bound

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
        if value in ("bin", "pair"):
            self._begin = position - 1
            raise self._error(f"{value}(...) makes several features: nothing else stands beside it")
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
