"""Requests and replies as XML."""

from __future__ import annotations

import xmlrpc.client
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.server_calls import format_request_weights, parse_reply, translate_request
from mosesplug.errors import DecoderError

# What XML 1.0 can hold.
texts = st.text(
    st.characters(
        codec="utf-8",
        exclude_categories=["Cs", "Cc"],
        include_characters="\t\n",
        exclude_characters="\ufffe\uffff",
    )
)
values = st.recursive(
    texts | st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts.filter(lambda name: name != "scores"), values, max_size=3))
def test_replies_are_parsed_like_by_the_standard_library(reply: dict[str, Any]) -> None:
    data = xmlrpc.client.dumps((reply,), methodresponse=True).encode()
    ((expected,), _) = xmlrpc.client.loads(data)
    assert parse_reply(data) == _without_scores(expected)


def _without_scores(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_scores(v) for name, v in value.items() if name != "scores"}
    return [_without_scores(v) for v in value] if isinstance(value, list) else value


@given(texts | st.just("a\rb"))
def test_text_arrives_unchanged(text: str) -> None:
    (request,), method = xmlrpc.client.loads(translate_request(text, 7))
    assert method == "translate"
    assert request["text"] == text
    assert request["nbest"] == 7
    assert "weights" not in request


def reply(value: str) -> bytes:
    return f"<methodResponse><params><param>{value}</param></params></methodResponse>".encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not XML-RPC"),
        (b"<methodResponse/>", "not XML-RPC .0 of params/param/value"),
        (reply("<value>a</value><value>b</value>"), "2 of params/param/value"),
        (reply("<value><int/></value>"), "not XML-RPC .invalid literal"),
        (reply("<value><nil/></value>"), "not XML-RPC .<nil>"),
        (reply("<value><int>1</int><int>2</int></value>"), "not XML-RPC"),
        (reply("<value><struct><member><name>a</name></member></struct></value>"), "0 of value"),
        (reply("<value>text</value>"), "another structure"),
        (
            xmlrpc.client.dumps(xmlrpc.client.Fault(4, "why"), methodresponse=True).encode(),
            "d: why",
        ),
    ],
)
def test_replies_that_cannot_be_used(data: bytes, message: str) -> None:
    with pytest.raises(DecoderError, match=message):
        parse_reply(data)


def test_weights_of_a_request_are_whole_groups() -> None:
    weights = ModelWeights(
        (
            WeightGroup("LM0", (0.1,)),
            WeightGroup("Fixed0", (None,)),
            WeightGroup("TM0", (1.0, None, -1e-07)),
        )
    )
    kept = {"TM0": (9.0, 0.25, 9.0), "LM0": (9.0,)}
    assert format_request_weights(weights, kept) == "LM0=0.1\tTM0=1 0.25 -1e-07"
    with pytest.raises(DecoderError, match="TM0 has components that are not tuned"):
        format_request_weights(weights, {"TM0": (9.0,)})
