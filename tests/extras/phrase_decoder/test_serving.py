"""Requests answered as a decoder answers that was started for them."""

from __future__ import annotations

import dataclasses
import socket
import xmlrpc.client
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from formats.moses.ini import MosesIni, read_moses_ini
from mosesplug.decoders.servers.calls import PROBE, ServerLost, format_nbest_lines, post_request
from mosesplug.extras.phrase_decoder.model import load_model
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.extras.phrase_decoder.serving import TranslationService, make_server
from mosesplug.extras.phrase_decoder.settings import read_settings
from mosesplug.extras.phrase_decoder.translation import split_sentences, translate
from tests.waiting import LIMIT

NAMES = ("LexicalReordering0", "Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0", "TM0")
SENTENCES = ("a b c", "c a b a", "", "a unknown c", "b")
BEST = {"nbest": 6, "nbest-distinct": "true", "add-score-breakdown": "true"}


@pytest.fixture
def ini(random_system: Callable[..., Any]) -> MosesIni:
    return read_moses_ini(random_system(3).ini)


def service(ini: MosesIni, **changes: Any) -> TranslationService:
    return TranslationService(ini, dataclasses.replace(read_settings({}, ini), **changes))


def expected(ini: MosesIni, number: int, overwrite: str, *, distinct: bool = True) -> bytes:
    """The lines that a decoder writes which is started with these weights for all sentences."""
    wanted = dataclasses.replace(
        read_settings({}, ini), n_best_file="list", n_best_size=6, n_best_distinct=distinct
    )
    sentences = split_sentences([text.encode() for text in SENTENCES])
    model = load_model(read_features(ini, overwrite), sentences)
    return translate(model, wanted, number, sentences[number]).n_best


def normal(lines: bytes) -> list[bytes]:
    return [b" ".join(line.split()) for line in lines.splitlines()]


def test_weights_are_kept_until_the_next_request_changes_them(ini: MosesIni) -> None:
    server = service(ini, weight_overwrite="WordPenalty0= -0.25")
    sent = ("", "LM0=0.1\tTM0=1 -0.5", "Distortion0=1e-05")
    in_force = (
        "WordPenalty0= -0.25",
        "WordPenalty0= -0.25 LM0= 0.1 TM0= 1 -0.5",
        "WordPenalty0= -0.25 LM0= 0.1 TM0= 1 -0.5 Distortion0= 1e-05",
    )
    lists = []
    for weights, overwrite in zip(sent, in_force, strict=True):
        request = {"weights": weights} if weights else {}
        for number, text in enumerate(SENTENCES):
            reply = server.translate({"text": text, **BEST, **request})
            lists.append(normal(format_nbest_lines(number, reply, 6)))
            assert lists[-1] == normal(expected(ini, number, overwrite))
            assert reply["text"] == reply["nbest"][0]["hyp"]
            request = {}
    assert lists[0] != lists[len(SENTENCES)]


def test_an_entry_has_the_fields_of_moses(ini: MosesIni) -> None:
    reply = service(ini).translate({"text": "a b", **BEST})
    entry = reply["nbest"][0]
    assert set(entry) == {"hyp", "fvals", "scores", "totalScore"}
    assert entry["hyp"].endswith(" ")
    assert list(entry["scores"]) == list(NAMES)
    dense, sparse = entry["scores"]["LexicalReordering0"]
    assert len(dense) == 6
    assert sparse == {}
    numbers = {name: " ".join(f"{v:.6g}" for v in entry["scores"][name][0]) for name in NAMES}
    assert entry["fvals"] == "".join(f" {name}= {values}" for name, values in numbers.items())


def test_fields_that_are_not_requested_are_omitted(ini: MosesIni) -> None:
    server = service(ini)
    assert set(server.translate({"text": "a b"})) == {"text"}
    assert set(server.translate({"text": "a b", "nbest": 0})) == {"text"}
    plain = server.translate({"text": "c c", "nbest": 6, "nbest-distinct": "no"})
    assert set(plain["nbest"][0]) == {"hyp", "totalScore"}
    texts = [entry["hyp"] for entry in plain["nbest"]]
    assert len(set(texts)) < len(texts)


def test_empty_text_has_one_empty_hypothesis(ini: MosesIni) -> None:
    for text in ("", "   "):
        reply = service(ini).translate({"text": text, **BEST})
        assert reply["text"] == ""
        assert [(e["hyp"], e["totalScore"]) for e in reply["nbest"]] == [("", 0.0)]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "needs a string as text"),
        ("a b", "must be a structure"),
        ({"text": 3}, "needs a string as text"),
        ({"text": "a", "nbest": "6"}, "nbest must be a number"),
        ({"text": "a ||| b"}, "cannot be a word"),
        ({"text": "a", "weights": "LM0"}, "weights must be tab-separated Name=v v v"),
        ({"text": "a", "weights": "LM0=1 TM0=1 2"}, "weights must be tab-separated Name=v v v"),
        ({"text": "a", "weights": "LM0=1\tTM0=1"}, "1 value.* for TM0, which has 2"),
        ({"text": "a", "weights": "LM0=1\tLM9=1"}, "LM9, which has no feature"),
        ({"text": "a", "weights": "LM0=nan"}, "the weight of LM0 is 'nan'"),
    ],
)
def test_requests_that_cannot_be_used_change_nothing(
    request_: Any, message: str, ini: MosesIni
) -> None:
    server = service(ini)
    before = server.translate({"text": "a b c", **BEST})
    with pytest.raises(xmlrpc.client.Fault, match=message):
        server.translate(request_)
    assert server.translate({"text": "a b c", **BEST}) == before


def connect_to(port: int) -> Callable[[float], socket.socket]:
    return lambda timeout: socket.create_connection(("127.0.0.1", port), timeout)


def test_an_interrupt_during_work_ends_it(ini: MosesIni, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: object) -> None:
        raise KeyboardInterrupt

    answers = service(ini)
    monkeypatch.setattr(answers, "translate", interrupted)
    request = xmlrpc.client.dumps(({},), "translate").encode()
    with make_server(0, answers) as server, ThreadPoolExecutor(1) as client:
        port = server.server_address[1]
        alive = client.submit(post_request, connect_to(port), PROBE, LIMIT)
        server.handle_request()
        assert b"<string>translate</string>" in alive.result()
        lost = client.submit(post_request, connect_to(port), request, LIMIT)
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()
        with pytest.raises(ServerLost):
            lost.result()


def test_a_fault_of_the_program_is_a_fault_in_the_reply(
    ini: MosesIni, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = service(ini)
    monkeypatch.setattr(answers, "translate", lambda request: 1 // 0)
    with make_server(0, answers) as server, ThreadPoolExecutor(1) as client:
        request = xmlrpc.client.dumps(({},), "translate").encode()
        reply = client.submit(post_request, connect_to(server.server_address[1]), request, LIMIT)
        server.handle_request()
        with pytest.raises(xmlrpc.client.Fault, match="ZeroDivisionError"):
            xmlrpc.client.loads(reply.result())
