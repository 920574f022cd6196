"""Requests and replies as XML."""

from __future__ import annotations

import socket
import threading
import tracemalloc
import xmlrpc.client
from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.servers.calls import (
    PROBE,
    ServerLost,
    format_nbest_lines,
    format_request_weights,
    largest_reply,
    parse_reply,
    post_request,
    translate_request,
)
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
        (reply(10**4 * "<value><array><data>" + 10**4 * "</data></array></value>"), "16 values in"),
        (reply(f"<value><int>{10**4 * '9'}</int></value>"), "not XML-RPC"),
        (
            xmlrpc.client.dumps(xmlrpc.client.Fault(4, "why"), methodresponse=True).encode(),
            "d: why",
        ),
    ],
)
def test_replies_that_cannot_be_used(data: bytes, message: str) -> None:
    with pytest.raises(DecoderError, match=message):
        parse_reply(data)


def exchange(pieces: Iterable[bytes], seconds: float = 60, largest: int = 1 << 16) -> bytes:
    """Post a request to a server that answers with these pieces, one every 10 ms if slow."""

    def answer() -> None:
        accepted, _ = listener.accept()
        with accepted:
            request = b""
            while PROBE not in request:  # what is left unread resets the connection
                request += accepted.recv(1 << 16)
            for piece in pieces:
                try:
                    accepted.sendall(piece)
                except OSError:  # the other side has had enough
                    return
                if len(piece) == 1:
                    done.wait(0.01)

    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            return post_request(
                lambda timeout: socket.create_connection(listener.getsockname(), timeout),
                PROBE,
                seconds,
                largest,
            )
        finally:
            done.set()
            thread.join()


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "error", "message"),
    [
        (chain([HEAD, b"\r\n"], repeat(b"a" * 999)), DecoderError, "more data than a list"),
        (chain([CHUNKED], repeat(b"3\r\nabc\r\n")), DecoderError, "more data than a list"),
        (chain([HEAD], repeat(b"Continue: a\r\n")), DecoderError, "HTTP: .*100 headers"),
        (chain([HEAD], repeat(b"a" * 999)), DecoderError, "more data than a list"),
        (repeat(b"HTTP/1.1 100 Continue\r\n\r\n"), DecoderError, "more data than a list"),
        ([CHUNKED, b"xyz\r\nabc\r\n"], ServerLost, "broke: IncompleteRead"),
        ([CHUNKED, b"-5\r\nabc\r\n"], DecoderError, "did not answer in HTTP"),
        ([CHUNKED, b"ffffffffffff\r\nabc\r\n"], ServerLost, "broke: IncompleteRead"),
        (
            [HEAD, b"Content-Length: 99999999999999\r\n\r\n", b"abc"],
            ServerLost,
            r"broke: IncompleteRead\(3 bytes read, 99999999999996 more",
        ),
    ],
)
def test_answers_without_end_or_measure(
    pieces: Iterable[bytes], error: type[Exception], message: str
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(error, match=message):
            exchange(pieces)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head", [b"", HEAD, HEAD + b"\r\n"], ids=["none", "status", "body"])
def test_an_answer_byte_by_byte_has_the_same_time(head: bytes) -> None:
    with pytest.raises(TimeoutError):
        exchange(chain([head], repeat(b"a")), 0.1)


@pytest.mark.parametrize("head", [b"Content-Length: 12\r\n\r\n", b"\r\n"])
def test_an_answer_in_pieces(head: bytes) -> None:
    assert exchange([HEAD, head, b"abc", b"defghi", b"jkl"]) == b"abcdefghijkl"


def test_more_hypotheses_than_requested() -> None:
    entry = {"hyp": "a", "fvals": " LM0= 1", "totalScore": 1.0}
    assert format_nbest_lines(3, {"nbest": 2 * [entry]}, 2).count(b"\n") == 2
    with pytest.raises(DecoderError, match="gave 3 hypotheses, but 2 were requested"):
        format_nbest_lines(3, {"nbest": 3 * [entry]}, 2)


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


def test_the_largest_reply_with_source_contexts() -> None:
    """Of Moses' server, for 28 words, with word translations and phrase pairs in contexts."""
    size, n_hypotheses = 58_307_237, 70
    assert largest_reply(n_hypotheses) < size
    assert size < largest_reply(n_hypotheses, 28, 2) / 4
