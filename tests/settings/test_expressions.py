"""Expressions of derived features, against Python's own grammar."""

from __future__ import annotations

import ast
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.errors import UsageError
from mosesplug.settings.expressions import (
    FUNCTIONS,
    Call,
    Expression,
    ExpressionError,
    FeatureName,
    Number,
    Operation,
    TextSize,
    list_features,
    parse_definition,
)
from mosesplug.settings.features import (
    parse_added_features,
    parse_derived_features,
)

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def parse_as_python(node: ast.expr) -> Expression:
    """The same expression by Python's parser, which has the same operators and precedence."""
    match node:
        case ast.BinOp():
            left, right = parse_as_python(node.left), parse_as_python(node.right)
            return Operation(_OPERATORS[type(node.op)], left, right)
        case ast.UnaryOp():
            argument = parse_as_python(node.operand)
            return Call("-", argument) if isinstance(node.op, ast.USub) else argument
        case ast.Call(func=ast.Name(id=function)):
            return Call(function, parse_as_python(node.args[0]))
        case ast.Name(id="words" | "chars" as unit):
            return TextSize(unit)
        case ast.Name(id=name):
            return FeatureName(name, 0)
        case ast.Constant(value=str(name)):
            return FeatureName(name, 0)
        case ast.Constant(value=float() | int() as value):
            return Number(float(value))
    raise AssertionError(ast.dump(node))


atoms = st.sampled_from(["lm", "LM_0", "_x", "é", "words", "chars", "log", "'a-b c'", '"words"'])
numbers = st.sampled_from(["0", "1", "2.", ".5", "1e3", "1.5E-2", "007.5"])
expressions = st.recursive(
    atoms | numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**", " ** ", " - "]), inner).map(
            "".join
        ),
        inner.map("({})".format),
        inner.map("-{}".format),
        inner.map("+ {}".format),
        st.tuples(st.sampled_from(FUNCTIONS), inner).map(lambda pair: f"{pair[0]}( {pair[1]})"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_expressions_are_those_of_python(text: str) -> None:
    found = parse_definition(text)
    assert found == parse_as_python(ast.parse(text.strip(), mode="eval").body)
    for each in list_features(found):
        if isinstance(each, FeatureName):
            begin = text[each.position - 1 :]
            assert begin.lstrip("\"'").startswith(each.name)


@given(st.text(st.sampled_from("ab1.+-*/()'\" e_,%\n\té$"), max_size=12))
def test_other_texts_are_rejected_with_their_place(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        parse_definition(text)
        return
    with pytest.raises(ExpressionError, match=r"^(character \d+|end) of the expression: "):
        parse_definition(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "end of the expression: a number, a feature or ( is missing"),
        ("log(x", "end of the expression: the ) of log( is missing"),
        ("(x+1", "end of the expression: the ) of ( is missing"),
        ("1 + * x", "character 5 of the expression: a number, a feature or ( is missing"),
        ("lm-score x", "character 10 of the expression: an operator is missing"),
        ("x)", "character 2 of the expression: an operator is missing"),
        ("x ~ y", "character 3 of the expression: '~' has no meaning: quote names that contain it"),
        ("'x", "character 1 of the expression: a quotation mark is not closed"),
        ("''", "character 1 of the expression: a quotation mark is not closed, or the name is"),
        ("2*sin(x)", "character 3 of the expression: sin is not a function; known: log, exp, sqrt"),
        ("1e999", "character 1 of the expression: the number 1e999 is too large"),
        ("(" * 60 + "x", "the expression is nested too deeply"),
        ("-" * 60 + "x", "the expression is nested too deeply"),
        ("2**" * 60 + "x", "the expression is nested too deeply"),
        ("1+" * 600 + "x", "1201 characters, but an expression has at most 1000"),
    ],
)
def test_messages_say_where_and_what(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_derived_features([f"x={text}"])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("words",), "give NAME=EXPRESSION, as len=words"),
        (("=words",), "give NAME=EXPRESSION"),
        (("a b=words",), "with a name without blanks"),
        (("chars=words",), "chars is the number of chars in expressions"),
        (("a=1", "b=1", "a=2"), "--derive names a twice"),
    ],
)
def test_names_of_derived_features(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_derived_features(texts)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("LM",), "give NAME=FILE, or NAME=FILE,FILE"),
        (("LM=",), "give NAME=FILE"),
        (("L M=f",), "with a name without blanks"),
        (("LM=f,",), "give NAME=FILE"),
        (("LM=f", "LM=g"), "another --add-feature has a feature LM already"),
    ],
)
def test_names_of_added_features(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_added_features(texts)
    assert message in str(error.value)


def test_features_from_texts_and_mappings() -> None:
    found = parse_derived_features({"len": "words", "lm_norm": " lm / len "})
    assert [(each.name, each.text) for each in found] == [("len", "words"), ("lm_norm", "lm / len")]
    assert found[1].expression == parse_definition("lm/len")
    assert parse_derived_features(found) == found
    (added,) = parse_added_features(["LM= a.txt,b.npy"])
    assert (added.name, [str(path) for path in added.paths]) == ("LM", ["a.txt", "b.npy"])
    assert parse_added_features([added]) == (added,)
