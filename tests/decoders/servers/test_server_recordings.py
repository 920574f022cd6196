"""Requests and replies against those recorded between a client and a real ``moses --server``."""

from __future__ import annotations

import gzip
import json
import xmlrpc.client
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from formats.text import read_lines
from formats.weights.files import WeightGroup, read_dense
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.servers.calls import format_nbest_lines, parse_reply, translate_request
from mosesplug.decoders.servers.server import ServerDecoder

N_SENTENCES, NBEST = 12, 20


def records(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@pytest.fixture(scope="module")
def calls(multi30k: Path) -> list[Any]:
    """The calls that were answered: the sentences at two settings of the weights."""
    found = [call for call in records(multi30k / "server" / "calls.jsonl.gz") if "reply" in call]
    assert len(found) == 2 * N_SENTENCES
    return found


@pytest.fixture(scope="module")
def raw(multi30k: Path) -> list[tuple[str, str]]:
    """Recorded requests and answers, as XML."""
    kinds = [(kind, text) for kind, text in records(multi30k / "server" / "raw.jsonl.gz")]
    texts = [text for _, text in kinds]
    assert [kind for kind, _ in kinds] == ["request", "reply"] * 3
    return list(zip(texts[::2], texts[1::2], strict=True))


def weights_of(text: str) -> ModelWeights:
    pairs = (group.split("=") for group in text.split("\t"))
    groups = (WeightGroup(name, tuple(map(float, values.split()))) for name, values in pairs)
    return ModelWeights(tuple(groups))


def test_a_session_is_the_recorded_one(
    calls: list[Any], tmp_path: Path, stand_in: Callable[..., MosesDecoder]
) -> None:
    replies, log = tmp_path / "replies", tmp_path / "log"
    replies.write_text(json.dumps([call["reply"] for call in calls]))
    decoder = stand_in("replay", replies, log)
    with ServerDecoder(decoder, tmp_path / "moses.ini", tmp_path, NBEST) as online:
        for start in (0, N_SENTENCES):
            batch = calls[start : start + N_SENTENCES]
            sentences = [(100 - i, c["params"]["text"].encode()) for i, c in enumerate(batch)]
            lists = online.decode(sentences, weights_of(batch[0]["params"]["weights"]))
            for part, (number, _), call in zip(lists, sentences, batch, strict=True):
                entries = call["reply"]["nbest"]
                assert part.sentence_ids.tolist() == [number] * len(entries)
                for row, entry in enumerate(entries):
                    exact = [v for name, _ in part.groups for v in entry["scores"][name][0]]
                    assert part.text(row).decode() == entry["hyp"].strip()
                    assert part.dense[row].tolist() == pytest.approx(exact, rel=1e-5)
                    assert part.scores[row] == pytest.approx(entry["totalScore"], rel=1e-5)
    sent = [xmlrpc.client.loads(json.loads(line))[0][0] for line in log.read_text().splitlines()]
    assert len(sent) == len(calls)
    for parameters, call in zip(sent, calls, strict=True):
        recorded = dict(call["params"])
        if "weights" in recorded:
            ours = parameters.pop("weights")
            assert weights_of(ours) == weights_of(recorded.pop("weights"))
        assert parameters == recorded


def test_requests_are_the_recorded_bytes(calls: list[Any], raw: list[tuple[str, str]]) -> None:
    for (request, _), call in zip(raw, calls, strict=False):
        parameters = call["params"]
        ours = translate_request(parameters["text"], NBEST, parameters.get("weights"))
        assert ours == request.encode()


def test_raw_replies_are_understood(calls: list[Any], raw: list[tuple[str, str]]) -> None:
    for (_, reply), call in zip(raw, calls, strict=False):
        entries = [
            {k: e[k] for k in ("hyp", "fvals", "totalScore")} for e in call["reply"]["nbest"]
        ]
        assert parse_reply(reply.encode()) == {"text": call["reply"]["text"], "nbest": entries}


def test_lists_are_those_of_the_decoders_own_file(calls: list[Any], multi30k: Path) -> None:
    """Line by line, for the weights at which a list file was recorded too.

    The two decoders had phrase tables of different kinds (on disk, in memory); in one sentence of
    twelve, one hypothesis of theirs differs, and those behind it are a place off.
    """
    dense = read_dense(multi30k / "forest" / "init.dense")
    groups = tuple(WeightGroup(name, values) for name, values in dense)
    assert weights_of(calls[0]["params"]["weights"]).groups == groups
    lines = read_lines(multi30k / "forest" / "first60.best100.gz")
    lists = [list(part) for _, part in groupby(lines, lambda line: line.split(b" ", 1)[0])]
    same = total = 0
    for number, call in enumerate(calls[:N_SENTENCES]):
        ours = format_nbest_lines(number, call["reply"], NBEST).splitlines()
        file = lists[number][: len(ours)]
        same += sum(a.split() == b.split() for a, b in zip(ours, file, strict=True))
        total += len(ours)
    assert (same, total) == (186, 197)
