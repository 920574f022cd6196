"""Serve translations over XML-RPC, with the requests and replies of Moses' server.

The server reads the complete tables once. Each request builds the model of its sentence from them
at the current weights, so the translations are those of a decoder started with these weights.
"""

from __future__ import annotations

import xmlrpc.client
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from formats.errors import FormatError
from formats.moses.ini import MosesIni
from formats.nbest.entry import NBestEntry, format_entry
from formats.weights.files import parse_weight_overwrite, read_sparse
from mosesplug.errors import DataError, MosesplugError
from mosesplug.extras.phrase_decoder.model import build_model, read_tables
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.extras.phrase_decoder.settings import Settings
from mosesplug.extras.phrase_decoder.translation import (
    list_derivations,
    make_entry,
    search_sentence,
    split_sentences,
)

LOOPBACK = "127.0.0.1"
TRUE = ("true", "True", "TRUE", "1", True)
"""Moses' spellings of true; all other values are false."""
_IDLE_SECONDS = 15


class TranslationService:
    """Answers requests; keeps the weights of the last request that had weights."""

    def __init__(self, ini: MosesIni, settings: Settings) -> None:
        """Read the model."""
        self._ini = ini
        self._settings = settings
        path = settings.weight_file
        self._sparse_weights = {} if path is None else read_sparse(path)
        self._features = read_features(ini, settings.weight_overwrite, self._sparse_weights)
        self._changes = {
            name: " ".join("x" if value is None else repr(value) for value in values)
            for name, values in parse_weight_overwrite(settings.weight_overwrite).items()
        }
        self._tables = read_tables(self._features, None)

    def translate(self, request: Any) -> dict[str, Any]:
        """Translate a sentence, with an n-best list if requested.

        Args:
            request: ``text``; ``nbest``, the length of the list; ``nbest-distinct``;
                ``add-score-breakdown``, which adds feature values to the entries; ``weights``,
                tab-separated ``Name=v v v``, for this and all later requests.

        Raises:
            xmlrpc.client.Fault: the request or its sentence is invalid. Either all weights of the
                request take effect, or none.
        """
        try:
            if not isinstance(request, dict):
                raise DataError("a request must be a structure")
            return self._translated(request)
        except (MosesplugError, FormatError) as error:
            raise xmlrpc.client.Fault(1, str(error)) from error

    def _translated(self, request: Mapping[str, Any]) -> dict[str, Any]:
        text, size = request.get("text"), request.get("nbest", 0)
        weights = request.get("weights", "")
        if not isinstance(text, str) or not isinstance(size, int) or not isinstance(weights, str):
            raise DataError(
                "a request needs a string as text; nbest must be a number and weights a string"
            )
        [words] = split_sentences([text.encode()])
        if weights:
            self._take_weights(weights)
        model = build_model(
            self._tables,
            self._features,
            [words],
            longest_phrase=self._settings.max_phrase_length,
            table_limit=self._settings.table_limit,
        )
        distinct = request.get("nbest-distinct") in TRUE
        wanted = replace(self._settings, n_best_size=max(size, 0), n_best_distinct=distinct)
        found = list_derivations(search_sentence(model, wanted, words), wanted)
        reply: dict[str, Any] = {"text": _text(found[0].words)}
        if size > 0:
            breakdown = request.get("add-score-breakdown") in TRUE
            entries = (make_entry(model, 0, derivation) for derivation in found)
            reply["nbest"] = [_hypothesis(entry, breakdown=breakdown) for entry in entries]
        return reply

    def _take_weights(self, text: str) -> None:
        """Change the weights of the groups in the text."""
        changes = dict(self._changes)
        for group in text.split("\t"):
            name, equals, values = group.partition("=")
            if not equals or "=" in values:
                raise DataError(f"weights must be tab-separated Name=v v v, not {group!r}")
            changes[name] = values
        overwrite = " ".join(f"{name}= {values}" for name, values in changes.items())
        self._features = read_features(self._ini, overwrite, self._sparse_weights)
        self._changes = changes


def make_server(port: int, service: TranslationService) -> SimpleXMLRPCServer:
    """Return a server that listens on a local port but answers nothing yet.

    Port 0 means any free one.
    """
    try:
        server = _Server((LOOPBACK, port), _Handler, logRequests=False)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{LOOPBACK}:{port}") from error
    server.register_introspection_functions()
    server.register_function(service.translate, "translate")
    return server


class _Server(SimpleXMLRPCServer):
    """A server that exits when it is interrupted in a request.

    Python's own class replies and continues.
    """

    def _marshaled_dispatch(self, data: Any, dispatch_method: Any = None, path: Any = None) -> Any:
        """Return the reply to a request, both as bytes of XML."""
        try:
            parameters, method = xmlrpc.client.loads(data)
            reply = self._dispatch(str(method), parameters)
            text = xmlrpc.client.dumps((reply,), methodresponse=True)
        except xmlrpc.client.Fault as fault:
            text = xmlrpc.client.dumps(fault)
        except Exception as error:
            text = xmlrpc.client.dumps(xmlrpc.client.Fault(1, repr(error)))
        return text.encode()


class _Handler(SimpleXMLRPCRequestHandler):
    """Drops a client that sends nothing, since it blocks the others."""

    timeout = _IDLE_SECONDS


def _hypothesis(entry: NBestEntry, *, breakdown: bool) -> dict[str, Any]:
    """Convert an entry of the n-best list to the form of Moses' server."""
    item: dict[str, Any] = {"hyp": _text(entry.text.split()), "totalScore": entry.score}
    if breakdown:
        item["fvals"] = format_entry(entry).split(b"|||")[2].decode().rstrip()
        scores: dict[str, Any] = {name: [list(values), {}] for name, values in entry.dense}
        for name, value in entry.sparse:
            scores.setdefault(name.partition("_")[0], [[], {}])[1][name] = value
        item["scores"] = scores
    return item


def _text(words: Sequence[bytes]) -> str:
    """Join words, with a blank after each."""
    text = b"".join(word + b" " for word in words)
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the translation {text!r} is not UTF-8") from error
