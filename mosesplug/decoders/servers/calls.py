"""Requests to a translation server and its replies, in Moses' XML-RPC.

The method ``translate`` takes one structure: ``text``, ``nbest`` (how many), ``nbest-distinct``,
``add-score-breakdown``, and ``weights``, which stay in force until the next ones. The reply has the
n-best list as ``nbest``. Each entry has ``hyp``, ``totalScore`` and ``fvals``: the features field
of the decoder's own n-best file, digit for digit, sparse features included.
"""

from __future__ import annotations

import http.client
import re
import socket
import time
import xmlrpc.client
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from xml.etree import ElementTree

from formats.weights.files import format_weight
from mosesplug.decoders.batch import ModelWeights
from mosesplug.errors import DecoderError

HOST = "127.0.0.1"

PROBE = xmlrpc.client.dumps((), "system.listMethods").encode()
"""A request that every XML-RPC server answers without doing work."""

_PIECE = 1 << 16
_LARGEST_HEAD = 1 << 20
_LARGEST_HYPOTHESIS = 1 << 18
_LARGEST_PAIR = 1 << 12
_DEEPEST = 16
_TAG = re.compile(rb"<member>\s*<name>(scores|align)</name>|<member>|</member>")
_LONGEST_FAULT = 500
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class ServerLost(DecoderError):
    """The connection broke before an answer: the server died, or is dying."""


def to_request_text(number: int, text: bytes) -> str:
    """Return a sentence as the text of a request.

    Raises:
        DecoderError: it is not UTF-8, or has characters that XML excludes.
    """
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise DecoderError(
            f"sentence {number} is not UTF-8 ({error.reason} at byte {error.start}), which requests"
            " to a server must be: decode by a process for each batch"
        ) from error
    if (character := _NOT_IN_XML.search(decoded)) is not None:
        raise DecoderError(
            f"sentence {number} has the character U+{ord(character[0]):04X}, which requests to a"
            " server cannot hold: remove it, or decode by a process for each batch"
        )
    return decoded


def translate_request(
    text: str, nbest: int, weights: str | None = None, *, with_segmentation: bool = False
) -> bytes:
    """Return the request for a distinct n-best list with all feature values.

    Args:
        text: the sentence.
        nbest: length of the list.
        weights: as ``format_request_weights`` gives them, or None to keep those in force.
        with_segmentation: ask for marks behind the phrases of each hypothesis, ``|0-1|``.
    """
    parameters: dict[str, Any] = {
        "text": text,
        "nbest": nbest,
        "nbest-distinct": "true",
        "add-score-breakdown": "true",
    }
    if weights is not None:
        parameters["weights"] = weights
    if with_segmentation:
        parameters["align"] = "true"
    body = xmlrpc.client.dumps((parameters,), "translate").encode()
    # XML readers turn a bare carriage return into a newline.
    return body.replace(b"\r", b"&#13;")


def format_request_weights(weights: ModelWeights, kept: Mapping[str, tuple[float, ...]]) -> str:
    """Return dense weights for a request: ``Name=v v v``, groups joined by tabs.

    Unlike ``-weight-overwrite``, a request must give all components of a group.

    Args:
        weights: the weights.
        kept: the configuration's values by group, for components that are not in ``weights``.

    Raises:
        DecoderError: the configuration lacks such a component.
    """
    texts = []
    for group in weights.groups:
        if not group.is_tuneable:
            continue
        values = list(group.values)
        if None in values:
            old = kept.get(group.name, ())
            if len(old) != len(values):
                raise DecoderError(
                    f"{group.name} has components that are not tuned, and no weights in the"
                    " configuration that a server could be sent: decode by a process for each batch"
                )
            values = [old[i] if value is None else value for i, value in enumerate(values)]
        numbers = " ".join(format_weight(value) for value in values if value is not None)
        texts.append(f"{group.name}={numbers}")
    return "\t".join(texts)


def largest_reply(nbest: int, n_words: int = 0, n_contexts: int = 0) -> int:
    """Return how many bytes the reply to a request for so many hypotheses may have.

    A hypothesis of 80 words with 200 sparse features, each of which a reply repeats with markup,
    takes an eighth of what is allowed for one. The same holds for pairs of source words, which a
    reply of Moses' server repeats for each feature function.

    Args:
        nbest: length of the list.
        n_words: length of the source sentence.
        n_contexts: number of functions with a feature for each pair of source words.
    """
    pairs = n_contexts * n_words**2
    return _LARGEST_HEAD + nbest * (_LARGEST_HYPOTHESIS + pairs * _LARGEST_PAIR)


class _BoundedSocket(socket.socket):
    """A connection whose replies have a latest end and a largest size.

    The timeout of a plain socket starts again with each byte that arrives.
    """

    deadline: float
    seconds: float
    room: int

    def limit(self, seconds: float, largest: int) -> None:
        self.deadline, self.seconds, self.room = time.monotonic() + seconds, seconds, largest

    def recv_into(self, *arguments: Any) -> int:
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self.settimeout(remaining)
        received = super().recv_into(*arguments)
        self.room -= received
        if self.room < 0:
            raise DecoderError(
                "the decoder's server answered with more data than a list of this length can have:"
                " check the server, or decode by a process for each batch"
                " ({--online-decoder process})"
            )
        return received


def post_request(
    connect: Callable[[float], socket.socket],
    body: bytes,
    timeout: float,
    largest: int = _LARGEST_HEAD,
) -> bytes:
    """Send a request to a server on this machine, on a new connection.

    Args:
        connect: makes the connection, given a timeout.
        body: the request.
        timeout: seconds until the whole answer must be there.
        largest: bytes that the answer may have; see ``largest_reply``.

    Raises:
        TimeoutError: it did not answer in time.
        ServerLost: no server answers, or it closed the connection.
        DecoderError: the answer is not HTTP, or too large.
    """
    connection = http.client.HTTPConnection(HOST, timeout=timeout)
    response: http.client.HTTPResponse | None = None
    try:
        connection.sock = bounded = _BoundedSocket(fileno=connect(timeout).detach())
        bounded.limit(timeout, largest)
        bounded.settimeout(timeout)
        # Head and body are sent separately: do not wait between them.
        bounded.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Content-Type": "text/xml", "Connection": "close"}
        connection.request("POST", "/RPC2", body, headers)
        response = connection.getresponse()
        # A whole body at once would take the memory that its header announces.
        data = b"".join(iter(partial(response.read, _PIECE), b""))
        if response.length:
            raise http.client.IncompleteRead(data, response.length)
    except TimeoutError:
        raise
    except (OSError, http.client.IncompleteRead) as error:
        raise ServerLost(f"the connection to the decoder's server broke: {error}") from error
    except (http.client.HTTPException, ValueError) as error:
        raise DecoderError(f"the decoder's server did not answer in HTTP: {error!r}") from error
    finally:
        connection.close()
        if response is not None:  # it holds the socket open
            response.close()
    if response.status != http.client.OK:
        raise DecoderError(
            f"the decoder's server answered {response.status} {response.reason} instead of 200"
        )
    return data


def parse_reply(data: bytes) -> Mapping[str, Any]:
    """Return the structure in a reply, without ``scores`` and ``align``.

    They repeat ``fvals`` and the marks of phrases as nested structures, and are most of a reply.
    Without them, and without ``xmlrpc.client``, parsing takes a tenth of the time, during which no
    other thread runs.

    Raises:
        DecoderError: the reply reports a fault, or cannot be parsed.
    """
    try:
        root = ElementTree.fromstring(_remove_unread(data))
        fault = root.find("fault/value")
        value = _value(_only(root, "params/param/value") if fault is None else fault)
    except (ElementTree.ParseError, ValueError, TypeError) as error:
        raise DecoderError(
            f"the decoder's server answered something that is not XML-RPC ({error}): {data[:80]!r}"
        ) from error
    if not isinstance(value, dict):
        raise DecoderError("the decoder's server answered with another structure than Moses'")
    if fault is not None:
        reason = str(value.get("faultString"))[:_LONGEST_FAULT]
        raise DecoderError(f"the decoder's server refused: {reason}")
    return value


def _remove_unread(data: bytes) -> bytes:
    """Return a reply without members that nobody reads, if it is complete."""
    kept = []
    begin = depth = 0
    for tag in _TAG.finditer(data):
        if depth:
            depth += -1 if tag[0] == b"</member>" else 1
            if not depth:
                begin = tag.end()
        elif tag[1] is not None:
            kept.append(data[begin : tag.start()])
            depth = 1
    return data if depth else b"".join((*kept, data[begin:]))


def _only(element: ElementTree.Element, path: str) -> ElementTree.Element:
    children = element.findall(path)
    if len(children) != 1:
        raise ValueError(f"{len(children)} of {path}")
    return children[0]


def _value(element: ElementTree.Element, depth: int = 0) -> Any:
    """Return the content of a ``<value>``, a string unless an inner element types it."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} values inside each other")
    if not len(element):
        return element.text or ""
    (content,) = element
    match content.tag:
        case "string":
            return content.text or ""
        case "double":
            return float(content.text or "")
        case "int" | "i4" | "i8" | "boolean":
            return int(content.text or "")
        case "struct":
            named = ((_only(member, "name").text or "", member) for member in content)
            return {name: _value(_only(member, "value"), depth + 1) for name, member in named}
        case "array":
            return [_value(item, depth + 1) for item in content.iterfind("data/value")]
    raise ValueError(f"<{content.tag}>")


def format_nbest_lines(
    place: int,
    reply: Mapping[str, Any],
    nbest: int,
    complete: Callable[[bytes, bytes], tuple[bytes, bytes]] = lambda *fields: fields,
) -> bytes:
    """Return the hypotheses of a reply as lines of an n-best file.

    Args:
        place: sentence id of the lines.
        reply: from ``parse_reply``.
        nbest: how many hypotheses were requested.
        complete: changes text and features of a hypothesis.

    Raises:
        DecoderError: the reply has no list, a longer one or no feature values, or a hypothesis
            cannot be written as a line.
    """
    entries = reply.get("nbest")
    if not isinstance(entries, list):
        raise DecoderError(
            "the decoder's server gives no n-best lists (Moses' does so with phrase-based search"
            " only): decode by a process for each batch"
        )
    if len(entries) > nbest:
        raise DecoderError(
            f"the decoder's server gave {len(entries):,} hypotheses, but {nbest} were requested:"
            " check the server, or decode by a process for each batch ({--online-decoder process})"
        )
    return b"".join(_line(place, entry, complete) for entry in entries)


def _line(place: int, entry: Any, complete: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> bytes:
    try:
        text, features, score = entry["hyp"], entry["fvals"], float(entry["totalScore"])
        fields = (text.encode(), features.encode())
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise DecoderError(
            "the decoder's server gave a hypothesis without text (hyp), feature values (fvals) or"
            f" score (totalScore): {error!r}"
        ) from error
    fields = complete(*fields)
    if any(b"\n" in field or b"|||" in field for field in fields):
        raise DecoderError(
            f"the decoder's server gave a hypothesis that cannot be a line of a list: {text!r}"
        )
    # Six digits, as in the decoder's own file.
    return b"%d ||| %b|||%b ||| %b\n" % (place, fields[0], fields[1], b"%.6g" % score)
